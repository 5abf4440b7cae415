/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_NESTED_H
#define NACRE_INSTANCE_NESTED_H

#include "instance/model.h"

/*
 * An instance of kind vm in one of kind vm, as the node's daemon sees it; private to this area. The
 * keeper of the outer one makes it, of what lies on a disk: that is put into the outer machine
 * before, and is taken out with the last instance there that needs it.
 */

/* Whether one can be made below parent. ERROR_PRECONDITION, and why not. */
int nested_check(const struct instances *all, const struct instance *parent, struct error *err);
/* i->machine: what it shall be. ERROR_PRECONDITION where the outer one is too small for that. */
int nested_plan(struct instance *i, struct error *err);
/* done once, later, where this returns 0: the keeper above has made it (err NULL), and i->kernel is
 * set. */
int nested_begin(struct instance *i, void (*done)(struct instance *i, const struct error *err),
		 struct error *err);
/* It is there from an earlier life. */
void nested_adopt(struct instance *i);
/* It has ended. */
void nested_over(struct instance *i);

static inline bool instance_is_nested_machine(const struct instance *i)
{
	return !instance_is_own(i) && i->choice.kind == INSTANCE_VM;
}

#endif
