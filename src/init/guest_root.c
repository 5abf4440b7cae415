/* SPDX-License-Identifier: Apache-2.0 */
#include "init/guest_root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "isolate/cgroup/cgroup.h"

#define ROOT_NEW "/root"

struct root_mount {
	const char *fs, *where, *options;
	unsigned long flags;
	bool optional;
};

static const struct root_mount root_first[] = {
	{ "devtmpfs", "/dev", "mode=755", MS_NOSUID, false },
	{ "proc", "/proc", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC, false },
	{ "sysfs", "/sys", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC, false },
};

static const struct root_mount root_second[] = {
	{ "cgroup2", "/sys/fs/cgroup", "nsdelegate", MS_NOSUID | MS_NODEV | MS_NOEXEC, false },
	{ "tmpfs", "/run", "mode=755", MS_NOSUID | MS_NODEV, false },
	{ "tmpfs", "/tmp", "mode=1777", MS_NOSUID | MS_NODEV, false },
	{ "tmpfs", "/dev/shm", "mode=1777", MS_NOSUID | MS_NODEV, false },
	{ "devpts", "/dev/pts", "ptmxmode=666,mode=620,gid=5", MS_NOSUID | MS_NOEXEC, false },
	{ "mqueue", "/dev/mqueue", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC, true },
};

static int root_mount(const struct root_mount *m, struct error *err)
{
	if (mkdir(m->where, 0755) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make %s", m->where);
	if (sysio_mount(m->fs, m->where, m->fs, m->flags, m->options) < 0 && !m->optional)
		return error_set(err, -errno, "mount %s", m->where);
	return 0;
}

/* The kernel has opened the console of the initramfs, where that has one. Nothing else is open
 * yet. */
static int root_open_console(struct error *err)
{
	int fd = sysio_openat(AT_FDCWD, "/dev/console", O_RDWR | O_NOCTTY, 0);

	if (fd < 0)
		fd = sysio_openat(AT_FDCWD, "/dev/null", O_RDWR, 0);
	while (fd >= 0 && fd < STDERR_FILENO)
		fd = fcntl(fd, F_DUPFD, 0);
	if (fd < 0)
		return error_set(err, -errno, "open the standard streams");
	if (fd > STDERR_FILENO)
		(void)fd_close(fd);
	return 0;
}

int guest_root_begin(struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(root_first); i++) {
		int r = root_mount(&root_first[i], err);

		if (r < 0)
			return r;
	}
	return root_open_console(err);
}

/* What is mounted on /X goes to the same name below the new root. */
static int root_move(const char *from, const char *to, struct error *err)
{
	if (mkdir(to, 0755) < 0)
		return error_set(err, -errno, "make %s", to);
	if (sysio_mount(from, to, NULL, MS_MOVE, NULL) < 0)
		return error_set(err, -errno, "move %s to %s", from, to);
	return 0;
}

static int root_switch(struct error *err)
{
	static const struct root_mount new_root = { "tmpfs", ROOT_NEW, "mode=755", MS_NODEV,
						    false };
	int r = root_mount(&new_root, err);

	if (r == 0)
		r = root_move("/dev", ROOT_NEW "/dev", err);
	if (r == 0)
		r = root_move("/proc", ROOT_NEW "/proc", err);
	if (r == 0)
		r = root_move("/sys", ROOT_NEW "/sys", err);
	if (r < 0)
		return r;
	if (chdir(ROOT_NEW) < 0 || sysio_mount(".", "/", NULL, MS_MOVE, NULL) < 0 ||
	    chroot(".") < 0 || chdir("/") < 0)
		return error_set(err, -errno, "enter the new root");
	return 0;
}

/* What udev would add to devtmpfs. */
static int root_link(const char *target, const char *name, struct error *err)
{
	if (sysio_symlinkat(target, AT_FDCWD, name) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make %s", name);
	return 0;
}

int guest_root_link_dev(struct error *err)
{
	int r = root_link("/proc/self/fd", "/dev/fd", err);

	if (r == 0)
		r = root_link("/proc/self/fd/0", "/dev/stdin", err);
	if (r == 0)
		r = root_link("/proc/self/fd/1", "/dev/stdout", err);
	if (r == 0)
		r = root_link("/proc/self/fd/2", "/dev/stderr", err);
	return r;
}

int guest_root_enter(struct error *err)
{
	int r = root_switch(err);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(root_second); i++)
		r = root_mount(&root_second[i], err);
	if (r == 0)
		r = guest_root_link_dev(err);
	if (r == 0 && mkdir("/etc", 0755) < 0)
		r = error_set(err, -errno, "make /etc");
	return r;
}

int guest_groups_make(struct guest_groups *ret, struct error *err)
{
	_cleanup_fd_ int root_fd = -1, layer_fd = -1, gate_fd = -1;
	int r;

	root_fd = cgroup_open_root(err);
	if (root_fd < 0)
		return root_fd;
	r = cgroup_enable(root_fd, cgroup_controllers(root_fd), err);
	if (r < 0)
		return r;
	layer_fd = cgroup_make_inner(root_fd, "layer", err);
	if (layer_fd < 0)
		return layer_fd;
	gate_fd = cgroup_make(root_fd, "gate", err);
	if (gate_fd < 0)
		return gate_fd;
	*ret = (struct guest_groups){ .layer_fd = TAKE_FD(layer_fd), .gate_fd = TAKE_FD(gate_fd) };
	return 0;
}
