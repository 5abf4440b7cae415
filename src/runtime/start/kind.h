/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_KIND_H
#define NACRE_RUNTIME_KIND_H

#include "base/log/error.h"
#include "instance/model.h"

/* The word for a kind of instance, as a request has it. "": `otherwise`; INSTANCE_KIND_COUNT is
 * "auto". ERROR_INVALID, or ERROR_PRECONDITION for one that others have, names `kind`. */
int kind_take(const char *kind, enum instance_kind otherwise, enum instance_kind *ret,
	      struct error *err);

#endif
