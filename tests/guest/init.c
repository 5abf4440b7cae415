/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pid 1 of the guest that tests/lib/guest.py boots: a system with cgroup v2 alone, and no other
 * program than the tests. It loads the modules that the kernel needs for its disks, makes the disk
 * "root" its root, and runs each program of /tests, one after the other, in a cgroup of its own
 * right below the root's (where all controllers are enabled, as systemd has it below a unit with
 * Delegate=yes). What a program writes goes to the host by the console, which the kernel is quiet
 * on; the lines that begin with "@" are this program's own words:
 *
 *   @up               the guest works
 *   @begin NAME       the output of /tests/NAME follows
 *   @end NAME STATUS  it has ended, with an exit status or 128 + signal
 *   @left NAME WHAT   it left processes or cgroups, which are gone now
 *   @done             all have run
 *   @broken WHAT      the guest does not work: WHAT went wrong
 *
 * What programs find: /dev/guest/disk, and the parts of it: /dev/guest/swap (in use),
 * /dev/guest/raw (without anything on it), /dev/guest/quota (ext4 that can have project quotas),
 * /dev/guest/root; 2 MiB huge pages and hugetlbfs on /dev/hugepages, tmpfs on /tmp and /run,
 * loopback up, securityfs or selinuxfs where they belong, and policies for them below /labels.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define INIT_PROGRAMS_MAX 64
/* Devices come up on their own time; more than this, and the guest is broken. */
#define INIT_DEVICE_WAIT_S 300
#define INIT_LEFT_WAIT_S 120
#define INIT_HUSH_TRIES 500

static int init_port_fd = -1;
static pid_t init_relay = -1;

static __attribute__((format(printf, 1, 2))) void init_say(const char *format, ...)
{
	char line[512];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(line, sizeof(line) - 1, format, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(init_port_fd >= 0 ? init_port_fd : STDERR_FILENO, line, (size_t)n) < 0)
		(void)!write(STDERR_FILENO, line, (size_t)n);
}

static void init_pause(void)
{
	struct timespec ts = { .tv_nsec = 10 * 1000000 };

	(void)nanosleep(&ts, NULL);
}

/* All that was said is on its way before the machine goes. */
static void init_hush(void)
{
	(void)close(init_port_fd);
	init_port_fd = -1;
	for (int i = 0; i < INIT_HUSH_TRIES && waitpid(init_relay, NULL, WNOHANG) == 0; i++)
		init_pause();
}

static _Noreturn void init_end(void)
{
	if (init_relay > 0)
		init_hush();
	sync();
	(void)reboot(RB_AUTOBOOT);
	for (;;)
		(void)pause();
}

static _Noreturn void init_broken(const char *what)
{
	init_say("@broken %s: %s", what, strerror(errno));
	init_end();
}

static time_t init_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* The first line of a file; false where there is none. */
static bool init_read(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = fgets(line, (int)size, f) != NULL;
	(void)fclose(f);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

static bool init_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		(void)close(fd);
	return ok;
}

static void init_mount(const char *fs, const char *where, const char *options)
{
	(void)mkdir(where, 0755);
	if (mount(fs, where, fs, 0, options) < 0)
		init_broken(where);
}

/* The first root has no /dev/console, which the kernel would have opened. */
static void init_open_console(void)
{
	int fd = open("/dev/console", O_RDWR);

	for (int i = fd; i >= 0 && i < STDERR_FILENO;)
		i = fcntl(fd, F_DUPFD, 0);
}

/* The modules, in the order in which they need each other, one path a line. */
static void init_load_modules(void)
{
	FILE *list = fopen("/modules/list", "re");
	char path[256];
	int fd;

	if (!list)
		init_broken("/modules/list");
	while (fgets(path, sizeof(path), list)) {
		path[strcspn(path, "\n")] = '\0';
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST))
			init_broken(path);
		(void)close(fd);
	}
	(void)fclose(list);
}

/* Calls look() until it has found what it looks for. */
static void init_wait_for(const char *what, bool (*look)(void))
{
	time_t end = init_now() + INIT_DEVICE_WAIT_S;

	while (!look()) {
		if (init_now() > end) {
			errno = ETIMEDOUT;
			init_broken(what);
		}
		init_pause();
	}
}

