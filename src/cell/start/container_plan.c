/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/container_plan.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "cell/start/mounts.h"
#include "cell/start/program.h"
#include "cell/start/start.h"
#include "cell/start/warm_pool.h"

void container_plan_host(const struct container *c, struct isolate_plan *plan)
{
	if (c->host->host_mount_ns_fd < 0)
		return;
	plan->ns[ISOLATE_NS_MOUNT] = ISOLATE_JOIN;
	plan->ns_fd[ISOLATE_NS_MOUNT] = c->host->host_mount_ns_fd;
}

int container_keep_filter(struct container *c, const struct container_filter *filter)
{
	c->filter_flags = filter->flags;
	return filter->len > 0 ? buf_add(&c->filter, filter->insns, filter->len) : 0;
}

void container_plan_security(struct container *c, struct isolate_plan *plan)
{
	program_secure(plan, &c->security);
	if (!c->security.own_filter)
		return;
	c->filter_prog = (struct sock_fprog){
		.len = (unsigned short)(c->filter.len / sizeof(struct sock_filter)),
		.filter = (struct sock_filter *)(uintptr_t)buf_data(&c->filter),
	};
	plan->seccomp = &c->filter_prog;
	plan->seccomp_flags = c->filter_flags;
}

static void container_plan_walls(const struct container *c, struct isolate_plan *plan)
{
	static const enum isolate_ns_mode pids[CONTAINER_PIDS_COUNT] = {
		[CONTAINER_PIDS_OWN] = ISOLATE_NEW,
		[CONTAINER_PIDS_LAYER] = ISOLATE_KEEP,
		[CONTAINER_PIDS_OTHER] = ISOLATE_JOIN,
	};

	if (c->kind == CONTAINER_PROCESS) {
		container_plan_host(c, plan);
		return;
	}
	if (c->kind == CONTAINER_VISITOR) {
		plan->ns[ISOLATE_NS_MOUNT] = ISOLATE_JOIN;
		plan->ns_fd[ISOLATE_NS_MOUNT] = c->start->fds.rootfs;
		plan->ns[ISOLATE_NS_CGROUP] = ISOLATE_NEW;
		plan->new_proc = c->start->new_proc;
		return;
	}
	plan->ns[ISOLATE_NS_PID] = pids[c->security.pids];
	plan->ns_fd[ISOLATE_NS_PID] = c->start->pids_fd;
	plan->ns[ISOLATE_NS_MOUNT] = ISOLATE_NEW;
	plan->ns[ISOLATE_NS_CGROUP] = ISOLATE_NEW;
	plan->root = ISOLATE_ROOT_CONTAINER;
	plan->ids = c->cell->ids;
	plan->user_fd = c->cell->ns_fd[ISOLATE_NS_USER];
	plan->root_fd = c->start->fds.rootfs;
	plan->root_later = c->start->awaits;
	plan->root_read_only = c->start->read_only_root;
	plan->own_masks = c->security.own_masks;
	plan->writable_sys = c->security.writable_sys;
	plan->writable_groups = c->security.writable_groups;
	plan->masked_paths = c->start->hidden;
	plan->readonly_paths = c->start->read_only;
}

