/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_DEV_H
#define NACRE_ISOLATE_DEV_H

#include <stdbool.h>

#include "base/log/error.h"

/* The devices of a container or keeper; private to this area. */

/* Makes the device nodes of a keeper in an empty directory: null, zero, full, random, urandom, and
 * the directory shm. The umask must be 0. */
int dev_fill(int dir_fd, struct error *err);
/*
 * The same for a container, with tty, the links (fd, stdin, stdout, stderr, ptmx) and the
 * directories pts and mqueue. dir_fd: an empty file system without devices, detached; it is put on
 * target_fd. The nodes are mounts in it: a container may make nodes (CAP_MKNOD), and what it makes,
 * there or anywhere, is the device of nobody.
 */
int dev_fill_sealed(int dir_fd, int target_fd, struct error *err);
/* Makes the links of a container in a /dev where nothing has their names. */
int dev_link(int dir_fd, struct error *err);
/* dir_fd/null as an O_PATH descriptor, after a look that it is the device 1:3. */
int dev_open_null(int dir_fd, struct error *err);
/* Whether the descriptor is the device 1:3. */
bool dev_is_null(int fd);

#endif
