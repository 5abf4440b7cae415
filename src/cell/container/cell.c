/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/container/cell.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "cell/start/spare_container.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/limits_words.h"
#include "isolate/mount/idmap.h"
#include "isolate/spawn/spawn.h"

#define CELL_SHM_SIZE "64m"
#define CELL_SHM_MODE "1777"

enum cell_event { CELL_MAKE, CELL_KEEP, CELL_DROP, CELL_ADOPT, CELL_REMOVE, CELL_EVENT_COUNT };

#define NEVER CELL_STATE_COUNT

static const enum cell_state edges[][CELL_EVENT_COUNT] = {
	[CELL_BARE] = { CELL_MAKING, NEVER, NEVER, CELL_MADE, CELL_REMOVING },
	[CELL_MAKING] = { NEVER, CELL_MADE, CELL_BARE, NEVER, CELL_REMOVING },
	[CELL_MADE] = { NEVER, NEVER, NEVER, NEVER, CELL_REMOVING },
	/* The maker may still come to its end while the cell is being removed. */
	[CELL_REMOVING] = { NEVER, CELL_REMOVING, CELL_REMOVING, NEVER, CELL_REMOVING },
};
_Static_assert(ARRAY_SIZE(edges) == CELL_STATE_COUNT, "each state has its edges");

static const enum isolate_ns shared_kinds[] = { ISOLATE_NS_NET, ISOLATE_NS_IPC, ISOLATE_NS_UTS };

static void cell_close_namespaces(struct cell *c)
{
	for (size_t i = 0; i < ISOLATE_NS_COUNT; i++)
		c->ns_fd[i] = fd_close(c->ns_fd[i]);
}

/* Those that a container of it was to make. */
static void cell_close_made(struct cell *c)
{
	int given_fd = c->given_network ? TAKE_FD(c->ns_fd[ISOLATE_NS_NET]) : -1;

	cell_close_namespaces(c);
	c->ns_fd[ISOLATE_NS_NET] = given_fd;
}

static void cell_enter(struct cell *c, enum cell_event event)
{
	enum cell_state to = edges[c->state][event];

	assert(to != NEVER);
	c->state = to;
	if (to == CELL_BARE)
		cell_close_made(c);
}

static bool cell_owns(const struct cell *c, enum isolate_ns kind)
{
	if (c->shares_instance)
		return false;
	return kind != ISOLATE_NS_NET || !c->host_network;
}

/* Whether its first container makes it. */
static bool cell_makes(const struct cell *c, enum isolate_ns kind)
{
	return cell_owns(c, kind) && !(kind == ISOLATE_NS_NET && c->given_network);
}

/* A group of its own name; or that of a process that waited, which is told its name. */
static int cell_make_group(struct cell *c, struct spare_process *ahead, struct error *err)
{
	char name[sizeof("cell.") + sizeof(c->name)];
	int r;

	(void)str_printf(name, sizeof(name), "cell.%s", c->name);
	if (ahead) {
		(void)str_copy(c->dir, sizeof(c->dir), ahead->dir);
		c->cgroup_fd = TAKE_FD(ahead->cell_fd);
		r = cgroup_set_name(c->cgroup_fd, name);
		return r < 0 ? error_set(err, r, "name the cgroup of cell %s", c->name) : 0;
	}
	(void)str_copy(c->dir, sizeof(c->dir), name);
	c->cgroup_fd = cgroup_make_inner(c->layer_fd, c->dir, err);
	return c->cgroup_fd < 0 ? c->cgroup_fd : 0;
}

int cell_alloc(struct cell **ret, int layer_fd, int shm_parent_fd, int shm_fd)
{
	struct cell *c = malloc(sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct cell){ .layer_fd = layer_fd,
			    .cgroup_fd = -1,
			    .shm_parent_fd = shm_parent_fd,
			    .shm_fd = shm_fd };
	list_init(&c->link);
	list_init(&c->containers);
	list_init(&c->removals);
	for (size_t i = 0; i < ISOLATE_NS_COUNT; i++)
		c->ns_fd[i] = -1;
	*ret = c;
	return 0;
}