/* Whether two descriptors are of the same namespace. */
static bool plan_is_same_ns(int a_fd, int b_fd)
{
	struct stat a, b;

	/* What cannot be told counts as the same. */
	return fstat(a_fd, &a) < 0 || fstat(b_fd, &b) < 0 ||
	       (a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

/*
 * A tracer of the keeper has all that the keeper has: a container that sees its keeper has no
 * CAP_SYS_PTRACE, unless it has CAP_SYS_ADMIN, or sees the host's processes anyway (then the keeper
 * is not number 1).
 */
static int container_check_tracer(const struct container *c, struct error *err)
{
	uint64_t caps = c->security.has_caps ? c->security.caps : 0;
	_cleanup_fd_ int own_fd = -1;

	if (c->kind != CONTAINER_IMAGE || c->security.pids == CONTAINER_PIDS_OWN || getpid() != 1 ||
	    !(caps & 1ULL << CAP_SYS_PTRACE) || caps & 1ULL << CAP_SYS_ADMIN)
		return 0;
	if (c->security.pids == CONTAINER_PIDS_OTHER) {
		own_fd = isolate_ns_open(c->host->proc_fd, getpid(), ISOLATE_NS_PID);
		if (!plan_is_same_ns(own_fd, c->start->pids_fd))
			return 0;
	}
	return error_field(err, ERROR_PRECONDITION, "security.caps",
			   "CAP_SYS_PTRACE: container %s would see its keeper, and could trace it",
			   c->name);
}

/* The pid namespace of a container that runs beside it. */
static int container_open_pids(struct container *c, struct error *err)
{
	const struct container *other = NULL, *at;

	if (c->kind != CONTAINER_IMAGE || c->security.pids != CONTAINER_PIDS_OTHER)
		return 0;
	list_for_each (at, &c->cell->containers, struct container, link)
		if (str_eq(at->id, c->security.pids_of))
			other = at;
	if (!other || other->status.state != CONTAINER_RUNNING)
		return error_field(err, ERROR_PRECONDITION, "pids_of",
				   "the container %s does not run in this cell",
				   c->security.pids_of);
	c->start->pids_fd = isolate_ns_open(c->host->proc_fd, other->child.pid, ISOLATE_NS_PID);
	if (c->start->pids_fd == -ENOENT || c->start->pids_fd == -ESRCH)
		return error_field(err, ERROR_PRECONDITION, "pids_of", "the container %s has ended",
				   other->name);
	return c->start->pids_fd < 0 ? error_set(err, c->start->pids_fd,
						 "open the processes of container %s", other->name)
				     : 0;
}

void container_adopt_prepared(struct container *c)
{
	struct isolate_prepared *prepared = &c->start->prepared;

	/* The /sys of a prepared set is masked already. */
	if (c->security.own_masks || c->security.writable_sys || c->security.writable_groups ||
	    isolate_ids_are_set(&c->cell->ids))
		return;
	if (c->kind == CONTAINER_IMAGE && c->cell->shares_instance)
		(void)warm_pool_take(c->host->pod_warm_pool, prepared);
	if (c->kind == CONTAINER_IMAGE && cell_wants_prepared(c->cell) &&
	    warm_pool_take(c->host->warm_pool, prepared) == 0 &&
	    cell_adopt(c->cell, prepared, c->host->proc_fd, NULL) < 0)
		isolate_prepared_done(prepared);
}

/* What it shares with its cell; from the keeper's prepared set where that fits. */
static int container_plan_cell(struct container *c, struct isolate_plan *plan, struct error *err)
{
	const struct isolate_prepared *prepared = &c->start->prepared;
	int r;

	if (c->kind != CONTAINER_IMAGE)
		return 0;
	container_adopt_prepared(c);
	r = cell_plan(c->cell, plan, &c->maker, err);
	if (r < 0)
		return r;
	plan->prepared_ns_fd = prepared->prepared_ns_fd;
	/* It is in the prepared set's /dev. */
	if (prepared->prepared_ns_fd >= 0 && !isolate_plan_has_dev(plan))
		plan->shm_fd = -1;
	return 0;
}

int container_clone(struct container *c, struct error *err)
{
	struct streams *stdio = &c->stdio;
	_cleanup_(mounts_unplanp) struct mounts_plan *mounts = NULL;
	struct isolate_plan plan;
	int r;

	isolate_plan_init(&plan);
	r = container_open_pids(c, err);
	if (r == 0)
		r = container_check_tracer(c, err);
	if (r < 0)
		return r;
	program_plan(&plan, c->kind, c->user);
	if (c->kind == CONTAINER_IMAGE)
		container_plan_security(c, &plan);
	container_plan_walls(c, &plan);
	plan.cgroup_fd = c->cgroup_fd;
	plan.argv = c->start->argv;
	plan.env = c->env;
	plan.cwd = c->cwd;
	c->start->ids = c->cell->ids;
	r = mounts_plan(&mounts, &plan, c->start->mounts, &c->start->fds, err);
	if (r == 0)
		r = streams_open(stdio, c->start, c->start->logged || c->pump.keeps, err);
	if (r < 0)
		return r;
	for (int i = 0; i < 3; i++)
		plan.stdio[i] = c->start->tty ? stdio->terminal.pty.slave_fd : stdio->child[i];
	plan.terminal = c->start->tty;
	plan.pts_fd = stdio->terminal.pty.mount_fd;
	r = container_plan_cell(c, &plan, err);
	if (r < 0)
		return r;
	r = FAILPOINT("container.clone");
	if (r < 0)
		return error_set(err, r, "clone container %s", c->name);
	r = isolate_spawn(&plan, &c->child, err);
	FAILPOINT_AFTER("container.clone");
	return r;
}

int container_prepare_rest(struct container *c, struct error *err)
{
	struct container_start *start = c->start;
	int r = cell_adopt(c->cell, &start->prepared, c->host->proc_fd, err);

	return r < 0 ? r : streams_open(&c->stdio, start, start->logged || c->pump.keeps, err);
}

int container_give_rest(struct container *c, struct error *err)
{
	const struct isolate_user *user = c->user;
	struct isolate_rest rest = { .argv = c->start->argv,
				     .env = c->env,
				     .cwd = c->cwd,
				     .uid = user->uid,
				     .gid = user->gid,
				     .n_groups = user->n_groups,
				     .root_read_only = c->start->read_only_root,
				     .root_fd = c->start->fds.rootfs };
	int r;

	memcpy(rest.groups, user->groups, sizeof(rest.groups));
	memcpy(rest.stdio, c->stdio.child, sizeof(rest.stdio));
	r = isolate_child_give_rest(&c->child, &rest, err);
	streams_close_child(&c->stdio);
	return r;
}