static _Noreturn void init_pass_on(int from, int to)
{
	char data[4096];
	ssize_t n;

	while ((n = read(from, data, sizeof(data))) > 0)
		for (ssize_t at = 0, w; at < n; at += w) {
			w = write(to, data + at, (size_t)(n - at));
			if (w < 0)
				_exit(1);
		}
	(void)tcdrain(to);
	_exit(0);
}

/* A pipe to the console, so that no program takes it for its terminal. */
static void init_open_port(void)
{
	int ends[2], console_fd = open("/dev/console", O_WRONLY | O_NOCTTY | O_CLOEXEC);

	if (console_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
		init_broken("the way to the host");
	init_relay = fork();
	if (init_relay < 0)
		init_broken("fork");
	if (init_relay == 0) {
		(void)close(ends[1]);
		init_pass_on(ends[0], console_fd);
	}
	(void)close(ends[0]);
	(void)close(console_fd);
	init_port_fd = ends[1];
}

/* Links /dev/guest/NAME to the first disk and its parts. */
static bool init_link_disks(void)
{
	static const struct {
		const char *name, *node;
	} links[] = { { "disk", "vda" },
		      { "root", "vda1" },
		      { "swap", "vda2" },
		      { "raw", "vda3" },
		      { "quota", "vda4" } };
	char path[64], node[32];

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		(void)snprintf(path, sizeof(path), "/dev/%s", links[i].node);
		if (access(path, F_OK) < 0)
			return false;
		(void)snprintf(path, sizeof(path), "/dev/guest/%s", links[i].name);
		(void)snprintf(node, sizeof(node), "../%s", links[i].node);
		if (symlink(node, path) < 0 && errno != EEXIST)
			init_broken(path);
	}
	return true;
}

/* The first root is not one that pivot_root() can leave: the disk is moved over it. */
static void init_enter_root(void)
{
	static const char *const moved[] = { "/dev", "/proc", "/sys" };
	char below[64];

	(void)mkdir("/disk", 0755);
	if (mount("/dev/guest/root", "/disk", "ext4", 0, NULL) < 0)
		init_broken("mount the root disk");
	for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++) {
		(void)snprintf(below, sizeof(below), "/disk%s", moved[i]);
		(void)mkdir(below, 0755);
		if (mount(moved[i], below, NULL, MS_MOVE, NULL) < 0)
			init_broken(below);
	}
	if (chdir("/disk") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
	    chdir("/") < 0)
		init_broken("enter the root disk");
}

static void init_loopback(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
		init_broken("loopback");
	(void)close(fd);
}

/* Enables every controller that the kernel has for the groups below the root's. */
static void init_enable_controllers(void)
{
	char line[256], word[64], *rest = line, *name;

	if (!init_read("/sys/fs/cgroup/cgroup.controllers", line, sizeof(line)))
		init_broken("cgroup.controllers");
	for (;;) {
		name = strsep(&rest, " ");
		if (!name)
			return;
		(void)snprintf(word, sizeof(word), "+%s", name);
		if (!init_write("/sys/fs/cgroup/cgroup.subtree_control", word))
			init_broken(word);
	}
}

static void init_set_up(void)
{
	init_mount("cgroup2", "/sys/fs/cgroup", "nsdelegate");
	init_enable_controllers();
	init_mount("tmpfs", "/tmp", "mode=1777");
	init_mount("tmpfs", "/run", "mode=755");
	init_mount("tmpfs", "/dev/shm", "mode=1777");
	init_mount("devpts", "/dev/pts", "ptmxmode=666,mode=620,gid=5");
	init_mount("mqueue", "/dev/mqueue", NULL);
	init_mount("hugetlbfs", "/dev/hugepages", NULL);
	init_mount("securityfs", "/sys/kernel/security", NULL);
	/* Only where the kernel was started with it. */
	if (access("/sys/fs/selinux", F_OK) == 0)
		init_mount("selinuxfs", "/sys/fs/selinux", NULL);
	if (swapon("/dev/guest/swap", 0) < 0)
		init_broken("swapon");
	init_loopback();
	if (sethostname("guest", strlen("guest")) < 0)
		init_broken("the host's name");
	(void)setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	(void)setenv("HOME", "/root", 1);
}

