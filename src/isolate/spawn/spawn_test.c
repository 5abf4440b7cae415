/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/spawn.h"

#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "isolate/spawn/spawn_bed_test.h"

static void plain_process(void)
{
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;

	NEED_ROOT();
	test_plan(&plan, SH("echo $$; readlink /proc/self/fd/0; pwd; exit 7"));
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK_INT(t.status, 7);
	CHECK(test_has(&t, "/dev/null\n/\n"));
}

static void reports_failures(void)
{
	static const struct {
		const char *program;
		int exit_hint;
	} cases[] = {
		{ "/nowhere/program", 127 }, { "no-such-program", 127 },
		{ "/etc/passwd", 126 },      { "/", 126 },
		{ "/etc/passwd/x", 127 },
	};

	NEED_ROOT();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(test_run_done) struct test_run t;
		struct isolate_plan plan;

		test_plan(&plan, ARGV((char *)(uintptr_t)cases[i].program));
		test_run(&plan, &t);
		CHECK(t.r < 0);
		CHECK_INT(t.exit_hint, cases[i].exit_hint);
		CHECK_INT(t.status, cases[i].exit_hint);
		CHECK(strstr(t.err.text, cases[i].program) != NULL);
	}
}

static void reports_the_step(void)
{
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;

	NEED_ROOT();
	test_plan(&plan, SH("true"));
	plan.cwd = "/no/such/directory";
	test_run(&plan, &t);
	CHECK_INT(t.r, -ENOENT);
	CHECK_INT(t.exit_hint, 125);
	CHECK_STR(t.err.text,
		  "enter the working directory: /no/such/directory: No such file or directory");
}

/* Descriptors without O_CLOEXEC, in a bad order, and one of the standard streams at a wrong place.
 */
static void passes_descriptors(void)
{
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;
	int a = open("/proc/version", O_RDONLY), b = open("/proc/uptime", O_RDONLY);
	int leak = open("/proc/stat", O_RDONLY);

	NEED_ROOT();
	/* ls has one more for the directory that it reads. */
	test_plan(&plan, ARGV((char[]){ "ls" }, (char[]){ "-l" }, (char[]){ "/proc/self/fd" }));
	plan.keep_fds[0] = b;
	plan.keep_fds[1] = a;
	plan.keep_fds[2] = b;
	plan.n_keep_fds = 3;
	plan.stdio[0] = a;
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK(test_has(&t, " 0 -> /proc/version\n"));
	CHECK(test_has(&t, " 3 -> /proc/uptime\n") && test_has(&t, " 4 -> /proc/version\n") &&
	      test_has(&t, " 5 -> /proc/uptime\n"));
	CHECK(!strstr(test_text(&t), "/proc/stat") && !strstr(test_text(&t), " 7 -> "));
	(void)close(a);
	(void)close(b);
	(void)close(leak);
}

