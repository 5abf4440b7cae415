/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_SYSIO_H
#define NACRE_BASE_SYSIO_H

#include <stddef.h>
#include <sys/types.h>

/*
 * The calls that change the machine, under our own names, so that a test can make the k-th of them
 * fail. Results and errno are those of the call. The product links sysio.c, which only passes them
 * on; a build with -Dfaults=true links sysio_fault.c, which looks at the environment first:
 *
 *   NACRE_SYSIO="NAME:K:ERRNO[:sticky][,...]"    e.g. "mkdirat:3:ENOSPC", "write:1:EIO:sticky"
 *
 * NAME is the name behind sysio_ or "*" for any of them; K counts from 1. Words for ERRNO: ENOSPC,
 * EIO, EMFILE, ENOMEM, EAGAIN, EINTR, EPERM, EROFS, or "kill" for SIGKILL to this process before
 * the call (SIGILL where it is pid 1 of a namespace).
 */

int sysio_openat(int dir_fd, const char *name, int flags, mode_t mode);
ssize_t sysio_read(int fd, void *data, size_t len);
ssize_t sysio_pread(int fd, void *data, size_t len, off_t at);
ssize_t sysio_write(int fd, const void *data, size_t len);
int sysio_fsync(int fd);
int sysio_syncfs(int fd);
int sysio_ftruncate(int fd, off_t len);
int sysio_mkdirat(int dir_fd, const char *name, mode_t mode);
int sysio_unlinkat(int dir_fd, const char *name, int flags);
int sysio_renameat(int old_fd, const char *old_name, int new_fd, const char *new_name);
int sysio_linkat(int old_fd, const char *old_name, int new_fd, const char *new_name);
int sysio_symlinkat(const char *target, int dir_fd, const char *name);
int sysio_mknodat(int dir_fd, const char *name, mode_t mode, dev_t dev);
int sysio_socket(int domain, int type, int protocol);

int sysio_mount(const char *source, const char *target, const char *fs, unsigned long flags,
		const char *options);
int sysio_fsopen(const char *fs, unsigned flags);
int sysio_fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux);
int sysio_fsmount(int fd, unsigned flags, unsigned attrs);
int sysio_open_tree(int dir_fd, const char *name, unsigned flags);
int sysio_move_mount(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
struct mount_attr;
int sysio_mount_setattr(int fd, const char *name, unsigned flags, struct mount_attr *attr);

struct clone_args;
/* The raw call: 0 in the child, the pid in the parent. */
pid_t sysio_clone3(struct clone_args *args);

#endif
