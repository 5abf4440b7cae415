/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/steps_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "isolate/spawn/stdio_give.h"
#include "isolate/tree/dev.h"

/* A sorted set of descriptors. */
struct steps_fds {
	int *fds;
	size_t n;
};

static void steps_fds_add(struct steps_fds *set, int fd)
{
	size_t at = set->n;

	if (fd < 0)
		return;
	while (at && set->fds[at - 1] >= fd)
		at--;
	if (at < set->n && set->fds[at] == fd)
		return;
	for (size_t i = set->n; i > at; i--)
		set->fds[i] = set->fds[i - 1];
	set->fds[at] = fd;
	set->n++;
}

static int steps_close_range(unsigned first, unsigned last, unsigned flags)
{
	return syscall(SYS_close_range, first, last, flags) < 0 ? -errno : 0;
}

/* Closes all from first on but the set. */
static int steps_close_others(const struct steps_fds *set, unsigned first)
{
	for (size_t i = 0; i < set->n; i++) {
		unsigned fd = (unsigned)set->fds[i];
		int r = fd > first ? steps_close_range(first, fd - 1, 0) : 0;

		if (r < 0)
			return r;
		first = fd + 1;
	}
	return steps_close_range(first, ~0U, 0);
}

/*
 * Should: leave open what the later steps and the program need, and nothing else, before the
 * process comes into the sight of a container (security.md A02). Must not: trust O_CLOEXEC;
 * descriptors of the spawner may lack it.
 */
int isolate_step_close(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	int room[ISOLATE_STEPS_FDS];
	struct steps_fds set = { .fds = s->fds_room ?: room };
	int r;

	steps_fds_add(&set, s->report_fd);
	steps_fds_add(&set, s->parent_pidfd);
	steps_fds_add(&set, s->give_fd);
	steps_fds_add(&set, s->shm_fd);
	steps_fds_add(&set, s->mount_ns_fd);
	steps_fds_add(&set, p->pts_fd);
	steps_fds_add(&set, p->prepared_ns_fd);
	steps_fds_add(&set, p->user_fd);
	steps_fds_add(&set, s->root_fd);
	steps_fds_add(&set, s->exec_fd);
	steps_fds_add(&set, s->at_fd);
	if (s->keeps_proc)
		steps_fds_add(&set, s->proc_fd);
	if (s->mount_fds) {
		steps_fds_add(&set, s->null_mount_fd);
		for (size_t i = 0; i < p->n_mounts; i++)
			steps_fds_add(&set, s->mount_fds[i]);
		for (size_t i = 0; i < p->n_devices; i++)
			steps_fds_add(&set, s->device_fds[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(s->stdio); i++)
		steps_fds_add(&set, s->stdio[i]);
	for (size_t i = 0; i < p->n_keep_fds; i++)
		steps_fds_add(&set, s->keep_fds[i]);
	for (int i = 0; i < ISOLATE_NS_COUNT; i++)
		steps_fds_add(&set, p->ns_fd[i]);

	r = steps_close_others(&set, 0);
	return r < 0 ? error_set(err, r, "close_range") : 0;
}

/* Opens the null device that a process in this root finds; -1 where it finds something else. It is
 * pointed at first, so that nothing else is opened unless the container exchanges it meanwhile. */
static int steps_open_null(void)
{
	_cleanup_fd_ int root = sysio_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	_cleanup_fd_ int point = -1, fd = -1;

	if (root < 0)
		return -1;
	point = rootfd_open(root, "dev/null", O_PATH | O_NOFOLLOW, 0);
	if (point < 0 || !dev_is_null(point))
		return -1;
	fd = rootfd_open(root, "dev/null", O_RDWR | O_NOCTTY | O_NOFOLLOW, 0);
	return fd >= 0 && dev_is_null(fd) ? TAKE_FD(fd) : -1;
}

/*
 * Should: replace the host's /dev/null by the container's, so that root in the container cannot
 * change the mode or the owner of the host's file through its descriptor. Must not: take anything
 * but the null device (security.md A17); the stream stays as it is where the root has none.
 */
int isolate_step_stdio_null(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	int fd = -1;

	(void)err;
	if (!p->give_stdio ||
	    (p->root == ISOLATE_ROOT_KEEP && p->ns[ISOLATE_NS_MOUNT] == ISOLATE_KEEP))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(s->stdio); i++) {
		if (!dev_is_null(s->stdio[i]))
			continue;
		if (fd < 0)
			fd = steps_open_null();
		if (fd < 0)
			return 0;
		s->stdio[i] = fd;
	}
	return 0;
}

/*
 * Should: let the program's user open /dev/stdout again: pipes and a terminal belong to whoever
 * made them. The spawner does it where it knows the ids of a user namespace, since the owner of a
 * pipe need not be mapped there. Must not: change the owner of anything else (stdio_give.h).
 */
int isolate_step_stdio_owner(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;

	if (!p->give_stdio || p->n_uid_map || p->user_fd >= 0)
		return 0;
	return stdio_give(s->stdio, p->uid, p->terminal, err);
}

/* Moves *fd out of the way of the numbers below limit. */
static int steps_fd_lift(int *fd, int limit)
{
	int copy;

	if (*fd < 0 || *fd >= limit)
		return 0;
	copy = fcntl(*fd, F_DUPFD_CLOEXEC, limit);
	if (copy < 0)
		return -errno;
	*fd = copy;
	return 0;
}

static int steps_lift(struct isolate_steps *s, int limit)
{
	int r = steps_fd_lift(&s->report_fd, limit);

	if (r == 0)
		r = steps_fd_lift(&s->exec_fd, limit);
	if (r == 0)
		r = steps_fd_lift(&s->at_fd, limit);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(s->stdio); i++)
		r = steps_fd_lift(&s->stdio[i], limit);
	for (size_t i = 0; r == 0 && i < s->plan->n_keep_fds; i++)
		r = steps_fd_lift(&s->keep_fds[i], limit);
	return r;
}

/* While a plan's owner holds the child back, what lives in its namespaces may look at it: nothing
 * of the spawner's is to be found there, not even what the exec would close. */
static int steps_close_early(const struct isolate_steps *s, int limit)
{
	int room[3];
	struct steps_fds set = { .fds = room };

	if (!s->plan->at)
		return 0;
	steps_fds_add(&set, s->report_fd);
	steps_fds_add(&set, s->exec_fd);
	steps_fds_add(&set, s->at_fd);
	return steps_close_others(&set, (unsigned)limit);
}

/*
 * Should: put the program's descriptors at 0, 1, 2 and from 3 on, and mark every other to be closed
 * by the exec. Must not: overwrite one that is still to be placed; so those in the way are lifted
 * first.
 */
int isolate_step_place(struct isolate_steps *s, struct error *err)
{
	int limit = 3 + (int)s->plan->n_keep_fds;
	int r = steps_lift(s, limit);

	if (r < 0)
		return error_set(err, r, "copy a descriptor");
	for (int i = 0; i < limit; i++)
		if (dup3(i < 3 ? s->stdio[i] : s->keep_fds[i - 3], i, 0) < 0)
			return error_set(err, -errno, "descriptor %d", i);
	r = steps_close_early(s, limit);
	if (r == 0)
		r = steps_close_range((unsigned)limit, ~0U, CLOSE_RANGE_CLOEXEC);
	return r < 0 ? error_set(err, r, "close_range") : 0;
}
