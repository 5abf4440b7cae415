/* SPDX-License-Identifier: Apache-2.0 */
#include <grp.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <linux/keyctl.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "isolate/spawn/spawn_bed_test.h"

/* Privileges of a program and its share of the machine, as the kernel shows them. */

#define CAP(number) ((uint64_t)1 << (number))

static void cap_sets(void)
{
	static const struct isolate_cap_sets sets = {
		.bounding = CAP(CAP_CHOWN) | CAP(CAP_NET_RAW) | CAP(CAP_KILL),
		.permitted = CAP(CAP_CHOWN) | CAP(CAP_NET_RAW),
		.effective = CAP(CAP_CHOWN),
		.inheritable = CAP(CAP_NET_RAW),
		.ambient = CAP(CAP_NET_RAW),
	};
	_cleanup_(test_run_done) struct test_run t, u;
	struct isolate_plan plan;

	NEED_ROOT();
	test_plan(&plan, SH("grep Cap /proc/self/status | tr -d '\\n'"));
	plan.cap_sets = &sets;
	plan.uid = plan.gid = 1000;
	test_run(&plan, &t);
	/* Of a user other than root the exec leaves what is ambient. */
	CHECK_STR(test_text(&t), "CapInh:\t0000000000002000CapPrm:\t0000000000002000"
				 "CapEff:\t0000000000002000CapBnd:\t0000000000002021"
				 "CapAmb:\t0000000000002000");
	plan.uid = 0;
	test_run(&plan, &u);
	CHECK(test_has(&u, "CapBnd:\t0000000000002021"));
	CHECK(test_has(&u, "CapInh:\t0000000000002000"));
}

static void cap_that_is_missing(void)
{
	static const struct isolate_cap_sets sets = { .permitted = CAP(63) };
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;

	NEED_ROOT();
	test_plan(&plan, SH("true"));
	plan.cap_sets = &sets;
	test_run(&plan, &t);
	CHECK(t.r < 0 && t.err.kind == ERROR_PRECONDITION);
	CHECK_STR(t.err.text,
		  "drop the capabilities: cap_sets: capability 63 is not there to be given");
}

static void keeps_credentials(void)
{
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;

	NEED_ROOT();
	test_plan(&plan, SH("id -u; grep CapBnd /proc/self/status; cat /proc/self/oom_score_adj"));
	plan.keep_credentials = true;
	plan.keep_oom_score = true;
	plan.uid = 1000;
	plan.caps = 0;
	plan.oom_score_adj = 500;
	test_run(&plan, &t);
	CHECK(str_has_prefix(test_text(&t), "0\nCapBnd:\t0000"));
	CHECK(!strstr(test_text(&t), "CapBnd:\t0000000000000000"));
	CHECK(!strstr(test_text(&t), "\n500\n"));
}

static void rlimits(void)
{
	struct isolate_rlimit limits[] = {
		{ RLIMIT_NOFILE, 100, 200 },
		{ RLIMIT_CORE, 0, 0 },
		{ RLIMIT_NPROC, 77, 78 },
	};
	struct rlimit core;
	char hard[32], want[256];
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;

	NEED_ROOT();
	/* The default one would lower the hard one first, and it could not be raised again. */
	CHECK(getrlimit(RLIMIT_CORE, &core) == 0);
	limits[1].hard = core.rlim_max;
	(void)str_printf(hard, sizeof(hard), "%llu", (unsigned long long)core.rlim_max);
	test_plan(&plan, SH("grep -E 'open files|core file|processes|Max msgqueue' "
			    "/proc/self/limits | tr -s ' '"));
	plan.default_rlimits = true;
	plan.rlimits = limits;
	plan.n_rlimits = ARRAY_SIZE(limits);
	test_run(&plan, &t);
	(void)str_printf(want, sizeof(want),
			 "Max core file size 0 %s bytes \n"
			 "Max processes 77 78 processes \nMax open files 100 200 files \n"
			 "Max msgqueue size 819200 819200 bytes \n",
			 core.rlim_max == RLIM_INFINITY ? "unlimited" : hard);
	CHECK_STR(test_text(&t), want);
}

