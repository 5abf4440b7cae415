/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>

#include "isolate/tree/tree_bed_test.h"

/*
 * Processes that exchange what a spawn works with, at the same moment and without a pause. Each
 * race is run as often as the environment variable NACRE_RACES says: 500 times in ./check, 20,000
 * times in make races. A container may fail to start; where it runs, it has what its plan says, and
 * nothing of the host is another than before.
 */

#define RACES_DEFAULT 50

static int races(void)
{
	const char *text = getenv("NACRE_RACES");

	return text ? (int)strtol(text, NULL, 10) : RACES_DEFAULT;
}

#define RACES_UNLUCKY_MAX 1000

/* A handful of tries, as where allocations fail, may all be lost by chance: then there are more. */
static bool races_go_on(int done, int ran)
{
	return done < races() || (ran == 0 && done < RACES_UNLUCKY_MAX);
}

/* Calls act() for ever in a process of its own, until race_end(). */
static pid_t race_begin(void (*act)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			act();
	}
	return pid;
}

static void race_end(pid_t pid, int ran)
{
	int status;

	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	printf("# %d of %d ran\n", ran, races());
	/* A race that nobody can win shows nothing. */
	CHECK(ran > 0);
}

static void mounts_of_the_host(struct buf *b)
{
	CHECK(fd_read_file(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, b) == 0);
}

static void exchange_sub(void)
{
	(void)renameat2(AT_FDCWD, "/mnt/dir/sub", AT_FDCWD, "/mnt/dir/evil", RENAME_EXCHANGE);
}

static int entries(const char *path)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_strv_ char **list = NULL;

	return fd >= 0 && fd_list_dir(fd, &list) == 0 ? (int)strv_len(list) : -1;
}

/* A component of a target that another process exchanges with a link to a directory of the host
 * meanwhile (security.md A07, A16): the mounts are where the plan says or the process does not run,
 * and nothing is made or mounted outside of the root. */
