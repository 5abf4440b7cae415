/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_MASK_H
#define NACRE_ISOLATE_MASK_H

#include "base/error.h"

/*
 * Hides what a container must not see of the kernel, and makes read-only what it must not write
 * (security.md 4.3); private to this area. The descriptors are mounts that this process has made
 * and attached itself, so no name on the way is under an image's control; -1 leaves one out, since
 * each has its turn somewhere else (isolate/kit.h). null_fd: the container's /dev/null, verified.
 */
int mask_apply(int proc_fd, int sys_fd, int null_fd, struct error *err);

#endif
