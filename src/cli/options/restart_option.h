/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_RESTART_OPTION_H
#define NACRE_CLI_RESTART_OPTION_H

#include <stdbool.h>

#include "api/runtime.pb-c.h"
#include "base/log/error.h"

struct args;

#define OPTION_RESTART                                                                             \
	{                                                                                          \
		"restart", 0, "POLICY",                                                            \
			"start it again when it has ended: no, on-failure[:N], always or "         \
			"unless-stopped"                                                           \
	}

/* Reads --restart: *field of a request is `room`, or NULL where the option is not given.
 * ERROR_INVALID for other words, and beside --rm (remove). */
int restart_option_read(Aurae__Runtime__V0__RestartPolicy **field,
			Aurae__Runtime__V0__RestartPolicy *room, const struct args *args,
			bool remove, struct error *err);

#endif
