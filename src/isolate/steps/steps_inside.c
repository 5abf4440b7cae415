/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/steps_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"

/*
 * Should: let what is made in the container's root, and the file systems that are mounted there,
 * belong to its root. Must not: give up privilege, which the root file system is made with.
 */
int isolate_step_file_ids(struct isolate_steps *s, struct error *err)
{
	return isolate_ids_enter(&s->plan->ids, err);
}

/* A copy of the tree, which belongs to the user namespace. What is mounted in it is locked, since
 * it comes from a namespace with more privilege: nobody inside can take a mask away. */
static int steps_copy_tree(struct isolate_steps *s, struct error *err)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWCGROUP) < 0)
		return error_set(err, -errno, "copy the mount namespace");
	/* The old one is of the namespace that was left. */
	s->root_fd = fd_close(s->root_fd);
	s->root_fd = sysio_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	return s->root_fd < 0 ? error_set(err, -errno, "open the root") : 0;
}

/*
 * Should: be root of the user namespace and of nothing else, and own mount and cgroup namespaces in
 * there. Must not: come before the root is complete; keep an id or a group of the spawner's.
 */
int isolate_step_enter_user(struct isolate_steps *s, struct error *err)
{
	if (s->plan->user_fd < 0)
		return 0;
	if (setns(s->plan->user_fd, CLONE_NEWUSER) < 0)
		return error_set(err, -errno, "setns");
	if (syscall(SYS_setgroups, 0, NULL) < 0)
		return error_set(err, -errno, "setgroups");
	if (syscall(SYS_setresgid, 0, 0, 0) < 0)
		return error_set(err, -errno, "group 0");
	if (syscall(SYS_setresuid, 0, 0, 0) < 0)
		return error_set(err, -errno, "user 0");
	return steps_copy_tree(s, err);
}
