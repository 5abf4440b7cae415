/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pid 1 of the guest of tests/vm/test_share.py: loads its modules, mounts the volumes on /share,
 * and does what comes over a virtio port, one command a line, words without spaces. Each is
 * answered by a line: "0 WHAT", or
 * "-NAME" with the name of the errno. It is root in its own kernel, and as hostile as it is told to
 * be.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX 6
#define FILES_MAX 16
#define TEXT_MAX 4096
/* The kernel's number for a file handle of FUSE: node, generation. */
#define FUSE_HANDLE_TYPE 0x81
#define HANDLE_LEVELS 24

static FILE *port;
static int files[FILES_MAX];
static char answer[65536];

static __attribute__((format(printf, 1, 2))) int say(const char *format, ...)
{
	size_t used = strlen(answer);
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(answer + used, sizeof(answer) - used, format, ap);
	va_end(ap);
	return 0;
}

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int slot(const char *word)
{
	return (int)(strtoul(word, NULL, 10) % FILES_MAX);
}

static int put(const char *path, int flags, const char *text)
{
	int fd = open(path, flags | O_CLOEXEC, 0644), r;

	if (fd < 0)
		return -1;
	r = write(fd, text, strlen(text)) < 0 ? -1 : 0;
	return close(fd) < 0 ? -1 : r;
}

static ssize_t get(int dir_fd, const char *path, char text[TEXT_MAX])
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC), before;
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, text, TEXT_MAX - 1);
	before = errno;
	(void)close(fd);
	errno = before;
	text[n < 0 ? 0 : n] = '\0';
	return n;
}

/* ---- plain ---- */

static int do_write(char **w)
{
	return put(w[1], O_WRONLY | O_CREAT | O_TRUNC, w[2]);
}

static int do_read(char **w)
{
	char text[TEXT_MAX];

	return get(AT_FDCWD, w[1], text) < 0 ? -1 : say(" %s", text);
}

static int do_stat(char **w)
{
	struct stat st;

	if (lstat(w[1], &st) < 0)
		return -1;
	return say(" %o %u %u %llu %llu %llu %lu", st.st_mode, st.st_uid, st.st_gid,
		   (unsigned long long)st.st_size, (unsigned long long)st.st_ino,
		   (unsigned long long)st.st_dev, (unsigned long)st.st_nlink);
}

static int do_ls(char **w)
{
	DIR *d = opendir(w[1]);
	struct dirent *e;

	if (!d)
		return -1;
	for (e = readdir(d); e; e = readdir(d))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			(void)say(" %s", e->d_name);
	return closedir(d);
}

static int do_mkdir(char **w)
{
	return mkdir(w[1], 0755);
}

static int do_unlink(char **w)
{
	return unlink(w[1]);
}

static int do_symlink(char **w)
{
	return symlink(w[1], w[2]);
}

static int do_readlink(char **w)
{
	char text[TEXT_MAX] = "";

	return readlink(w[1], text, sizeof(text) - 1) < 0 ? -1 : say(" %s", text);
}

static int do_link(char **w)
{
	return link(w[1], w[2]);
}

static int do_rename(char **w)
{
	return rename(w[1], w[2]);
}

static int do_chmod(char **w)
{
	return chmod(w[1], (mode_t)strtoul(w[2], NULL, 8));
}

static int do_chown(char **w)
{
	return lchown(w[1], (uid_t)strtoul(w[2], NULL, 10), (gid_t)strtoul(w[3], NULL, 10));
}

static int do_mknod(char **w)
{
	return mknod(w[1],
		     (*w[2] == 'c'   ? S_IFCHR
		      : *w[2] == 'b' ? S_IFBLK
				     : S_IFIFO) |
			     0644,
		     makedev(1, 3));
}

static int do_setxattr(char **w)
{
	return setxattr(w[1], w[2], w[3], strlen(w[3]), 0);
}

static int do_getxattr(char **w)
{
	char text[TEXT_MAX] = "";

	return getxattr(w[1], w[2], text, sizeof(text) - 1) < 0 ? -1 : say(" %s", text);
}

static int do_umount(char **w)
{
	return umount2(w[1], 0);
}

static int do_bind(char **w)
{
	(void)mkdir(w[2], 0755);
	return mount(w[1], w[2], NULL, MS_BIND | MS_REC, NULL);
}

static int do_uptime(char **w)
{
	return say(" %llu", (unsigned long long)now_us());
}

/* Makes a file as somebody else, with a mode. */
static int do_make_as(char **w)
{
	uid_t uid = (uid_t)strtoul(w[2], NULL, 10);
	int r;

	if (setegid(uid) < 0 || seteuid(uid) < 0)
		return -1;
	r = put(w[1], O_WRONLY | O_CREAT | O_EXCL, "x");
	return seteuid(0) < 0 || setegid(0) < 0 ? -1 : r;
}

/* ---- what stays open ---- */

