/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "oci/config/given.h"

void aside_done(struct aside *a)
{
	a->before_fd = fd_close(a->before_fd);
	a->beside_fd = fd_close(a->beside_fd);
	a->cwd_fd = fd_close(a->cwd_fd);
	a->beside_cwd_fd = fd_close(a->beside_cwd_fd);
}

/* The namespace that this process is in, and its directory there. */
static int aside_look(int *ret_ns, int *ret_cwd, struct error *err)
{
	*ret_ns = given_open("/proc/self/ns/mnt", O_RDONLY, 0);
	*ret_cwd = given_open(".", O_PATH | O_DIRECTORY, 0);
	if (*ret_ns < 0)
		return error_set(err, *ret_ns, "open the mount namespace");
	return *ret_cwd < 0 ? error_set(err, *ret_cwd, "open the current directory") : 0;
}

int aside_enter(struct aside *a, struct error *err)
{
	struct mount_attr attr = { .propagation = MS_PRIVATE };
	int r;

	r = aside_look(&a->before_fd, &a->cwd_fd, err);
	if (r < 0)
		return r;
	if (unshare(CLONE_NEWNS) < 0)
		return error_set(err, -errno, "make a mount namespace");
	r = aside_look(&a->beside_fd, &a->beside_cwd_fd, err);
	if (r == 0 && sysio_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr) < 0)
		r = error_set(err, -errno, "make the mounts private");
	return r;
}

/* setns() leaves the process in the root directory. */
static int aside_go(int ns_fd, int cwd_fd, struct error *err)
{
	if (setns(ns_fd, CLONE_NEWNS) < 0 || fchdir(cwd_fd) < 0)
		return error_set(err, -errno, "go to another mount namespace");
	return 0;
}

int aside_leave(const struct aside *a, struct error *err)
{
	return aside_go(a->before_fd, a->cwd_fd, err);
}

int aside_return(const struct aside *a, struct error *err)
{
	return aside_go(a->beside_fd, a->beside_cwd_fd, err);
}
