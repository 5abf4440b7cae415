/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_ASIDE_H
#define NACRE_OCI_ASIDE_H

#include "base/log/error.h"

/*
 * A mount namespace beside the caller's, for this process alone: a copy, from which nothing comes
 * back and to which nothing comes. Mounts in it are gone once this process, and those that it
 * started there, have left it or ended: also where they were killed.
 *
 * This process must have one thread.
 */

struct aside {
	int before_fd, beside_fd; /* the namespaces; -1: it was not made */
	int cwd_fd, beside_cwd_fd;
};

#define ASIDE_INIT                                                                                 \
	{                                                                                          \
		.before_fd = -1, .beside_fd = -1, .cwd_fd = -1, .beside_cwd_fd = -1                \
	}

/* Makes it and goes there. Paths lead where they led before. */
int aside_enter(struct aside *a, struct error *err);
/* Back, and there again. */
int aside_leave(const struct aside *a, struct error *err);
int aside_return(const struct aside *a, struct error *err);
/* Forgets it; where this process stands does not change. */
void aside_done(struct aside *a);

#endif
