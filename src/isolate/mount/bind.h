/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_BIND_H
#define NACRE_ISOLATE_BIND_H

#include <stdbool.h>

#include "base/log/error.h"

/*
 * A part of this process's own tree that goes into a container: a detached copy of the mounts, with
 * all that is mounted below. Private, so that neither side sees what the other one mounts later;
 * set-user-ID bits mean nothing there, and unless it is said otherwise, device nodes neither.
 * source_fd: the directory or file (O_PATH is enough). The descriptor of the copy.
 */
#define ISOLATE_BIND_READ_ONLY 1U
#define ISOLATE_BIND_NO_EXEC 2U
#define ISOLATE_BIND_DEVICES                                                                       \
	8U                    /* device nodes are devices: whether they can be opened, groups say */
#define ISOLATE_BIND_PEERS 4U /* not private: it is told of later mounts as its source is */
int isolate_bind(int source_fd, unsigned flags, struct error *err);
/* Whether the mount that a file is in is shared, and whether it is the slave of another one. */
int isolate_bind_peers(int fd, bool *ret_shared, bool *ret_slave, struct error *err);
/* Whether this host labels files for SELinux. */
bool isolate_has_selinux(void);
/* Makes such a copy read-only itself, and leaves what is mounted below it as it is. */
int isolate_bind_read_only(int fd, struct error *err);

#endif
