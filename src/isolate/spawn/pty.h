/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_PTY_H
#define NACRE_ISOLATE_PTY_H

#include <sys/types.h>

#include "base/log/error.h"
#include "isolate/spawn/ids.h"

/*
 * A terminal for a process that is yet to be made: both of its ends, out of a devpts that the
 * process will see, so that its name (/dev/pts/N) is true there. The master never leaves the
 * spawner.
 */

struct isolate_pty {
	int master_fd; /* non-blocking */
	int slave_fd;
	int mount_fd; /* a new devpts, detached: plan.pts_fd; -1 where it was there before */
};

#define ISOLATE_PTY_INIT                                                                           \
	{                                                                                          \
		.master_fd = -1, .slave_fd = -1, .mount_fd = -1                                    \
	}

/* The group of terminals in a container: tty in all distributions. */
#define PTY_GROUP 5

/* Number 0 of a new devpts. ids: of the user namespace of the container that gets it. */
int isolate_pty_new(struct isolate_pty *ret, const struct isolate_ids *ids, struct error *err);
/* Of the devpts at /dev/pts of a process. proc_fd: a /proc in which pid has that number, which must
 * not change its owner meanwhile. ERROR_PRECONDITION where there is no devpts. */
int isolate_pty_of(struct isolate_pty *ret, int proc_fd, pid_t pid, struct error *err);
void isolate_pty_done(struct isolate_pty *p);

#endif
