/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bare kernel sequence, which `make bench` measures ourselves against: what no program that
 * starts a container can do without, and nothing else.
 *
 *   bare start --lower DIR --scratch DIR --cgroup DIR [--program PATH] [--n N] [--host-network]
 *              [--rest MS] [--whole] [--network] [--ports N]
 *
 * clone3 into a cgroup with new pid, mount, net, ipc, uts and cgroup namespaces, an overlay mount
 * of DIR, pivot_root, exec of PATH in it. Timed: from the clone to the exec.
 *
 * With --whole also what each container of ours has (bare_whole.c): the loopback device, /proc,
 * /dev and /sys with what hides and closes parts of them, a keyring, a session, limits,
 * capabilities and a filter. DIR then has directories /proc, /dev and /sys.
 *
 * With --network it is put on a network meanwhile (bare_network.c), beside N others, and executes
 * PATH when it is on it.
 *
 *   bare exec (the same options)
 *
 * clone3 and setns into the namespaces of a process that was started in that way, exec of PATH.
 * Timed: from the clone to the end of the program.
 *
 * With --rest it waits for so long before each.
 *
 * Everything is mounted in a mount namespace of this process, the writable layers on a tmpfs over
 * --scratch, so nothing is left behind. The overlay has the options of our own
 * (image/rootfs/overlay.c): userxattr, and volatile, with which no unmount waits for a disk. Prints
 * one JSON object with times in microseconds.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bare_network.h"
#include "bare_whole.h"
#include "base/process/thread.h"

#define BARE_ROUNDS_MAX 10000
#define BARE_NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)

struct bare {
	const char *mode, *lower, *scratch, *cgroup, *program;
	unsigned rounds;
	unsigned rest; /* ms */
	bool whole;
	bool network;
	unsigned ports;
	uint64_t net; /* CLONE_NEWNET or 0 */
	int scratch_fd, cgroup_fd;
	double times[BARE_ROUNDS_MAX];
};

static struct bare bare = { .program = "/bin/true", .rounds = 50, .net = CLONE_NEWNET };

__attribute__((format(printf, 1, 2), noreturn)) static void bare_die(const char *fmt, ...)
{
	int error = errno;
	va_list ap;

	(void)fputs("bare: ", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, ": %s\n", strerror(error));
	exit(EXIT_FAILURE);
}

static double bare_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static pid_t bare_clone(uint64_t flags, int cgroup_fd, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = flags | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
	};

	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void bare_wait(int pidfd, bool kill_it)
{
	siginfo_t info;

	if (kill_it)
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0)
		if (errno != EINTR)
			bare_die("wait");
	(void)close(pidfd);
}

/* In the child: the overlay of round i becomes the root. Returns where it failed, or NULL. */
static const char *bare_enter_root(unsigned i)
{
	char options[4096], merged[4096];

	if (unshare(CLONE_NEWCGROUP) < 0)
		return "unshare";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return "make the mounts private";
	(void)snprintf(options, sizeof(options),
		       "userxattr,volatile,lowerdir=%s,upperdir=%s/%u/up,workdir=%s/%u/work",
		       bare.lower, bare.scratch, i, bare.scratch, i);
	(void)snprintf(merged, sizeof(merged), "%s/%u/root", bare.scratch, i);
	if (mount("overlay", merged, "overlay", 0, options) < 0)
		return "mount the overlay";
	if (bare.whole) {
		const char *failed = bare_whole_mounts(merged);

		if (failed)
			return failed;
	}
	if (chdir(merged) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return "pivot_root";
	if (umount2(".", MNT_DETACH) < 0)
		return "detach the old root";
	return bare.whole ? bare_whole_privilege() : NULL;
}

__attribute__((noreturn)) static void bare_fail(int report_fd, const char *what)
{
	char text[256];
	int len = snprintf(text, sizeof(text), "%s: %s", what, strerror(errno));

	if (len > 0 && write(report_fd, text, (size_t)len) < 0)
		_exit(2);
	_exit(1);
}

__attribute__((noreturn)) static void bare_exec(int report_fd)
{
	char *const argv[] = { (char *)(uintptr_t)bare.program, NULL };
	char *const env[] = { NULL };

	(void)execve(bare.program, argv, env);
	bare_fail(report_fd, bare.program);
}

static void bare_mkdir(unsigned i, const char *below)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%u%s", i, below);
	if (mkdirat(bare.scratch_fd, name, 0755) < 0)
		bare_die("make %s", name);
}

