/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_NICS_H
#define NACRE_RUNTIME_NICS_H

#include <stddef.h>

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "instance/model.h"

/*
 * The network devices that a request hands to an instance (field `nics`), as the instance takes
 * them: at most one; ret->bridge is "" where there is none. ERROR_INVALID, and ERROR_PRECONDITION
 * where that instance cannot have one, or the node has no such bridge, name the field; likewise
 * `network` where that is "host" and the instance has no such network.
 */
int nics_take(const char *network, Aurae__Runtime__V0__Nic *const *nics, size_t n,
	      const struct instance *parent, const struct instance_choice *choice,
	      struct instance_nic *ret, struct error *err);

#endif
