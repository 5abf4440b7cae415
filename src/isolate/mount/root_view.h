/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_ROOT_VIEW_H
#define NACRE_ISOLATE_ROOT_VIEW_H

/*
 * The file system that is the root of a container, for writing although its own mount of it is
 * read-only: a mount of its own that nobody else sees, without what is mounted below it. Closing it
 * unmounts it.
 *
 * proc_fd: of a process of the container (isolate/cgroup/process.h). For a thread that shares its
 * root directory with no other one's: it goes to the container's mount namespace and comes back. A
 * descriptor, or a negative errno; -EPERM without CAP_SYS_ADMIN and CAP_SYS_CHROOT, or where the
 * mount is locked.
 */
int root_view_open(int proc_fd);

#endif