/*
 * The user namespace of a cell, with all that is its own in it; that of a pod was made before its
 * keeper, whose namespaces belong to it. One that shares all of the node's has just this one.
 */
static int cell_make_users(struct cell *c, struct error *err)
{
	bool kinds[ISOLATE_NS_COUNT] = { false };
	int r;

	if (!isolate_ids_are_set(&c->ids))
		return 0;
	if (c->shm_fd >= 0 && fchown(c->shm_fd, c->ids.uid, c->ids.gid) < 0)
		return error_set(err, -errno, "give /dev/shm of cell %s away", c->name);
	for (size_t i = 0; i < ARRAY_SIZE(shared_kinds); i++) {
		kinds[shared_kinds[i]] = cell_owns(c, shared_kinds[i]);
		if (c->shares_instance && c->ns_fd[ISOLATE_NS_USER] < 0)
			c->ns_fd[ISOLATE_NS_USER] = isolate_ns_owner(shared_kinds[i]);
	}
	if (c->ns_fd[ISOLATE_NS_USER] >= 0)
		return 0;
	r = isolate_users_new(&c->ids, kinds, c->ns_fd, err);
	if (r < 0)
		return error_wrap(err, r, "the user namespace of cell %s", c->name);
	c->unnamed = !c->shares_instance;
	c->state = CELL_MADE;
	return 0;
}

/* That its own limits are to blame, and not those of the container that it is made for. */
static int cell_refused(const struct cell_spec *spec, int r, struct error *err)
{
	char field[ERROR_FIELD_MAX] = "";

	if (err && err->field[0])
		(void)str_printf(field, sizeof(field), CELL_LIMITS_FIELD "%.40s", err->field);
	r = error_wrap(err, r, "the cgroup of cell %s", spec->name);
	if (err)
		(void)str_copy(err->field, sizeof(err->field), field);
	return r;
}