static int do_open(char **w)
{
	int *fd = &files[slot(w[1])];

	*fd = open(w[2], (*w[3] == 'w' ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0644);
	return *fd < 0 ? -1 : 0;
}

static int do_close(char **w)
{
	return close(files[slot(w[1])]);
}

static int do_pread(char **w)
{
	char text[TEXT_MAX];
	ssize_t n = pread(files[slot(w[1])], text, sizeof(text) - 1, 0);

	if (n < 0)
		return -1;
	text[n] = '\0';
	return say(" %s", text);
}

static int do_pwrite(char **w)
{
	return pwrite(files[slot(w[1])], w[2], strlen(w[2]), 0) < 0 ? -1 : 0;
}

static int do_flock(char **w)
{
	return flock(files[slot(w[1])], LOCK_EX | LOCK_NB);
}

static int do_lock(char **w)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(files[slot(w[1])], F_SETLK, &l);
}

static int do_map(char **w)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, files[slot(w[1])], 0);

	if (p == MAP_FAILED)
		return -1;
	memcpy(p, w[2], strlen(w[2]));
	return msync(p, 4096, MS_SYNC) < 0 ? -1 : munmap(p, 4096);
}

/* ---- what is seen, and when ---- */

/* Until the file has that text; the milliseconds that it took. */
static int do_wait(char **w)
{
	uint64_t began = now_us();
	char text[TEXT_MAX] = "";

	while (now_us() - began < 20000000) {
		if (get(AT_FDCWD, w[1], text) >= 0 && strcmp(text, w[2]) == 0)
			return say(" %llu", (unsigned long long)(now_us() - began) / 1000);
		(void)usleep(2000);
	}
	errno = ETIMEDOUT;
	return -1;
}

/*
 * Reads DIR/a and DIR/b through a link that is swapped meanwhile (DIR/..data), for that many
 * seconds: what was read, how often both did not belong together, how often something was missing,
 * and what values there were.
 */
static int do_swap(char **w)
{
	uint64_t end = now_us() + strtoull(w[2], NULL, 10) * 1000000;
	unsigned n = 0, torn = 0, gone = 0, values = 0;
	char a[TEXT_MAX], b[TEXT_MAX], path[256], last[TEXT_MAX] = "";

	while (now_us() < end) {
		int fd;

		(void)snprintf(path, sizeof(path), "%s/..data", w[1]);
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		n++;
		if (fd < 0 || get(fd, "a", a) < 0 || get(fd, "b", b) < 0)
			gone++;
		else if (strcmp(a, b) != 0)
			torn++;
		else if (strcmp(a, last) != 0)
			values++;
		if (fd >= 0) {
			memcpy(last, a, sizeof(last));
			(void)close(fd);
		}
		(void)snprintf(path, sizeof(path), "%s/a", w[1]);
		if (get(AT_FDCWD, path, a) < 0)
			gone++;
	}
	return say(" %u %u %u %u", n, torn, gone, values);
}

static _Noreturn void churn(const char *dir, unsigned long me, uint64_t end)
{
	char path[256], text[TEXT_MAX];
	bool ok = true;

	for (unsigned i = 0; now_us() < end && ok; i++) {
		(void)snprintf(path, sizeof(path), "%s/%lu.%u", dir, me, i);
		ok = put(path, O_WRONLY | O_CREAT | O_EXCL, "x") == 0 &&
		     get(AT_FDCWD, path, text) == 1 && unlink(path) == 0;
	}
	_exit(ok ? 0 : 1);
}

/* That many processes that make files, read and remove them, for that many seconds. */
static int do_churn(char **w)
{
	unsigned long n = strtoul(w[2], NULL, 10);
	uint64_t end = now_us() + strtoull(w[3], NULL, 10) * 1000000;
	int status, bad = 0;

	for (unsigned long i = 0; i < n; i++) {
		pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		if (pid < 0)
			return -1;
		if (pid == 0)
			churn(w[1], i, end);
	}
	for (unsigned long i = 0; i < n; i++)
		bad += wait(&status) < 0 || status != 0;
	errno = EIO;
	return bad ? -1 : 0;
}

static int do_throughput(char **w)
{
	static char block[1 << 20];
	unsigned long n = strtoul(w[3], NULL, 10);
	bool writes = *w[2] == 'w';
	int fd = open(w[1], (writes ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY) | O_CLOEXEC, 0644);
	uint64_t began = now_us();

	if (fd < 0)
		return -1;
	for (unsigned long i = 0; i < n; i++)
		if ((writes ? write(fd, block, sizeof(block)) : read(fd, block, sizeof(block))) !=
		    sizeof(block))
			return -1;
	(void)close(fd);
	return say(" %.1f MiB/s", (double)n * 1e6 / (double)(now_us() - began));
}

static int do_latency(char **w)
{
	unsigned long n = strtoul(w[3], NULL, 10);
	uint64_t began = now_us();
	char text[TEXT_MAX];
	struct stat st;

	for (unsigned long i = 0; i < n; i++)
		if (*w[2] == 's' ? stat(w[1], &st) < 0 : get(AT_FDCWD, w[1], text) < 0)
			return -1;
	return say(" %.0f us", (double)(now_us() - began) / (double)n);
}

