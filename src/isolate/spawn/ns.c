/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"

static const struct {
	const char *name; /* below /proc/PID */
	uint64_t flag;
} ns_table[ISOLATE_NS_COUNT] = {
	[ISOLATE_NS_PID] = { "ns/pid", CLONE_NEWPID },
	[ISOLATE_NS_MOUNT] = { "ns/mnt", CLONE_NEWNS },
	[ISOLATE_NS_NET] = { "ns/net", CLONE_NEWNET },
	[ISOLATE_NS_IPC] = { "ns/ipc", CLONE_NEWIPC },
	[ISOLATE_NS_UTS] = { "ns/uts", CLONE_NEWUTS },
	[ISOLATE_NS_CGROUP] = { "ns/cgroup", 0 },
	[ISOLATE_NS_USER] = { "ns/user", CLONE_NEWUSER },
	[ISOLATE_NS_TIME] = { "ns/time", 0 },
};

uint64_t isolate_ns_flag(enum isolate_ns kind)
{
	return ns_table[kind].flag;
}

int isolate_ns_open(int proc_fd, pid_t pid, enum isolate_ns kind)
{
	char name[48];
	int fd;
	int r;

	r = str_printf(name, sizeof(name), "%d/%s", (int)pid, ns_table[kind].name);
	if (r < 0)
		return r;
	fd = sysio_openat(proc_fd, name, O_RDONLY | O_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

int isolate_ns_open_own(enum isolate_ns kind)
{
	char name[48];
	int fd;

	(void)str_printf(name, sizeof(name), "/proc/thread-self/%s", ns_table[kind].name);
	fd = sysio_openat(AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

int isolate_ns_owner(enum isolate_ns kind)
{
	_cleanup_fd_ int ns_fd = isolate_ns_open_own(kind);
	_cleanup_fd_ int own_fd = isolate_ns_open_own(ISOLATE_NS_USER);
	_cleanup_fd_ int fd = -1;
	struct stat a, b;

	if (ns_fd < 0 || own_fd < 0)
		return ns_fd < 0 ? ns_fd : own_fd;
	fd = ioctl(ns_fd, NS_GET_USERNS);
	if (fd < 0 || fstat(fd, &a) < 0 || fstat(own_fd, &b) < 0)
		return -errno;
	if (a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return -EPERM;
	(void)fd_set_cloexec(fd, true);
	return TAKE_FD(fd);
}
