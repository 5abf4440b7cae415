/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/mounts.h"

#include <errno.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "cell/start/disk.h"
#include "isolate/cgroup/devices.h"
#include "isolate/plan/plan.h"

#define MOUNTS_MODE_DEFAULT 01777
#define MOUNTS_OPTIONS_SIZE 96

struct mounts_plan {
	struct isolate_mount mounts[CONTAINER_MOUNTS_MAX];
	char options[CONTAINER_MOUNTS_MAX][MOUNTS_OPTIONS_SIZE];
};

/* ---- names ---- */

/* The length of the first name of *path, which then begins there; 0 at its end. */
static size_t mounts_name(const char **path)
{
	*path += strspn(*path, "/");
	return strcspn(*path, "/");
}

bool mounts_are_same(const char *a, const char *b)
{
	for (;;) {
		size_t n = mounts_name(&a);

		if (n != mounts_name(&b) || memcmp(a, b, n) != 0)
			return false;
		if (n == 0)
			return true;
		a += n;
		b += n;
	}
}

static bool mounts_is_below(const char *path, const char *name)
{
	size_t n = mounts_name(&path);

	return n == strlen(name) && memcmp(path, name, n) == 0;
}

/* /dev/shm, or a name in /dev that is not taken, or below one. */
static bool mounts_is_free_in_dev(const char *path)
{
	char name[NAME_MAX + 1];
	size_t n = mounts_name(&path);

	path += n;
	n = mounts_name(&path);
	if (n == 0 || n >= sizeof(name))
		return false;
	(void)str_printf(name, sizeof(name), "%.*s", (int)n, path);
	path += n;
	if (str_eq(name, "shm"))
		return mounts_name(&path) == 0;
	return !isolate_dev_has_name(name);
}

static bool mounts_has_dots(const char *path)
{
	size_t n;

	for (; (n = mounts_name(&path)) > 0; path += n)
		if (path[0] == '.' && (n == 1 || (n == 2 && path[1] == '.')))
			return true;
	return false;
}

int mounts_check_target(const char *field, const char *target, struct error *err)
{
	const char *rest = target;

	if (str_empty(target) || target[0] != '/')
		return error_field(err, ERROR_INVALID, field, "\"%.80s\" is not an absolute path",
				   target ?: "");
	if (strlen(target) > SPEC_PATH_MAX)
		return error_field(err, ERROR_INVALID, field, "longer than %d bytes",
				   SPEC_PATH_MAX);
	if (mounts_has_dots(target))
		return error_field(err, ERROR_INVALID, field, "\"%.80s\" has \".\" or \"..\" in it",
				   target);
	if (mounts_name(&rest) == 0)
		return error_field(err, ERROR_INVALID, field, "nothing can be mounted on /");
	if (mounts_is_below(target, "proc") || mounts_is_below(target, "sys"))
		return error_field(err, ERROR_INVALID, field,
				   "nothing can be mounted in /proc or /sys");
	if (mounts_is_below(target, "dev") && !mounts_is_free_in_dev(target))
		return error_field(
			err, ERROR_INVALID, field,
			"in /dev a mount goes on /dev/shm, or on a name that no device, link or "
			"directory of every container has");
	return 0;
}

int mounts_check(const struct container_mount *mounts, size_t n, struct error *err)
{
	if (n > CONTAINER_MOUNTS_MAX)
		return error_field(err, ERROR_INVALID, "mounts",
				   "%zu are more than the limit of %d", n, CONTAINER_MOUNTS_MAX);
	for (size_t i = 0; i < n; i++) {
		int r = mounts_check_target("mounts", mounts[i].target, err);

		if (r == 0)
			r = disk_check_share(mounts[i].share, err);
		if (r < 0)
			return r;
		if (mounts[i].mode & ~07777U)
			return error_field(err, ERROR_INVALID, "mounts",
					   "mode %o is more than 7777", mounts[i].mode);
		if (mounts[i].uid > INT32_MAX || mounts[i].gid > INT32_MAX)
			return error_field(err, ERROR_INVALID, "mounts",
					   "owner %u:%u has a number above %d", mounts[i].uid,
					   mounts[i].gid, INT32_MAX);
		if (mounts[i].access & ~DEVICE_ALL)
			return error_field(err, ERROR_INVALID, "mounts", "access %u is unknown",
					   mounts[i].access);
	}
	return 0;
}

