/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_MASK_H
#define NACRE_ISOLATE_MASK_H

#include "base/log/error.h"

/*
 * Hides what a container must not see of the kernel, and makes read-only what it must not write
 * (security.md 4.3); private to this area. The descriptors are mounts that this process has made
 * and attached itself, so no name on the way is under an image's control; -1 leaves one out, since
 * each has its turn somewhere else (isolate/spawn/prepared.h). null_fd: the container's /dev/null,
 * verified. empty_fd: what mask_make_empty() has mounted on this directory; -1: made where it is
 * needed.
 */
int mask_apply(int proc_fd, int sys_fd, int null_fd, int empty_fd, struct error *err);
/* The empty directory that hides directories, on dir_fd/name, attached. Leaves dir_fd as the
 * working directory. */
int mask_make_empty(int dir_fd, const char *name, struct error *err);

#endif
