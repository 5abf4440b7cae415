/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "isolate/spawn/spawn_bed_test.h"

/* User and time namespaces, sysctls and names, as the kernel shows them inside. */

#define TEST_BASE 100000

static const struct isolate_id_map test_map[] = { { 0, TEST_BASE, 65536 } };

static void test_userns(struct isolate_plan *plan, char *const *argv)
{
	test_plan(plan, argv);
	plan->ns[ISOLATE_NS_USER] = ISOLATE_NEW;
	plan->uid_map = test_map;
	plan->n_uid_map = 1;
	plan->gid_map = test_map;
	plan->n_gid_map = 1;
}

static void maps_ids(void)
{
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;

	NEED_ROOT();
	test_userns(&plan, SH("id -u; id -g; id -G; cat /proc/self/uid_map /proc/self/gid_map "
			      "/proc/self/setgroups; cat /proc/self/oom_score_adj;"
			      "stat -c %u /proc/self/; echo again > /dev/stdout"));
	plan.uid = 1000;
	plan.gid = 1001;
	plan.groups[0] = 7;
	plan.n_groups = 1;
	plan.oom_score_adj = 17;
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK_STR(test_text(&t), "1000\n1001\n1001 7\n"
				 "         0     100000      65536\n"
				 "         0     100000      65536\nallow\n17\n1000\nagain\n");
}

/* A new user namespace gives its first process every capability, also what the spawner's bounding
 * set lacks: that one is not to stay. */
static void bounding_set_inside(void)
{
	_cleanup_(test_run_done) struct test_run t, u;
	struct isolate_plan plan;

	NEED_ROOT();
	CHECK(prctl(PR_CAPBSET_READ, CAP_SYS_TIME, 0, 0, 0) == 0);
	test_userns(&plan, SH("grep -e CapBnd /proc/self/status"));
	plan.caps = isolate_caps_default;
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "CapBnd:\t00000000000005fb\n");

	test_plan(&plan, SH("grep -e CapBnd /proc/self/status"));
	plan.caps = isolate_caps_default;
	test_run(&plan, &u);
	CHECK_STR(test_text(&u), "CapBnd:\t00000000000005fb\n");
}

/* Before the first spawn, which looks at it. */
static void own_bounding_set(void)
{
	NEED_ROOT();
	CHECK(prctl(PR_CAPBSET_DROP, CAP_SYS_TIME, 0, 0, 0) == 0);
}

static void many_ranges(void)
{
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_id_map maps[9];
	struct isolate_plan plan;

	NEED_ROOT();
	/* In an order that the kernel does not keep. */
	for (uint32_t i = 0; i < ARRAY_SIZE(maps); i++)
		maps[i] = (struct isolate_id_map){ 800 - i * 100, TEST_BASE + i * 1000, 5 };
	test_userns(&plan, SH("wc -l < /proc/self/uid_map; id -u"));
	plan.uid_map = maps;
	plan.n_uid_map = ARRAY_SIZE(maps);
	plan.uid = 104;
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "9\n104\n");
}

static void refuses_maps(void)
{
	static const struct isolate_id_map twice[] = { { 0, TEST_BASE, 10 }, { 5, 500000, 10 } };
	static struct isolate_id_map many[ISOLATE_ID_MAPS_MAX];
	_cleanup_(test_run_done) struct test_run t, u;
	struct isolate_plan plan;

	NEED_ROOT();
	test_userns(&plan, SH("echo ran"));
	plan.uid_map = twice;
	plan.n_uid_map = 2;
	test_run(&plan, &t);
	CHECK(t.r < 0 && t.err.kind == ERROR_INVALID);
	CHECK_STR(t.err.text, "uid_map: ranges overlap");
	CHECK_STR(test_text(&t), "");

	for (uint32_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct isolate_id_map){ i * 1000000, 1000000000 + i * 1000000, 1000 };
	plan.uid_map = many;
	plan.n_uid_map = ARRAY_SIZE(many);
	test_run(&plan, &u);
	CHECK(u.r < 0 && u.err.kind == ERROR_INVALID);
	CHECK_STR(u.err.text, "uid_map: more ranges than fit into one write");
}

