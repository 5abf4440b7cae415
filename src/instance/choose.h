/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_CHOOSE_H
#define NACRE_INSTANCE_CHOOSE_H

#include "instance/model.h"

struct provider_warm;

/*
 * Of which kind a new instance is to be. Changes nothing.
 *
 * Without a wish (INSTANCE_KIND_COUNT) it is the kind that its provider says is preferred on this
 * host, else a cell; the choice's reason says why. A wish is met or refused: ERROR_PRECONDITION,
 * with the reason why none can be made. Below another instance that one's keeper makes it, and
 * without a wish it is a cell.
 */
int instances_choose(const struct instances *all, const struct instance *parent,
		     enum instance_kind wish, struct instance_choice *ret, struct error *err);

/* Those with a kernel of their own that were made ahead of need (provider.h). */
void instances_look_warm(const struct instances *all, struct provider_warm *ret);

#endif
