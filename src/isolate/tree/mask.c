/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/tree/mask.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"

#define MASK_NAME_MAX 96

/*
 * A file is hidden by a copy of the container's /dev/null, a directory by a copy of one empty
 * read-only tmpfs. The first directory gets the tmpfs itself, since only what is attached can be
 * copied.
 *
 * The one excuse for a missing mask is that there is nothing to be hidden (ENOENT).
 */
struct mask {
	int null_fd;
	/* Where the tmpfs is, at that name below it; -1 while no directory was met. */
	int empty_dir_fd;
	char empty_name[MASK_NAME_MAX];
};

static const char *const mask_proc[] = {
	"acpi",          "asound", "interrupts",  "kcore",      "keys",
	"latency_stats", "scsi",   "sched_debug", "timer_list", "timer_stats",
};

static const char *const mask_sys[] = { "devices/virtual/powercap", "firmware" };

static const char *const mask_read_only[] = { "bus", "fs", "irq", "sys", "sysrq-trigger" };

int mask_make_empty(int dir_fd, const char *name, struct error *err)
{
	return mount_below(dir_fd, name, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
			   "mode=0555,size=4k,nr_inodes=2", err);
}

static int mask_dir(struct mask *m, int dir_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (m->empty_dir_fd >= 0) {
		fd = mount_copy(m->empty_dir_fd, m->empty_name, err);
		return fd < 0 ? fd : mount_attach(fd, dir_fd, name, err);
	}
	r = mask_make_empty(dir_fd, name, err);
	if (r < 0)
		return r;
	m->empty_dir_fd = dir_fd;
	r = str_copy(m->empty_name, sizeof(m->empty_name), name);
	return r < 0 ? error_set(err, r, "%s", name) : 0;
}

static int mask_one(struct mask *m, int dir_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : error_set(err, -errno, "look at %s", name);
	if (S_ISDIR(st.st_mode))
		return mask_dir(m, dir_fd, name, err);
	fd = mount_copy(m->null_fd, "", err);
	return fd < 0 ? fd : mount_attach(fd, dir_fd, name, err);
}

static int mask_list(struct mask *m, int dir_fd, const char *const *names, size_t n,
		     struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		int r = mask_one(m, dir_fd, names[i], err);

		if (r < 0)
			return error_wrap(err, r, "hide %s", names[i]);
	}
	return 0;
}

/* The highest number of a processor that the machine can have ("0-7", "0,2-3"); 0 where it is
 * unknown. */
static unsigned long mask_cpu_max(int sys_fd)
{
	_cleanup_fd_ int fd =
		sysio_openat(sys_fd, "devices/system/cpu/possible", O_RDONLY | O_CLOEXEC, 0);
	char text[256];
	const char *last;
	ssize_t n;

	n = fd < 0 ? -1 : sysio_read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	last = text + n;
	while (last > text && last[-1] != '-' && last[-1] != ',')
		last--;
	return strtoul(last, NULL, 10);
}

/* Temperatures of the processors are a side channel. */
static int mask_cpus(struct mask *m, int sys_fd, struct error *err)
{
	unsigned long max = mask_cpu_max(sys_fd);
	char name[MASK_NAME_MAX];

	for (unsigned long cpu = 0; cpu <= max; cpu++) {
		int r = str_printf(name, sizeof(name), "devices/system/cpu/cpu%lu/thermal_throttle",
				   cpu);

		if (r >= 0)
			r = mask_one(m, sys_fd, name, err);
		if (r < 0)
			return error_wrap(err, r, "hide the temperature of processor %lu", cpu);
	}
	return 0;
}

static int mask_make_read_only(int dir_fd, const char *name, struct error *err)
{
	/* Without words: what is not there is not worth them, in the middle of a start. */
	_cleanup_fd_ int fd = mount_copy(dir_fd, name, NULL);
	int r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : error_set(err, fd, "copy the mount of %s", name);
	r = mount_restrict(fd, MOUNT_ATTR_RDONLY, err);
	return r < 0 ? r : mount_attach(fd, dir_fd, name, err);
}

int mask_apply(int proc_fd, int sys_fd, int null_fd, int empty_fd, struct error *err)
{
	struct mask m = { .null_fd = null_fd, .empty_dir_fd = empty_fd };
	int r = 0;

	if (proc_fd >= 0)
		r = mask_list(&m, proc_fd, mask_proc, ARRAY_SIZE(mask_proc), err);
	if (r >= 0 && sys_fd >= 0)
		r = mask_list(&m, sys_fd, mask_sys, ARRAY_SIZE(mask_sys), err);
	if (r >= 0 && sys_fd >= 0)
		r = mask_cpus(&m, sys_fd, err);
	for (size_t i = 0; r >= 0 && proc_fd >= 0 && i < ARRAY_SIZE(mask_read_only); i++) {
		r = mask_make_read_only(proc_fd, mask_read_only[i], err);
		if (r < 0)
			(void)error_wrap(err, r, "make /proc/%s read-only", mask_read_only[i]);
	}
	return r;
}
