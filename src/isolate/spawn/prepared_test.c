/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/prepared.h"

#include <sys/wait.h>

#include "isolate/spawn/pty.h"
#include "isolate/spawn/spawn_bed_test.h"

static int place_fd = -1, proc_fd = -1;
static struct isolate_prepared_maker maker; /* of all tests: most prepared sets are not the first */

/* All that a program can ask about its walls, without what differs between any two containers. */
#define LOOKS_AROUND                                                                               \
	"sed 's/^[0-9]* [0-9]* [0-9]*:[0-9]* //' /proc/self/mountinfo | busybox sort;"             \
	"for d in / /dev /dev/pts /dev/shm /dev/mqueue /proc/acpi /sys/firmware; do echo $d;"      \
	" busybox stat -c '%n %F %a %u %g %t %T' $d $d/*; done 2>&1 | grep -v /proc/;"             \
	"hostname; cat /proc/net/dev; ip addr; cat /proc/sysvipc/shm;"                             \
	"for l in /dev/fd /dev/stdin /dev/ptmx; do readlink $l; done;"                             \
	"for f in keys kcore timer_list; do echo $f; cat /proc/$f; done;"                          \
	"for f in /dev/x /dev/shm/x /dev/mqueue/x /sys/x /proc/sys/x; do"                          \
	" echo $f; echo y >$f; done 2>&1; cat /proc/self/status | grep -v -e Pid -e ctxt -e Vm "   \
	"-e "                                                                                      \
	"Rss"                                                                                      \
	" -e Groups -e Speculation -e SigQ"

