/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_GRAFT_H
#define NACRE_ISOLATE_GRAFT_H

#include "base/log/error.h"

/*
 * Mounts below a directory at the top of another mount namespace, put there and taken away while
 * its processes run. `name` is one component. Both make a thread that enters the namespace, works,
 * and ends there, and wait for it: not for the loop. The directory itself may be mounted read-only;
 * it must be on a file system that nobody else writes to.
 *
 * Should: enter by the descriptor alone, and resolve nothing there but these two names, through no
 * link. Must not: leave the calling thread in that namespace, whatever fails.
 */

/*
 * Puts a detached mount, which is used up, on place/name; that is made, a directory or a file, as
 * the mount needs. -EEXIST (ERROR_EXISTS): something is mounted there.
 */
int isolate_graft(int ns_fd, const char *place, const char *name, int mount_fd, struct error *err);

/*
 * Takes it away, and the name with it. 1: somebody has something of it open (or there are mounts
 * below it); nobody finds it any more, but who has it may go on with it, though not write if
 * nothing was open for that. -ENOENT (ERROR_NOT_FOUND): nothing is mounted there.
 */
int isolate_prune(int ns_fd, const char *place, const char *name, struct error *err);

#endif
