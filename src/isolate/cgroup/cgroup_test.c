/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup_path.h"
#include "isolate/cgroup/cgroup_watch.h"
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

/* Closes it. */
static bool is_the_root(int fd)
{
	struct stat a, b;
	bool same = fd >= 0 && fstat(fd, &a) == 0 && fstat(test_root_fd, &b) == 0 &&
		    a.st_dev == b.st_dev && a.st_ino == b.st_ino;

	(void)fd_close(fd);
	return same;
}

/* In a mount namespace of this process's own: where the hierarchy usually is there is a part of it,
 * then something else; the whole is in a place with a blank. */
static int elsewhere(const char *group)
{
	char dir[] = "/tmp/nacre unit XXXXXX", part[64];
	bool ok =
		unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	int fd = ok ? cgroup_open_root(NULL) : -1;

	/* A bind: a new mount could change what the hierarchy is like, for everybody. */
	(void)str_printf(part, sizeof(part), "/proc/self/fd/%d", fd);
	ok = fd >= 0 && mkdtemp(dir) && mount(part, dir, NULL, MS_BIND, NULL) == 0;
	(void)fd_close(fd);
	(void)str_printf(part, sizeof(part), "%s/%s", dir, group);
	ok = ok && mount(part, "/sys/fs/cgroup", NULL, MS_BIND, NULL) == 0;
	ok = ok && is_the_root(cgroup_open_root(NULL));
	ok = ok && mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) == 0;
	ok = ok && is_the_root(cgroup_open_root(NULL));
	ok = ok && umount(dir) == 0 && rmdir(dir) == 0;
	return ok ? 0 : 1;
}

static void finds_it_elsewhere(void)
{
	char group[32];
	int status = -1;
	pid_t pid;

	if (geteuid() != 0 || test_root_fd < 0)
		SKIP("needs root and a v2 hierarchy");
	(void)str_printf(group, sizeof(group), "nacre-part-%d", (int)getpid());
	CHECK(mkdirat(test_root_fd, group, 0755) == 0);
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(elsewhere(group));
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK_INT(cgroup_remove(test_root_fd, group), 0);
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
	for (int i = 0; i < 2000 && cgroup_populated(top) == 1; i++)
		(void)usleep(10000);
	CHECK_INT(cgroup_populated(top), 0);
	CHECK_INT(cgroup_remove(test_root_fd, test_name), 0);
	CHECK(faccessat(test_root_fd, test_name, F_OK, 0) < 0 && errno == ENOENT);
	CHECK_INT(cgroup_remove(test_root_fd, test_name), 0);
}

static void leave(int sig _unused_)
{
	_exit(7);
}

/* A process that waits for SIGUSR1, in the group of this descriptor. */
static pid_t start_in(int group_fd)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = leave }, NULL);
		(void)fd_write_file(group_fd, "cgroup.procs", "0");
		for (;;)
			(void)pause();
	}
	CHECK_INT(cgroup_wait(group_fd, "cgroup.events", "populated", 1, 60000), 0);
	return pid;
}

static void end(int top_fd, const pid_t *pids, size_t n)
{
	CHECK_INT(cgroup_kill(top_fd), 0);
	for (size_t i = 0; i < n; i++)
		CHECK(waitpid(pids[i], NULL, 0) == pids[i]);
	CHECK_INT(cgroup_wait(top_fd, "cgroup.events", "populated", 0, 60000), 0);
	CHECK_INT(cgroup_remove(test_root_fd, test_name), 0);
}

static void lists_processes(void)
{
	_cleanup_fd_ int top = -1, leaf = -1;
	pid_t *listed = NULL;
	pid_t pids[2];
	size_t n = 7;

	if (geteuid() != 0 || test_root_fd < 0)
		SKIP("needs root and a v2 hierarchy");
	top = cgroup_make(test_root_fd, test_name, NULL);
	leaf = cgroup_make(top, "leaf", NULL);
	CHECK_INT(cgroup_pids(top, true, &listed, &n, NULL), 0);
	CHECK(n == 0 && !listed);
	pids[0] = start_in(leaf);
	CHECK_INT(cgroup_pids(top, false, &listed, &n, NULL), 0);
	CHECK(n == 0 && !listed);
	CHECK_INT(cgroup_pids(top, true, &listed, &n, NULL), 0);
	CHECK(n == 1 && listed[0] == pids[0]);
	free(listed);
	end(top, pids, 1);
	CHECK(cgroup_pids(leaf, true, &listed, &n, NULL) == 0 && n == 0);
}

