/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a hostile workload does from within, for as long as it lives:
 *
 *   attack swap A B     exchanges the two names as fast as it can
 *   attack watch        looks at each process that appears in /proc, again and again, until it is a
 *                       program of this file system: whether its memory, its descriptors or the
 * file that it is executed from can be had. A line "got WHAT of PID" for each success, "seen N" for
 * every 50 processes.
 */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define ATTACK_PID_MAX 65536
#define ATTACK_FDS 16

static int attack_swap(const char *a, const char *b)
{
	for (;;)
		if (syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) < 0)
			return EXIT_FAILURE;
}

/* Whether it is executed from the file system that we see: then it is a workload like us. One that
 * is ending has no memory any more, so nothing that it is executed from; the rest goes later. */
static bool attack_is_ours(int pid, dev_t dev)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat(path, &st) == 0 ? st.st_dev == dev : errno != EACCES;
}

static bool attack_memory(int pid)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { &byte, 1 };

	/* Who may not look is told so before anybody looks at the address. */
	return syscall(SYS_process_vm_readv, pid, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT;
}

static bool attack_file(int pid, const char *name, int flags)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, flags);
	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

static bool attack_exe(int pid)
{
	return attack_file(pid, "exe", O_PATH);
}

/* Who may see their numbers may still not have them. */
static bool attack_descriptors(int pid)
{
	char name[16];
	bool got = false;

	for (int fd = 0; fd < ATTACK_FDS && !got; fd++) {
		(void)snprintf(name, sizeof(name), "fd/%d", fd);
		got = attack_file(pid, name, O_PATH);
	}
	return got;
}

static bool attack_mem(int pid)
{
	return attack_file(pid, "mem", O_RDONLY);
}

static const struct {
	const char *name;
	bool (*get)(int pid);
} attacks[] = {
	{ "memory", attack_memory },
	{ "program", attack_exe },
	{ "descriptors", attack_descriptors },
	{ "mem", attack_mem },
};

/* True once there is nothing more to be learned of it. */
static bool attack_process(int pid, dev_t dev)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (!attacks[i].get(pid))
			continue;
		/* Had before, and still no workload: it was the runtime's. */
		if (!attack_is_ours(pid, dev) && attacks[i].get(pid)) {
			printf("got %s of %d\n", attacks[i].name, pid);
			return true;
		}
	}
	return attack_is_ours(pid, dev);
}

static int attack_watch(void)
{
	static bool known[ATTACK_PID_MAX];
	DIR *proc = opendir("/proc");
	unsigned long seen = 0;
	struct stat own;

	if (!proc || stat("/proc/self/exe", &own) < 0)
		return EXIT_FAILURE;
	known[getpid()] = true;
	puts("watching");
	for (;;) {
		const struct dirent *d;

		rewinddir(proc);
		for (d = readdir(proc); d; d = readdir(proc)) {
			int pid = isdigit((unsigned char)*d->d_name)
					  ? (int)strtol(d->d_name, NULL, 10)
					  : 0;

			if (pid <= 0 || pid >= ATTACK_PID_MAX || known[pid])
				continue;
			known[pid] = attack_process(pid, own.st_dev);
			if (known[pid] && ++seen % 50 == 0)
				printf("seen %lu\n", seen);
		}
	}
}

int main(int argc, char **argv)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 4 && strcmp(argv[1], "swap") == 0)
		return attack_swap(argv[2], argv[3]);
	if (argc == 2 && strcmp(argv[1], "watch") == 0)
		return attack_watch();
	return EXIT_FAILURE;
}
