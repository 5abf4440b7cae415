/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "isolate/mount/mount.h"
#include "isolate/spawn/ns.h"
#include "isolate/user/maps.h"

/* A namespace needs a process to be mapped through: one that does nothing, and has ended before the
 * caller goes on. */

static _noreturn_ void idmap_wait(int fd)
{
	char byte;

	(void)sysio_read(fd, &byte, 1);
	_exit(0);
}

static const struct {
	enum isolate_ns kind;
	uint64_t flag;
} idmap_kinds[] = {
	{ ISOLATE_NS_NET, CLONE_NEWNET },
	{ ISOLATE_NS_IPC, CLONE_NEWIPC },
	{ ISOLATE_NS_UTS, CLONE_NEWUTS },
	{ ISOLATE_NS_USER, CLONE_NEWUSER },
};

static int idmap_open_all(int proc_fd, pid_t pid, uint64_t flags, int fds[ISOLATE_NS_COUNT],
			  struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(idmap_kinds); i++) {
		enum isolate_ns kind = idmap_kinds[i].kind;
		int fd;

		if (!(flags & idmap_kinds[i].flag))
			continue;
		fd = isolate_ns_open(proc_fd, pid, kind);
		if (fd < 0)
			return error_set(err, fd, "open a namespace");
		fds[kind] = fd;
	}
	return 0;
}

static int idmap_open(const struct maps *maps, pid_t pid, uint64_t flags, int fds[ISOLATE_NS_COUNT],
		      struct error *err)
{
	_cleanup_fd_ int proc_fd = mount_new(
		"proc", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
	int r;

	if (proc_fd < 0)
		return error_wrap(err, proc_fd, "make a private /proc");
	r = maps_write(proc_fd, pid, maps, err);
	return r < 0 ? r : idmap_open_all(proc_fd, pid, flags, fds, err);
}

/* flags: CLONE_NEWUSER, and what shall belong to it. fds: -1 all. */
static int idmap_make(const struct maps *maps, uint64_t flags, int fds[ISOLATE_NS_COUNT],
		      struct error *err)
{
	_cleanup_fd_ int read_fd = -1, write_fd = -1, pidfd = -1;
	struct clone_args args = { .flags = CLONE_PIDFD | flags | CLONE_CLEAR_SIGHAND,
				   .pidfd = (uint64_t)(uintptr_t)&pidfd,
				   .exit_signal = SIGCHLD };
	siginfo_t info;
	int ends[2];
	pid_t pid;
	int r, w;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make a pipe");
	read_fd = ends[0];
	write_fd = ends[1];
	pid = sysio_clone3(&args);
	if (pid == 0) {
		write_fd = fd_close(write_fd);
		idmap_wait(read_fd);
	}
	if (pid < 0)
		return error_set(err, -errno, "make a user namespace");
	r = idmap_open(maps, pid, flags, fds, err);
	(void)pidfd_kill(pidfd, SIGKILL);
	do
		w = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED);
	while (w < 0 && errno == EINTR);
	return r;
}

int isolate_idmap_new(const struct isolate_id_map *uid_map, size_t n_uid_map,
		      const struct isolate_id_map *gid_map, size_t n_gid_map, struct error *err)
{
	struct maps maps = {
		.uid = uid_map, .gid = gid_map, .n_uid = n_uid_map, .n_gid = n_gid_map
	};
	int fds[ISOLATE_NS_COUNT] = { -1, -1, -1, -1, -1, -1, -1, -1 };
	int r = idmap_make(&maps, CLONE_NEWUSER, fds, err);

	return r < 0 ? r : fds[ISOLATE_NS_USER];
}

int isolate_users_new(const struct isolate_ids *ids, const bool kinds[ISOLATE_NS_COUNT],
		      int ret_fd[ISOLATE_NS_COUNT], struct error *err)
{
	const struct isolate_id_map uid = { .outside = ids->uid, .count = ids->count },
				    gid = { .outside = ids->gid, .count = ids->count };
	struct maps maps = { .uid = &uid, .gid = &gid, .n_uid = 1, .n_gid = 1 };
	uint64_t flags = CLONE_NEWUSER;
	int r;

	for (size_t i = 0; i < ISOLATE_NS_COUNT; i++)
		ret_fd[i] = -1;
	for (size_t i = 0; i < ARRAY_SIZE(idmap_kinds); i++)
		if (kinds && kinds[idmap_kinds[i].kind])
			flags |= idmap_kinds[i].flag;
	r = idmap_make(&maps, flags, ret_fd, err);
	for (size_t i = 0; r < 0 && i < ISOLATE_NS_COUNT; i++)
		ret_fd[i] = fd_close(ret_fd[i]);
	return r;
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