static void open_places(void)
{
	int fd;

	NEED_ROOT();
	fd = sysio_fsopen("tmpfs", FSOPEN_CLOEXEC);
	CHECK(sysio_fsconfig(fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0);
	place_fd = sysio_fsmount(fd, FSMOUNT_CLOEXEC, 0);
	CHECK(place_fd >= 0);
	CHECK(sysio_move_mount(place_fd, "", AT_FDCWD, "/mnt", MOVE_MOUNT_F_EMPTY_PATH) == 0);
	proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(proc_fd >= 0);
	(void)close(fd);
	maker = (struct isolate_prepared_maker){ .proc_fd = proc_fd, .shm_fd = -1, .mold_fd = -1 };
}

/* Puts the prepared set into a plan that would make all that by itself. */
static void use_prepared(struct isolate_plan *plan, const struct isolate_prepared *prepared)
{
	for (int i = 0; i < ISOLATE_NS_COUNT; i++) {
		if (prepared->ns_fd[i] < 0)
			continue;
		plan->ns[i] = ISOLATE_JOIN;
		plan->ns_fd[i] = prepared->ns_fd[i];
	}
	plan->bring_up_loopback = false;
	plan->hostname = NULL;
	plan->prepared_ns_fd = prepared->prepared_ns_fd;
}

static void a_container_cannot_tell(void)
{
	_cleanup_(isolate_prepared_done) struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;
	_cleanup_(test_run_done) struct test_run with, without;
	_cleanup_fd_ int image = -1, other_image = -1;
	struct error err = ERROR_INIT;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	other_image = test_image();
	test_container(&plan, SH(LOOKS_AROUND), image);
	plan.stdio[2] = -1;
	test_run(&plan, &without);
	CHECK_INT(without.r, 0);

	CHECK_INT(isolate_prepared_make(&prepared, &maker, &err), 0);
	CHECK_STR(err.text, "");
	CHECK_INT(isolate_prepared_set_hostname(&prepared, proc_fd, "box", &err), 0);
	test_container(&plan, SH(LOOKS_AROUND), other_image);
	plan.stdio[2] = -1;
	use_prepared(&plan, &prepared);
	test_run(&plan, &with);
	CHECK_INT(with.r, 0);
	CHECK(test_has(&with, "\nbox\n") && test_has(&with, "LOOPBACK,UP"));
	CHECK(test_has(&with, "/dev/pts") && test_has(&with, "Seccomp:\t2"));
	CHECK_STR(test_text(&with), test_text(&without));
}

/* Nor when its root came behind everything else. */
static void nor_with_its_root_late(void)
{
	_cleanup_(isolate_prepared_done) struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;
	_cleanup_(test_run_done) struct test_run with_prepared, own, without;
	_cleanup_fd_ int image = -1, late_image = -1, prepared_image = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	late_image = test_image();
	prepared_image = test_image();
	test_container(&plan, SH(LOOKS_AROUND), image);
	plan.stdio[2] = -1;
	test_run(&plan, &without);
	CHECK_INT(without.r, 0);

	test_container(&plan, SH(LOOKS_AROUND), -1);
	plan.stdio[2] = -1;
	plan.root_later = true;
	test_run_giving(&plan, late_image, &own);
	CHECK_INT(own.r, 0);
	CHECK_STR(test_text(&own), test_text(&without));

	CHECK_INT(isolate_prepared_make(&prepared, &maker, NULL), 0);
	CHECK_INT(isolate_prepared_set_hostname(&prepared, proc_fd, "box", NULL), 0);
	use_prepared(&plan, &prepared);
	test_run_giving(&plan, prepared_image, &with_prepared);
	CHECK_INT(with_prepared.r, 0);
	CHECK_STR(test_text(&with_prepared), test_text(&without));
}

/* The program and the user of a plan with rest_later, which is left without. */
static void take_rest(struct isolate_plan *plan, struct isolate_rest *rest, int image_fd)
{
	*rest = (struct isolate_rest){ .argv = plan->argv,
				       .env = plan->env,
				       .cwd = "/",
				       .uid = plan->uid,
				       .gid = plan->gid,
				       .root_fd = image_fd,
				       .stdio = { -1, -1, -1 } };
	plan->argv = plan->env = NULL;
	plan->root_later = plan->rest_later = true;
	plan->stdio[0] = plan->stdio[1] = plan->stdio[2] = -1;
}

/* Runs it as test_run() does. */
static void run_with_rest(struct isolate_plan *plan, struct isolate_rest *rest, struct test_run *t)
{
	_cleanup_(isolate_child_done) struct isolate_child c = ISOLATE_CHILD_INIT;
	int fds[2];

	*t = (struct test_run){ .out = BUF_INIT };
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	rest->stdio[1] = fds[1];
	CHECK_INT(isolate_spawn(plan, &c, &t->err), 0);
	CHECK_INT(isolate_child_give_rest(&c, rest, &t->err), 0);
	CHECK_INT(c.give_fd, -1);
	(void)close(fds[1]);
	CHECK(fd_read_all(fds[0], TEST_OUTPUT_MAX, &t->out) == 0);
	t->r = isolate_child_report(&c, &t->exit_hint, &t->err);
	test_reap(&c, t);
	if (t->r < 0)
		printf("# %s\n", error_text(&t->err));
	CHECK(buf_add(&t->out, "", 1) == 0);
	(void)close(fds[0]);
}

/* Nor when its process was there before anybody knew what for. */
static void nor_with_its_program_late(void)
{
	_cleanup_(isolate_prepared_done) struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;
	_cleanup_(test_run_done) struct test_run with, own, without;
	_cleanup_fd_ int image = -1, late_image = -1, prepared_image = -1;
	struct isolate_rest rest;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	late_image = test_image();
	prepared_image = test_image();
	test_container(&plan, SH(LOOKS_AROUND), image);
	plan.stdio[2] = -1;
	test_run(&plan, &without);
	CHECK_INT(without.r, 0);

	test_container(&plan, SH(LOOKS_AROUND), -1);
	take_rest(&plan, &rest, late_image);
	run_with_rest(&plan, &rest, &own);
	CHECK_INT(own.r, 0);
	CHECK_STR(test_text(&own), test_text(&without));

	CHECK_INT(isolate_prepared_make(&prepared, &maker, NULL), 0);
	CHECK_INT(isolate_prepared_set_hostname(&prepared, proc_fd, "box", NULL), 0);
	use_prepared(&plan, &prepared);
	rest.root_fd = prepared_image;
	run_with_rest(&plan, &rest, &with);
	CHECK_INT(with.r, 0);
	CHECK_STR(test_text(&with), test_text(&without));
}

/* All that comes is in force: and nothing of what the plan had in its place. */
static void what_comes_late_counts(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	char *env[] = { (char[]){ "PATH=/bin" }, (char[]){ "A=one" }, (char[]){ "B=" }, NULL };
	struct isolate_rest rest;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	test_container(
		&plan,
		SH("echo $A,$B,$0; pwd; id -u; id -g; id -G; touch /x 2>&1; grep -e Bnd -e NoNew "
		   "-e Seccomp: /proc/self/status; readlink /proc/self/fd/0; echo err >&2"),
		-1);
	plan.uid = plan.gid = 4;
	plan.cwd = "/etc";
	take_rest(&plan, &rest, image);
	rest.env = env;
	rest.cwd = "/tmp";
	rest.uid = 1000;
	rest.gid = 1001;
	rest.groups[0] = 7;
	rest.groups[1] = 8;
	rest.n_groups = 2;
	rest.root_read_only = true;
	run_with_rest(&plan, &rest, &t);
	CHECK_INT(t.r, 0);
	CHECK_STR(test_text(&t),
		  "one,,sh\n/tmp\n1000\n1001\n1001 7 8\ntouch: /x: Read-only file system\n"
		  "CapBnd:\t00000000000005fb\nNoNewPrivs:\t1\nSeccomp:\t2\n/dev/null\n");
}

static void a_program_can_be_too_long(void)
{
	static char big[ISOLATE_REST_BYTES_MAX];
	static char *many[ISOLATE_REST_STRINGS_MAX + 1];
	_cleanup_(isolate_child_done) struct isolate_child c = ISOLATE_CHILD_INIT;
	char *one[] = { big, NULL }, *none[] = { NULL };
	struct test_run t = { .out = BUF_INIT };
	struct error err = ERROR_INIT;
	struct isolate_rest rest;
	struct isolate_plan plan;

	NEED_ROOT();
	memset(big, 'x', sizeof(big) - 3);
	for (size_t i = 0; i < ISOLATE_REST_STRINGS_MAX; i++)
		many[i] = (char[]){ "x" };
	CHECK(isolate_rest_fits(one, NULL, "/", 0, 0));
	CHECK(!isolate_rest_fits(one, NULL, "/", 0, 1));
	CHECK(!isolate_rest_fits(one, NULL, "/a", 0, 0));
	CHECK(isolate_rest_fits(many, none, "/", 0, 0));
	CHECK(!isolate_rest_fits(many, one + 1, "/", 1, 0));

	test_container(&plan, SH("echo it ran"), -1);
	take_rest(&plan, &rest, place_fd);
	rest.cwd = "/a";
	rest.argv = one;
	CHECK_INT(isolate_spawn(&plan, &c, &err), 0);
	CHECK_INT(isolate_child_give_rest(&c, &rest, &err), -EINVAL);
	CHECK_INT(err.kind, ERROR_INVALID);
	/* It can still be told at its limit: of such a name there is no program. */
	rest.cwd = "/";
	rest.env = none;
	rest.root_fd = test_image();
	CHECK_INT(isolate_child_give_rest(&c, &rest, &err), 0);
	(void)close(rest.root_fd);
	CHECK_INT(isolate_child_report(&c, &t.exit_hint, &err), -ENOENT);
	CHECK_INT(t.exit_hint, 127);
	test_reap(&c, &t);
}

/* What it has made so far goes with it, and the reason is told. */
static void one_without_a_root_fails(void)
{
	_cleanup_(isolate_prepared_done) struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;
	_cleanup_(isolate_child_done) struct isolate_child c = ISOLATE_CHILD_INIT;
	struct test_run t = { .out = BUF_INIT };
	struct error err = ERROR_INIT;
	struct isolate_plan plan;

	NEED_ROOT();
	CHECK_INT(isolate_prepared_make(&prepared, &maker, NULL), 0);
	test_container(&plan, SH("echo it ran"), -1);
	plan.root_later = true;
	use_prepared(&plan, &prepared);
	CHECK_INT(isolate_spawn(&plan, &c, &err), 0);
	c.give_fd = fd_close(c.give_fd);
	CHECK_INT(isolate_child_report(&c, &t.exit_hint, &err), -EPIPE);
	CHECK(strstr(err.text, "wait for the root") != NULL);
	test_reap(&c, &t);
	CHECK_INT(t.status, 125);
	/* One that is gone can still be given it. A prepared set serves one container. */
	isolate_child_done(&c);
	isolate_prepared_done(&prepared);
	CHECK_INT(isolate_prepared_make(&prepared, &maker, NULL), 0);
	use_prepared(&plan, &prepared);
	CHECK_INT(isolate_spawn(&plan, &c, &err), 0);
	CHECK_INT(pidfd_kill(c.pidfd, SIGKILL), 0);
	test_reap(&c, &t);
	CHECK_INT(t.status, 128 + SIGKILL);
	CHECK_INT(isolate_child_give_root(&c, place_fd, &err), 0);
}

#define LOOKS_AROUND_POD                                                                           \
	LOOKS_AROUND ";echo y >/dev/shm/seen; busybox rm -f /dev/mqueue/x /dev/shm/x"

static void share_with_the_spawner(struct isolate_plan *plan, int shm_fd)
{
	static const enum isolate_ns shared[] = { ISOLATE_NS_NET, ISOLATE_NS_IPC, ISOLATE_NS_UTS };

	for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
		plan->ns[shared[i]] = ISOLATE_KEEP;
	plan->bring_up_loopback = false;
	plan->hostname = NULL;
	plan->shm_fd = shm_fd;
	plan->stdio[2] = -1;
}

/* The same where the namespaces are those of the spawner, and /dev/shm is given. */
static void one_of_a_pod_cannot_tell(void)
{
	_cleanup_(isolate_prepared_done) struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;
	_cleanup_(test_run_done) struct test_run with, without;
	_cleanup_fd_ int image = -1, other_image = -1, shm_fd = -1;
	_cleanup_(isolate_prepared_maker_done) struct isolate_prepared_maker shared = {
		.mold_fd = -1
	};
	struct error err = ERROR_INIT;
	struct isolate_plan plan;

	NEED_ROOT();
	CHECK(mkdirat(place_fd, "shm", 01777) == 0 && fchmodat(place_fd, "shm", 01777, 0) == 0);
	shm_fd = openat(place_fd, "shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(shm_fd >= 0);
	image = test_image();
	other_image = test_image();
	test_container(&plan, SH(LOOKS_AROUND_POD), image);
	share_with_the_spawner(&plan, shm_fd);
	test_run(&plan, &without);
	CHECK_INT(without.r, 0);
	CHECK(unlinkat(shm_fd, "seen", 0) == 0);

	shared = (struct isolate_prepared_maker){ .proc_fd = proc_fd,
						  .shm_fd = shm_fd,
						  .mold_fd = -1 };
	CHECK_INT(isolate_prepared_make(&prepared, &shared, &err), 0);
	CHECK_STR(err.text, "");
	CHECK(prepared.ns_fd[ISOLATE_NS_NET] < 0 && prepared.shm_fd < 0);
	test_container(&plan, SH(LOOKS_AROUND_POD), other_image);
	share_with_the_spawner(&plan, -1);
	use_prepared(&plan, &prepared);
	test_run(&plan, &with);
	CHECK_INT(with.r, 0);
	CHECK_STR(test_text(&with), test_text(&without));
	CHECK(unlinkat(shm_fd, "seen", 0) == 0);
}

/* The namespaces are new, and this process is where it was. */
static void comes_back(void)
{
	static const char *const names[] = { "net", "ipc", "uts", "mnt", "pid" };
	_cleanup_(isolate_prepared_done) struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;
	struct stat before[ARRAY_SIZE(names)], st;
	char host[64], now[64], path[64], cwd[64];
	mode_t mask = umask(027);

	NEED_ROOT();
	CHECK(chdir("/tmp") == 0);
	CHECK(gethostname(host, sizeof(host)) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CHECK(str_printf(path, sizeof(path), "/proc/self/ns/%s", names[i]) > 0);
		CHECK(stat(path, &before[i]) == 0);
	}
	CHECK_INT(isolate_prepared_make(&prepared, &maker, NULL), 0);
	CHECK_INT(isolate_prepared_set_hostname(&prepared, proc_fd, "another", NULL), 0);
	CHECK(gethostname(now, sizeof(now)) == 0);
	CHECK_STR(now, host);
	CHECK(getcwd(cwd, sizeof(cwd)) != NULL);
	CHECK_STR(cwd, "/tmp");
	CHECK_INT(umask(mask), 027);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CHECK(str_printf(path, sizeof(path), "/proc/self/ns/%s", names[i]) > 0);
		CHECK(stat(path, &st) == 0);
		CHECK(st.st_ino == before[i].st_ino);
	}
	CHECK(fstat(prepared.ns_fd[ISOLATE_NS_NET], &st) == 0 && st.st_ino != before[0].st_ino);
	CHECK(fstat(prepared.ns_fd[ISOLATE_NS_IPC], &st) == 0 && st.st_ino != before[1].st_ino);
	CHECK(fstat(prepared.ns_fd[ISOLATE_NS_UTS], &st) == 0 && st.st_ino != before[2].st_ino);
	CHECK(chdir("/") == 0);
}

static void fails_in_one_piece(void)
{
	struct isolate_prepared_maker wrong = { .proc_fd = proc_fd,
						.shm_fd = -1,
						.mold_fd = proc_fd };
	struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;
	struct error err = ERROR_INIT;
	struct stat net, mounts, st;

	NEED_ROOT();
	CHECK(stat("/proc/self/ns/net", &net) == 0 && stat("/proc/self/ns/mnt", &mounts) == 0);
	/* By then it has all other namespaces. */
	CHECK_INT(isolate_prepared_make(&prepared, &wrong, &err), -EBADF);
	CHECK(strstr(err.text, "the empty mount namespace") != NULL);
	CHECK(prepared.ns_fd[ISOLATE_NS_NET] == -1 && prepared.shm_fd == -1 &&
	      prepared.prepared_ns_fd == -1);
	CHECK(stat("/proc/self/ns/net", &st) == 0 && st.st_ino == net.st_ino);
	CHECK(stat("/proc/self/ns/mnt", &st) == 0 && st.st_ino == mounts.st_ino);
	CHECK_INT(isolate_prepared_make(&prepared, &maker, &err), 0);
	isolate_prepared_done(&prepared);
	CHECK_INT(prepared.prepared_ns_fd, -1);
}

enum { PREPARED_TOP, PREPARED_DEV, PREPARED_SHM, PREPARED_SYS, PREPARED_LOOKS };

/* What is in the mount namespace of a prepared set, seen by a process that goes there. */
static void look_into(const struct isolate_prepared *prepared, struct stat *looks)
{
	static const char *const names[PREPARED_LOOKS] = { "/", "/dev", "/dev/shm", "/sys" };
	struct stat st;
	int fds[2];
	pid_t pid;

	CHECK(pipe(fds) == 0);
	pid = fork();
	if (pid == 0) {
		int ok = setns(prepared->prepared_ns_fd, CLONE_NEWNS) == 0;

		for (size_t i = 0; ok && i < PREPARED_LOOKS; i++)
			ok = stat(names[i], &st) == 0 && write(fds[1], &st, sizeof(st)) > 0;
		/* There is nothing else, and the top cannot be written to. */
		ok = ok && rmdir("/dev/x") < 0 && errno == ENOENT && mkdir("/x", 0700) < 0 &&
		     errno == EROFS && access("/etc", F_OK) < 0;
		_exit(!ok);
	}
	for (size_t i = 0; i < PREPARED_LOOKS; i++)
		CHECK_INT(read(fds[0], &looks[i], sizeof(*looks)), sizeof(*looks));
	(void)close(fds[0]);
	(void)close(fds[1]);
	CHECK(waitpid(pid, &fds[0], 0) == pid && fds[0] == 0);
}

/* Two prepared sets have nothing in common but the file system at the bottom, to which nobody can
 * write. */
static void each_is_new(void)
{
	_cleanup_(isolate_prepared_done) struct isolate_prepared a = ISOLATE_PREPARED_NONE,
								 b = ISOLATE_PREPARED_NONE;
	struct stat st_a, st_b, in_a[PREPARED_LOOKS], in_b[PREPARED_LOOKS];

	NEED_ROOT();
	CHECK_INT(isolate_prepared_make(&a, &maker, NULL), 0);
	CHECK_INT(isolate_prepared_make(&b, &maker, NULL), 0);
	CHECK(fstat(a.prepared_ns_fd, &st_a) == 0 && fstat(b.prepared_ns_fd, &st_b) == 0);
	CHECK(st_a.st_ino != st_b.st_ino);
	CHECK(fstat(a.shm_fd, &st_a) == 0 && fstat(b.shm_fd, &st_b) == 0);
	CHECK(st_a.st_dev != st_b.st_dev);
	look_into(&a, in_a);
	look_into(&b, in_b);
	CHECK(in_a[PREPARED_DEV].st_dev != in_b[PREPARED_DEV].st_dev);
	CHECK(in_a[PREPARED_SHM].st_dev == st_a.st_dev && in_b[PREPARED_SHM].st_dev == st_b.st_dev);
	CHECK(in_a[PREPARED_SYS].st_dev != in_b[PREPARED_SYS].st_dev);
	CHECK(in_a[PREPARED_TOP].st_dev == in_b[PREPARED_TOP].st_dev);
}

/* A terminal has a devpts that no prepared set could know of: then /dev is made anew, and the
 * cell's shm put into it. */
static void with_a_terminal(void)
{
	_cleanup_(isolate_prepared_done) struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;
	_cleanup_(isolate_pty_done) struct isolate_pty pty = ISOLATE_PTY_INIT;
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	CHECK_INT(isolate_prepared_make(&prepared, &maker, NULL), 0);
	CHECK(mkdirat(place_fd, "cell", 0700) == 0);
	CHECK(sysio_move_mount(prepared.shm_fd, "", place_fd, "cell", MOVE_MOUNT_F_EMPTY_PATH) ==
	      0);
	CHECK(mkdirat(prepared.shm_fd, "of-the-cell", 0700) == 0);
	CHECK_INT(isolate_pty_new(&pty, &(struct isolate_ids){ .count = 0 }, NULL), 0);
	test_container(&plan,
		       SH("readlink /proc/self/fd/0; ls /dev/pts /dev/shm;"
			  "grep -c ' /dev[ /]' /proc/self/mountinfo; ls /sys/firmware"),
		       image);
	use_prepared(&plan, &prepared);
	plan.terminal = plan.new_session = true;
	plan.stdio[0] = pty.slave_fd;
	plan.pts_fd = pty.mount_fd;
	plan.shm_fd = prepared.shm_fd;
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK_STR(test_text(&t), "/dev/pts/0\n/dev/pts:\n0\nptmx\n\n/dev/shm:\nof-the-cell\n11\n");
}

UNIT_MAIN({ "makes namespaces for the test itself", own_namespaces, true },
	  { "a directory to mount upon", open_places, true },
	  { "a container cannot tell", a_container_cannot_tell },
	  { "nor with its root late", nor_with_its_root_late },
	  { "nor with its program late", nor_with_its_program_late },
	  { "what comes late counts", what_comes_late_counts },
	  { "a program can be too long", a_program_can_be_too_long },
	  { "one without a root fails", one_without_a_root_fails },
	  { "one of a pod cannot tell", one_of_a_pod_cannot_tell },
	  { "this process comes back", comes_back }, { "fails in one piece", fails_in_one_piece },
	  { "each is new", each_is_new }, { "with a terminal", with_a_terminal },
	  { "removes its cgroup", removes_the_cgroup })
