/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_SIZE_H
#define NACRE_RUNTIME_SIZE_H

#include <stddef.h>

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "instance/model.h"

/* Limits, as the size of a machine that they are to hold in. Pure. */

/* The size that they need: the limits of the whole, which may be NULL, and the sums of those of the
 * containers. */
struct instance_size size_of(const Aurae__Runtime__V0__Resources *whole,
			     Aurae__Runtime__V0__Container *const *containers, size_t n);

/* Whether limits for something in `in` (NULL: the node) are within its machine: ERROR_PRECONDITION
 * names the field below `field`, and both sizes. Anything without a limit is limited by the
 * machine. */
int size_check(const struct instance *in, const Aurae__Runtime__V0__Resources *limits,
	       const char *field, struct error *err);

/* The same of a workload and its containers. */
int size_check_run(const struct instance *in, const Aurae__Runtime__V0__Resources *whole,
		   Aurae__Runtime__V0__Container *const *containers, size_t n, struct error *err);

#endif