static void resets_signals(void)
{
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;
	sigset_t set, old;

	NEED_ROOT();
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, &old);
	test_plan(&plan, ARGV((char[]){ "cat" }, (char[]){ "/proc/self/status" }));
	test_run(&plan, &t);
	CHECK(test_has(&t, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"));
	(void)sigprocmask(SIG_SETMASK, NULL, &set);
	CHECK(sigismember(&set, SIGTERM) == 1 && sigismember(&set, SIGINT) == 0);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
}

static void container_sees_itself_only(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	test_container(
		&plan,
		SH("echo pid $$; hostname; ls /; cat /proc/self/cgroup; grep Cap /proc/self/status;"
		   "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status; ip addr show lo | grep UP;"
		   "ls /proc | grep -c '^[0-9]'"),
		image);
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK_INT(t.status, 0);
	CHECK(test_has(&t, "pid 1\nbox\nbin\ndev\netc\nproc\nsys\ntmp\n"));
	if (test_cgroup_fd >= 0)
		CHECK(test_has(&t, "0::/\n"));
	CHECK(test_has(&t, "CapInh:\t0000000000000000\nCapPrm:\t00000000000005fb\n"
			   "CapEff:\t00000000000005fb\nCapBnd:\t00000000000005fb\n"
			   "CapAmb:\t0000000000000000\n"));
	CHECK(test_has(&t, "NoNewPrivs:\t1\nSeccomp:\t2\n"));
	CHECK(test_has(&t, "LOOPBACK,UP"));
}

static void container_dev(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	test_container(&plan,
		       SH("cd /dev; ls; stat -c '%n %A %t:%T' null zero full random urandom tty; "
			  "readlink fd; readlink ptmx;"
			  "echo x > null && echo y > shm/y && cat shm/y; stat -c %a shm pts/ptmx;"
			  "grep -E ' /dev' /proc/self/mountinfo | sed 's/.* \\(.dev[^ ]*\\) \\([^ "
			  "]*\\) .*- \\([^ ]*\\).*/\\1 \\2 \\3/'"),
		       image);
	test_run(&plan, &t);
	CHECK_INT(t.status, 0);
	CHECK(test_has(
		&t, "fd\nfull\nmqueue\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\n"
		    "urandom\nzero\n"));
	CHECK(test_has(&t, "null crw-rw-rw- 1:3\nzero crw-rw-rw- 1:5\nfull crw-rw-rw- 1:7\n"
			   "random crw-rw-rw- 1:8\nurandom crw-rw-rw- 1:9\ntty crw-rw-rw- 5:0\n"));
	CHECK(test_has(&t, "/proc/self/fd\npts/ptmx\ny\n1777\n666\n"));
	CHECK(test_has(&t, "/dev rw,nosuid,nodev,noexec,relatime tmpfs\n"));
	CHECK(test_has(&t, "/dev/pts rw,nosuid,noexec,relatime devpts\n"));
	CHECK(test_has(&t, "/dev/shm rw,nosuid,nodev,noexec,relatime tmpfs\n"));
	CHECK(test_has(&t, "/dev/mqueue rw,nosuid,nodev,noexec,relatime mqueue\n"));
}

static void container_masks(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	test_container(
		&plan,
		SH("wc -c < /proc/interrupts; ls /sys/firmware | wc -l; stat -c %t:%T /proc/keys;"
		   "for f in /proc/sysrq-trigger /proc/sys/kernel/core_pattern "
		   "/sys/kernel/rcu_expedited"
		   " /sys/fs/cgroup/cgroup.procs; do (echo -n > $f) 2>/dev/null && echo writable "
		   "$f;"
		   "done; mkdir /sys/fs/cgroup/x 2>/dev/null && echo made; touch /ok && echo "
		   "root-writable;"
		   "grep -cE 'shared|master' /proc/self/mountinfo"),
		image);
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "0\n0\n1:3\nroot-writable\n0\n");
}

static void container_read_only(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	test_container(&plan,
		       SH("pwd; touch /x /w/d/x /sys/x 2>/dev/null; ls / /w/d; echo > /dev/null;"
			  "touch /dev/x /dev/shm/x && ls /dev/x /dev/shm;"
			  "grep -c '^[^ ]* [^ ]* [^ ]* [^ ]* / ro,' /proc/self/mountinfo"),
		       image);
	plan.root_read_only = true;
	plan.cwd = "/w/d";
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "/w/d\n/:\nbin\ndev\netc\nproc\nsys\ntmp\nw\n\n/w/d:\n"
				 "/dev/x\n\n/dev/shm:\nx\n1\n");
}

static void container_user(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	test_container(&plan,
		       SH("id -u; id -g; id -G; grep Cap /proc/self/status | tr -d '\\n'; echo;"
			  "stat -c %u:%g . ; echo again > /dev/stdout; touch /x 2>/dev/null || "
			  "echo denied"),
		       image);
	plan.uid = 1000;
	plan.gid = 1001;
	plan.groups[0] = 5;
	plan.groups[1] = 1001;
	plan.n_groups = 2;
	plan.cwd = "/home/me";
	test_run(&plan, &t);
	CHECK_STR(test_text(&t),
		  "1000\n1001\n1001 5\nCapInh:\t0000000000000000CapPrm:\t0000000000000000"
		  "CapEff:\t0000000000000000CapBnd:\t00000000000005fbCapAmb:\t0000000000000000\n"
		  "1000:1001\nagain\ndenied\n");
}