static void denies_setgroups(void)
{
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;

	NEED_ROOT();
	test_userns(&plan, SH("cat /proc/self/setgroups; id -u"));
	plan.deny_setgroups = true;
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "deny\n0\n");
}

/* All others must belong to the user namespace: what needs privilege over them works inside. */
static void owns_the_others(void)
{
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;

	NEED_ROOT();
	test_userns(&plan, SH("hostname inside && hostname; ip link set lo up && echo up; echo $$;"
			      "cat /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/msgmax"));
	for (int i = 0; i <= ISOLATE_NS_CGROUP; i++)
		plan.ns[i] = ISOLATE_NEW;
	plan.hostname = "before";
	plan.domainname = "example";
	plan.bring_up_loopback = true;
	plan.sysctls = (const struct isolate_sysctl[]){ { "net.ipv4.ip_forward", "1" },
							{ "kernel/msgmax", "12345" } };
	plan.n_sysctls = 2;
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK_STR(test_text(&t), "inside\nup\n1\n1\n12345\n");
}

/* Exec into a container with a user namespace: the ids are those inside. */
static void joins(bool with_new)
{
	_cleanup_(isolate_child_done) struct isolate_child first = ISOLATE_CHILD_INIT;
	_cleanup_(test_run_done) struct test_run t = { .out = BUF_INIT };
	_cleanup_fd_ int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct isolate_plan plan, join;
	struct error err = ERROR_INIT;
	int hint = 0;

	test_userns(&plan, ARGV((char[]){ "sleep" }, (char[]){ "1000" }));
	for (int i = 0; i <= ISOLATE_NS_CGROUP; i++)
		plan.ns[i] = ISOLATE_NEW;
	plan.hostname = "first";
	CHECK(isolate_spawn(&plan, &first, &err) == 0);
	CHECK(isolate_child_report(&first, &hint, &err) == 0);

	test_plan(&join, SH("id -u; id -G; hostname; echo $$; echo again > /dev/stdout; readlink "
			    "/proc/self/ns/user;"
			    "cat /proc/self/oom_score_adj; grep CapEff /proc/self/status"));
	for (int i = 0; i <= ISOLATE_NS_USER; i++) {
		join.ns[i] = with_new && i != ISOLATE_NS_USER ? ISOLATE_NEW : ISOLATE_JOIN;
		if (join.ns[i] == ISOLATE_JOIN)
			join.ns_fd[i] = isolate_ns_open(proc_fd, first.pid, (enum isolate_ns)i);
	}
	if (with_new)
		join.hostname = "second";
	join.uid = 5;
	join.gid = 6;
	join.uid_map = test_map;
	join.n_uid_map = 1;
	join.oom_score_adj = 33;
	join.cgroup_fd = test_cgroup_fd;
	test_run(&join, &t);
	CHECK_INT(t.r, 0);
	CHECK_INT(t.status, 0);
	CHECK(str_has_prefix(test_text(&t), with_new ? "5\n6\nsecond\n1\nagain\nuser:["
						     : "5\n6\nfirst\n2\nagain\nuser:["));
	CHECK(test_has(&t, "]\n33\nCapEff:\t0000000000000000\n"));
	{
		char link[64] = "", name[64];
		ssize_t n;

		(void)str_printf(name, sizeof(name), "/proc/%d/ns/user", (int)first.pid);
		n = readlink(name, link, sizeof(link) - 1);
		CHECK(n > 0 && test_has(&t, link));
	}
	for (int i = 0; i < ISOLATE_NS_COUNT; i++)
		(void)fd_close(join.ns_fd[i]);
	CHECK(pidfd_kill(first.pidfd, SIGKILL) == 0);
	test_reap(&first, &t);
}

static void joins_all(void)
{
	NEED_ROOT();
	joins(false);
}

static void joins_with_new(void)
{
	NEED_ROOT();
	joins(true);
}

