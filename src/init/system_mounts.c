/* SPDX-License-Identifier: Apache-2.0 */
#include "init/system_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "init/guest_root.h"
#include "isolate/cgroup/cgroup.h"

/*
 * Theory of operation. The order is that of need: /proc tells whether this is the first pid
 * namespace, and by /proc/self/mounts what is mounted below what; /dev comes before what lies in
 * it. A missing piece is told and passed over: the daemon says what it cannot do without it.
 */

#define SYSTEM_GROUP "nacre-init"
/* PROC_PID_INIT_INO of the kernel, which it has for good. */
#define MOUNTS_FIRST_PID_NS "pid:[4026531836]"
#define MOUNTS_KEPT_MAX 512
#define MOUNTS_PROBE ".nacre-probe"

struct mounts_row {
	const char *fs, *where, *options;
	unsigned long flags;
	bool quiet; /* what needs it says so itself */
};

static const struct mounts_row mounts_proc = { "proc", "/proc", NULL,
					       MS_NOSUID | MS_NODEV | MS_NOEXEC, false };
static const struct mounts_row mounts_sys = { "sysfs", "/sys", NULL,
					      MS_NOSUID | MS_NODEV | MS_NOEXEC, false };
static const struct mounts_row mounts_dev = { "devtmpfs", "/dev", "mode=755", MS_NOSUID, true };
static const struct mounts_row mounts_own_dev = { "tmpfs", "/dev", "mode=755,size=64k", MS_NOSUID,
						  false };
static const struct mounts_row mounts_run = { "tmpfs", "/run", "mode=755", MS_NOSUID | MS_NODEV,
					      false };
static const struct mounts_row mounts_tmp = { "tmpfs", "/tmp", "mode=1777", MS_NOSUID | MS_NODEV,
					      false };
static const struct mounts_row mounts_below_dev[] = {
	{ "devpts", "/dev/pts", "ptmxmode=666,mode=620,gid=5", MS_NOSUID | MS_NOEXEC, false },
	{ "tmpfs", "/dev/shm", "mode=1777", MS_NOSUID | MS_NODEV, false },
	{ "mqueue", "/dev/mqueue", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC, true },
};

static const struct {
	const char *path;
	unsigned minor, major;
} mounts_devices[] = {
	{ "/dev/null", 3, 1 },   { "/dev/zero", 5, 1 },    { "/dev/full", 7, 1 },
	{ "/dev/random", 8, 1 }, { "/dev/urandom", 9, 1 }, { "/dev/tty", 0, 5 },
};

static bool mounts_make_one(const struct mounts_row *m)
{
	if ((sysio_mkdirat(AT_FDCWD, m->where, 0755) < 0 && errno != EEXIST) ||
	    sysio_mount(m->fs, m->where, m->fs, m->flags, m->options) < 0) {
		if (!m->quiet)
			log_warn("a file system is missing, and cannot be mounted",
				 LOG_STR("where", m->where), LOG_STR("err", strerror(errno)));
		return false;
	}
	log_info("mounted", LOG_STR("where", m->where), LOG_STR("what", m->fs));
	return true;
}

static bool mounts_is_point(const char *path)
{
	struct statx st;

	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
	       st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static bool mounts_is(const char *path, long magic)
{
	struct statfs st;

	return statfs(path, &st) == 0 && (long)st.f_type == magic;
}

/* Whether something is mounted on a name below the directory. */
static bool mounts_has_below(const char *path)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	char room[4096];
	struct mntent m;
	size_t len = strlen(path);
	bool found = false;

	while (f && !found && getmntent_r(f, &m, room, sizeof(room)))
		found = strncmp(m.mnt_dir, path, len) == 0 && m.mnt_dir[len] == '/';
	if (f)
		(void)endmntent(f);
	return found;
}

/* -ENOENT: it is not there. */
static int mounts_try_write(const char *path)
{
	_cleanup_fd_ int dir_fd = -1, fd = -1;

	dir_fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir_fd < 0)
		return -errno;
	fd = sysio_openat(dir_fd, MOUNTS_PROBE,
			  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	(void)sysio_unlinkat(dir_fd, MOUNTS_PROBE, 0);
	return 0;
}

bool system_can_write(const char *path)
{
	char above[PATH_MAX];
	char *slash;
	int r;

	if (str_copy(above, sizeof(above), path) < 0)
		return false;
	for (;;) {
		r = mounts_try_write(*above ? above : "/");
		slash = strrchr(above, '/');
		if (r != -ENOENT || !slash)
			break;
		*slash = '\0';
	}
	/* What else is wrong, such as a disk that is full, the daemon knows how to tell. */
	return r != -EROFS && r != -EACCES && r != -EPERM;
}

/* Whether /proc is that of this pid namespace. */
static bool mounts_has_proc(void)
{
	char text[16];
	ssize_t n = readlink("/proc/self", text, sizeof(text));

	return n == 1 && text[0] == '1';
}

bool system_is_machine(void)
{
	char text[sizeof(MOUNTS_FIRST_PID_NS)];
	ssize_t n = readlink("/proc/self/ns/pid", text, sizeof(text));

	return n == (ssize_t)sizeof(text) - 1 && memcmp(text, MOUNTS_FIRST_PID_NS, (size_t)n) == 0;
}

/* Whoever has started a container may share his mount namespace with it. */
static bool mounts_be_private(void)
{
	if (unshare(CLONE_NEWNS) == 0 && sysio_mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0)
		return true;
	log_warn("nothing is mounted: no mount namespace of its own can be had, or its root is no "
		 "mount point",
		 LOG_STR("err", strerror(errno)));
	return false;
}