/* The kernel shows them sorted. */
static void exact_groups(void)
{
	static const struct {
		gid_t groups[4];
		size_t n;
		const char *want;
	} lists[] = {
		{ { 0 }, 0, "Groups: \n" },
		{ { 8, 7, 8, 7 }, 4, "Groups:7 8 \n" },
		{ { 1001, 5 }, 2, "Groups:5 1001 \n" },
	};

	NEED_ROOT();
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		struct isolate_plan plan;

		test_container(&plan, SH("grep ^Groups: /proc/self/status | tr -d '\t'"), image);
		plan.uid = 1000;
		plan.gid = 1001;
		memcpy(plan.groups, lists[i].groups, sizeof(lists[i].groups));
		plan.n_groups = lists[i].n;
		plan.groups_exact = true;
		test_run(&plan, &t);
		CHECK_STR(test_text(&t), lists[i].want);
	}
}

static void container_limits(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;
	struct rlimit nofile;
	char want[64];

	NEED_ROOT();
	CHECK(getrlimit(RLIMIT_NOFILE, &nofile) == 0);
	image = test_image();
	test_container(&plan, SH("ulimit -n; ulimit -c; cat /proc/self/oom_score_adj"), image);
	plan.oom_score_adj = 345;
	test_run(&plan, &t);
	(void)str_printf(want, sizeof(want), "%lld\n0\n345\n",
			 (long long)MIN(nofile.rlim_max, (rlim_t)1024));
	CHECK_STR(test_text(&t), want);
}

/* What an image may put in the place of the three directories (security.md A05, A20). */
static void hostile_images(void)
{
	static const char *const names[] = { "proc", "dev", "sys" };

	NEED_ROOT();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		char want[64];
		struct isolate_plan plan;

		CHECK(symlinkat(i == 0 ? "/tmp" : "etc", image, names[i]) == 0);
		test_container(&plan, SH("echo ran"), image);
		test_run(&plan, &t);
		(void)str_printf(want, sizeof(want), "/%s of the image is not a directory",
				 names[i]);
		CHECK(t.r < 0 && t.err.kind == ERROR_PRECONDITION && strstr(t.err.text, want));
		CHECK_INT(t.exit_hint, 125);
		CHECK_STR(test_text(&t), "");
	}
}

/* A working directory behind a link (security.md A23), and one through a descriptor
 * (CVE-2024-21626). */
static void hostile_cwd(void)
{
	_cleanup_(test_run_done) struct test_run t, u;
	_cleanup_fd_ int image = -1, second = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	CHECK(symlinkat("/../../../etc", image, "w") == 0);
	test_container(&plan, SH("pwd -P; ls -d /etc/new"), image);
	plan.cwd = "/w/new";
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "/etc/new\n/etc/new\n");
	/* Where it was made out here after all, it does not stay. */
	CHECK(access("/etc/new", F_OK) < 0 && errno == ENOENT);
	(void)rmdir("/etc/new");

	second = test_image();
	test_container(&plan, SH("pwd"), second);
	plan.cwd = "/proc/self/cwd";
	test_run(&plan, &u);
	CHECK_INT(u.r, -ELOOP);
	CHECK_INT(u.exit_hint, 125);
}

static void shared_shm(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1, shm = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	CHECK(mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777") == 0);
	shm = open("/dev/shm", O_PATH | O_DIRECTORY | O_CLOEXEC);
	image = test_image();
	test_container(&plan,
		       SH("echo hello > /dev/shm/x; grep -c ' /dev/shm rw,nosuid,nodev,noexec' "
			  "/proc/self/mountinfo"),
		       image);
	plan.shm_fd = shm;
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "1\n");
	CHECK(access("/dev/shm/x", F_OK) == 0);
	CHECK(umount2("/dev/shm", MNT_DETACH) == 0);
}

static void test_keeper(struct isolate_plan *plan, char *const *argv, int exe_fd)
{
	test_plan(plan, argv);
	for (int i = 0; i <= ISOLATE_NS_CGROUP; i++)
		plan->ns[i] = ISOLATE_NEW;
	plan->root = ISOLATE_ROOT_KEEPER;
	plan->exec_fd = exe_fd;
}

static void keeper_root(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int exe = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	exe = open("/bin/busybox", O_RDONLY | O_CLOEXEC);
	test_keeper(
		&plan,
		SH("echo $$; echo /dev/*; : > /run/x && echo ok; : > /dev/null && echo null; pwd;"
		   "echo /*; while read -r a b c d e f g; do echo $e ${f%%,*}; done "
		   "< /proc/self/mountinfo"),
		exe);
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK(str_has_prefix(test_text(&t), "1\n/dev/full /dev/null /dev/random /dev/shm "
					    "/dev/urandom /dev/zero\nok\nnull\n/\n"));
	if (TEST_KEEPER_ALONE)
		CHECK(str_has_suffix(test_text(&t), "\n/\n/dev /proc /run\n"
						    "/ rw\n/proc rw\n/dev/shm rw\n"));
	else
		CHECK(test_has(&t, "\n/dev /lib ") && test_has(&t, "/proc /run /usr") &&
		      test_has(&t, "\n/usr ro\n"));
}