static pid_t start_one_more(int group_fd, size_t expected)
{
	pid_t pid = start_in(group_fd);
	time_t since = unit_now();
	size_t n = 0;

	while (n < expected && unit_waits(since)) {
		pid_t *pids = NULL;

		if (cgroup_pids(group_fd, false, &pids, &n, NULL) < 0)
			n = 0;
		free(pids);
	}
	return pid;
}

/* One of several by its name alone. */
static void finds_one(void)
{
	_cleanup_fd_ int top = -1;
	pid_t pids[3], found = 7;
	struct error err = ERROR_INIT;
	char name[16] = "";

	if (geteuid() != 0 || test_root_fd < 0)
		SKIP("needs root and a v2 hierarchy");
	CHECK_INT(prctl(PR_GET_NAME, name), 0);
	top = cgroup_make(test_root_fd, test_name, NULL);
	CHECK_INT(cgroup_find_one(top, "moni", &found, &err), 0);
	CHECK_INT(found, 0);
	pids[0] = start_in(top);
	if (cgroup_find_one(top, "moni", &found, &err) == 0)
		CHECK_INT(found, pids[0]);
	CHECK_INT(prctl(PR_SET_NAME, "monitor"), 0);
	pids[1] = start_one_more(top, 2);
	if (cgroup_find_one(top, "moni", &found, &err) == 0)
		CHECK_INT(found, pids[1]);
	pids[2] = start_one_more(top, 3);
	CHECK_INT(prctl(PR_SET_NAME, name), 0);
	CHECK(cgroup_find_one(top, "moni", &found, &err) < 0);
	CHECK_INT(err.kind, ERROR_UNAVAILABLE);
	CHECK(cgroup_find_one(top, "nobody", &found, &err) < 0);
	end(top, pids, 3);
}

static bool is_quiet(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

static bool comes(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 60000) == 1 && p.revents & POLLIN;
}

static void tells_events(void)
{
	struct cgroup_watch w = CGROUP_WATCH_INIT;
	_cleanup_fd_ int top = -1;
	struct error err = ERROR_INIT;
	uint64_t value = 7;
	pid_t pid;

	if (geteuid() != 0 || test_root_fd < 0)
		SKIP("needs root and a v2 hierarchy");
	top = cgroup_make(test_root_fd, test_name, NULL);
	CHECK_INT(cgroup_watch_open(&w, top, "none.events", &err), -ENOENT);
	CHECK(w.poll_fd < 0);
	CHECK_INT(cgroup_watch_open(&w, top, "cgroup.events", &err), 0);
	CHECK(comes(w.poll_fd));
	CHECK_INT(cgroup_watch_read(&w, "populated", &value), 0);
	CHECK_INT(value, 0);
	CHECK(is_quiet(w.poll_fd));
	CHECK_INT(cgroup_watch_read(&w, "none", &value), -ENOENT);
	pid = start_in(top);
	CHECK(comes(w.poll_fd));
	CHECK_INT(cgroup_watch_read(&w, "populated", &value), 0);
	CHECK_INT(value, 1);
	CHECK(is_quiet(w.poll_fd));
	CHECK_INT(cgroup_wait(top, "cgroup.events", "populated", 0, 1), -ETIMEDOUT);
	CHECK_INT(cgroup_wait(top, "cgroup.events", "none", 0, 1), -ENOENT);
	CHECK_INT(cgroup_kill(top), 0);
	CHECK(comes(w.poll_fd));
	CHECK_INT(cgroup_watch_read(&w, "populated", &value), 0);
	CHECK_INT(value, 0);
	end(top, &pid, 1);
	CHECK_INT(cgroup_watch_read(&w, "populated", &value), -ENODEV);
	cgroup_watch_close(&w);
	CHECK(w.poll_fd < 0 && w.file_fd < 0);
}

