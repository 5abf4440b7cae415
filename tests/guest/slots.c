/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pid 1 of the machine of tests/vm/test_machine.py: loads modules, says "@up" on its console, and
 * does what it is told there:
 *
 *   slots        "@slot SERIAL NAME" for each disk
 *   read N       the first line of the disk with the serial "slotN"
 *   write N TEXT the other way round
 *   files N      "@file NAME FIRST LINE" for each file of the FAT that is on it
 *   keep TEXT    remembers it
 *   kept         "@kept TEXT SECONDS SINCE BOOT"
 *   panic, reset, off, words
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLOTS_SECTOR 512

static void slots_load(void)
{
	FILE *list = fopen("/modules/list", "re");
	char line[256];

	while (list && fgets(line, sizeof(line), list)) {
		int fd;

		line[strcspn(line, "\n")] = '\0';
		fd = open(line, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || syscall(SYS_finit_module, fd, "", 0) < 0)
			printf("@broken %s: %s\n", line, strerror(errno));
		(void)close(fd);
	}
	if (list)
		(void)fclose(list);
}

/* The serial of vda, vdb, ...; "" where there is none. */
static void slots_serial(char letter, char serial[32])
{
	char path[64];
	FILE *f;

	serial[0] = '\0';
	(void)snprintf(path, sizeof(path), "/sys/block/vd%c/serial", letter);
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(serial, 32, f))
		serial[0] = '\0';
	(void)fclose(f);
}

static void slots_list(void)
{
	char serial[32];

	for (char c = 'a'; c <= 'z'; c++) {
		slots_serial(c, serial);
		if (serial[0])
			printf("@slot %s vd%c\n", serial, c);
	}
	printf("@listed\n");
}

/* Past the page cache, which would give what was there before. */
static int slots_open(unsigned n, int flags)
{
	char want[16], serial[32], path[32];

	(void)snprintf(want, sizeof(want), "slot%u", n);
	for (char c = 'a'; c <= 'z'; c++) {
		slots_serial(c, serial);
		if (strcmp(serial, want) != 0)
			continue;
		(void)snprintf(path, sizeof(path), "/dev/vd%c", c);
		return open(path, flags | O_DIRECT | O_CLOEXEC);
	}
	errno = ENODEV;
	return -1;
}

static void slots_read(unsigned n)
{
	static _Alignas(4096) char data[4096];
	int fd = slots_open(n, O_RDONLY);

	if (fd < 0 || read(fd, data, SLOTS_SECTOR) != SLOTS_SECTOR)
		printf("@failed %s\n", strerror(errno));
	else
		printf("@read %.*s\n", (int)strcspn(data, "\n"), data);
	(void)close(fd);
}

static void slots_write(unsigned n, const char *text)
{
	static _Alignas(4096) char data[4096];
	int fd = slots_open(n, O_WRONLY);

	memset(data, 0, sizeof(data));
	(void)snprintf(data, sizeof(data), "%s\n", text);
	if (fd < 0 || write(fd, data, SLOTS_SECTOR) != SLOTS_SECTOR || fsync(fd) < 0)
		printf("@failed %s\n", strerror(errno));
	else
		printf("@written\n");
	(void)close(fd);
}

/* "vdb" of slot n. */
static bool slots_name(unsigned n, char name[8])
{
	char want[16], serial[32];

	(void)snprintf(want, sizeof(want), "slot%u", n);
	for (char c = 'a'; c <= 'z'; c++) {
		slots_serial(c, serial);
		(void)snprintf(name, 8, "vd%c", c);
		if (strcmp(serial, want) == 0)
			return true;
	}
	return false;
}

static void slots_files(unsigned n)
{
	char name[8], path[64], line[256];
	struct dirent *e;
	DIR *dir;

	if (!slots_name(n, name))
		return;
	(void)snprintf(path, sizeof(path), "/dev/%s", name);
	(void)mkdir("/seed", 0755);
	if (mount(path, "/seed", "vfat", MS_RDONLY, NULL) < 0) {
		printf("@failed %s\n", strerror(errno));
		return;
	}
	dir = opendir("/seed");
	while (dir && (e = readdir(dir))) {
		FILE *f;

		if (e->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "/seed/%.40s", e->d_name) < 0)
			continue;
		f = fopen(path, "re");
		line[0] = '\0';
		if (f && fgets(line, sizeof(line), f))
			line[strcspn(line, "\n")] = '\0';
		printf("@file %s %s %lld\n", e->d_name, line,
		       f && fseek(f, 0, SEEK_END) == 0 ? (long long)ftell(f) : -1);
		if (f)
			(void)fclose(f);
	}
	if (dir)
		(void)closedir(dir);
	(void)umount("/seed");
	printf("@listed\n");
}

static void slots_panic(void)
{
	FILE *f = fopen("/proc/sysrq-trigger", "we");

	if (f) {
		(void)fputs("c", f);
		(void)fclose(f);
	}
}

static char slots_text[256] = "nothing";

static void slots_keep(const char *text)
{
	(void)snprintf(slots_text, sizeof(slots_text), "%s", text);
	printf("@keeps\n");
}

static void slots_kept(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	printf("@kept %s %lld\n", slots_text, (long long)now.tv_sec);
}

static void slots_do(char *line)
{
	unsigned n = 0;

	if (strcmp(line, "slots") == 0)
		slots_list();
	else if (sscanf(line, "read %u", &n) == 1)
		slots_read(n);
	else if (sscanf(line, "write %u", &n) == 1)
		slots_write(n, strrchr(line, ' ') + 1);
	else if (sscanf(line, "files %u", &n) == 1)
		slots_files(n);
	else if (strncmp(line, "keep ", 5) == 0)
		slots_keep(line + 5);
	else if (strcmp(line, "kept") == 0)
		slots_kept();
	else if (strcmp(line, "panic") == 0)
		slots_panic();
	else if (strcmp(line, "reset") == 0)
		(void)reboot(RB_AUTOBOOT);
	else if (strcmp(line, "off") == 0)
		(void)reboot(RB_POWER_OFF);
}

int main(void)
{
	char line[256];
	int fd;

	(void)mkdir("/dev", 0755);
	(void)mkdir("/proc", 0755);
	(void)mkdir("/sys", 0755);
	(void)mount("dev", "/dev", "devtmpfs", 0, NULL);
	(void)mount("proc", "/proc", "proc", 0, NULL);
	(void)mount("sysfs", "/sys", "sysfs", 0, NULL);
	fd = open("/dev/console", O_RDWR);
	for (int i = fd; i >= 0 && i < STDERR_FILENO;)
		i = fcntl(fd, F_DUPFD, 0);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	slots_load();
	printf("@up\n");
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\r\n")] = '\0';
		slots_do(line);
	}
	for (;;)
		(void)pause();
}
