/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"
#include "isolate/user/maps.h"

/* A namespace needs a process to be mapped through: one that does nothing, and has ended before the
 * caller goes on. */

static _noreturn_ void idmap_wait(int fd)
{
	char byte;

	(void)sysio_read(fd, &byte, 1);
	_exit(0);
}

static int idmap_open(const struct maps *maps, pid_t pid, struct error *err)
{
	_cleanup_fd_ int proc_fd = mount_new(
		"proc", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
	char name[48];
	int fd;
	int r;

	if (proc_fd < 0)
		return error_wrap(err, proc_fd, "make a private /proc");
	r = maps_write(proc_fd, pid, maps, err);
	if (r < 0)
		return r;
	r = str_printf(name, sizeof(name), "%d/ns/user", (int)pid);
	fd = r < 0 ? -1 : sysio_openat(proc_fd, name, O_RDONLY | O_CLOEXEC, 0);
	return fd < 0 ? error_set(err, -errno, "open the user namespace") : fd;
}

int isolate_idmap_new(const struct isolate_id_map *uid_map, size_t n_uid_map,
		      const struct isolate_id_map *gid_map, size_t n_gid_map, struct error *err)
{
	struct maps maps = {
		.uid = uid_map, .gid = gid_map, .n_uid = n_uid_map, .n_gid = n_gid_map
	};
	_cleanup_fd_ int read_fd = -1, write_fd = -1, pidfd = -1;
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_NEWUSER | CLONE_CLEAR_SIGHAND,
				   .pidfd = (uint64_t)(uintptr_t)&pidfd,
				   .exit_signal = SIGCHLD };
	siginfo_t info;
	int fds[2];
	pid_t pid;
	int fd, r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make a pipe");
	read_fd = fds[0];
	write_fd = fds[1];
	pid = sysio_clone3(&args);
	if (pid == 0) {
		write_fd = fd_close(write_fd);
		idmap_wait(read_fd);
	}
	if (pid < 0)
		return error_set(err, -errno, "make a user namespace");
	fd = idmap_open(&maps, pid, err);
	(void)pidfd_kill(pidfd, SIGKILL);
	do
		r = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED);
	while (r < 0 && errno == EINTR);
	return fd;
}

int isolate_idmap_apply(int mount_fd, int userns_fd, bool below, struct error *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd };
	int r;

	if (sysio_mount_setattr(mount_fd, "", AT_EMPTY_PATH | (below ? AT_RECURSIVE : 0), &attr) ==
	    0)
		return 0;
	r = -errno;
	if (r == -EINVAL)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the file system cannot map ids of its mounts");
	return error_set(err, r, "map the ids of a mount");
}
