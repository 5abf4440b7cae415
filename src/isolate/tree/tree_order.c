/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/tree/tree_order.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "isolate/mount/mount.h"

void tree_order_done(struct tree_order *o)
{
	o->aside_fd = fd_close(o->aside_fd);
}

static int order_begin(struct tree_order *o, struct error *err)
{
	int fd = mount_new_from("tmpfs", NULL, "mode=0700,size=4k,nr_inodes=3", NULL, 0, err);

	if (fd < 0)
		return fd;
	o->aside_fd = fd;
	if (sysio_mkdirat(fd, "d", 0700) < 0 || sysio_mknodat(fd, "f", S_IFREG | 0600, 0) < 0)
		return error_set(err, -errno, "make a place to put mounts aside");
	return mount_attach(fd, AT_FDCWD, "/proc", err);
}

/*
 * Should: leave the younger copy in the peer group of the older one. Must not: leave that in it: it
 * goes in a moment, and what is unmounted below a peer is unmounted below all, the host's too.
 */
int tree_order_renew(struct tree_order *o, int mount_fd, struct error *err)
{
	struct mount_attr alone = { .propagation = MS_PRIVATE };
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r = o->aside_fd < 0 ? order_begin(o, err) : 0;

	if (r < 0)
		return r;
	if (fstat(mount_fd, &st) < 0)
		return error_set(err, -errno, "look at a mount");
	/* Each lies upon the one before, which is not needed any more. */
	r = mount_attach(mount_fd, o->aside_fd, S_ISDIR(st.st_mode) ? "d" : "f", err);
	if (r < 0)
		return r;
	fd = mount_copy_tree(mount_fd, "", err);
	r = fd < 0 ? fd : mount_change(mount_fd, &alone, true, err);
	return r < 0 ? r : TAKE_FD(fd);
}

int tree_order_end(struct tree_order *o, struct error *err)
{
	if (o->aside_fd < 0)
		return 0;
	if (fchdir(o->aside_fd) < 0 || umount2(".", MNT_DETACH) < 0)
		return error_set(err, -errno, "take the mounts away that were put aside");
	return 0;
}
