/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/str.h"
#include "unit.h"

static int test_root_fd = -1;
static char test_name[32];

static void finds_the_root(void)
{
	struct error err = ERROR_INIT;
	char path[4096];

	test_root_fd = cgroup_open_root(&err);
	if (test_root_fd < 0) {
		CHECK_INT(err.kind, ERROR_PRECONDITION);
		printf("# %s\n", err.text);
		return;
	}
	CHECK(faccessat(test_root_fd, "cgroup.controllers", R_OK, 0) == 0);
	CHECK_INT(cgroup_own_path(path, sizeof(path), NULL), 0);
	CHECK(path[0] != '/' && faccessat(test_root_fd, *path ? path : ".", F_OK, 0) == 0);
}

static void refuses_names(void)
{
	static const char *const names[] = { "", ".", "..", "a/b", "/a", "a\nb" };
	struct error err;

	for (size_t i = 0; test_root_fd >= 0 && i < ARRAY_SIZE(names); i++) {
		CHECK(cgroup_make(test_root_fd, names[i], &err) < 0);
		CHECK_INT(err.kind, ERROR_INVALID);
		CHECK_INT(cgroup_remove(test_root_fd, names[i]), -EINVAL);
	}
}

/* A group with a process two levels down: seen, not removed, killed, removed. */
static void lives_and_dies(void)
{
	_cleanup_fd_ int top = -1, again = -1, mid = -1, leaf = -1;
	char text[16];
	pid_t pid;

	if (geteuid() != 0 || test_root_fd < 0)
		SKIP("needs root and a v2 hierarchy");
	(void)str_printf(test_name, sizeof(test_name), "nacre-unit-%d", (int)getpid());
	top = cgroup_make(test_root_fd, test_name, NULL);
	again = cgroup_make(test_root_fd, test_name, NULL);
	mid = cgroup_make(top, "mid", NULL);
	leaf = cgroup_make(mid, "leaf", NULL);
	CHECK(top >= 0 && again >= 0 && mid >= 0 && leaf >= 0);
	CHECK_INT(cgroup_populated(top), 0);

	pid = fork();
	if (pid == 0)
		for (;;)
			(void)pause();
	(void)str_printf(text, sizeof(text), "%d", (int)pid);
	CHECK_INT(fd_write_file(leaf, "cgroup.procs", text), 0);
	CHECK_INT(cgroup_populated(top), 1);
	CHECK_INT(cgroup_remove(test_root_fd, test_name), -EBUSY);
	CHECK_INT(cgroup_populated(leaf), 1);
	CHECK_INT(cgroup_kill(top), 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
	for (int i = 0; i < 100 && cgroup_populated(top) == 1; i++)
		(void)usleep(10000);
	CHECK_INT(cgroup_populated(top), 0);
	CHECK_INT(cgroup_remove(test_root_fd, test_name), 0);
	CHECK(faccessat(test_root_fd, test_name, F_OK, 0) < 0 && errno == ENOENT);
	CHECK_INT(cgroup_remove(test_root_fd, test_name), 0);
	(void)close(test_root_fd);
}

UNIT_MAIN({ "finds the hierarchy and the own group", finds_the_root },
	  { "refuses what is not one component", refuses_names },
	  { "a group lives and dies", lives_and_dies })
