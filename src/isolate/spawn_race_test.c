/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>

#include "isolate/tree_bed_test.h"

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

UNIT_MAIN({ "makes namespaces for the test itself", own_namespaces, true },
	  { "targets that are exchanged stay inside", exchanged_targets },
	  { "what hides is the null device", exchanged_null },
	  { "what is written to /proc is taken by the kernel", exchanged_proc },
	  { "removes its cgroup", removes_the_cgroup, true })
