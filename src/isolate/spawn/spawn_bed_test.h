/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_SPAWN_BED_TEST_H
#define NACRE_ISOLATE_SPAWN_BED_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/spawn/spawn.h"
#include "unit.h"

/*
 * Spawns real processes. The whole test runs in mount, net, ipc and uts namespaces of its own, so
 * that nothing of it is left. The image is the host's own busybox, copied into a tmpfs.
 */

#define TEST_OUTPUT_MAX (1 << 20)

static _unused_ bool test_is_root;
static _unused_ int test_cgroup_fd =
	-1; /* a group of the test, or -1 where there is no v2 hierarchy */
static _unused_ char test_cgroup_name[32];

#define NEED_ROOT()                                                                                \
	do {                                                                                       \
		if (!test_is_root)                                                                 \
			SKIP("needs root and a static busybox");                                   \
	} while (0)

struct test_run {
	struct buf out;
	int status;    /* of waitid: the exit code, or 128 + signal */
	int exit_hint; /* of the report */
	int r;
	struct error err;
};

static _unused_ void test_run_done(struct test_run *t)
{
	buf_done(&t->out);
}

static _unused_ void test_reap(const struct isolate_child *c, struct test_run *t)
{
	siginfo_t info = { 0 };

	CHECK(waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED) == 0);
	t->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

/* Runs the plan to its end, with stdout in a pipe; with root_later, root_fd is given behind the
 * clone. */
static _unused_ void test_run_giving(struct isolate_plan *plan, int root_fd, struct test_run *t)
{
	_cleanup_(isolate_child_done) struct isolate_child c = ISOLATE_CHILD_INIT;
	int fds[2];

	*t = (struct test_run){ .out = BUF_INIT };
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	plan->stdio[1] = fds[1];
	t->r = isolate_spawn(plan, &c, &t->err);
	(void)close(fds[1]);
	if (t->r == 0 && plan->root_later) {
		CHECK(isolate_child_give_root(&c, root_fd, NULL) == 0);
		CHECK_INT(c.give_fd, -1);
	}
	if (t->r == 0) {
		CHECK(fd_read_all(fds[0], TEST_OUTPUT_MAX, &t->out) == 0);
		t->r = isolate_child_report(&c, &t->exit_hint, &t->err);
		test_reap(&c, t);
	}
	if (t->r < 0)
		printf("# %s\n", error_text(&t->err));
	CHECK(buf_add(&t->out, "", 1) == 0);
	(void)close(fds[0]);
}

static _unused_ void test_run(struct isolate_plan *plan, struct test_run *t)
{
	test_run_giving(plan, -1, t);
}

static _unused_ const char *test_text(const struct test_run *t)
{
	return (const char *)buf_data(&t->out);
}

static _unused_ bool test_has(const struct test_run *t, const char *text)
{
	bool has = strstr(test_text(t), text) != NULL;

	if (!has)
		printf("# \"%s\" is not in:\n# %s\n", text, test_text(t));
	return has;
}

static _unused_ char *const test_env[] = { (char[]){ "PATH=/bin:/usr/bin" }, NULL };

static _unused_ void test_plan(struct isolate_plan *plan, char *const *argv)
{
	isolate_plan_init(plan);
	plan->give_stdio = true;
	plan->argv = argv;
	plan->env = test_env;
	plan->stdio[2] = STDERR_FILENO;
}

#define ARGV(...) ((char *[]){ __VA_ARGS__, NULL })
#define SH(script) ARGV((char[]){ "sh" }, (char[]){ "-c" }, (char[]){ script })

/* An image: busybox under the names that the scripts use, on a detached tmpfs. */
static _unused_ int test_image(void)
{
	static const char *const names[] = { "sh",       "cat",    "id",    "ls",       "stat",
					     "mount",    "test",   "touch", "mkdir",    "sleep",
					     "true",     "echo",   "grep",  "readlink", "ip",
					     "hostname", "printf", "sed",   "wc",       "head",
					     "tr" };
	_cleanup_fd_ int fs = sysio_fsopen("tmpfs", FSOPEN_CLOEXEC);
	_cleanup_fd_ int from = open("/bin/busybox", O_RDONLY | O_CLOEXEC);
	_cleanup_fd_ int to = -1;
	int fd;

	CHECK(sysio_fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) == 0);
	CHECK(sysio_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0);
	fd = sysio_fsmount(fs, FSMOUNT_CLOEXEC, 0);
	CHECK(fd >= 0 && from >= 0);
	CHECK(mkdirat(fd, "bin", 0755) == 0 && mkdirat(fd, "etc", 0755) == 0 &&
	      mkdirat(fd, "tmp", 01777) == 0);
	to = openat(fd, "bin/busybox", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	while (copy_file_range(from, NULL, to, NULL, 1 << 20, 0) > 0)
		;
	if (lseek(to, 0, SEEK_CUR) == 0) {
		_cleanup_(buf_done) struct buf b = BUF_INIT;

		CHECK(fd_read_all(from, 8 << 20, &b) == 0);
		CHECK(fd_write_full(to, buf_data(&b), b.len) == 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char name[64];

		CHECK(str_printf(name, sizeof(name), "bin/%s", names[i]) > 0);
		CHECK(symlinkat("busybox", fd, name) == 0);
	}
	return fd;
}

/* A container in the test's group. The image is consumed. */
static _unused_ void test_container(struct isolate_plan *plan, char *const *argv, int image_fd)
{
	test_plan(plan, argv);
	for (int i = 0; i <= ISOLATE_NS_CGROUP; i++)
		plan->ns[i] = ISOLATE_NEW;
	plan->bring_up_loopback = true;
	plan->hostname = "box";
	plan->cgroup_fd = test_cgroup_fd;
	plan->root = ISOLATE_ROOT_CONTAINER;
	plan->root_fd = image_fd;
	plan->caps = isolate_caps_default;
	plan->no_new_privs = true;
	plan->seccomp = isolate_seccomp_default(plan->caps);
	plan->default_rlimits = true;
	plan->new_session = true;
}

/* Must be the first: the rest relies on it. */
static _unused_ void own_namespaces(void)
{
	int root;

	test_is_root = geteuid() == 0 && access("/bin/busybox", X_OK) == 0 &&
		       unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) == 0 &&
		       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	NEED_ROOT();
	root = cgroup_open_root(NULL);
	if (root < 0)
		return;
	(void)str_printf(test_cgroup_name, sizeof(test_cgroup_name), "nacre-unit-%d",
			 (int)getpid());
	test_cgroup_fd = cgroup_make(root, test_cgroup_name, NULL);
	CHECK(test_cgroup_fd >= 0);
	(void)close(root);
}

/* Must be the last. */
static _unused_ void removes_the_cgroup(void)
{
	int root;

	if (test_cgroup_fd < 0)
		SKIP("no v2 hierarchy");
	CHECK(cgroup_kill(test_cgroup_fd) == 0);
	for (int i = 0; i < 2000 && cgroup_populated(test_cgroup_fd) == 1; i++)
		(void)usleep(10000);
	CHECK_INT(cgroup_populated(test_cgroup_fd), 0);
	root = cgroup_open_root(NULL);
	CHECK_INT(cgroup_remove(root, test_cgroup_name), 0);
	CHECK_INT(cgroup_remove(root, test_cgroup_name), 0);
	(void)close(root);
	test_cgroup_fd = fd_close(test_cgroup_fd);
}

#endif