static void freezes(void)
{
	_cleanup_fd_ int top = -1, leaf = -1;
	struct error err = ERROR_INIT;
	int status = 0;
	pid_t pid;

	if (geteuid() != 0 || test_root_fd < 0)
		SKIP("needs root and a v2 hierarchy");
	top = cgroup_make(test_root_fd, test_name, NULL);
	leaf = cgroup_make(top, "leaf", NULL);
	pid = start_in(leaf);
	CHECK_INT(cgroup_frozen(leaf), 0);
	CHECK_INT(cgroup_freeze(leaf, 60000, &err), 0);
	CHECK_INT(cgroup_freeze(leaf, 60000, &err), 0);
	CHECK_INT(cgroup_frozen(leaf), 1);
	CHECK_INT(cgroup_thaw(leaf, 60000, &err), 0);
	CHECK_INT(cgroup_frozen(leaf), 0);

	/* A signal that has a handler waits until it is thawed. */
	CHECK_INT(cgroup_freeze(top, 60000, &err), 0);
	CHECK_INT(cgroup_frozen(leaf), 1);
	CHECK(kill(pid, SIGUSR1) == 0);
	CHECK(waitpid(pid, &status, WNOHANG) == 0);
	CHECK(cgroup_thaw(leaf, 1, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(err.text, "the cgroup stays frozen: a group above it is");
	CHECK_INT(cgroup_populated(top), 1);
	CHECK_INT(cgroup_thaw(top, 60000, &err), 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);

	/* And a kill does not. */
	pid = start_in(leaf);
	CHECK_INT(cgroup_freeze(top, 60000, &err), 0);
	end(top, &pid, 1);
	CHECK(cgroup_frozen(leaf) < 0);
}

/* Groups of threads have no cgroup.kill, and nothing to read in cgroup.procs. */
static void threaded(void)
{
	_cleanup_fd_ int top = -1, leaf = -1, below = -1;
	pid_t *listed = NULL;
	char path[64];
	size_t n = 0;
	pid_t pid;

	if (geteuid() != 0 || test_root_fd < 0)
		SKIP("needs root and a v2 hierarchy");
	top = cgroup_make(test_root_fd, test_name, NULL);
	leaf = cgroup_make(top, "leaf", NULL);
	CHECK_INT(fd_write_file(leaf, "cgroup.type", "threaded"), 0);
	(void)str_printf(path, sizeof(path), "%s/leaf/below", test_name);
	below = cgroup_make_path(test_root_fd, path, 0, CGROUP_CONTROLLERS_ALL, NULL);
	CHECK(below >= 0);
	pid = start_in(below);
	CHECK_INT(cgroup_pids(leaf, true, &listed, &n, NULL), 0);
	CHECK(n == 1 && listed[0] == pid);
	free(listed);
	CHECK_INT(cgroup_kill(leaf), 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
	end(top, NULL, 0);
}

static void knows_controllers(void)
{
	_cleanup_fd_ int fd = -1;
	struct error err = ERROR_INIT;

	for (int c = 0; c < CGROUP_CONTROLLER_COUNT; c++)
		CHECK_INT(cgroup_controller_of(cgroup_controller_name(c)), c);
	CHECK_INT(cgroup_controller_of("memory.swap.max"), CGROUP_MEMORY);
	CHECK_INT(cgroup_controller_of("cpuset.cpus"), CGROUP_CPUSET);
	CHECK_INT(cgroup_controller_of("cpus"), -ENOENT);
	CHECK_INT(cgroup_controller_of("mem.max"), -ENOENT);
	CHECK_INT(cgroup_controller_of("cgroup.procs"), -ENOENT);
	CHECK_INT(cgroup_controller_of(""), -ENOENT);
	if (geteuid() != 0 || test_root_fd < 0)
		SKIP("needs root and a v2 hierarchy");
	/* A group that is gone has nothing any more. */
	fd = cgroup_make(test_root_fd, test_name, NULL);
	CHECK_INT(cgroup_remove(test_root_fd, test_name), 0);
	CHECK_INT(cgroup_controllers(fd), 0);
	CHECK(cgroup_enable(fd, 1U << CGROUP_MEMORY, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_INT(cgroup_enable(fd, 0, &err), 0);
}

static void done(void)
{
	test_root_fd = fd_close(test_root_fd);
}

UNIT_MAIN({ "finds the hierarchy and the own group", finds_the_root },
	  { "finds it elsewhere", finds_it_elsewhere },
	  { "refuses what is not one component", refuses_names },
	  { "a group lives and dies", lives_and_dies },
	  { "lists processes, here and below", lists_processes },
	  { "finds the one that a group was made for", finds_one },
	  { "tells of events", tells_events },
	  { "freezes, thaws, and kills what is frozen", freezes },
	  { "groups of threads", threaded },
	  { "names of controllers, and those that are missing", knows_controllers },
	  { "closes the hierarchy", done })