/* ---- a hostile kernel ---- */

/*
 * Handles for nodes that were never looked up here, and from each directory upwards, which makes
 * the kernel ask the server for ".." of it: every name that is seen on the way.
 */
static int do_handles(char **w)
{
	struct {
		struct file_handle h;
		uint32_t data[3];
	} forged = { .h = { .handle_bytes = 12, .handle_type = FUSE_HANDLE_TYPE } };
	int at = open(w[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t last = (uint32_t)strtoul(w[2], NULL, 10);
	unsigned opened = 0;

	if (at < 0)
		return -1;
	for (uint32_t node = 0; node <= last; node++) {
		char *here[] = { NULL, (char[]){ "." } };
		struct stat first, st;
		int fd;

		memcpy(forged.h.f_handle, (uint32_t[]){ 0, node, 0 }, 12);
		fd = open_by_handle_at(at, &forged.h, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		opened++;
		for (int i = 0; i < HANDLE_LEVELS; i++) {
			if ((i == 0 ? fchdir(fd) : chdir("..")) < 0 || stat(".", &st) < 0)
				break;
			first = i == 0 ? st : first;
			/* The guest's own names. */
			if (st.st_dev != first.st_dev)
				break;
			(void)do_ls(here);
		}
		(void)close(fd);
	}
	if (chdir("/") < 0)
		return -1;
	return say(" opened=%u", opened);
}

static const struct {
	const char *name;
	int n_words;
	int (*run)(char **w);
} commands[] = {
	{ "write", 3, do_write },       { "read", 2, do_read },
	{ "stat", 2, do_stat },         { "ls", 2, do_ls },
	{ "mkdir", 2, do_mkdir },       { "unlink", 2, do_unlink },
	{ "symlink", 3, do_symlink },   { "readlink", 2, do_readlink },
	{ "link", 3, do_link },         { "rename", 3, do_rename },
	{ "chmod", 3, do_chmod },       { "chown", 4, do_chown },
	{ "mknod", 3, do_mknod },       { "setxattr", 4, do_setxattr },
	{ "getxattr", 3, do_getxattr }, { "umount", 2, do_umount },
	{ "bind", 3, do_bind },         { "uptime", 1, do_uptime },
	{ "make_as", 3, do_make_as },   { "open", 4, do_open },
	{ "close", 2, do_close },       { "pread", 2, do_pread },
	{ "pwrite", 3, do_pwrite },     { "flock", 2, do_flock },
	{ "lock", 2, do_lock },         { "map", 3, do_map },
	{ "wait", 3, do_wait },         { "swap", 3, do_swap },
	{ "churn", 4, do_churn },       { "throughput", 4, do_throughput },
	{ "latency", 4, do_latency },   { "handles", 3, do_handles },
};

/* ---- a life ---- */

static _Noreturn void end(const char *why)
{
	(void)fprintf(stderr, "%s: %s\n", why, strerror(errno));
	(void)reboot(RB_AUTOBOOT);
	for (;;)
		(void)pause();
}

static void load_modules(void)
{
	FILE *list = fopen("/modules/list", "re");
	char path[256];

	if (!list)
		end("/modules/list");
	while (fgets(path, sizeof(path), list)) {
		int fd;

		path[strcspn(path, "\n")] = '\0';
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST))
			end(path);
		(void)close(fd);
	}
	(void)fclose(list);
}

static void open_port(void)
{
	for (int i = 0; i < 30000 && !port; i++) {
		port = fopen("/dev/vport0p1", "r+e");
		(void)usleep(10000);
	}
	if (!port)
		end("/dev/vport0p1");
	setvbuf(port, NULL, _IOLBF, 0);
}

static void obey(char *line)
{
	char *words[WORDS_MAX] = { NULL }, *save = NULL;
	int n = 0, r = -1;

	answer[0] = '\0';
	for (char *p = strtok_r(line, " ", &save); p && n < WORDS_MAX;
	     p = strtok_r(NULL, " ", &save))
		words[n++] = p;
	errno = ENOSYS;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (n == commands[i].n_words && strcmp(words[0], commands[i].name) == 0)
			r = commands[i].run(words);
	if (r < 0)
		(void)dprintf(fileno(port), "-%s\n", strerrorname_np(errno));
	else
		(void)dprintf(fileno(port), "0%s\n", answer);
}

int main(void)
{
	char line[TEXT_MAX];
	int fd;

	(void)mkdir("/dev", 0755);
	(void)mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	fd = open("/dev/console", O_RDWR);
	for (int i = fd; i >= 0 && i < STDERR_FILENO;)
		i = fcntl(fd, F_DUPFD, 0);
	load_modules();
	(void)mkdir("/share", 0755);
	if (mount("nacre", "/share", "virtiofs", 0, NULL) < 0)
		end("mount the volumes");
	open_port();
	(void)dprintf(fileno(port), "0 up\n");
	while (fgets(line, sizeof(line), port)) {
		line[strcspn(line, "\n")] = '\0';
		obey(line);
	}
	end("the port");
}