/* Without CAP_SYS_RESOURCE a hard limit cannot be raised: the plan is not carried out halfway. */
static void rlimit_too_high(void)
{
	static const struct isolate_rlimit high = { RLIMIT_NPROC, 10, RLIM64_INFINITY };
	_cleanup_(isolate_child_done) struct isolate_child c = ISOLATE_CHILD_INIT;
	struct isolate_plan plan;
	int status = 0;
	pid_t pid;

	NEED_ROOT();
	test_plan(&plan, SH("true"));
	plan.rlimits = &high;
	plan.n_rlimits = 1;
	pid = fork();
	if (pid == 0) {
		struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
		struct __user_cap_data_struct data[2];
		struct rlimit low = { 5, 20 };
		struct error err = ERROR_INIT;
		int hint, r;

		if (syscall(SYS_capget, &head, data) < 0)
			_exit(10);
		data[0].effective &= ~(1U << CAP_SYS_RESOURCE);
		data[0].permitted &= ~(1U << CAP_SYS_RESOURCE);
		if (setrlimit(RLIMIT_NPROC, &low) < 0 || syscall(SYS_capset, &head, data) < 0)
			_exit(11);
		r = isolate_spawn(&plan, &c, &err);
		if (r == 0)
			r = isolate_child_report(&c, &hint, &err);
		_exit(r < 0 && err.kind == ERROR_PRECONDITION &&
				      strstr(err.text, "needs CAP_SYS_RESOURCE")
			      ? 0
			      : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* In a user namespace, where it could not be raised, the spawner raises it from outside. */
static void rlimit_of_userns(void)
{
	static const struct isolate_rlimit limit = { RLIMIT_NPROC, 10, 30 };
	static const struct isolate_id_map map = { 0, 100000, 65536 };
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;

	NEED_ROOT();
	test_plan(&plan, SH("grep -E 'Max processes' /proc/self/limits | tr -s ' '"));
	plan.ns[ISOLATE_NS_USER] = ISOLATE_NEW;
	plan.uid_map = plan.gid_map = &map;
	plan.n_uid_map = plan.n_gid_map = 1;
	plan.rlimits = &limit;
	plan.n_rlimits = 1;
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "Max processes 10 30 processes \n");
}

static void share(void)
{
	static const struct isolate_sched batch = { .policy = SCHED_BATCH, .nice = 7 };
	static const struct isolate_cpus cpus = { .bits = { 1 } };
	static const struct isolate_mempolicy bind = { .mode = MPOL_BIND, .nodes = { 1 } };
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;

	NEED_ROOT();
	test_plan(&plan, SH("umask; grep Cpus_allowed_list /proc/self/status; cut -d' ' -f19,41 "
			    "/proc/self/stat; cat /proc/self/personality; ionice -p $$;"
			    "head -n 1 /proc/self/numa_maps | cut -d' ' -f2"));
	plan.umask = 027;
	plan.sched = &batch;
	plan.cpus = &cpus;
	plan.io_priority = IOPRIO_CLASS_BE << IOPRIO_CLASS_SHIFT | 6;
	plan.personality = ADDR_NO_RANDOMIZE;
	if (access("/proc/self/numa_maps", F_OK) == 0)
		plan.mempolicy = &bind;
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK(str_has_prefix(test_text(&t), "0027\nCpus_allowed_list:\t0\n7 3\n00040000\n"
					    "best-effort: prio 6\n"));
	if (plan.mempolicy)
		CHECK(test_has(&t, "\nbind:0\n"));
}

static void share_that_is_refused(void)
{
	static const struct isolate_sched wrong = { .policy = 99 };
	static const struct isolate_cpus none = { .bits = { 0 } };
	_cleanup_(test_run_done) struct test_run t, u;
	struct isolate_plan plan;

	NEED_ROOT();
	test_plan(&plan, SH("true"));
	plan.sched = &wrong;
	test_run(&plan, &t);
	CHECK(str_has_prefix(t.err.text, "set the share of the machine: sched: "));
	test_plan(&plan, SH("true"));
	plan.cpus = &none;
	test_run(&plan, &u);
	CHECK(str_has_prefix(u.err.text, "set the share of the machine: cpus: "));
}

/* This kernel has neither module, or has one: a label is in force or the plan is refused
 * (security.md A05, A13; tests/guest/apparmor.c and selinux.c have kernels with them). */
static void labels(void)
{
	_cleanup_(test_run_done) struct test_run t, u;
	struct isolate_plan plan;

	NEED_ROOT();
	test_plan(&plan, SH("echo ran"));
	plan.apparmor = "nacre-no-such-profile";
	test_run(&plan, &t);
	CHECK(t.r < 0 && t.err.kind == ERROR_PRECONDITION && strstr(t.err.text, "apparmor: "));
	CHECK_STR(test_text(&t), "");
	test_plan(&plan, SH("echo ran"));
	plan.selinux = "nacre_no:such:label_t:s0";
	test_run(&plan, &u);
	CHECK(u.r < 0 && u.err.kind == ERROR_PRECONDITION && strstr(u.err.text, "selinux: "));
	CHECK_STR(test_text(&u), "");
}

static int test_fd_receive(int from)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte = 0;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &data,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	int fd = -1;

	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) != 1 || byte != ISOLATE_AT_SECCOMP ||
	    !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

/* A filter that asks about sethostname(): the listener comes home, and answers. */
/* Answers one call with an error; its number, or a negative errno. A signal to one of both sides,
 * or a debugger that stops it, takes the question back, and it is asked again. */
static int refuse_one(int listener_fd, int error)
{
	struct seccomp_notif_resp answer = { .error = -error };
	struct seccomp_notif ask;

	for (;;) {
		ask = (struct seccomp_notif){ .id = 0 };
		if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &ask) == 0) {
			answer.id = ask.id;
			if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0)
				return ask.data.nr;
		}
		if (errno != EINTR && errno != ENOENT)
			return -errno;
	}
}

