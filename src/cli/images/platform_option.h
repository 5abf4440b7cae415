/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_PLATFORM_OPTION_H
#define NACRE_CLI_PLATFORM_OPTION_H

#include "base/log/error.h"

#define PLATFORM_OPTION_MAX 32 /* of each word */

/*
 * The value of --platform: [linux/]ARCHITECTURE[/VARIANT], in OCI's words. The names of
 * architectures of uname(1) and Debian are understood too ("x86_64", "armhf").
 */
struct platform_option {
	char architecture[PLATFORM_OPTION_MAX + 1]; /* "" where the option is not there */
	char variant[PLATFORM_OPTION_MAX + 1];      /* "" where none is said */
};

/* text: of the option, or NULL. */
int platform_option_read(struct platform_option *ret, const char *text, struct error *err);

#endif
