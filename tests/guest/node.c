/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The node as a whole where every controller of cgroup v2 is there: what it hands on to workloads,
 * what it tells of them, and what it says when the kernel ends one for want of memory.
 */

#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "guest.h"
#include "unit.h"

#define NODE_CONFIG "/run/config.yaml"
#define NODE_GROUP "/sys/fs/cgroup/node/base"
#define NODE_LIMIT (48 << 20)

static pid_t node_pid = -1;

#define NACRE(...) GUEST_RUN("nacre", __VA_ARGS__)

#define CHECK_NACRE(...)                                                                           \
	do {                                                                                       \
		int node_status_ = NACRE(__VA_ARGS__);                                             \
		if (node_status_ != 0)                                                             \
			guest_show();                                                              \
		CHECK_INT(node_status_, 0);                                                        \
	} while (0)

/* Asks with `nacre stats` until the number is as it should be, and returns it as it is then. */
static long long stats_until(const char *name, const char *what, long long least)
{
	time_t end = guest_now() + GUEST_PATIENCE_S;
	long long n;

	do {
		(void)NACRE("stats", "-o", "json", name);
		n = guest_number(guest_output, what);
		if (n >= least)
			return n;
		guest_pause();
	} while (guest_now() < end);
	guest_show();
	return n;
}

