/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_DETACHED_H
#define NACRE_IMAGE_DETACHED_H

#include <stdint.h>

#include "base/log/error.h"

/* Directories and files in the form in which they are handed to a helper that is not trusted. */

/*
 * The directory dir_fd/name (name "": dir_fd itself) as a detached mount, without set-id, devices
 * and execution, and with more MOUNT_ATTR_* as wanted. Should: give a descriptor from which nothing
 * but the directory can be reached, since ".." ends at the root of a mount that hangs nowhere. Must
 * not: appear in this process's own mounts.
 */
int detached_open(int dir_fd, const char *name, uint64_t attributes, struct error *err);

/* An image archive by its absolute path: a file, opened for reading, or a directory, as a read-only
 * detached mount. ERROR_NOT_FOUND; ERROR_INVALID for a relative path and for anything else than
 * those two. */
int detached_open_source(const char *path, struct error *err);

#endif
