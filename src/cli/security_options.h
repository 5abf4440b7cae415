/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_SECURITY_OPTIONS_H
#define NACRE_CLI_SECURITY_OPTIONS_H

#include "api/runtime.pb-c.h"
#include "base/args.h"
#include "base/error.h"

/* What a container may do: --cap-add, --cap-drop, --group-add, --security-opt, --security-profile,
 * for its message. */

struct security_options {
	Aurae__Runtime__V0__Security message;
	char **add, **drop; /* of the arguments */
	uint32_t *groups;
};

#define SECURITY_OPTIONS_INIT                                                                      \
	{                                                                                          \
		.add = NULL                                                                        \
	}

/* ERROR_INVALID names the option. The message points into s and the arguments. */
int security_options_take(struct security_options *s, Aurae__Runtime__V0__Container *to,
			  const struct args *a, struct error *err);
void security_options_done(struct security_options *s);

#endif
