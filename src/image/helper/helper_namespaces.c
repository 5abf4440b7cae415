/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A thread goes to new namespaces, takes away all that was copied into that of the mounts, and
 * ends. They live as long as their descriptors; the caller goes nowhere.
 */

#include "image/helper/helper_namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/error.h"
#include "base/process/thread.h"
#include "isolate/mount/mount.h"
#include "isolate/spawn/spawn.h"

#define HELPER_NAMESPACES_MOUNT                                                                    \
	(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY)

struct helper_namespaces_work {
	struct helper_namespaces helper_namespaces;
	struct error err;
};

/*
 * Should: leave an empty root that nothing can be written to. Must not: touch a mount outside the
 * new namespace.
 */
static int helper_namespaces_clear(struct error *err)
{
	static const struct mount_option options[] = {
		{ "mode", "0500" }, { "size", "4k" }, { "nr_inodes", "2" }, { NULL, NULL }
	};
	_cleanup_fd_ int fd = mount_new("tmpfs", options, HELPER_NAMESPACES_MOUNT, err);

	return fd < 0 ? fd : mount_take_all(fd, err);
}

static int helper_namespaces_make(struct helper_namespaces *h, struct error *err)
{
	_cleanup_fd_ int proc_fd =
		sysio_openat(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	pid_t tid = (pid_t)syscall(SYS_gettid);

	if (proc_fd < 0)
		return error_set(err, -errno, "open /proc");
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0)
		return error_set(err, -errno, "make namespaces");
	h->net_fd = isolate_ns_open(proc_fd, tid, ISOLATE_NS_NET);
	h->mount_fd = isolate_ns_open(proc_fd, tid, ISOLATE_NS_MOUNT);
	if (h->net_fd < 0 || h->mount_fd < 0)
		return error_set(err, h->net_fd < 0 ? h->net_fd : h->mount_fd,
				 "open the new namespaces");
	return helper_namespaces_clear(err);
}

static void *helper_namespaces_thread(void *arg)
{
	struct helper_namespaces_work *w = arg;

	(void)helper_namespaces_make(&w->helper_namespaces, &w->err);
	return NULL;
}

int helper_namespaces_open(struct helper_namespaces *h, struct error *err)
{
	struct helper_namespaces_work w = { .helper_namespaces = HELPER_NAMESPACES_INIT,
					    .err = ERROR_INIT };
	pthread_t thread;
	int r;

	if (h->net_fd >= 0)
		return 0;
	r = thread_start(&thread, helper_namespaces_thread, &w);
	if (r < 0)
		return error_set(err, r, "make a thread for new namespaces");
	(void)pthread_join(thread, NULL);
	if (w.err.code) {
		helper_namespaces_close(&w.helper_namespaces);
		return error_copy(err, &w.err);
	}
	*h = w.helper_namespaces;
	return 0;
}

void helper_namespaces_close(struct helper_namespaces *h)
{
	h->net_fd = fd_close(h->net_fd);
	h->mount_fd = fd_close(h->mount_fd);
}