/* ---- copies ---- */

struct container_mount *mounts_free(struct container_mount *mounts, size_t n)
{
	for (size_t i = 0; mounts && i < n; i++)
		free((char *)(uintptr_t)mounts[i].target);
	free(mounts);
	return NULL;
}

int mounts_copy(struct container_mount **ret, const struct container_mount *mounts, size_t n)
{
	struct container_mount *copy;

	*ret = NULL;
	if (n == 0)
		return 0;
	copy = calloc(n, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = mounts[i];
		copy[i].target = strdup(mounts[i].target);
		if (!copy[i].target)
			copy = mounts_free(copy, n);
	}
	*ret = copy;
	return copy ? 0 : -ENOMEM;
}

/* ---- the plan ---- */

static void mounts_plan_tmpfs(struct isolate_mount *to, char options[MOUNTS_OPTIONS_SIZE],
			      const struct container_mount *from, const struct isolate_ids *ids)
{
	unsigned mode = from->mode ?: MOUNTS_MODE_DEFAULT;
	int n = str_printf(options, MOUNTS_OPTIONS_SIZE, "mode=%o", mode);

	if (n > 0 && (from->uid || from->gid))
		n += str_printf(options + n, MOUNTS_OPTIONS_SIZE - (size_t)n, ",uid=%u,gid=%u",
				isolate_ids_outside(ids, ids->uid, from->uid),
				isolate_ids_outside(ids, ids->gid, from->gid));
	if (n > 0 && from->size)
		(void)str_printf(options + n, MOUNTS_OPTIONS_SIZE - (size_t)n, ",size=%llu",
				 (unsigned long long)from->size);
	to->fs = "tmpfs";
	to->options = options;
	to->attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	if (from->no_exec)
		to->attr_set |= MOUNT_ATTR_NOEXEC;
}

static size_t mounts_depth(const char *target)
{
	size_t depth = 0, n;

	for (; (n = mounts_name(&target)) > 0; target += n)
		depth++;
	return depth;
}

/* The order in which they are made: a target comes behind those that it may lie in, whatever order
 * they were named in; targets of the same depth stay in the order given. */
static void mounts_sort(size_t order[CONTAINER_MOUNTS_MAX], const struct container_mount *mounts,
			size_t n)
{
	size_t depths[CONTAINER_MOUNTS_MAX];

	for (size_t i = 0; i < n; i++) {
		size_t depth = mounts_depth(mounts[i].target);
		size_t at = i;

		for (; at > 0 && depths[at - 1] > depth; at--) {
			depths[at] = depths[at - 1];
			order[at] = order[at - 1];
		}
		depths[at] = depth;
		order[at] = i;
	}
}

int mounts_plan(struct mounts_plan **ret, struct isolate_plan *plan,
		const struct container_mount *mounts, const struct container_fds *fds,
		struct error *err)
{
	size_t order[CONTAINER_MOUNTS_MAX];
	struct mounts_plan *m;

	if (fds->n_mounts == 0)
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return error_set(err, -ENOMEM, "plan the mounts");
	mounts_sort(order, mounts, fds->n_mounts);
	for (size_t i = 0; i < fds->n_mounts; i++) {
		const struct container_mount *from = &mounts[order[i]];
		struct isolate_mount *to = &m->mounts[i];

		*to = (struct isolate_mount)ISOLATE_MOUNT_INIT;
		to->target = from->target;
		to->source_fd = fds->mounts[order[i]];
		to->detached = to->source_fd >= 0;
		if (to->detached && from->propagation)
			to->propagation =
				MS_REC |
				(from->propagation == MOUNT_BOTH_WAYS ? MS_SHARED : MS_SLAVE);
		if (!to->detached)
			mounts_plan_tmpfs(to, m->options[i], from, &plan->ids);
	}
	plan->mounts = m->mounts;
	plan->n_mounts = fds->n_mounts;
	*ret = m;
	return 0;
}

struct mounts_plan *mounts_unplan(struct mounts_plan *m)
{
	free(m);
	return NULL;
}
