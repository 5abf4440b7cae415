/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_SHARE_JAIL_H
#define NACRE_VM_SHARE_JAIL_H

#include "base/log/error.h"
#include "isolate/spawn/spawn.h"

/*
 * Where virtiofsd runs (vm/disk/share.h): a user namespace in which ids are what they are outside,
 * so that it may own, open and make any file of a volume as root may, and has no other power over
 * the machine; new mount, pid, net, ipc and uts namespaces; a root with the host's libraries,
 * read-only, /proc of its own, and SHARE_PLACE, an empty directory, which it makes its root before
 * it takes the first byte of the guest.
 */

/* The directory that the guest sees, at the top of its mount namespace. Nobody writes to it. */
#define SHARE_PLACE "share"

/* Of all virtiofsd; vm/disk/share.h says what they mean to a guest. */
#define SHARE_TIMEOUT "0.25" /* s */
#define SHARE_THREADS "4"    /* requests at once: what waits for one volume holds up no other */
#define SHARE_VOLUMES_MAX 256
#define SHARE_FILES_MAX 1000000

/* socket_fd: listening, and says_fd: its stderr; both stay the caller's. */
int share_jail_spawn(const char *program, int cgroup_fd, int socket_fd, int says_fd,
		     struct isolate_child *ret, struct error *err);

#endif