static int init_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in /tests, sorted. */
static size_t init_programs(char **names)
{
	DIR *dir = opendir("/tests");
	struct dirent *entry;
	size_t n = 0;

	if (!dir)
		init_broken("/tests");
	while ((entry = readdir(dir)) && n < INIT_PROGRAMS_MAX) {
		if (entry->d_name[0] == '.')
			continue;
		names[n] = strdup(entry->d_name);
		if (!names[n])
			init_broken("memory");
		n++;
	}
	(void)closedir(dir);
	qsort(names, n, sizeof(names[0]), init_compare);
	return n;
}

/* Removes the groups below path, and path; how many there were below. */
static int init_remove_group(const char *path)
{
	char below[4096];
	DIR *dir = opendir(path);
	struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) <
		    (int)sizeof(below))
			n += 1 + init_remove_group(below);
	}
	if (dir)
		(void)closedir(dir);
	(void)rmdir(path);
	return n;
}

/* Reaps every child that has ended, and tells how the one that counts did. */
static void init_reap(pid_t pid, int *status, int flags)
{
	pid_t found;
	int how;

	for (;;) {
		found = waitpid(-1, &how, flags | __WALL);
		if (found <= 0)
			return;
		if (found == pid)
			*status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
		if (found == pid && !(flags & WNOHANG))
			return;
	}
}

/* Ends what the program left in its group, and tells of it. */
static void init_clean(const char *name, const char *group)
{
	char path[512], line[64];
	time_t end = init_now() + INIT_LEFT_WAIT_S;
	int unused = 0, n;

	(void)snprintf(path, sizeof(path), "%s/cgroup.events", group);
	if (init_read(path, line, sizeof(line)) && strcmp(line, "populated 0") != 0)
		init_say("@left %s processes", name);
	(void)snprintf(path, sizeof(path), "%s/cgroup.kill", group);
	(void)init_write(path, "1");
	n = init_remove_group(group);
	if (n > 0)
		init_say("@left %s %d cgroups", name, n);
	while (access(group, F_OK) == 0) {
		if (init_now() > end)
			init_broken(group);
		init_reap(-1, &unused, WNOHANG);
		init_pause();
		(void)init_remove_group(group);
	}
}

static _Noreturn void init_exec(const char *program, const char *name)
{
	char *const argv[] = { (char *)(uintptr_t)name, NULL };
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)setsid();
	(void)dup3(null_fd, STDIN_FILENO, 0);
	(void)dup3(init_port_fd, STDOUT_FILENO, 0);
	(void)dup3(init_port_fd, STDERR_FILENO, 0);
	(void)execv(program, argv);
	printf("# exec %s: %s\n", program, strerror(errno));
	(void)fflush(stdout);
	_exit(127);
}

static void init_run(const char *name)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	char group[300], program[300];
	int fd, status = -1;
	pid_t pid;

	(void)snprintf(group, sizeof(group), "/sys/fs/cgroup/%s", name);
	(void)snprintf(program, sizeof(program), "/tests/%s", name);
	(void)mkdir(group, 0755);
	fd = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		init_broken(group);
	args.cgroup = (uint64_t)fd;
	init_say("@begin %s", name);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		init_exec(program, name);
	(void)close(fd);
	if (pid < 0)
		init_broken("clone3");
	while (status < 0)
		init_reap(pid, &status, 0);
	init_say("@end %s %d", name, status);
	init_clean(name, group);
}

int main(void)
{
	char *names[INIT_PROGRAMS_MAX];
	size_t n;

	init_mount("devtmpfs", "/dev", NULL);
	init_open_console();
	init_mount("proc", "/proc", NULL);
	init_mount("sysfs", "/sys", NULL);
	init_load_modules();
	init_open_port();
	(void)mkdir("/dev/guest", 0755);
	init_wait_for("the disks", init_link_disks);
	init_enter_root();
	init_set_up();
	init_say("@up");
	n = init_programs(names);
	for (size_t i = 0; i < n; i++)
		init_run(names[i]);
	init_say("@done");
	init_end();
}
