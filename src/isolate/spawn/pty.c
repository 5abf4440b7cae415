/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"

/*
 * A container without privilege can neither mount nor unmount, so what is at its /dev/pts is what
 * we have put there. One with privilege can: that it is a devpts is looked at before anything in it
 * is opened, and nothing is opened that was mounted over its ptmx. In a devpts there are no other
 * names than ptmx and numbers, none of them a link. The slave comes from the master (TIOCGPTPEER)
 * and not by its name.
 */

void isolate_pty_done(struct isolate_pty *p)
{
	p->master_fd = fd_close(p->master_fd);
	p->slave_fd = fd_close(p->slave_fd);
	p->mount_fd = fd_close(p->mount_fd);
}

static int pty_open(struct isolate_pty *p, int pts_fd, struct error *err)
{
	int unlocked = 0;

	p->master_fd =
		rootfd_open_beneath(pts_fd, "ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	if (p->master_fd < 0)
		return error_set(err, p->master_fd, "make a terminal");
	if (ioctl(p->master_fd, TIOCSPTLCK, &unlocked) < 0)
		return error_set(err, -errno, "unlock a terminal");
	p->slave_fd = ioctl(p->master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return p->slave_fd < 0 ? error_set(err, -errno, "open a terminal") : 0;
}

int isolate_pty_new(struct isolate_pty *ret, const struct isolate_ids *ids, struct error *err)
{
	_cleanup_(isolate_pty_done) struct isolate_pty p = ISOLATE_PTY_INIT;
	char group[16];
	const struct mount_option options[] = {
		{ "mode", "0620" }, { "ptmxmode", "0666" }, { "gid", group }, { NULL, NULL }
	};
	int r;

	(void)str_printf(group, sizeof(group), "%u", isolate_ids_outside(ids, ids->gid, PTY_GROUP));
	p.mount_fd = mount_new("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	if (p.mount_fd < 0)
		return p.mount_fd;
	r = pty_open(&p, p.mount_fd, err);
	if (r < 0)
		return r;
	*ret = p;
	p = (struct isolate_pty)ISOLATE_PTY_INIT;
	return 0;
}

static int pty_open_dir(int proc_fd, pid_t pid, struct error *err)
{
	_cleanup_fd_ int root_fd = -1, fd = -1;
	struct statfs fs;
	char name[32];

	(void)str_printf(name, sizeof(name), "%d/root", (int)pid);
	root_fd = sysio_openat(proc_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (root_fd < 0)
		return error_set(err, -errno, "open the root of process %d", (int)pid);
	fd = rootfd_open(root_fd, "dev/pts", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != DEVPTS_SUPER_MAGIC)
		return error_refuse(err, ERROR_PRECONDITION, "there are no terminals at /dev/pts");
	return TAKE_FD(fd);
}

int isolate_pty_of(struct isolate_pty *ret, int proc_fd, pid_t pid, struct error *err)
{
	_cleanup_(isolate_pty_done) struct isolate_pty p = ISOLATE_PTY_INIT;
	_cleanup_fd_ int pts_fd = pty_open_dir(proc_fd, pid, err);
	int r;

	if (pts_fd < 0)
		return pts_fd;
	r = pty_open(&p, pts_fd, err);
	if (r < 0)
		return r;
	*ret = p;
	p = (struct isolate_pty)ISOLATE_PTY_INIT;
	return 0;
}