static void seccomp_notify(bool no_new_privs)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sethostname, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { ARRAY_SIZE(code), code };
	_cleanup_(isolate_child_done) struct isolate_child c = ISOLATE_CHILD_INIT;
	struct test_run t = { .out = BUF_INIT };
	struct error err = ERROR_INIT;
	struct isolate_plan plan;
	int pair[2], fd, hint;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	test_plan(&plan, SH("hostname x 2>/dev/null || exit 9"));
	plan.ns[ISOLATE_NS_UTS] = ISOLATE_NEW;
	plan.seccomp = &filter;
	plan.seccomp_notify = true;
	plan.seccomp_flags = SECCOMP_FILTER_FLAG_LOG;
	plan.no_new_privs = no_new_privs;
	plan.at_fd = pair[1];
	CHECK(isolate_spawn(&plan, &c, &err) == 0);
	(void)close(pair[1]);
	fd = test_fd_receive(pair[0]);
	CHECK(fd >= 0);
	CHECK(isolate_child_report(&c, &hint, &err) == 0);
	CHECK_INT(refuse_one(fd, EPERM), SYS_sethostname);
	test_reap(&c, &t);
	CHECK_INT(t.status, 9);
	/* The program has neither the listener nor at_fd. */
	CHECK(read(pair[0], &hint, sizeof(hint)) == 0);
	(void)close(fd);
	(void)close(pair[0]);
}

static void seccomp_notify_late(void)
{
	NEED_ROOT();
	seccomp_notify(true);
}

static void seccomp_notify_early(void)
{
	NEED_ROOT();
	seccomp_notify(false);
}

/* A filter of somebody who never heard of the calls that put descriptors in order. */
static void seccomp_knows_little(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_dup3, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};
	struct sock_fprog filter = { ARRAY_SIZE(code), code };
	_cleanup_(isolate_child_done) struct isolate_child c = ISOLATE_CHILD_INIT;
	struct test_run t = { .out = BUF_INIT };
	struct error err = ERROR_INIT;
	struct isolate_plan plan;
	int hint;

	NEED_ROOT();
	test_plan(&plan, SH("exit 7"));
	plan.seccomp = &filter;
	plan.no_new_privs = false;
	CHECK(isolate_spawn(&plan, &c, &err) == 0);
	CHECK(isolate_child_report(&c, &hint, &err) == 0);
	CHECK_STR(err.text, "");
	test_reap(&c, &t);
	CHECK_INT(t.status, 7);
}

/* What `at` saw, told over at_fd. */
struct test_point {
	enum isolate_point point;
	uid_t uid;
	int spawned; /* exit code of a program that it has run there */
	int dumpable;
	size_t n_fds;
	long keyring; /* of its session */
	int n_groups;
};

