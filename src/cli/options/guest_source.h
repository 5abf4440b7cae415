/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_GUEST_SOURCE_H
#define NACRE_CLI_GUEST_SOURCE_H

#include <stdbool.h>

#include "base/log/error.h"

struct args;

/* The files that a guest set is made of, as the user names them or where they are usually found. */
struct guest_source {
	int kernel_fd;
	int modules_fd; /* -1: everything is built in */
	int nacre_fd;
	int gate_fd; /* -1: --gate none */
};

#define GUEST_SOURCE_INIT                                                                          \
	{                                                                                          \
		.kernel_fd = -1, .modules_fd = -1, .nacre_fd = -1, .gate_fd = -1                   \
	}

/* By the options --from, --kernel, --modules and --gate. */
int guest_source_find(struct guest_source *s, const struct args *args, struct error *err);
void guest_source_done(struct guest_source *s);

/* The node's root directory. make: it is made where it is missing. */
int guest_source_root(const char *root, bool make, struct error *err);

#endif