static void starts(void)
{
	int log_fd = open("/run/daemon.log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int config_fd = open(NODE_CONFIG, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	time_t end = guest_now() + GUEST_PATIENCE_S;

	/* Not below this process's own group, which cannot hand on what it has. */
	CHECK(config_fd >= 0 && dprintf(config_fd, "cgroup: /node/base\nspare: no\n"
						   "network:\n  default: none\n") > 0);
	(void)close(config_fd);
	/* Where this program is must be free of processes: it leaves for a leaf. */
	CHECK(mkdir("/sys/fs/cgroup/node/test", 0755) == 0);
	CHECK(guest_write("/sys/fs/cgroup/node/test/cgroup.procs", "0"));
	node_pid = guest_start(
		log_fd, (const char *const[]){ "nacre", "daemon", "--config", NODE_CONFIG, NULL });
	(void)close(log_fd);
	while (NACRE("info") != 0 && guest_now() < end)
		guest_pause();
	CHECK_NACRE("info");
	CHECK_NACRE("image", "import", "/images/busybox.tar");
}

static void hands_controllers_on(void)
{
	static const char *const names[] = { "cpuset", "cpu", "io", "memory", "pids" };
	const char *have = guest_read(NODE_GROUP "/cgroup.subtree_control");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK(strstr(have, names[i]) != NULL);
}

static void runs_a_pod(void)
{
	CHECK_NACRE("run", "--rm", "busybox", "echo", "hello");
	CHECK(strstr(guest_output, "hello") != NULL);
}

static void counts_all(void)
{
	CHECK_NACRE("run", "-d", "--name", "busy", "busybox", "sh", "-c",
		    "dd if=/dev/zero of=/data bs=64k count=64 conv=fsync; sleep 1000");
	CHECK(stats_until("busy", "containers/io/written_bytes", 4 << 20) >= 4 << 20);
	/* The pod with its keeper, and the container alone. */
	CHECK(guest_number(guest_output, "memory/current") > 1 << 20);
	CHECK(guest_number(guest_output, "pids/current") >= 2);
	CHECK(guest_number(guest_output, "containers/memory/current") > 1 << 20);
	CHECK_INT(guest_number(guest_output, "containers/pids/current"), 1);
	CHECK_INT(guest_number(guest_output, "containers/memory/limit"), 0);
	CHECK_NACRE("rm", "-f", "busy");
}

/* The group that the container "main" of a pod is in, by its first process. */
static bool container_group(const char *name, char *ret, size_t size)
{
	char path[64];
	const char *group;

	if (NACRE("inspect", name) != 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%lld/cgroup",
		       guest_number(guest_output, "containers/pid"));
	group = strchr(guest_read(path), '/');
	if (!group)
		return false;
	(void)snprintf(ret, size, "/sys/fs/cgroup%.*s", (int)strcspn(group, "\n"), group);
	return true;
}

/* Whether the group's file holds just this line. */
static bool holds(const char *group, const char *file, const char *line)
{
	char path[4200];
	const char *text;

	(void)snprintf(path, sizeof(path), "%s/%s", group, file);
	text = guest_read(path);
	return strncmp(text, line, strlen(line)) == 0 && strcmp(text + strlen(line), "\n") == 0;
}

static void tells_of_want_of_memory(void)
{
	time_t end = guest_now() + GUEST_PATIENCE_S;
	char group[4096], path[4160], limit[32];

	CHECK_NACRE("run", "-d", "--name", "hog", "busybox", "sh", "-c",
		    "while [ ! -e /go ]; do sleep 0.1; done; tail /dev/zero; sleep 1000");
	CHECK(container_group("hog", group, sizeof(group)));
	CHECK(holds(group, "pids.max", "4096"));
	CHECK(holds(group, "memory.oom.group", "1"));
	(void)snprintf(path, sizeof(path), "%s/memory.max", group);
	(void)snprintf(limit, sizeof(limit), "%d", NODE_LIMIT);
	CHECK(guest_write(path, limit));
	(void)snprintf(path, sizeof(path), "%s/memory.swap.max", group);
	CHECK(guest_write(path, "0"));
	CHECK_INT(stats_until("hog", "containers/memory/limit", NODE_LIMIT), NODE_LIMIT);
	CHECK_NACRE("exec", "hog", "touch", "/go");
	/* It is `tail` that has all the memory, and the whole container that ends. */
	while (NACRE("inspect", "hog") == 0 && !strstr(guest_output, "OOMKilled") &&
	       guest_now() < end)
		guest_pause();
	CHECK(strstr(guest_output, "OOMKilled: the kernel killed it for want of memory") != NULL);
	CHECK_INT(guest_number(guest_output, "containers/exit_code"), 137);
	CHECK_INT(guest_number(guest_output, "containers/signal"), 9);
	CHECK_NACRE("rm", "-f", "hog");
	/* Who waits for it is told too. */
	CHECK_INT(NACRE("run", "--rm", "--memory", "32m", "busybox", "tail", "/dev/zero"), 137);
	CHECK(strstr(guest_output, "OOMKilled: the kernel killed it for want of memory") != NULL);
}

static void is_not_killed_for_memory(void)
{
	time_t end = guest_now() + GUEST_PATIENCE_S;

	CHECK_NACRE("run", "-d", "--name", "victim", "busybox", "sleep", "1000");
	CHECK_NACRE("inspect", "victim");
	CHECK(kill((pid_t)guest_number(guest_output, "containers/pid"), SIGKILL) == 0);
	while (NACRE("inspect", "victim") == 0 &&
	       guest_number(guest_output, "containers/exit_code") != 137 && guest_now() < end)
		guest_pause();
	CHECK_INT(guest_number(guest_output, "containers/exit_code"), 137);
	CHECK(strstr(guest_output, "OOMKilled") == NULL);
	CHECK_NACRE("rm", "-f", "victim");
}

/* 0, or the errno with which a process of this group with all capabilities cannot open a file. */
static int opens_in(const char *group, const char *path)
{
	char procs[4200];
	int status = -1;
	pid_t pid;

	(void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", group ? group : "");
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (group && !guest_write(procs, "0"))
			_exit(255);
		_exit(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) < 0 ? errno : 0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									       : -1;
}

static void has_no_other_devices(void)
{
	char group[4096];

	CHECK_NACRE("run", "-d", "--name", "nodes", "busybox", "sleep", "1000");
	CHECK(container_group("nodes", group, sizeof(group)));
	CHECK(mknod("/run/kmsg", S_IFCHR | 0600, makedev(1, 11)) == 0);
	CHECK_INT(opens_in(NULL, "/run/kmsg"), 0);
	CHECK_INT(opens_in(group, "/run/kmsg"), EPERM);
	CHECK_INT(opens_in(group, "/dev/null"), 0);
	CHECK(unlink("/run/kmsg") == 0);
	CHECK_NACRE("rm", "-f", "nodes");
}

static void nests(void)
{
	CHECK_NACRE("spawn", "--name", "deep");
	CHECK_NACRE("run", "-d", "--in", "deep", "--name", "inner", "busybox", "sleep", "1000");
	CHECK(stats_until("deep/inner", "containers/memory/current", 1) > 0);
	CHECK(guest_number(guest_output, "containers/pids/current") == 1);
	CHECK_NACRE("rm", "-f", "deep");
}

/* The directory of a container's group, or with cut names of it less: those that it is in. */
static bool group_above(const char *name, int cut, char *ret, size_t size)
{
	if (!container_group(name, ret, size))
		return false;
	for (; cut > 0 && strrchr(ret, '/'); cut--)
		*strrchr(ret, '/') = '\0';
	return true;
}

static void limits_are_set(void)
{
	char group[4096];

	CHECK_NACRE("run", "-d", "--name", "small", "-m", "64m", "--memory-low", "1m",
		    "--memory-high", "60m", "--swap", "0", "--cpus", "0.5", "--cpu-weight", "50",
		    "--cpuset-cpus", "0", "--cpuset-mems", "0", "--pids-limit", "100", "busybox",
		    "sleep", "1000");
	CHECK(container_group("small", group, sizeof(group)));
	CHECK(holds(group, "memory.max", "67108864"));
	CHECK(holds(group, "memory.low", "1048576"));
	CHECK(holds(group, "memory.high", "62914560"));
	CHECK(holds(group, "memory.swap.max", "0"));
	CHECK(holds(group, "cpu.max", "50000 100000"));
	CHECK(holds(group, "cpu.weight", "50"));
	CHECK(holds(group, "cpuset.cpus", "0"));
	CHECK(holds(group, "cpuset.mems", "0"));
	CHECK(holds(group, "pids.max", "100"));
	CHECK_INT(stats_until("small", "containers/memory/limit", 64 << 20), 64 << 20);
}

/* Whoever listens is told of the change that `update` makes. */
static void updates_are_told(void)
{
	int fd = open("/run/events.log", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	time_t end = guest_now() + GUEST_PATIENCE_S;
	pid_t pid = guest_start(fd, (const char *const[]){ "nacre", "-o", "json", "events", NULL });
	bool told = false;

	/* It listens from some time on. */
	while (!told && guest_now() < end) {
		CHECK_NACRE("update", "small", "--cpu-weight", "50");
		told = strstr(guest_read("/run/events.log"), "\"updated\"") != NULL;
	}
	CHECK(told);
	CHECK(kill(pid, SIGTERM) == 0);
	(void)guest_wait(pid);
	(void)close(fd);
}

static void limits_are_updated(void)
{
	char group[4096];

	CHECK_NACRE("update", "small", "-m", "32m", "--memory-high", "none", "--cpus", "none",
		    "--pids-limit", "50");
	CHECK(container_group("small", group, sizeof(group)));
	CHECK(holds(group, "memory.max", "33554432"));
	CHECK(holds(group, "memory.high", "max"));
	CHECK(holds(group, "cpu.max", "max 100000"));
	CHECK(holds(group, "pids.max", "50"));
	CHECK(holds(group, "cpu.weight", "50"));
	/* All or none: there is no such CPU. */
	CHECK(NACRE("update", "small", "--pids-limit", "40", "--cpuset-cpus", "500") != 0);
	CHECK(strstr(guest_output, "cpuset.cpus") != NULL);
	CHECK(holds(group, "pids.max", "50"));
	CHECK_NACRE("-o", "json", "inspect", "small");
	CHECK_INT(guest_number(guest_output, "containers/resources/memory"), 32 << 20);
	CHECK_INT(guest_number(guest_output, "containers/resources/pids"), 50);
	CHECK_NACRE("rm", "-f", "small");
}

/* More than the kernel takes; the API does not know that. */
static void limits_are_refused(void)
{
	static const char *const asked[][12] = {
		{ "nacre", "run", "--name", "no", "--pids-limit", "2147483647", "busybox", "true",
		  NULL },
		{ "nacre", "run", "--name", "no", "--cpuset-cpus", "500", "busybox", "true", NULL },
		{ "nacre", "cell", "--name", "no", "--pids-limit", "2147483647", "busybox", "true",
		  NULL },
		{ "nacre", "pod", "--name", "no", "--pids-limit", "2147483647", "a=busybox", "true",
		  NULL },
		{ "nacre", "spawn", "--name", "no", "--pids-limit", "2147483647", NULL },
	};

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		CHECK(guest_run(asked[i]) != 0);
		CHECK(strstr(guest_output, i == 1 ? "--cpuset-cpus: " : "--pids-limit: ") != NULL);
		CHECK(NACRE("inspect", "no") != 0);
		CHECK(strstr(guest_output, "there is no") != NULL);
	}
	CHECK_NACRE("run", "-d", "--name", "yes", "--pids-limit", "50", "busybox", "sleep", "1000");
	CHECK(NACRE("update", "yes", "--pids-limit", "2147483647") != 0);
	CHECK(strstr(guest_output, "--pids-limit: ") != NULL);
	CHECK_NACRE("rm", "-f", "yes");
	CHECK_NACRE("check");
}

static void limits_hold_for_the_whole(void)
{
	char group[4096];

	CHECK_NACRE("pod", "--name", "whole", "-m", "96m", "--pids-limit", "64", "a=busybox",
		    "sleep", "1000");
	CHECK(group_above("whole", 2, group, sizeof(group)));
	CHECK(holds(group, "memory.max", "100663296"));
	CHECK(holds(group, "pids.max", "64"));
	CHECK_NACRE("update", "whole", "--whole", "--pids-limit", "70");
	CHECK(holds(group, "pids.max", "70"));
	CHECK_NACRE("rm", "-f", "whole");

	CHECK_NACRE("spawn", "--name", "outer", "-m", "200m");
	CHECK_NACRE("spawn", "--in", "outer", "--name", "inner", "--pids-limit", "60");
	CHECK_NACRE("cell", "--in", "outer/inner", "--name", "c", "-m", "50m", "busybox", "sleep",
		    "1000");
	CHECK(group_above("outer/inner/c", 0, group, sizeof(group)));
	CHECK(holds(group, "memory.max", "52428800"));
	CHECK(group_above("outer/inner/c", 2, group, sizeof(group)));
	CHECK(holds(group, "pids.max", "60"));
	CHECK_NACRE("update", "outer", "-m", "220m");
	CHECK_NACRE("rm", "-f", "outer");
}

static void memory_of_a_request_is_a_limit(void)
{
	CHECK_INT(NACRE("run", "--name", "eater", "-m", "32m", "--swap", "0", "busybox", "tail",
			"/dev/zero"),
		  137);
	CHECK_NACRE("inspect", "eater");
	CHECK(strstr(guest_output, "OOMKilled") != NULL);
	CHECK_NACRE("rm", "-f", "eater");
	/* What a tmpfs holds is memory of the container. */
	CHECK_INT(NACRE("run", "--name", "filler", "-m", "32m", "--swap", "0", "--tmpfs", "/t",
			"busybox", "dd", "if=/dev/zero", "of=/t/big", "bs=1024k", "count=100"),
		  137);
	CHECK_NACRE("rm", "-f", "filler");
}

static void processes_of_a_request_are_a_limit(void)
{
	/* A shell that cannot fork says so, and ends. */
	CHECK(NACRE("run", "--rm", "--pids-limit", "5", "busybox", "sh", "-c",
		    "for i in 1 2 3 4 5 6 7 8; do sleep 2 & done") != 0);
	CHECK(strstr(guest_output, "fork") != NULL);
}

/* As systemd does it: all processes below, controllers handed on. */
static void groups_are_left_to_a_container(void)
{
	static const char hands_on[] =
		"cd /sys/fs/cgroup && mkdir own && echo 1 >own/cgroup.procs && "
		"echo $$ >own/cgroup.procs && "
		"echo +memory +pids >cgroup.subtree_control";

	CHECK_NACRE("run", "-d", "--name", "own", "--memory", "48m", "--security-opt",
		    "writable-cgroups", "busybox", "sleep", "1000");
	CHECK_NACRE("exec", "own", "sh", "-c", hands_on);
	CHECK_NACRE("exec", "own", "cat", "/proc/self/cgroup");
	CHECK(strstr(guest_output, "0::/nacre.exec\n") != NULL);
	CHECK_NACRE("exec", "own", "sh", "-c", "echo 16M >/sys/fs/cgroup/own/memory.max");
	CHECK(NACRE("exec", "own", "sh", "-c", "echo max >/sys/fs/cgroup/memory.max") != 0);
	CHECK_NACRE("exec", "own", "cat", "/sys/fs/cgroup/memory.max");
	CHECK(strstr(guest_output, "50331648\n") != NULL);
	CHECK_NACRE("rm", "-f", "own");
}

static void groups_are_not_left_where_limits_would_be(void)
{
	CHECK(mount(NULL, "/sys/fs/cgroup", NULL, MS_REMOUNT, "") == 0);
	CHECK(NACRE("run", "--rm", "--security-opt", "writable-cgroups", "busybox", "true") == 125);
	CHECK(strstr(guest_output, "nsdelegate") != NULL);
	CHECK(mount(NULL, "/sys/fs/cgroup", NULL, MS_REMOUNT, "nsdelegate") == 0);
}

static void is_consistent(void)
{
	CHECK_NACRE("check");
}

static void ends(void)
{
	time_t end = guest_now() + GUEST_PATIENCE_S;
	bool empty = false;

	CHECK(node_pid > 0 && kill(node_pid, SIGTERM) == 0);
	CHECK_INT(guest_wait(node_pid), 0);
	/* The keeper of the node, if there is one, outlives the daemon. */
	(void)guest_write(NODE_GROUP "/cgroup.kill", "1");
	while (!empty && guest_now() < end) {
		empty = access(NODE_GROUP, F_OK) < 0 ||
			strstr(guest_read(NODE_GROUP "/cgroup.events"), "populated 0") != NULL;
		guest_pause();
	}
	CHECK(empty);
	CHECK_INT(GUEST_RUN("sh", "-c",
			    "rmdir " NODE_GROUP "/*/* " NODE_GROUP "/* " NODE_GROUP
			    "; test ! -e " NODE_GROUP),
		  0);
	CHECK(guest_write("/sys/fs/cgroup/node/cgroup.subtree_control",
			  "-cpuset -cpu -io -memory -pids"));
	CHECK(guest_write("/sys/fs/cgroup/node/cgroup.procs", "0"));
	CHECK(rmdir("/sys/fs/cgroup/node/test") == 0);
}

UNIT_MAIN({ "the daemon starts and imports an image", starts },
	  { "controllers are handed on to workloads", hands_controllers_on },
	  { "a pod runs", runs_a_pod }, { "memory, processes and I/O are counted", counts_all },
	  { "a limit and its OOM kill are told", tells_of_want_of_memory },
	  { "another kill is not told so", is_not_killed_for_memory },
	  { "a container has its own devices alone", has_no_other_devices },
	  { "controllers reach a pod in a nested instance", nests },
	  { "limits of a request are set", limits_are_set },
	  { "a change of limits is told", updates_are_told },
	  { "limits are changed while it runs", limits_are_updated },
	  { "limits that the kernel refuses", limits_are_refused },
	  { "limits of pods, cells and instances", limits_hold_for_the_whole },
	  { "memory that is asked for is a limit", memory_of_a_request_is_a_limit },
	  { "processes that are asked for are a limit", processes_of_a_request_are_a_limit },
	  { "a container has groups of its own", groups_are_left_to_a_container },
	  { "and cannot lift its limits by them", groups_are_not_left_where_limits_would_be },
	  { "the record is what is there", is_consistent },
	  { "the daemon ends, and nothing is left", ends })