static long test_keyring(void)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
}

static size_t test_count_fds(void)
{
	_cleanup_fd_ int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_strv_ char **list = NULL;

	return fd >= 0 && fd_list_dir(fd, &list) == 0 ? strv_len(list) : 0;
}

static int test_at(const struct isolate_at *at, struct error *err)
{
	_cleanup_(isolate_child_done) struct isolate_child c = ISOLATE_CHILD_INIT;
	struct test_point seen = { .point = at->point, .uid = geteuid(), .spawned = -1 };
	struct isolate_plan plan;
	siginfo_t info = { 0 };
	char go;
	int hint;
	int r;

	test_plan(&plan, SH("exit 42"));
	plan.keep_credentials = true;
	plan.keep_oom_score = true;
	plan.stdio[2] = -1;
	r = isolate_spawn(&plan, &c, err);
	if (r == 0)
		r = isolate_child_report(&c, &hint, err);
	if (r < 0)
		return r;
	if (waitid(P_PIDFD, (id_t)c.pidfd, &info, WEXITED) == 0)
		seen.spawned = info.si_status;
	isolate_child_done(&c);
	seen.dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	seen.n_fds = test_count_fds();
	seen.keyring = test_keyring();
	seen.n_groups = getgroups(0, NULL);
	if (write(at->fd, &seen, sizeof(seen)) != sizeof(seen) || read(at->fd, &go, 1) != 1)
		return error_set(err, -EPIPE, "talk");
	return go == 'n' ? error_refuse(err, ERROR_ABORTED, "told to stop") : 0;
}

static void points(void)
{
	_cleanup_(isolate_child_done) struct isolate_child c = ISOLATE_CHILD_INIT;
	struct test_run t = { .out = BUF_INIT };
	struct error err = ERROR_INIT;
	struct test_point seen;
	struct isolate_plan plan;
	int pair[2], hint = 0;

	NEED_ROOT();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	test_plan(&plan, SH("exit 3"));
	plan.uid = 1000;
	plan.gid = 1000;
	plan.at = test_at;
	plan.at_fd = pair[1];
	/* Both descriptors of the program are in the way of at_fd. */
	plan.keep_fds[0] = STDERR_FILENO;
	plan.keep_fds[1] = STDERR_FILENO;
	plan.keep_fds[2] = STDERR_FILENO;
	plan.keep_fds[3] = STDERR_FILENO;
	plan.keep_fds[4] = STDERR_FILENO;
	plan.keep_fds[5] = STDERR_FILENO;
	plan.keep_fds[6] = STDERR_FILENO;
	plan.n_keep_fds = 7;
	CHECK(isolate_spawn(&plan, &c, &err) == 0);
	(void)close(pair[1]);
	CHECK(read(pair[0], &seen, sizeof(seen)) == sizeof(seen));
	CHECK_INT(seen.point, ISOLATE_POINT_NAMESPACES);
	CHECK_INT(seen.uid, 0);
	/* Nothing of the spawner's but null, standard error, at_fd and the report; and the two of
	 * the count. */
	CHECK_INT(seen.n_fds, 4 + 2);
	/* Where there are keyrings. */
	CHECK(test_keyring() < 0 || seen.keyring != test_keyring());
	CHECK_INT(seen.spawned, 42);
	CHECK(write(pair[0], "y", 1) == 1);
	CHECK(read(pair[0], &seen, sizeof(seen)) == sizeof(seen));
	CHECK_INT(seen.point, ISOLATE_POINT_READY);
	CHECK_INT(seen.uid, 1000);
	CHECK_INT(seen.spawned, 42);
	/* Ten of the program, at_fd, the report; and the two of the count. */
	CHECK_INT(seen.n_fds, 10 + 2 + 2);
	CHECK_INT(seen.dumpable, 0);
	CHECK(write(pair[0], "y", 1) == 1);
	CHECK_INT(isolate_child_report(&c, &hint, &err), 0);
	test_reap(&c, &t);
	CHECK_INT(t.status, 3);
	(void)close(pair[0]);
}