/* Whether the process itself is in the namespace that its children get, before any exec. */
static int test_is_in_time(const struct isolate_at *at, struct error *err)
{
	struct stat own, next;

	(void)at;
	if (stat("/proc/self/ns/time", &own) < 0 ||
	    stat("/proc/self/ns/time_for_children", &next) < 0)
		return error_set(err, -errno, "look at the time namespace");
	return own.st_ino == next.st_ino ? 0 : error_refuse(err, ERROR_ABORTED, "not in it");
}

static void clocks(void)
{
	_cleanup_(test_run_done) struct test_run t, u;
	struct isolate_plan plan;

	NEED_ROOT();
	test_plan(&plan, SH("cat /proc/self/timens_offsets; cut -d. -f1 /proc/uptime;"
			    "readlink /proc/self/ns/time /proc/self/ns/time_for_children"));
	plan.ns[ISOLATE_NS_TIME] = ISOLATE_NEW;
	plan.at = test_is_in_time;
	plan.monotonic = (struct isolate_time_offset){ .sec = 86400, .nsec = 5, .set = true };
	plan.boottime = (struct isolate_time_offset){ .sec = 1000000000, .set = true };
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK(test_has(&t, "monotonic       86400         5\n"));
	CHECK(test_has(&t, "boottime   1000000000         0\n"));
	/* The program is in it: its uptime shows. */
	CHECK(test_has(&t, "\n10000"));

	/* In a user namespace with a pid namespace of its own. */
	test_userns(&plan, SH("cat /proc/self/timens_offsets"));
	plan.ns[ISOLATE_NS_TIME] = ISOLATE_NEW;
	plan.ns[ISOLATE_NS_PID] = ISOLATE_NEW;
	plan.ns[ISOLATE_NS_MOUNT] = ISOLATE_NEW;
	plan.boottime = (struct isolate_time_offset){ .sec = 77, .set = true };
	test_run(&plan, &u);
	CHECK_INT(u.r, 0);
	CHECK(test_has(&u, "boottime           77         0\n"));
}

static void clocks_join(void)
{
	_cleanup_(isolate_child_done) struct isolate_child first = ISOLATE_CHILD_INIT;
	_cleanup_(test_run_done) struct test_run t = { .out = BUF_INIT };
	_cleanup_fd_ int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct isolate_plan plan;
	struct error err = ERROR_INIT;
	int hint = 0;

	NEED_ROOT();
	test_plan(&plan, ARGV((char[]){ "sleep" }, (char[]){ "1000" }));
	plan.ns[ISOLATE_NS_TIME] = ISOLATE_NEW;
	plan.boottime = (struct isolate_time_offset){ .sec = 1000000000, .set = true };
	CHECK(isolate_spawn(&plan, &first, &err) == 0);
	CHECK(isolate_child_report(&first, &hint, &err) == 0);
	test_plan(&plan, SH("cat /proc/uptime"));
	plan.ns[ISOLATE_NS_TIME] = ISOLATE_JOIN;
	plan.ns_fd[ISOLATE_NS_TIME] = isolate_ns_open(proc_fd, first.pid, ISOLATE_NS_TIME);
	test_run(&plan, &t);
	CHECK(str_has_prefix(test_text(&t), "10000"));
	(void)close(plan.ns_fd[ISOLATE_NS_TIME]);
	CHECK(pidfd_kill(first.pidfd, SIGKILL) == 0);
	test_reap(&first, &t);
}

static void sysctls(void)
{
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;

	NEED_ROOT();
	test_plan(&plan, SH("cd /proc/sys; cat kernel/sem kernel/shm_rmid_forced "
			    "fs/mqueue/msg_max net/ipv4/conf/lo/forwarding kernel/domainname"));
	plan.ns[ISOLATE_NS_NET] = plan.ns[ISOLATE_NS_IPC] = plan.ns[ISOLATE_NS_UTS] = ISOLATE_NEW;
	plan.sysctls = (const struct isolate_sysctl[]){
		{ "kernel.sem", "100 200 30 40" }, { "kernel/shm_rmid_forced", "1" },
		{ "fs.mqueue.msg_max", "33" },     { "net.ipv4.conf.lo.forwarding", "1" },
		{ "net/ipv4/route/flush", "1" }, /* can only be written */
		{ "kernel.domainname", "inside" },
	};
	plan.n_sysctls = 6;
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK_STR(test_text(&t), "100\t200\t30\t40\n1\n33\n1\ninside\n");
}