/* The program's report: nothing where it was executed. */
static void bare_read_report(int fd)
{
	char text[256];
	ssize_t n = read(fd, text, sizeof(text) - 1);

	if (n == 0)
		return;
	text[n > 0 ? n : 0] = '\0';
	errno = EPROTO;
	bare_die("%s", text);
}

/* A process in round i's root, the program or (pause_it) one that only waits; its pidfd. */
static int bare_start(unsigned i, bool pause_it, double *ret_time)
{
	char group[64];
	int report[2], go[2];
	int pidfd = -1, group_fd;
	double begin;
	char word;
	pid_t pid;

	bare_mkdir(i, "");
	bare_mkdir(i, "/up");
	bare_mkdir(i, "/work");
	bare_mkdir(i, "/root");
	(void)snprintf(group, sizeof(group), "bare.%u", i);
	if (mkdirat(bare.cgroup_fd, group, 0755) < 0)
		bare_die("make the cgroup %s", group);
	group_fd = openat(bare.cgroup_fd, group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (group_fd < 0 || pipe2(report, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0)
		bare_die("prepare a round");

	begin = bare_now();
	pid = bare_clone(BARE_NAMESPACES | bare.net, group_fd, &pidfd);
	if (pid < 0)
		bare_die("clone3");
	if (pid == 0) {
		const char *failed = bare_enter_root(i);

		if (failed)
			bare_fail(report[1], failed);
		if (bare.network && read(go[0], &word, 1) != 1)
			bare_fail(report[1], "wait for the network");
		if (!pause_it)
			bare_exec(report[1]);
		(void)close(report[1]);
		for (;;)
			(void)pause();
	}
	(void)close(report[1]);
	if (bare.network) {
		bare_network_plug(pid);
		if (write(go[1], "", 1) != 1)
			bare_die("tell a process that it has a network");
	}
	bare_read_report(report[0]);
	*ret_time = bare_now() - begin;
	if (bare.network)
		bare_network_unplug();
	(void)close(report[0]);
	(void)close(go[0]);
	(void)close(go[1]);
	(void)close(group_fd);
	return pidfd;
}

/* The kernel lets a group go once its last process is reaped, which may take a moment longer. */
static void bare_remove_group(unsigned i)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	char group[64];

	(void)snprintf(group, sizeof(group), "bare.%u", i);
	for (int try = 0; unlinkat(bare.cgroup_fd, group, AT_REMOVEDIR) < 0; try++) {
		if (errno != EBUSY || try == 1000)
			bare_die("remove the cgroup %s", group);
		(void)nanosleep(&ms, NULL);
	}
}

static void bare_rest(void)
{
	const struct timespec rest = { .tv_sec = bare.rest / 1000,
				       .tv_nsec = bare.rest % 1000 * 1000000L };

	if (bare.rest)
		(void)nanosleep(&rest, NULL);
}

static void bare_run_start(void)
{
	for (unsigned i = 0; i < bare.rounds; i++) {
		int pidfd;

		bare_rest();
		pidfd = bare_start(i, false, &bare.times[i]);
		bare_wait(pidfd, true);
		bare_remove_group(i);
	}
}

static double bare_join(int holder)
{
	int report[2];
	int pidfd = -1;
	double begin;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) < 0)
		bare_die("pipe2");
	begin = bare_now();
	pid = bare_clone(0, -1, &pidfd);
	if (pid < 0)
		bare_die("clone3");
	if (pid == 0) {
		if (setns(holder, (int)(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
					CLONE_NEWCGROUP | bare.net)) < 0)
			bare_fail(report[1], "setns");
		bare_exec(report[1]);
	}
	(void)close(report[1]);
	bare_wait(pidfd, false);
	begin = bare_now() - begin;
	bare_read_report(report[0]);
	(void)close(report[0]);
	return begin;
}

