/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_EROFS_FILE_H
#define NACRE_ISOLATE_EROFS_FILE_H

#include "base/log/error.h"

/*
 * An EROFS image in a file, mounted without a loop device, and what an overlay takes as a layer
 * without a place where it is mounted: from Linux 6.15 on, where the kernel was built with
 * CONFIG_EROFS_FS_BACKED_BY_FILE and the file lies neither in a tmpfs nor in an overlay.
 */

/* The file that fd is open on as a detached mount: read-only, without devices. ERROR_PRECONDITION
 * where the kernel cannot. */
int erofs_file_mount(int fd, struct error *err);
/* Gives a detached mount to an overlay that is being made (fsopen) as the next layer below.
 * ERROR_PRECONDITION likewise. */
int erofs_file_add_layer(int overlay_fd, int mount_fd, struct error *err);
/* Tries both with a file of one block in this directory, which nobody sees and which leaves nothing
 * behind: 0, or why not. */
int erofs_file_try(int dir_fd, struct error *err);

#endif