static void wrong_sysctls(void)
{
	static const struct {
		struct isolate_sysctl sysctl;
		enum error_kind kind;
		const char *text;
	} cases[] = {
		{ { "net.ipv4.no_such", "1" },
		  ERROR_PRECONDITION,
		  "set the sysctls: net.ipv4.no_such: the kernel has no such sysctl" },
		{ { "net.ipv4.ip_forward", "x" },
		  ERROR_INVALID,
		  "set the sysctls: net.ipv4.ip_forward: the kernel does not take x" },
		{ { "net.ipv4.ip_forward", "1\n0" },
		  ERROR_INVALID,
		  "sysctls: net.ipv4.ip_forward: the value is not one line of at most 4095 bytes" },
		{ { "net/../kernel/core_pattern", "x" },
		  ERROR_INVALID,
		  "sysctls: net/../kernel/core_pattern: is no name of a sysctl" },
		{ { "kernel.core_pattern", "x" },
		  ERROR_INVALID,
		  "sysctls: kernel.core_pattern: belongs to no namespace" },
		{ { "kernel.msgmax", "100" },
		  ERROR_INVALID,
		  "sysctls: kernel.msgmax: is of a namespace that is kept" },
	};

	NEED_ROOT();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(test_run_done) struct test_run t;
		struct isolate_plan plan;

		test_plan(&plan, SH("echo ran"));
		plan.ns[ISOLATE_NS_NET] = ISOLATE_NEW;
		plan.sysctls = &cases[i].sysctl;
		plan.n_sysctls = 1;
		test_run(&plan, &t);
		CHECK(t.r < 0 && t.err.kind == cases[i].kind);
		CHECK_STR(t.err.text, cases[i].text);
		CHECK_STR(test_text(&t), "");
	}
}

/* A namespace that is joined, but is the spawner's own (B02). */
static void sysctls_of_the_host(void)
{
	_cleanup_(test_run_done) struct test_run t;
	static const struct isolate_sysctl sysctl = { "net.ipv4.ip_forward", "1" };
	struct isolate_plan plan;

	NEED_ROOT();
	test_plan(&plan, SH("echo ran"));
	plan.ns[ISOLATE_NS_NET] = ISOLATE_JOIN;
	plan.ns_fd[ISOLATE_NS_NET] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	plan.sysctls = &sysctl;
	plan.n_sysctls = 1;
	test_run(&plan, &t);
	CHECK(t.r < 0 && t.err.kind == ERROR_INVALID);
	CHECK_STR(t.err.text, "sysctls: net.ipv4.ip_forward is not of the container alone");
	(void)close(plan.ns_fd[ISOLATE_NS_NET]);
}

UNIT_MAIN({ "makes namespaces for the test itself", own_namespaces, true },
	  { "the spawner lacks a capability", own_bounding_set, true },
	  { "a user namespace has the ids of the plan", maps_ids },
	  { "a user namespace has the bounding set of the plan", bounding_set_inside },
	  { "ranges in an order that the kernel changes", many_ranges },
	  { "ranges that overlap, and too many", refuses_maps },
	  { "without setgroups", denies_setgroups },
	  { "a user namespace owns the others", owns_the_others },
	  { "an exec has the ids inside", joins_all },
	  { "new namespaces belong to a joined user namespace", joins_with_new },
	  { "clocks are ahead", clocks }, { "a time namespace is joined", clocks_join },
	  { "sysctls of new namespaces", sysctls }, { "wrong sysctls", wrong_sysctls },
	  { "no sysctls of the host", sysctls_of_the_host },
	  { "removes its cgroup", removes_the_cgroup, true })