static void exchanged_targets(void)
{
	_cleanup_(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	struct isolate_mount mounts[4] = { test_mounts[0], ISOLATE_MOUNT_INIT, ISOLATE_MOUNT_INIT,
					   ISOLATE_MOUNT_INIT };
	int dir, ran = 0;
	pid_t racer;

	NEED_ROOT();
	dir = test_source();
	CHECK(mkdir("/mnt/dir/sub", 0755) == 0 && mkdir("/mnt/dir/sub/dst", 0755) == 0);
	CHECK(mkdir("/mnt/canary", 0755) == 0 && mkdir("/mnt/canary/dst", 0755) == 0);
	CHECK(symlink("/mnt/canary", "/mnt/dir/evil") == 0);
	mounts_of_the_host(&before);
	racer = race_begin(exchange_sub);
	mounts[1].target = "/shared";
	mounts[2].target = "/shared/sub/dst";
	mounts[3].target = "/shared/sub/new";
	for (size_t i = 1; i < ARRAY_SIZE(mounts); i++)
		mounts[i].source_fd = dir;
	for (int i = 0; races_go_on(i, ran); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		struct isolate_plan plan;

		CHECK(mkdirat(image, "mnt", 0755) == 0 && mkdirat(image, "mnt/canary", 0755) == 0);
		test_tree(&plan, SH("cat /proc/self/mountinfo"), image);
		plan.mounts = mounts;
		plan.n_mounts = ARRAY_SIZE(mounts);
		plan.n_devices = 0;
		test_run(&plan, &t);
		/* In a directory of the volume, whichever of its two names that has now, or in the
		 * root of the image. */
		if (t.r == 0)
			CHECK(strstr(test_text(&t), "/dst ") && strstr(test_text(&t), "/new "));
		ran += t.r == 0;
		if (unit_failures)
			break;
	}
	race_end(racer, ran);
	mounts_of_the_host(&after);
	CHECK(before.len == after.len &&
	      memcmp(buf_data(&before), buf_data(&after), after.len) == 0);
	CHECK_INT(entries("/mnt/canary"), 1);
	CHECK_INT(entries("/mnt/canary/dst"), 0);
	test_source_done(dir);
}

static void exchange_null(void)
{
	(void)renameat2(AT_FDCWD, "/mnt/dir/null", AT_FDCWD, "/mnt/dir/evil", RENAME_EXCHANGE);
}

/* The /dev/null of a volume that is /dev becomes a link to what shall be hidden and back
 * (security.md A17): what hides is the null device whatever that name is. */
static void exchanged_null(void)
{
	char *const masked[] = { (char[]){ "/proc/sys/kernel/core_pattern" },
				 (char[]){ "/proc/keys" }, NULL };
	struct isolate_mount mounts[2] = { test_mounts[0], ISOLATE_MOUNT_INIT };
	int dir, ran = 0;
	pid_t racer;

	NEED_ROOT();
	dir = test_source();
	CHECK(mknod("/mnt/dir/null", S_IFCHR | 0666, makedev(1, 3)) == 0);
	CHECK(symlink("/proc/sys/kernel/core_pattern", "/mnt/dir/evil") == 0);
	racer = race_begin(exchange_null);
	mounts[1].target = "/dev";
	mounts[1].source_fd = dir;
	for (int i = 0; races_go_on(i, ran); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		struct isolate_plan plan;

		test_tree(&plan, SH("stat -c %t:%T /proc/sys/kernel/core_pattern /proc/keys"),
			  image);
		plan.mounts = mounts;
		plan.n_mounts = ARRAY_SIZE(mounts);
		plan.n_devices = 0;
		plan.masked_paths = masked;
		test_run(&plan, &t);
		if (t.r == 0)
			CHECK_STR(test_text(&t), "1:3\n1:3\n");
		ran += t.r == 0;
		if (unit_failures)
			break;
	}
	race_end(racer, ran);
	test_source_done(dir);
}

static void cover_proc(void)
{
	if (mount("/mnt/dir", "/proc", NULL, MS_BIND, NULL) == 0)
		(void)umount2("/proc", MNT_DETACH);
}

/* What the spawner sees as /proc is another directory now and then, with files to write to
 * (security.md A19): what is written goes to the kernel or the process does not run. */
static void exchanged_proc(void)
{
	static const struct isolate_sysctl sysctl = { "kernel.shm_rmid_forced", "1" };
	int dir, ran = 0;
	pid_t racer;

	NEED_ROOT();
	dir = test_source();
	CHECK(mkdir("/mnt/dir/self", 0755) == 0 && mkdir("/mnt/dir/sys", 0755) == 0);
	CHECK(mkdir("/mnt/dir/sys/kernel", 0755) == 0);
	CHECK(mknod("/mnt/dir/self/oom_score_adj", S_IFREG | 0666, 0) == 0);
	CHECK(mknod("/mnt/dir/sys/kernel/shm_rmid_forced", S_IFREG | 0666, 0) == 0);
	racer = race_begin(cover_proc);
	for (int i = 0; races_go_on(i, ran); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		struct isolate_plan plan;

		test_container(&plan,
			       SH("cat /proc/sys/kernel/shm_rmid_forced /proc/self/oom_score_adj"),
			       image);
		plan.sysctls = &sysctl;
		plan.n_sysctls = 1;
		plan.oom_score_adj = 345;
		test_run(&plan, &t);
		if (t.r == 0)
			CHECK_STR(test_text(&t), "1\n345\n");
		ran += t.r == 0;
		if (unit_failures)
			break;
	}
	race_end(racer, ran);
	while (access("/proc/version", F_OK) < 0)
		CHECK(umount2("/proc", MNT_DETACH) == 0);
	CHECK_INT(entries("/mnt/dir/self"), 1);
	test_source_done(dir);
}

static void exchange_volume(void)
{
	(void)renameat2(AT_FDCWD, "/mnt/dir/one", AT_FDCWD, "/mnt/dir/two", RENAME_EXCHANGE);
}

/* The image says that /proc, /dev or /sys is a directory of a volume, which is mounted before, and
 * another process exchanges that directory with one of its own: no such image is started. */
static void exchanged_volume(void)
{
	static const char *const names[] = { "proc", "dev", "sys" };
	char *const masked[] = { (char[]){ "/proc/keys" }, NULL };
	struct isolate_mount mounts[ARRAY_SIZE(test_mounts) + 1] = { ISOLATE_MOUNT_INIT };
	int dir, refused = 0;
	pid_t racer;

	NEED_ROOT();
	dir = test_source();
	CHECK(mkdir("/mnt/dir/one", 0755) == 0 && mkdir("/mnt/dir/two", 0755) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[32];

		(void)str_printf(path, sizeof(path), "/mnt/dir/one/%s", names[i]);
		CHECK(mkdir(path, 0755) == 0);
		(void)str_printf(path, sizeof(path), "/mnt/dir/two/%s", names[i]);
		CHECK(mkdir(path, 0755) == 0);
	}
	CHECK(mknod("/mnt/dir/two/proc/keys", S_IFREG | 0644, 0) == 0);
	racer = race_begin(exchange_volume);
	mounts[0].target = "/evil";
	mounts[0].source_fd = dir;
	memcpy(mounts + 1, test_mounts, sizeof(test_mounts));
	for (int i = 0; i < races(); i++) {
		const char *name = names[(size_t)i % ARRAY_SIZE(names)];
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		struct isolate_plan plan;
		char text[128];

		(void)str_printf(text, sizeof(text), "/evil/one/%s", name);
		CHECK(symlinkat(text, image, name) == 0);
		test_tree(&plan, SH("stat -c %t:%T /proc/keys"), image);
		plan.mounts = mounts;
		plan.n_mounts = ARRAY_SIZE(mounts);
		plan.masked_paths = masked;
		test_run(&plan, &t);
		(void)str_printf(
			text, sizeof(text),
			"make the root file system: /%s: is a symbolic link, or lies behind "
			"one (the root must have a directory there)",
			name);
		CHECK_STR(t.err.text, text);
		refused += t.r < 0;
		if (unit_failures)
			break;
	}
	race_end(racer, refused);
	CHECK_INT(entries("/mnt/dir/one/dev") + entries("/mnt/dir/two/dev"), 0);
	test_source_done(dir);
}

/* A working directory that is missing is made, and is the user's; a name that leads to another
 * directory meanwhile does not give him that. */
static void exchanged_cwd(void)
{
	struct isolate_mount mount = ISOLATE_MOUNT_INIT;
	int dir, ran = 0;
	pid_t racer;

	NEED_ROOT();
	dir = test_source();
	CHECK(mkdir("/mnt/dir/sub", 0755) == 0 && symlink("/etc", "/mnt/dir/evil") == 0);
	racer = race_begin(exchange_sub);
	mount.target = "/shared";
	mount.source_fd = dir;
	for (int i = 0; races_go_on(i, ran); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		struct isolate_plan plan;

		CHECK(mkdirat(image, "etc/cwd", 0755) == 0);
		test_tree(&plan, SH("stat -c %u /etc/cwd"), image);
		plan.mounts = &mount;
		plan.n_mounts = 1;
		plan.n_devices = 0;
		plan.cwd = "/shared/sub/cwd";
		plan.uid = 77;
		test_run(&plan, &t);
		if (t.r == 0)
			CHECK_STR(test_text(&t), "0\n");
		ran += t.r == 0;
		while (rmdir("/mnt/dir/sub/cwd") == 0 || rmdir("/mnt/dir/evil/cwd") == 0)
			;
		if (unit_failures)
			break;
	}
	race_end(racer, ran);
	test_source_done(dir);
}

static void exchange_root(void)
{
	(void)renameat2(AT_FDCWD, "/mnt/proc", AT_FDCWD, "/mnt/fake", RENAME_EXCHANGE);
	(void)renameat2(AT_FDCWD, "/mnt/dev", AT_FDCWD, "/mnt/null", RENAME_EXCHANGE);
}

/* The root itself is shared with a process that exchanges the directories which /proc and /dev are
 * mounted on: whatever names they have by the end, masks and read-only paths are on that procfs,
 * devices and links in that tmpfs. */
static void exchanged_root(void)
{
	char *const masked[] = { (char[]){ "/proc/keys" }, (char[]){ "/proc/timer_list" }, NULL };
	char *const readonly[] = { (char[]){ "/proc/sys" }, NULL };
	int image, ran = 0;
	pid_t racer;

	NEED_ROOT();
	image = test_image();
	CHECK(sysio_move_mount(image, "", AT_FDCWD, "/mnt", MOVE_MOUNT_F_EMPTY_PATH) == 0);
	CHECK(mkdirat(image, "proc", 0755) == 0 && mkdirat(image, "fake", 0755) == 0);
	CHECK(mkdirat(image, "dev", 0755) == 0 && mkdirat(image, "null", 0755) == 0);
	CHECK(mkdirat(image, "fake/sys", 0755) == 0);
	CHECK(mknodat(image, "fake/keys", S_IFREG | 0644, 0) == 0);
	racer = race_begin(exchange_root);
	for (int i = 0; races_go_on(i, ran); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int root = sysio_open_tree(
			image, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
		struct isolate_plan plan;

		/* A working directory stays what it is, whatever it is called. */
		test_tree(&plan,
			  SH("for d in /proc /fake; do cd $d; test -e uptime || continue;"
			     "stat -c %t:%T keys; (echo 8192 > sys/kernel/msgmax) && echo rw; done;"
			     "for d in /dev /null; do cd $d; test -d mqueue || continue;"
			     "test -c null -a -c tty -a -L ptmx || echo *; done; true"),
			  root);
		plan.stdio[2] = -1;
		plan.masked_paths = masked;
		plan.readonly_paths = readonly;
		test_run(&plan, &t);
		for (const char *at = test_text(&t); t.r == 0 && *at; at += strlen("1:3\n"))
			if (!str_has_prefix(at, "1:3\n")) {
				CHECK_STR(test_text(&t), "1:3\n");
				break;
			}
		ran += t.r == 0 && *test_text(&t);
		if (unit_failures)
			break;
	}
	race_end(racer, ran);
	CHECK_INT(entries("/mnt/dev") + entries("/mnt/null"), 0);
	test_source_done(image);
}

UNIT_MAIN({ "makes namespaces for the test itself", own_namespaces, true },
	  { "targets that are exchanged stay inside", exchanged_targets },
	  { "what hides is the null device", exchanged_null },
	  { "directories of a volume that are exchanged", exchanged_volume },
	  { "directories of the root that are exchanged", exchanged_root },
	  { "a working directory that is exchanged", exchanged_cwd },
	  { "what is written to /proc is taken by the kernel", exchanged_proc },
	  { "removes its cgroup", removes_the_cgroup, true })