/* One that is closed would be the next file that is opened. Which ones that were: a bit each. */
static unsigned mounts_hold_streams(void)
{
	unsigned closed = 0;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    sysio_openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0) == fd)
			closed |= 1U << fd;
	return closed;
}

static void mounts_open_streams(unsigned closed)
{
	_cleanup_fd_ int fd = -1;

	if (!closed)
		return;
	fd = sysio_openat(AT_FDCWD, "/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
	if (fd < 0)
		fd = sysio_openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
	for (int at = STDIN_FILENO; at <= STDERR_FILENO && fd >= 0; at++)
		if (closed & 1U << at)
			(void)dup3(fd, at, 0);
}

static void mounts_fill_dev(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(mounts_devices); i++)
		if (sysio_mknodat(AT_FDCWD, mounts_devices[i].path, S_IFCHR | 0666,
				  makedev(mounts_devices[i].major, mounts_devices[i].minor)) == 0)
			(void)chmod(mounts_devices[i].path, 0666);
		else if (errno != EEXIST)
			log_warn("a device is missing, and cannot be made",
				 LOG_STR("path", mounts_devices[i].path),
				 LOG_STR("err", strerror(errno)));
}

/* A devtmpfs has all devices of the machine, and there is one alone for all containers. */
static void mounts_make_dev(bool machine)
{
	struct stat st;

	if (stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		return;
	if (machine && mounts_make_one(&mounts_dev))
		return;
	if (mounts_is_point("/dev") || mounts_make_one(&mounts_own_dev))
		mounts_fill_dev();
}

static void mounts_make_below_dev(void)
{
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(mounts_below_dev); i++)
		if (!mounts_is_point(mounts_below_dev[i].where))
			(void)mounts_make_one(&mounts_below_dev[i]);
	if (sysio_symlinkat("pts/ptmx", AT_FDCWD, "/dev/ptmx") < 0 && errno != EEXIST)
		log_warn("there is no /dev/ptmx", LOG_STR("err", strerror(errno)));
	if (guest_root_link_dev(&err) < 0)
		log_warn("/dev is not complete", LOG_ERR(&err));
}

/* Beside v1 it is where systemd has it. */
static void mounts_make_groups(void)
{
	static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	_cleanup_fd_ int have = cgroup_open_root(NULL);

	for (size_t i = 0; i < ARRAY_SIZE(places) && have < 0; i++) {
		const struct mounts_row m = { "cgroup2", places[i], "nsdelegate",
					      MS_NOSUID | MS_NODEV | MS_NOEXEC,
					      i + 1 < ARRAY_SIZE(places) };

		if (!mounts_is_point(places[i]) && mounts_make_one(&m))
			return;
	}
}

void system_mounts_make(void)
{
	unsigned closed = mounts_hold_streams();
	bool known = mounts_has_proc(), machine = known && system_is_machine();

	if (!machine && !mounts_be_private()) {
		mounts_open_streams(closed);
		return;
	}
	if (!known)
		(void)mounts_make_one(&mounts_proc);
	machine = system_is_machine();
	if (!mounts_is("/sys", SYSFS_MAGIC))
		(void)mounts_make_one(&mounts_sys);
	mounts_make_dev(machine);
	mounts_make_below_dev();
	mounts_open_streams(closed);
	if (!mounts_is_point("/run") && !mounts_has_below("/run"))
		(void)mounts_make_one(&mounts_run);
	if (!system_can_write("/tmp"))
		(void)mounts_make_one(&mounts_tmp);
	mounts_make_groups();
}

void system_group_enter(void)
{
	struct error err = ERROR_INIT;
	_cleanup_fd_ int root_fd = cgroup_open_root(&err);
	_cleanup_fd_ int own_fd = -1;
	char own[64];
	int r;

	if (root_fd < 0) {
		log_warn("there are no control groups of version 2", LOG_ERR(&err));
		return;
	}
	/* The machine's own root has no such file, and holds processes beside groups. */
	if (cgroup_own_path(own, sizeof(own), NULL) < 0 || own[0] ||
	    faccessat(root_fd, "cgroup.type", F_OK, 0) < 0)
		return;
	own_fd = cgroup_make(root_fd, SYSTEM_GROUP, &err);
	r = own_fd < 0 ? own_fd : fd_write_file(own_fd, "cgroup.procs", "0");
	if (r < 0)
		log_warn("workloads are not limited: pid 1 stays in the group of its container",
			 LOG_STR("err", strerror(-r)));
	else
		cgroup_enable_workload(root_fd);
}

/* ---- the end ---- */

/* The last that was mounted comes first. */
void system_mounts_end(void)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	char *kept[MOUNTS_KEPT_MAX], room[4096];
	struct mntent m;
	size_t n = 0;

	while (f && n < MOUNTS_KEPT_MAX && getmntent_r(f, &m, room, sizeof(room)))
		if (str_has_prefix(m.mnt_fsname, "/dev/")) {
			kept[n] = strdup(m.mnt_dir);
			n += kept[n] != NULL;
		}
	if (f)
		(void)endmntent(f);
	for (; n > 0; free(kept[--n]))
		if (umount2(kept[n - 1], UMOUNT_NOFOLLOW) < 0 &&
		    sysio_mount(NULL, kept[n - 1], NULL, MS_REMOUNT | MS_RDONLY, NULL) < 0)
			log_warn("a file system stays writable", LOG_STR("where", kept[n - 1]),
				 LOG_STR("err", strerror(errno)));
}
