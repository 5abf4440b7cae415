/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a process sees from within: one "key value" a line, for tests to compare with what was asked
 * for and with what the kernel says from outside. With an argument it does a small thing instead:
 *
 *   probe connect PORT                       prints the line that 127.0.0.1:PORT serves
 *   probe listen PORT TEXT                   serves TEXT as one line to each who connects, for ever
 *   probe exit N
 *   probe lines PREFIX COUNT DELAY_MS        writes "PREFIX 1" to "PREFIX COUNT"
 *   probe sysv-set KEY | sysv-get KEY        makes a System V segment, or prints what is in it
 *   probe sleep SECONDS
 *   probe random                             4 KiB of getrandom(), and what the kernel gave this
 * process
 */

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define PROBE_SHM_SIZE 64
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static void probe_sleep(long ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&ts, NULL);
}

/* "key ok" or "key ERRNAME". */
static void probe_result(const char *key, long r)
{
	printf("%s %s\n", key, r < 0 ? strerrorname_np(errno) : "ok");
}

static void probe_ids(void)
{
	gid_t groups[256];
	char cwd[4096], host[256];
	int n = getgroups(ARRAY_SIZE(groups), groups);

	printf("pid %d\nppid %d\nsid %d\n", getpid(), getppid(), getsid(0));
	printf("uid %u\neuid %u\ngid %u\negid %u\ngroups", getuid(), geteuid(), getgid(),
	       getegid());
	for (int i = 0; i < n; i++)
		printf(" %u", groups[i]);
	printf("\ncwd %s\n", getcwd(cwd, sizeof(cwd)) ? cwd : strerrorname_np(errno));
	printf("hostname %s\n",
	       gethostname(host, sizeof(host)) == 0 ? host : strerrorname_np(errno));
}

static void probe_namespaces(void)
{
	static const char *const names[] = { "cgroup", "ipc", "mnt", "net", "pid", "user", "uts" };
	char path[64];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		if (stat(path, &st) == 0)
			printf("ns.%s %lu\n", names[i], (unsigned long)st.st_ino);
		else
			printf("ns.%s %s\n", names[i], strerrorname_np(errno));
	}
}

/* Lines "Name:\tvalue" of /proc/self/status as "status.Name value". */
static void probe_status(void)
{
	static const char *const names[] = { "CapInh",     "CapPrm",  "CapEff", "CapBnd", "CapAmb",
					     "NoNewPrivs", "Seccomp", "SigBlk", "SigIgn" };
	FILE *f = fopen("/proc/self/status", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			size_t len = strlen(names[i]);

			if (strncmp(line, names[i], len) == 0 && line[len] == ':')
				printf("status.%s %s", names[i],
				       line + len + 1 + strspn(line + len + 1, " \t"));
		}
	if (f)
		(void)fclose(f);
}

/* "mount POINT OPTIONS PROPAGATION FS"; PROPAGATION is "-" for a private mount. */
static void probe_mounts(void)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[8192];

	while (f && fgets(line, sizeof(line), f)) {
		char point[4096], options[1024], tag[64] = "-", fs[64] = "?";
		const char *rest = strstr(line, " - ");
		int at = 0;

		if (sscanf(line, "%*s %*s %*s %*s %4095s %1023s %n", point, options, &at) < 2)
			continue;
		if (rest && line + at < rest)
			(void)sscanf(line + at, "%63s", tag);
		if (rest)
			(void)sscanf(rest + 3, "%63s", fs);
		printf("mount %s %s %s %s\n", point, options, tag, fs);
	}
	if (f)
		(void)fclose(f);
}

static void probe_file(const char *key, const char *path)
{
	FILE *f = fopen(path, "re");
	char line[1024];

	if (!f) {
		printf("%s %s\n", key, strerrorname_np(errno));
		return;
	}
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		printf("%s %s\n", key, line);
	}
	(void)fclose(f);
}

static void probe_dir(const char *key, const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;

	for (e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		char target[256];
		struct stat st;
		ssize_t n;

		if (e->d_name[0] == '.')
			continue;
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		printf("%s %s %o %u:%u %u:%u %s\n", key, e->d_name, st.st_mode, st.st_uid,
		       st.st_gid, major(st.st_rdev), minor(st.st_rdev), n > 0 ? target : "-");
	}
	if (dir)
		(void)closedir(dir);
	else
		printf("%s %s\n", key, strerrorname_np(errno));
}

