/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_SECURITY_H
#define NACRE_RUNTIME_SECURITY_H

#include "api/runtime.pb-c.h"
#include "base/error.h"
#include "cell/spec.h"

/* Privilege of a container as the API has it, checked, as the domain takes it. field: that of the
 * message ("containers[0].security"); NULL for a message that is not there. ERROR_INVALID. */
int security_take(struct container_security *to, const Aurae__Runtime__V0__Security *from,
		  const char *field, struct error *err);

#endif