int cell_new(struct cell **ret, const struct cell_spec *spec, struct spare_process *ahead,
	     int layer_fd, int shm_parent_fd, int shm_fd, struct error *err)
{
	struct cell *c;
	int r;

	r = cell_alloc(&c, layer_fd, shm_parent_fd, spec->shares_instance ? shm_fd : -1);
	if (r < 0)
		return error_set(err, r, "make cell %s", spec->name);
	c->shares_instance = spec->shares_instance;
	c->host_network = spec->host_network;
	c->given_network = spec->given_network;
	c->state = spec->shares_instance ? CELL_MADE : CELL_BARE;
	c->ids = spec->ids;

	r = str_copy(c->name, sizeof(c->name), spec->name);
	if (r == 0)
		r = str_copy(c->hostname, sizeof(c->hostname),
			     str_empty(spec->hostname) ? spec->name : spec->hostname);
	if (r < 0) {
		cell_free(c);
		return error_set(err, r, "name of cell %s", spec->name);
	}
	r = FAILPOINT("cell.make");
	if (r == 0 && spec->shares_instance && !str_empty(spec->hostname) &&
	    sethostname(spec->hostname, strlen(spec->hostname)) < 0)
		r = -errno;
	if (r < 0) {
		cell_free(c);
		return error_set(err, r, "make the cgroup of cell %s", spec->name);
	}
	r = cell_make_group(c, ahead, err);
	if (r < 0) {
		cell_free(c);
		return r;
	}
	FAILPOINT_AFTER("cell.make");
	r = limits_words_apply(c->cgroup_fd, spec->limits, err);
	r = r < 0 ? cell_refused(spec, r, err) : cell_make_users(c, err);
	if (r < 0) {
		(void)cell_remove_cgroup(c);
		cell_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

static void cell_unmount_shm(struct cell *c)
{
	char path[128];

	if (!c->shm_mounted)
		return;
	c->shm_fd = fd_close(c->shm_fd);
	/* umount2() knows no descriptors: the parent's is named through /proc. */
	if (str_printf(path, sizeof(path), "/proc/self/fd/%d/%s", c->shm_parent_fd, c->name) >= 0)
		(void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
	(void)sysio_unlinkat(c->shm_parent_fd, c->name, AT_REMOVEDIR);
	c->shm_mounted = false;
}

struct cell *cell_free(struct cell *c)
{
	if (!c)
		return NULL;
	assert(list_empty(&c->containers));
	assert(list_empty(&c->removals));
	cell_close_namespaces(c);
	cell_unmount_shm(c);
	fd_close(c->cgroup_fd);
	free(c);
	return NULL;
}

int cell_check(const struct cell *c, const struct cell_spec *spec, struct error *err)
{
	if (c->state == CELL_REMOVING)
		return error_refuse(err, ERROR_ABORTED, "cell %s is being removed", c->name);
	if (c->shares_instance != spec->shares_instance)
		return error_field(err, ERROR_PRECONDITION, "shares_instance",
				   "cell %s %s the instance's namespaces", c->name,
				   c->shares_instance ? "shares" : "does not share");
	if (c->ids.count != spec->ids.count || c->ids.uid != spec->ids.uid ||
	    c->ids.gid != spec->ids.gid)
		return error_field(err, ERROR_PRECONDITION, "ids",
				   "cell %s has other ids in its user namespace", c->name);
	if (c->host_network != spec->host_network)
		return error_field(err, ERROR_PRECONDITION, "host_network",
				   "cell %s %s the network of its keeper", c->name,
				   c->host_network ? "uses" : "does not use");
	if (c->given_network != spec->given_network)
		return error_field(err, ERROR_PRECONDITION, "network_token",
				   "cell %s %s a network from outside", c->name,
				   c->given_network ? "has" : "does not have");
	return 0;
}

/* A detached mount of a new file system for /dev/shm. */
static int shm_new(const char *name, struct error *err)
{
	_cleanup_fd_ int fs_fd = -1;
	int fd;

	fs_fd = sysio_fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (fs_fd < 0)
		return error_set(err, -errno, "open a tmpfs for /dev/shm of cell %s", name);
	if (sysio_fsconfig(fs_fd, FSCONFIG_SET_STRING, "size", CELL_SHM_SIZE, 0) < 0 ||
	    sysio_fsconfig(fs_fd, FSCONFIG_SET_STRING, "mode", CELL_SHM_MODE, 0) < 0 ||
	    sysio_fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return error_set(err, -errno, "configure the tmpfs for /dev/shm of cell %s", name);
	fd = sysio_fsmount(fs_fd, FSMOUNT_CLOEXEC,
			   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? error_set(err, -errno, "mount the tmpfs for /dev/shm of cell %s", name)
		      : fd;
}

/* Attached, since before Linux 6.15 a container cannot bind from a detached mount. */
static int cell_attach_shm(struct cell *c, int *mount_fd, struct error *err)
{
	if (sysio_mkdirat(c->shm_parent_fd, c->name, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory of /dev/shm of cell %s", c->name);
	if (sysio_move_mount(*mount_fd, "", c->shm_parent_fd, c->name, MOVE_MOUNT_F_EMPTY_PATH) <
	    0) {
		int r = error_set(err, -errno, "attach /dev/shm of cell %s", c->name);

		(void)sysio_unlinkat(c->shm_parent_fd, c->name, AT_REMOVEDIR);
		return r;
	}
	c->shm_fd = TAKE_FD(*mount_fd);
	c->shm_mounted = true;
	return 0;
}

static int cell_mount_shm(struct cell *c, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (c->shm_mounted || c->shares_instance)
		return 0;
	r = FAILPOINT("cell.shm");
	if (r < 0)
		return error_set(err, r, "mount /dev/shm of cell %s", c->name);
	r = isolate_ids_enter(&c->ids, err);
	if (r < 0)
		return r;
	fd = shm_new(c->name, err);
	isolate_ids_leave(&c->ids);
	r = fd < 0 ? fd : cell_attach_shm(c, &fd, err);
	FAILPOINT_AFTER("cell.shm");
	return r;
}

int cell_adopt(struct cell *c, struct isolate_prepared *prepared, int proc_fd, struct error *err)
{
	int r;

	assert(cell_wants_prepared(c));
	r = isolate_prepared_set_hostname(prepared, proc_fd, c->hostname, err);
	if (r == 0)
		r = cell_attach_shm(c, &prepared->shm_fd, err);
	if (r < 0)
		return error_wrap(err, r, "make the namespaces of cell %s", c->name);
	for (size_t i = 0; i < ISOLATE_NS_COUNT; i++)
		c->ns_fd[i] = TAKE_FD(prepared->ns_fd[i]);
	cell_enter(c, CELL_ADOPT);
	return 0;
}

int cell_plan(struct cell *c, struct isolate_plan *plan, bool *ret_maker, struct error *err)
{
	int r;

	assert(cell_open(c));
	r = cell_mount_shm(c, err);
	if (r < 0)
		return r;
	plan->shm_fd = c->shm_fd;
	*ret_maker = false;
	if (c->state == CELL_MADE) {
		cell_plan_join(c, plan);
		plan->joins_new = c->unnamed;
		plan->bring_up_loopback = c->unnamed && cell_owns(c, ISOLATE_NS_NET);
		plan->hostname = c->unnamed ? c->hostname : NULL;
		c->unnamed = false;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(shared_kinds); i++)
		if (cell_makes(c, shared_kinds[i]))
			plan->ns[shared_kinds[i]] = ISOLATE_NEW;
	if (c->given_network) {
		plan->ns[ISOLATE_NS_NET] = ISOLATE_JOIN;
		plan->ns_fd[ISOLATE_NS_NET] = c->ns_fd[ISOLATE_NS_NET];
	}
	plan->bring_up_loopback = cell_makes(c, ISOLATE_NS_NET);
	plan->hostname = c->hostname;
	*ret_maker = true;
	cell_enter(c, CELL_MAKE);
	return 0;
}

int cell_hold(struct cell *c, int proc_fd, pid_t pid, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(shared_kinds); i++) {
		enum isolate_ns kind = shared_kinds[i];
		int fd;

		if (!cell_makes(c, kind))
			continue;
		fd = isolate_ns_open(proc_fd, pid, kind);
		if (fd >= 0) {
			c->ns_fd[kind] = fd;
			continue;
		}
		cell_close_made(c);
		/* A process that has ended has no namespaces any more, reaped or not. */
		if (fd == -ENOENT || fd == -ESRCH)
			return -ESRCH;
		return error_set(err, fd, "hold the namespaces of cell %s", c->name);
	}
	return 0;
}

static bool cell_holds_all(const struct cell *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(shared_kinds); i++)
		if (cell_owns(c, shared_kinds[i]) && c->ns_fd[shared_kinds[i]] < 0)
			return false;
	return true;
}

void cell_settle(struct cell *c, bool running)
{
	cell_enter(c, running && cell_holds_all(c) ? CELL_KEEP : CELL_DROP);
}

void cell_plan_join(const struct cell *c, struct isolate_plan *plan)
{
	for (size_t i = 0; i < ARRAY_SIZE(shared_kinds); i++) {
		enum isolate_ns kind = shared_kinds[i];

		if (!cell_owns(c, kind))
			continue;
		plan->ns[kind] = ISOLATE_JOIN;
		plan->ns_fd[kind] = c->ns_fd[kind];
	}
}

void cell_plan_users(const struct cell *c, struct isolate_plan *plan, struct cell_maps *maps)
{
	if (!isolate_ids_are_set(&c->ids))
		return;
	*maps = (struct cell_maps){
		.uid = { .outside = c->ids.uid, .count = c->ids.count },
		.gid = { .outside = c->ids.gid, .count = c->ids.count },
	};
	plan->ns[ISOLATE_NS_USER] = ISOLATE_JOIN;
	plan->ns_fd[ISOLATE_NS_USER] = c->ns_fd[ISOLATE_NS_USER];
	plan->uid_map = &maps->uid;
	plan->gid_map = &maps->gid;
	plan->n_uid_map = plan->n_gid_map = 1;
}

void cell_begin_removal(struct cell *c)
{
	cell_enter(c, CELL_REMOVE);
}

void cell_kill(struct cell *c)
{
	(void)cgroup_kill(c->cgroup_fd);
}

int cell_remove_cgroup(struct cell *c)
{
	int r;

	FAILPOINT_BEFORE("cell.remove");
	r = cgroup_remove(c->layer_fd, c->dir);
	FAILPOINT_AFTER("cell.remove");
	return r;
}
