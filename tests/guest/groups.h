/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_TESTS_GUEST_GROUPS_H
#define NACRE_TESTS_GUEST_GROUPS_H

/*
 * Groups with limits, and programs that run in them, for the tests of this directory. A test
 * program begins with moves_aside() and ends with leaves(), as two of its tests. Nothing may depend
 * on how fast the guest is: what is measured are ratios and counters of the kernel, and waiting
 * ends with what is waited for.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/cgroup_path.h"
#include "isolate/cgroup/cgroup_watch.h"
#include "isolate/cgroup/limits.h"
#include "isolate/cgroup/usage.h"
#include "unit.h"

#define MIB ((uint64_t)1 << 20)
#define WAIT_MS 300000

static int root_fd = -1;
static char base[200]; /* the group that this program was given */

/* ---- groups and what runs in them ---- */

/* This program leaves the group that it was given: one that holds processes hands nothing on. */
static inline void moves_aside(void)
{
	_cleanup_fd_ int self = -1;

	root_fd = cgroup_open_root(NULL);
	CHECK_INT(cgroup_own_path(base, sizeof(base), NULL), 0);
	self = cgroup_make(root_fd, base, NULL);
	self = cgroup_make(self, "self", NULL);
	CHECK_INT(fd_write_file(self, "cgroup.procs", "0"), 0);
}

/* A group "NAME" with every controller; its limits are applied. */
static inline int limited(const char *name, const struct isolate_limits *limits)
{
	struct error err = ERROR_INIT;
	char path[300];
	int fd;

	(void)str_printf(path, sizeof(path), "%s/%s", base, name);
	fd = cgroup_make_path(root_fd, path, limits_controllers(limits), CGROUP_CONTROLLERS_ALL,
			      &err);
	if (fd >= 0)
		(void)limits_apply(fd, limits, &err);
	CHECK_STR(err.text, "");
	return fd;
}

static inline void remove_group(int fd, const char *name)
{
	char path[300];

	(void)str_printf(path, sizeof(path), "%s/%s", base, name);
	CHECK_INT(cgroup_kill(fd), 0);
	CHECK_INT(cgroup_wait(fd, "cgroup.events", "populated", 0, WAIT_MS), 0);
	(void)fd_close(fd);
	CHECK_INT(cgroup_remove_path(root_fd, path), 0);
}

static inline pid_t start(int group_fd, int (*fn)(void))
{
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(fd_write_file(group_fd, "cgroup.procs", "0") < 0 ? 99 : fn());
	return pid;
}

/* How it ended: its status, or 128 and the signal. */
static inline int ended(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int run(int group_fd, int (*fn)(void))
{
	return ended(start(group_fd, fn));
}

static inline struct usage used(int group_fd)
{
	struct usage u = { .cpu_total_us = 0 };

	CHECK_INT(usage_read(group_fd, ".", &u), 0);
	return u;
}

static inline const struct usage_details *details(int group_fd)
{
	static struct usage_details d;

	CHECK_INT(usage_read_details(group_fd, ".", &d), 0);
	return &d;
}

static inline uint64_t event(int group_fd, const char *file, const char *key)
{
	struct cgroup_watch w = CGROUP_WATCH_INIT;
	uint64_t value = UINT64_MAX;

	CHECK_INT(cgroup_watch_open(&w, group_fd, file, NULL), 0);
	CHECK_INT(cgroup_watch_read(&w, key, &value), 0);
	cgroup_watch_close(&w);
	return value;
}

static inline bool holds(int group_fd, const char *file, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *now = NULL;

	if (fd_read_file(group_fd, file, 65536, &b) < 0)
		return false;
	now = buf_take_str(&b);
	if (!now || strcmp(now, text) != 0)
		printf("# %s is %s", file, now ? now : "?\n");
	return now && strcmp(now, text) == 0;
}

static inline void breathe(void)
{
	(void)usleep(10000);
}

static inline int spin(void)
{
	volatile bool on = true;

	while (on)
		;
	return 0;
}

static inline int wait_for_end(void)
{
	while (pause() < 0)
		;
	return 0;
}

/* Writes to this many MiB of memory, over and over if `rounds` says so. */
static inline int touch(size_t mib, int rounds)
{
	char *p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return 1;
	for (int k = 0; k < rounds; k++)
		for (size_t i = 0; i < mib * MIB; i += 4096)
			p[i] = (char)(i / 4096 + (size_t)k + 1);
	return 0;
}

static inline int touch_48(void)
{
	return touch(48, 1);
}

static inline int touch_4(void)
{
	return touch(4, 1);
}

/* To the root, which holds whom it likes. */
static inline void leaves(void)
{
	char path[300];

	(void)str_printf(path, sizeof(path), "%s/self", base);
	CHECK_INT(fd_write_file(root_fd, "cgroup.procs", "0"), 0);
	CHECK_INT(cgroup_remove_path(root_fd, path), 0);
	root_fd = fd_close(root_fd);
}

#endif
