/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/container/leaf.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/devices.h"
#include "unit.h"

static void put(int dir_fd, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK_INT(fd_write_full(fd, text, strlen(text)), 0);
}

static bool holds(int dir_fd, const char *name, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	return fd_read_file(dir_fd, name, 100, &b) == 0 && b.len == strlen(text) &&
	       (b.len == 0 || memcmp(buf_data(&b), text, b.len) == 0);
}

/* A directory stands in for a group that has the controllers. */
static void limits_walled_ones(void)
{
	char path[] = "/tmp/nacre-leaf-test-XXXXXX";
	_cleanup_fd_ int dir_fd = -1, fd = -1, again = -1;

	CHECK(mkdtemp(path) != NULL);
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = leaf_make(dir_fd, "c", true, -1, NULL, NULL);
	CHECK(fd >= 0);
	CHECK(faccessat(fd, "pids.max", F_OK, 0) < 0);
	put(fd, "pids.max", "");
	put(fd, "memory.oom.group", "");
	again = leaf_make(dir_fd, "c", false, -1, NULL, NULL);
	CHECK(again >= 0);
	CHECK(holds(fd, "pids.max", ""));
	again = fd_close(again);
	again = leaf_make(dir_fd, "c", true, -1, NULL, NULL);
	CHECK(again >= 0);
	CHECK(holds(fd, "pids.max", "4096"));
	CHECK(holds(fd, "memory.oom.group", "1"));

	CHECK(!leaf_is_out_of_memory(-1));
	CHECK(!leaf_is_out_of_memory(fd));
	put(fd, "memory.events", "low 0\nhigh 0\nmax 3\noom 2\noom_kill 0\n");
	CHECK(!leaf_is_out_of_memory(fd));
	put(fd, "memory.events", "low 0\nhigh 0\nmax 3\noom 2\noom_kill 1\n");
	CHECK(leaf_is_out_of_memory(fd));
	(void)unlinkat(fd, "pids.max", 0);
	(void)unlinkat(fd, "memory.oom.group", 0);
	(void)unlinkat(fd, "memory.events", 0);
	CHECK(unlinkat(dir_fd, "c", AT_REMOVEDIR) == 0);
	CHECK(rmdir(path) == 0);
}

/* How mknod() of /dev/mem's number ends for a process of the group that has every capability. */
static int mknod_in(int group_fd, const char *path)
{
	int status = -1;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (fd_write_file(group_fd, "cgroup.procs", "0") < 0)
			_exit(255);
		_exit(mknod(path, S_IFCHR | 0600, makedev(1, 1)) < 0 ? errno : 0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void has_devices(void)
{
	_cleanup_fd_ int root_fd = cgroup_open_root(NULL);
	_cleanup_fd_ int cell_fd = -1, walled = -1, other = -1, program = -1;
	char name[32], path[40];

	if (geteuid() != 0 || root_fd < 0)
		SKIP("needs root and a v2 hierarchy");
	(void)str_printf(name, sizeof(name), "nacre-leaf-%d", (int)getpid());
	(void)str_printf(path, sizeof(path), "/tmp/%s", name);
	cell_fd = cgroup_make(root_fd, name, NULL);
	program = devices_load(device_rules_default, device_rules_default_count, NULL);
	CHECK(cell_fd >= 0 && program >= 0);
	walled = leaf_make(cell_fd, "walled", true, program, NULL, NULL);
	other = leaf_make(cell_fd, "other", false, program, NULL, NULL);
	CHECK_INT(mknod_in(walled, path), EPERM);
	CHECK_INT(mknod_in(other, path), 0);
	CHECK(unlink(path) == 0);
	/* What cannot be put on it is no group. */
	CHECK(leaf_make(cell_fd, "none", true, cell_fd, NULL, NULL) < 0);
	CHECK(faccessat(cell_fd, "none", F_OK, 0) < 0);
	CHECK_INT(cgroup_remove(root_fd, name), 0);
}

UNIT_MAIN({ "walled ones have limits, where there are any", limits_walled_ones },
	  { "walled ones have the devices of a container alone", has_devices })