static void keeper_loads_libraries(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int exe = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	exe = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
	test_keeper(&plan, ARGV((char[]){ "env" }), exe);
	test_run(&plan, &t);
	CHECK_INT(t.status, TEST_KEEPER_ALONE ? 127 : 0);
	CHECK_INT(t.exit_hint, t.status);
	CHECK_STR(test_text(&t), TEST_KEEPER_ALONE ? "" : "PATH=/bin:/usr/bin\n");
}

/* Whether one of the children of a process runs a program of this name. */
static bool has_child(pid_t pid, const char *name)
{
	char path[64], text[256] = "", comm[32] = "";
	FILE *f;
	size_t n;

	(void)str_printf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "re");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		(void)fclose(f);
	if (n == 0)
		return false;
	text[strcspn(text, " ")] = '\0';
	(void)str_printf(path, sizeof(path), "/proc/%s/comm", text);
	f = fopen(path, "re");
	n = f ? fread(comm, 1, sizeof(comm) - 1, f) : 0;
	if (f)
		(void)fclose(f);
	return n > 0 && str_has_prefix(comm, name);
}

/* Whether the root of the host comes to light in a mount namespace when its own is taken away. */
static bool has_another_root(int ns_fd)
{
	struct stat host, found;
	int status = 0;
	pid_t pid;

	CHECK(stat("/", &host) == 0);
	pid = fork();
	if (pid == 0) {
		/* Each puts this process on top of all that lies on "/". */
		if (setns(ns_fd, CLONE_NEWNS) < 0)
			_exit(2);
		if (umount2("/", MNT_DETACH) < 0)
			_exit(0);
		if (setns(ns_fd, CLONE_NEWNS) < 0 || stat("/", &found) < 0)
			_exit(3);
		_exit(host.st_dev == found.st_dev && host.st_ino == found.st_ino);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 1;
}

/* A second process in the namespaces of a first one, as exec does it. */
static void joins_a_container(void)
{
	_cleanup_(isolate_child_done) struct isolate_child first = ISOLATE_CHILD_INIT;
	_cleanup_(test_run_done) struct test_run t = { .out = BUF_INIT };
	_cleanup_fd_ int image = -1, proc_fd = -1;
	struct isolate_plan plan, join;
	struct stat before, after;
	struct error err = ERROR_INIT;
	int hint = 0;

	NEED_ROOT();
	CHECK(stat("/proc/thread-self/ns/pid_for_children", &before) == 0);
	image = test_image();
	test_container(&plan, SH("touch /tmp/mark; sleep 100; true"), image);
	CHECK(isolate_spawn(&plan, &first, &err) == 0);
	CHECK(isolate_child_report(&first, &hint, &err) == 0);
	/* It has made its mark. */
	for (int i = 0; i < 2000 && !has_child(first.pid, "sleep"); i++)
		(void)usleep(10000);

	proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	test_plan(&join,
		  SH("ls /tmp; hostname; set -- /proc/[0-9]*; echo $#; cat /proc/1/comm; id -u;"
		     "grep CapEff /proc/self/status; cat /proc/self/cgroup"));
	for (int i = 0; i <= ISOLATE_NS_CGROUP; i++) {
		join.ns[i] = ISOLATE_JOIN;
		join.ns_fd[i] = isolate_ns_open(proc_fd, first.pid, (enum isolate_ns)i);
		CHECK(join.ns_fd[i] >= 0);
	}
	join.cgroup_fd = test_cgroup_fd;
	join.caps = isolate_caps_default;
	join.no_new_privs = true;
	join.seccomp = isolate_seccomp_default(join.caps);
	test_run(&join, &t);
	CHECK_INT(t.r, 0);
	CHECK(test_has(&t, "mark\nbox\n3\nsh\n0\nCapEff:\t00000000000005fb\n"));
	if (test_cgroup_fd >= 0)
		CHECK(test_has(&t, "0::/\n"));
	CHECK(stat("/proc/thread-self/ns/pid_for_children", &after) == 0);
	CHECK(before.st_ino == after.st_ino);
	CHECK(!has_another_root(join.ns_fd[ISOLATE_NS_MOUNT]));

	for (int i = 0; i <= ISOLATE_NS_CGROUP; i++)
		(void)close(join.ns_fd[i]);
	CHECK(pidfd_kill(first.pidfd, SIGKILL) == 0);
	test_reap(&first, &t);
	CHECK_INT(t.status, 128 + SIGKILL);
}

/* The spawner's own mounts and descriptors are as before after a hundred failures and successes. */
static void leaves_nothing(void)
{
	_cleanup_(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	int fd_before = -1, fd_after;

	NEED_ROOT();
	for (int i = 0; i < 12; i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = -1;
		struct isolate_plan plan;

		if (i == 2) {
			fd_before = open("/dev/null", O_RDONLY | O_CLOEXEC);
			CHECK(fd_read_file(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &before) ==
			      0);
			(void)close(fd_before);
		}
		image = test_image();
		test_container(&plan, i & 1 ? SH("true") : ARGV((char[]){ "missing" }), image);
		test_run(&plan, &t);
	}
	CHECK(fd_read_file(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &after) == 0);
	fd_after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd_after, fd_before);
	(void)close(fd_after);
	CHECK(before.len == after.len &&
	      memcmp(buf_data(&before), buf_data(&after), after.len) == 0);
}

/* Whether a child of a spawner that ends at once ends too, and its end of the pipe with it. It
 * would end by itself when nobody can write to its input any more, which is so once this has
 * looked. */
static bool ends_with_spawner(int death_signal)
{
	struct isolate_plan plan;
	struct pollfd p;
	bool ended;
	int fds[2], in[2];
	pid_t spawner;
	int status;

	CHECK(pipe2(fds, O_CLOEXEC) == 0 && pipe2(in, O_CLOEXEC) == 0);
	test_plan(&plan, ARGV((char[]){ "cat" }));
	plan.stdio[0] = in[0];
	plan.stdio[1] = fds[1];
	plan.death_signal = death_signal;
	plan.uid = 1000;
	plan.gid = 1000;
	spawner = fork();
	if (spawner == 0) {
		struct isolate_child c = ISOLATE_CHILD_INIT;
		int hint, r = isolate_spawn(&plan, &c, NULL);

		_exit(r == 0 && isolate_child_report(&c, &hint, NULL) == 0 ? 0 : 1);
	}
	(void)close(fds[1]);
	(void)close(in[0]);
	CHECK(waitpid(spawner, &status, 0) == spawner && status == 0);
	p = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	ended = poll(&p, 1, death_signal ? 60000 : 500) == 1;
	(void)close(in[1]);
	CHECK(poll(&p, 1, 60000) == 1);
	(void)close(fds[0]);
	return ended;
}

static void dies_with_the_spawner(void)
{
	NEED_ROOT();
	CHECK(ends_with_spawner(SIGKILL));
	CHECK(!ends_with_spawner(0));
}

UNIT_MAIN({ "makes namespaces for the test itself", own_namespaces, true },
	  { "runs a plain process", plain_process }, { "says 126 and 127", reports_failures },
	  { "names the step that failed", reports_the_step },
	  { "passes the named descriptors and no other", passes_descriptors },
	  { "resets signals and keeps the spawner's mask", resets_signals },
	  { "a container sees itself only", container_sees_itself_only },
	  { "the devices of a container", container_dev },
	  { "masked and read-only paths", container_masks },
	  { "a read-only root", container_read_only },
	  { "supplementary groups that are exact", exact_groups },
	  { "a user without capabilities", container_user },
	  { "limits and the OOM score", container_limits },
	  { "an image with a link for /proc, /dev or /sys is refused", hostile_images },
	  { "a working directory stays inside", hostile_cwd }, { "/dev/shm of a cell", shared_shm },
	  { "the root of a keeper", keeper_root },
	  { "only a test's keeper finds libraries", keeper_loads_libraries },
	  { "a process joins a container", joins_a_container },
	  { "a death signal", dies_with_the_spawner },
	  { "the spawner is as before", leaves_nothing },
	  { "removes its cgroup", removes_the_cgroup, true })