static void point_fails(void)
{
	_cleanup_(isolate_child_done) struct isolate_child c = ISOLATE_CHILD_INIT;
	struct test_run t = { .out = BUF_INIT };
	struct error err = ERROR_INIT;
	struct test_point seen = { 0 };
	struct isolate_plan plan;
	int pair[2], hint = 0;

	NEED_ROOT();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	test_plan(&plan, SH("exit 3"));
	plan.at = test_at;
	plan.at_fd = pair[1];
	CHECK(write(pair[0], "yn", 2) == 2);
	CHECK(isolate_spawn(&plan, &c, &err) == 0);
	CHECK(isolate_child_report(&c, &hint, &err) < 0);
	CHECK_INT(err.kind, ERROR_ABORTED);
	CHECK_STR(err.text, "act before the program: told to stop");
	/* The change of the user would have hidden it by itself; here there was none. */
	for (int i = 0; i < 2; i++)
		CHECK(read(pair[0], &seen, sizeof(seen)) == sizeof(seen));
	CHECK_INT(seen.point, ISOLATE_POINT_READY);
	CHECK_INT(seen.dumpable, 0);
	test_reap(&c, &t);
	CHECK_INT(t.status, 125);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

/* Those of the spawner would give it what belongs to other groups outside. */
static void groups_of_userns(void)
{
	static const struct isolate_id_map map = { 0, 100000, 65536 };
	_cleanup_(isolate_child_done) struct isolate_child c = ISOLATE_CHILD_INIT;
	struct test_run t = { .out = BUF_INIT };
	const gid_t others[] = { 7, 100007 };
	struct error err = ERROR_INIT;
	struct test_point seen;
	struct isolate_plan plan;
	int pair[2];

	NEED_ROOT();
	CHECK(setgroups(ARRAY_SIZE(others), others) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	test_plan(&plan, SH("true"));
	plan.ns[ISOLATE_NS_USER] = ISOLATE_NEW;
	plan.uid_map = plan.gid_map = &map;
	plan.n_uid_map = plan.n_gid_map = 1;
	plan.at = test_at;
	plan.at_fd = pair[1];
	CHECK(write(pair[0], "n", 1) == 1);
	CHECK_INT(isolate_spawn(&plan, &c, &err), 0);
	CHECK(read(pair[0], &seen, sizeof(seen)) == sizeof(seen));
	CHECK_INT(seen.n_groups, 0);
	test_reap(&c, &t);
	CHECK(setgroups(0, NULL) == 0);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

/* What the spawner has in its ambient set is not handed on, also where the plan's sets would let
 * it. */
static void ambient_of_spawner(void)
{
	static const uint64_t raw = CAP(CAP_NET_RAW);
	static const struct isolate_cap_sets sets = { raw, raw, raw, raw, 0 };
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;

	NEED_ROOT();
	CHECK(syscall(SYS_capget, &head, data) == 0);
	data[0].inheritable |= (uint32_t)raw;
	CHECK(syscall(SYS_capset, &head, data) == 0);
	CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0) == 0);
	test_plan(&plan, SH("grep CapAmb /proc/self/status"));
	plan.cap_sets = &sets;
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "CapAmb:\t0000000000000000\n");
	data[0].inheritable &= ~(uint32_t)raw;
	CHECK(syscall(SYS_capset, &head, data) == 0);
}

UNIT_MAIN({ "makes namespaces for the test itself", own_namespaces, true },
	  { "sets of capabilities", cap_sets },
	  { "a capability that cannot be given", cap_that_is_missing },
	  { "keeps the spawner's credentials", keeps_credentials },
	  { "limits of the plan over the default ones", rlimits },
	  { "a limit that cannot be had is an error", rlimit_too_high },
	  { "a limit in a user namespace", rlimit_of_userns },
	  { "umask, scheduler, processors, memory, I/O, personality", share },
	  { "a share that the kernel refuses", share_that_is_refused },
	  { "labels are in force or refused", labels },
	  { "the listener of a filter with no_new_privs", seccomp_notify_late },
	  { "the listener of a filter without it", seccomp_notify_early },
	  { "a filter without it that refuses what orders descriptors", seccomp_knows_little },
	  { "the plan's owner acts in the child", points },
	  { "the plan's owner stops the child", point_fails },
	  { "the spawner's groups in a user namespace", groups_of_userns },
	  { "the spawner's ambient set", ambient_of_spawner },
	  { "removes its cgroup", removes_the_cgroup, true })