static void probe_fds(void)
{
	char path[64], target[4096];

	for (int fd = 0; fd < 1024; fd++) {
		ssize_t n;

		if (fcntl(fd, F_GETFD) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		printf("fd %d %s\n", fd, target);
	}
}

static void probe_limits(void)
{
	static const struct {
		const char *name;
		int resource;
	} limits[] = { { "NOFILE", RLIMIT_NOFILE },
		       { "CORE", RLIMIT_CORE },
		       { "MEMLOCK", RLIMIT_MEMLOCK },
		       { "NPROC", RLIMIT_NPROC },
		       { "STACK", RLIMIT_STACK } };
	struct rlimit l;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (getrlimit((__rlimit_resource_t)limits[i].resource, &l) == 0)
			printf("rlimit.%s %lld %lld\n", limits[i].name, (long long)l.rlim_cur,
			       (long long)l.rlim_max);
}

/* "links lo eth0": the names in /proc/net/dev. */
static void probe_links(void)
{
	FILE *f = fopen("/proc/self/net/dev", "re");
	char line[512], name[64];

	printf("links");
	while (f && fgets(line, sizeof(line), f))
		if (strchr(line, ':') && sscanf(line, " %63[^:]", name) == 1)
			printf(" %s", name);
	printf("\n");
	if (f)
		(void)fclose(f);
}

/* "masked PATH absent|empty|hidden|readable": hidden is the device null, empty a directory of
 * nothing. */
static void probe_masked(const char *path)
{
	const char *word = "readable";
	struct stat st;

	if (stat(path, &st) < 0) {
		word = errno == ENOENT ? "absent" : strerrorname_np(errno);
	} else if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) {
		word = "hidden";
	} else if (S_ISDIR(st.st_mode)) {
		DIR *dir = opendir(path);
		const struct dirent *e;
		int n = 0;

		for (e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
			n += e->d_name[0] != '.';
		word = dir && n == 0 ? "empty" : "readable";
		if (dir)
			(void)closedir(dir);
	}
	printf("masked %s %s\n", path, word);
}

static void probe_paths(void)
{
	static const char *const masked[] = {
		"/proc/acpi",
		"/proc/asound",
		"/proc/interrupts",
		"/proc/kcore",
		"/proc/keys",
		"/proc/latency_stats",
		"/proc/sched_debug",
		"/proc/scsi",
		"/proc/timer_list",
		"/proc/timer_stats",
		"/sys/firmware",
		"/sys/devices/virtual/powercap",
		"/sys/devices/system/cpu/cpu0/thermal_throttle",
	};
	/* Opened for writing only, never written to. */
	static const char *const read_only[] = {
		"/proc/sysrq-trigger",           "/proc/sys/kernel/hostname",
		"/proc/sys/kernel/core_pattern", "/proc/irq/default_smp_affinity",
		"/sys/kernel/rcu_expedited",     "/sys/fs/cgroup/cgroup.procs",
	};
	char key[256];

	for (size_t i = 0; i < ARRAY_SIZE(masked); i++)
		probe_masked(masked[i]);
	for (size_t i = 0; i < ARRAY_SIZE(read_only); i++) {
		int fd = open(read_only[i], O_WRONLY | O_CLOEXEC);

		(void)snprintf(key, sizeof(key), "write %s", read_only[i]);
		probe_result(key, fd);
		if (fd >= 0)
			(void)close(fd);
	}
	probe_result("mkdir /sys/fs/cgroup/probe", mkdir("/sys/fs/cgroup/probe", 0755));
	probe_result("mkdir /probe-dir", mkdir("/probe-dir", 0755));
	(void)rmdir("/probe-dir");
}

/* Calls that a container must not be able to make; with arguments that do no harm where it can. */
static void probe_calls(void)
{
	uint64_t junk[16] = { 0 };

	probe_result("call.mount", mount("none", "/", "tmpfs", 0, "size=bad"));
	probe_result("call.umount2", umount2("/proc", MNT_DETACH | 0x4000));
	probe_result("call.ptrace", ptrace(PTRACE_SEIZE, getppid(), NULL, NULL));
	probe_result("call.keyctl", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, -3, 0, 0, 0));
	probe_result("call.bpf", syscall(SYS_bpf, 0, junk, 8));
	probe_result("call.clone3", syscall(SYS_clone3, junk, 8));
	probe_result("call.open_by_handle_at", syscall(SYS_open_by_handle_at, -1, junk, O_RDONLY));
	probe_result("call.perf_event_open", syscall(SYS_perf_event_open, junk, 0, -1, -1, 0));
	probe_result("call.io_uring_setup", syscall(SYS_io_uring_setup, 0, junk));
	probe_result("call.userfaultfd", syscall(SYS_userfaultfd, ~0));
	probe_result("call.setns", setns(-1, 0));
	probe_result("call.pivot_root", syscall(SYS_pivot_root, "/", "/"));
	probe_result("call.reboot", syscall(SYS_reboot, 0, 0, 0, 0));
	probe_result("call.init_module", syscall(SYS_init_module, NULL, 0, NULL));
	probe_result("call.mknod", mknod("/probe-node", S_IFCHR | 0600, makedev(1, 1)));
	(void)unlink("/probe-node");
	probe_result("call.chroot", chroot("/"));
	probe_result("call.unknown", syscall(1000));
	probe_result("call.x32", syscall(0x40000000 + SYS_getpid));
	probe_result("call.socket_alg", socket(AF_ALG, SOCK_SEQPACKET, 0));
	probe_result("call.socket_vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
	probe_result("call.socket_packet", socket(AF_PACKET, SOCK_RAW, 0));
	probe_result("call.socket_inet", socket(AF_INET, SOCK_STREAM, 0));
	probe_result("call.unshare_user", unshare(CLONE_NEWUSER));
	probe_result("call.unshare_mount", unshare(CLONE_NEWNS));
}

static int probe_all(void)
{
	probe_ids();
	probe_namespaces();
	probe_status();
	probe_mounts();
	probe_file("cgroup", "/proc/self/cgroup");
	probe_file("oom_score_adj", "/proc/self/oom_score_adj");
	probe_dir("dev", "/dev");
	probe_dir("root", "/");
	for (char **e = environ; *e; e++)
		printf("env %s\n", *e);
	probe_limits();
	probe_fds();
	probe_links();
	probe_paths();
	probe_calls();
	return 0;
}

static struct sockaddr_in probe_address(const char *port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

static int probe_fail(const char *what)
{
	printf("%s %s\n", what, strerrorname_np(errno));
	return 1;
}

static int probe_connect(char **argv)
{
	struct sockaddr_in to = probe_address(argv[0]);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[1024];
	ssize_t n;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return probe_fail("connect");
	for (n = read(fd, text, sizeof(text)); n > 0; n = read(fd, text, sizeof(text)))
		(void)fwrite(text, 1, (size_t)n, stdout);
	return n < 0 ? probe_fail("read") : 0;
}

static int probe_listen(char **argv)
{
	struct sockaddr_in at = probe_address(argv[0]);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 16) < 0)
		return probe_fail("listen");
	printf("listening %s\n", argv[0]);
	for (;;) {
		int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (peer < 0)
			return probe_fail("accept");
		(void)dprintf(peer, "%s\n", argv[1]);
		(void)close(peer);
	}
}

