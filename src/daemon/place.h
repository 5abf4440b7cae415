/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_PLACE_H
#define NACRE_DAEMON_PLACE_H

#include <stddef.h>

#include "base/log/error.h"
#include "base/time/clock.h"

/*
 * Where a node keeps things: its root and run directories and its base cgroup, made where they are
 * missing and open from the start of the daemon to its end.
 */
struct place {
	int root_fd;
	int run_fd;
	int lock_fd;
	int logs_fd;
	int secrets_fd, sets_fd; /* volumes/secrets.h */
	int top_fd;              /* root of the v2 hierarchy */
	int cgroup_fd;           /* the base group below it */
	char cgroup[600];        /* path below the root of the v2 hierarchy */
};

/* ERROR_PRECONDITION where another daemon has the run directory; where `replace` is not 0, that one
 * is asked to end, and waited for so long at most. wanted_cgroup: "" to find one. */
int place_open(struct place *p, const char *root, const char *run, const char *wanted_cgroup,
	       nsec_t replace, struct error *err);
void place_done(struct place *p);
/* Removes the base cgroup where nothing lives in it. */
void place_remove_cgroup(struct place *p);

/* A helper's path: below libexec where that is not "", beside this program in a build tree, or
 * where it was installed. */
void place_find_helper(const char *libexec, const char *name, char *ret, size_t size);
/* The same, as a text that is the caller's; NULL: no memory. */
char *place_helper(const char *libexec, const char *name);

#endif