static void bare_run_exec(void)
{
	double unused;
	int holder = bare_start(0, true, &unused);

	/* Children are born in the holder's pid namespace from here on; once, since it need not be
	 * undone. */
	if (setns(holder, CLONE_NEWPID) < 0)
		bare_die("setns");
	for (unsigned i = 0; i < bare.rounds; i++) {
		bare_rest();
		bare.times[i] = bare_join(holder);
	}
	bare_wait(holder, true);
	bare_remove_group(0);
}

static int bare_compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void bare_print(void)
{
	qsort(bare.times, bare.rounds, sizeof(bare.times[0]), bare_compare);
	printf("{\"mode\":\"%s\",\"n\":%u,\"min_us\":%.1f,\"median_us\":%.1f,\"p90_us\":%.1f}\n",
	       bare.mode, bare.rounds, bare.times[0], bare.times[bare.rounds / 2],
	       bare.times[bare.rounds * 9 / 10]);
}

static void bare_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "lower", required_argument, NULL, 'l' },
		{ "scratch", required_argument, NULL, 's' },
		{ "cgroup", required_argument, NULL, 'c' },
		{ "program", required_argument, NULL, 'p' },
		{ "n", required_argument, NULL, 'n' },
		{ "rest", required_argument, NULL, 'r' },
		{ "host-network", no_argument, NULL, 'h' },
		{ "whole", no_argument, NULL, 'w' },
		{ "network", no_argument, NULL, 't' },
		{ "ports", required_argument, NULL, 'o' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	for (c = getopt_long(argc, argv, "", options, NULL); c >= 0;
	     c = getopt_long(argc, argv, "", options, NULL)) {
		if (c == 'l')
			bare.lower = optarg;
		else if (c == 's')
			bare.scratch = optarg;
		else if (c == 'c')
			bare.cgroup = optarg;
		else if (c == 'p')
			bare.program = optarg;
		else if (c == 'n')
			bare.rounds = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'r')
			bare.rest = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'h')
			bare.net = 0;
		else if (c == 'w')
			bare.whole = true;
		else if (c == 't')
			bare.network = true;
		else if (c == 'o')
			bare.ports = (unsigned)strtoul(optarg, NULL, 10);
		else
			exit(2);
	}
	bare.mode = optind < argc ? argv[optind] : "";
}

static void bare_prepare(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		bare_die("make a mount namespace");
	if (mount("bare", bare.scratch, "tmpfs", 0, "mode=0700") < 0)
		bare_die("mount a tmpfs on %s", bare.scratch);
	bare.scratch_fd = open(bare.scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bare.cgroup_fd = open(bare.cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (bare.scratch_fd < 0 || bare.cgroup_fd < 0)
		bare_die("open %s and %s", bare.scratch, bare.cgroup);
}

int main(int argc, char **argv)
{
	bool starts, execs;

	bare_options(argc, argv);
	starts = strcmp(bare.mode, "start") == 0;
	execs = strcmp(bare.mode, "exec") == 0;
	if ((!starts && !execs) || !bare.lower || !bare.scratch || !bare.cgroup ||
	    bare.rounds < 1 || bare.rounds > BARE_ROUNDS_MAX) {
		(void)fputs("usage: bare start|exec --lower DIR --scratch DIR --cgroup DIR\n"
			    "            [--program PATH] [--n N] [--host-network] [--rest MS] "
			    "[--whole] [--network] [--ports N]\n",
			    stderr);
		return 2;
	}
	bare_prepare();
	if (bare.network)
		bare_network_prepare(bare.ports);
	/* As those that it is compared with. */
	(void)thread_be_prompt();
	if (starts)
		bare_run_start();
	else
		bare_run_exec();
	bare_print();
	return EXIT_SUCCESS;
}
