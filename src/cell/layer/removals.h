/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_REMOVALS_H
#define NACRE_CELL_REMOVALS_H

#include "base/memory/list.h"

/* Waiters for the end of an object: lists of callbacks, called in order. */

/* done may be NULL. -ENOMEM. */
int removal_add(struct list *to, void (*done)(void *userdata), void *userdata);
void removals_move(struct list *from, struct list *to);
/* Calls and forgets them; they may add others meanwhile. */
void removals_answer(struct list *removals);
/* Forgets them without a call. */
void removals_drop(struct list *removals);

#endif
