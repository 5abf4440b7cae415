/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/plan/plan_rules.h"

#include <limits.h>
#include <linux/mount.h>
#include <sys/mount.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/tree/tree_path.h"

/* What a plan says of the tree that the process sees. */

#define PLAN_ATTRS                                                                                 \
	(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |            \
	 MOUNT_ATTR__ATIME | MOUNT_ATTR_NODIRATIME | MOUNT_ATTR_NOSYMFOLLOW)

static const char *const plan_system_kinds[] = { "proc",    "sysfs",  "cgroup",
						 "cgroup2", "devpts", "mqueue" };
static const char *const plan_system_targets[] = { "/proc", "/sys", "/dev", "/sys/fs/cgroup" };

bool isolate_mount_is_system(const char *fs, const char *target)
{
	for (size_t i = 0; fs && i < ARRAY_SIZE(plan_system_kinds); i++)
		if (str_eq(fs, plan_system_kinds[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(plan_system_targets); i++)
		if (tree_path_is(target, plan_system_targets[i]))
			return true;
	return false;
}

static bool plan_is_path(const char *path)
{
	return path && path[0] == '/' && path[strspn(path, "/")] && strlen(path) < PATH_MAX;
}

static bool plan_propagation_is_wrong(unsigned long flags)
{
	switch (flags & ~(unsigned long)MS_REC) {
	case 0:
	case MS_SHARED:
	case MS_SLAVE:
	case MS_PRIVATE:
	case MS_UNBINDABLE:
		return false;
	default:
		return true;
	}
}

static bool plan_attrs_are_wrong(uint64_t set, uint64_t clear)
{
	uint64_t atime = clear & MOUNT_ATTR__ATIME;

	if ((set | clear) & ~(uint64_t)PLAN_ATTRS)
		return true;
	/* All of the atime bits or none, as the kernel wants it. */
	return atime && atime != MOUNT_ATTR__ATIME;
}

static bool plan_bind_is_wrong(const struct isolate_mount *m)
{
	return m->fs || m->source || m->options || m->copy_up || (m->detached && m->recursive);
}

static bool plan_new_is_wrong(const struct isolate_plan *p, const struct isolate_mount *m)
{
	if (str_empty(m->fs) || m->detached || m->recursive || m->idmap_fd >= 0)
		return true;
	if (m->options && strlen(m->options) > ISOLATE_MOUNT_OPTIONS_MAX)
		return true;
	if (m->copy_up && !str_eq(m->fs, "tmpfs"))
		return true;
	return (str_eq(m->fs, "cgroup") || str_eq(m->fs, "cgroup2")) &&
	       p->ns[ISOLATE_NS_CGROUP] == ISOLATE_KEEP;
}

/* A tree that leaves the namespace in which it was made is a copy of what was made there. */
static bool plan_cannot_move(const struct isolate_plan *p, unsigned long propagation)
{
	return propagation & MS_UNBINDABLE && p->ns[ISOLATE_NS_MOUNT] != ISOLATE_NEW;
}

static bool plan_mounts_are_wrong(const struct isolate_plan *p)
{
	if (p->n_mounts > ISOLATE_MOUNTS_MAX || (p->n_mounts && !p->mounts))
		return true;
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct isolate_mount *m = &p->mounts[i];

		if (plan_cannot_move(p, m->propagation))
			return true;
		if (!plan_is_path(m->target) || plan_attrs_are_wrong(m->attr_set, m->attr_clear) ||
		    plan_attrs_are_wrong(m->attr_set_below, m->attr_clear_below) ||
		    plan_propagation_is_wrong(m->propagation) ||
		    (m->idmap_below && m->idmap_fd < 0))
			return true;
		if (m->source_fd >= 0 ? plan_bind_is_wrong(m) : plan_new_is_wrong(p, m))
			return true;
	}
	return false;
}

static bool plan_pts_is_wrong(const struct isolate_plan *p)
{
	bool has_place = p->root == ISOLATE_ROOT_CONTAINER;

	for (size_t i = 0; p->root == ISOLATE_ROOT_TREE && i < p->n_mounts; i++)
		has_place = has_place || (p->mounts[i].source_fd < 0 && p->mounts[i].fs &&
					  str_eq(p->mounts[i].fs, "devpts"));
	return p->pts_fd >= 0 && (!has_place || !p->terminal);
}

static bool plan_devices_are_wrong(const struct isolate_plan *p)
{
	if (p->n_devices > ISOLATE_DEVICES_MAX || (p->n_devices && !p->devices))
		return true;
	for (size_t i = 0; i < p->n_devices; i++) {
		const struct isolate_device *d = &p->devices[i];

		if (!plan_is_path(d->path) || str_has_suffix(d->path, "/") || !d->type ||
		    !strchr("cubp", d->type) || d->mode & ~(mode_t)07777)
			return true;
	}
	return false;
}

static bool plan_paths_are_wrong(char *const *paths)
{
	size_t n = 0;

	for (; paths && *paths; paths++)
		if (!plan_is_path(*paths) || ++n > ISOLATE_PATHS_MAX)
			return true;
	return false;
}

static bool plan_masked_are_wrong(const struct isolate_plan *p)
{
	return plan_paths_are_wrong(p->masked_paths);
}

static bool plan_readonly_are_wrong(const struct isolate_plan *p)
{
	return plan_paths_are_wrong(p->readonly_paths);
}

static bool plan_root_propagation_is_wrong(const struct isolate_plan *p)
{
	return plan_propagation_is_wrong(p->root_propagation);
}

static bool plan_root_place_is_wrong(const struct isolate_plan *p)
{
	return p->root_place && p->root_place[0] != '/';
}

static bool plan_tree_is_wrong(const struct isolate_plan *p)
{
	if (p->root == ISOLATE_ROOT_TREE)
		return p->own_masks || p->writable_sys || p->writable_groups;
	if (p->root_propagation || p->root_place || p->no_pivot)
		return true;
	return p->root != ISOLATE_ROOT_CONTAINER &&
	       (p->masked_paths || p->readonly_paths || p->n_mounts || p->n_devices ||
		p->own_masks || p->writable_sys || p->writable_groups);
}

const struct plan_rule plan_tree_rules[] = {
	{ "root", plan_tree_is_wrong,
	  "lists of mounts, devices and paths are for a container or a tree" },
	{ "mounts", plan_mounts_are_wrong,
	  "at most 1024, each on an absolute path below /, either of a source or of a file system; "
	  "cgroups only in a cgroup namespace; unbindable only in a new mount namespace" },
	{ "pts_fd", plan_pts_is_wrong,
	  "only for a terminal, in a container or a tree with a devpts" },
	{ "devices", plan_devices_are_wrong,
	  "at most 1024, each at an absolute path, of type c, u, b or p" },
	{ "masked_paths", plan_masked_are_wrong, "at most 1024, absolute" },
	{ "readonly_paths", plan_readonly_are_wrong, "at most 1024, absolute" },
	{ "root_propagation", plan_root_propagation_is_wrong,
	  "not MS_SHARED, MS_SLAVE, MS_PRIVATE or MS_UNBINDABLE" },
	{ "root_place", plan_root_place_is_wrong, "not absolute" },
	{ NULL, NULL, NULL },
};