static int probe_exit(char **argv)
{
	return (int)strtol(argv[0], NULL, 10);
}

static int probe_lines(char **argv)
{
	long count = strtol(argv[1], NULL, 10), delay = strtol(argv[2], NULL, 10);

	for (long i = 1; i <= count; i++) {
		printf("%s %ld\n", argv[0], i);
		if (delay)
			probe_sleep(delay);
	}
	return 0;
}

static int probe_sleep_for(char **argv)
{
	probe_sleep((long)(strtod(argv[0], NULL) * 1000));
	return 0;
}

static int probe_sysv(const char *key, int flags, const char *text)
{
	int id = shmget((key_t)strtol(key, NULL, 10), PROBE_SHM_SIZE, flags);
	char *p;

	if (id < 0)
		return probe_fail("shmget");
	p = shmat(id, NULL, 0);
	if ((intptr_t)p == -1)
		return probe_fail("shmat");
	if (text)
		(void)snprintf(p, PROBE_SHM_SIZE, "%s", text);
	printf("sysv %s\n", p);
	return 0;
}

static int probe_sysv_set(char **argv)
{
	return probe_sysv(argv[0], IPC_CREAT | 0666, "set");
}

static int probe_sysv_get(char **argv)
{
	return probe_sysv(argv[0], 0666, NULL);
}

static void probe_hex(const char *key, const uint8_t *data, size_t len)
{
	printf("%s ", key);
	for (size_t i = 0; i < len; i++)
		printf("%02x", data[i]);
	printf("\n");
}

static int probe_random(char **argv)
{
	uint8_t data[4096];

	(void)argv;
	if (getrandom(data, sizeof(data), 0) != (ssize_t)sizeof(data))
		return probe_fail("getrandom");
	probe_hex("getrandom", data, sizeof(data));
	probe_hex("auxv", (const uint8_t *)(uintptr_t)getauxval(AT_RANDOM), 16);
	return 0;
}

static const struct {
	const char *name;
	int n_args;
	int (*run)(char **argv);
} probe_actions[] = {
	{ "connect", 1, probe_connect },   { "listen", 2, probe_listen },
	{ "exit", 1, probe_exit },         { "lines", 3, probe_lines },
	{ "sysv-set", 1, probe_sysv_set }, { "sysv-get", 1, probe_sysv_get },
	{ "sleep", 1, probe_sleep_for },   { "random", 0, probe_random },
};

int main(int argc, char **argv)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2)
		return probe_all();
	for (size_t i = 0; i < ARRAY_SIZE(probe_actions); i++)
		if (strcmp(argv[1], probe_actions[i].name) == 0 &&
		    argc == 2 + probe_actions[i].n_args)
			return probe_actions[i].run(argv + 2);
	(void)fputs("probe: no such action, or wrong arguments (see the head of probe.c)\n",
		    stderr);
	return 2;
}
