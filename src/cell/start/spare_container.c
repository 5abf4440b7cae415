/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/spare_container.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "cell/container/leaf.h"
#include "cell/start/program.h"
#include "isolate/cgroup/cgroup.h"

#define SPARE_CONTAINER_CELL_PREFIX "cell."
/* Strings that a keeper may add to those of a spec: PATH, HOME, HOSTNAME. */
#define SPARE_CONTAINER_STRINGS_MORE 4
#define SPARE_CONTAINER_BYTES_MORE (8 << 10)
/* A cgroup can stay busy for an instant after its last process was reaped. */
#define SPARE_CONTAINER_RETRY_MIN NSEC_PER_MSEC
#define SPARE_CONTAINER_RETRY_MAX (500 * NSEC_PER_MSEC)
#define SPARE_CONTAINER_TRIES_MAX 30

enum spare_container_event {
	SPARE_CONTAINER_MAKE,
	SPARE_CONTAINER_TAKE,
	SPARE_CONTAINER_RETURN,
	SPARE_CONTAINER_END,
	SPARE_CONTAINER_EVENT_COUNT
};

#define NEVER SPARE_CONTAINER_STATE_COUNT

static const enum spare_container_state edges[][SPARE_CONTAINER_EVENT_COUNT] = {
	[SPARE_CONTAINER_NONE] = { SPARE_CONTAINER_WAITING, NEVER, SPARE_CONTAINER_ENDING, NEVER },
	[SPARE_CONTAINER_WAITING] = { NEVER, SPARE_CONTAINER_NONE, NEVER, SPARE_CONTAINER_ENDING },
	[SPARE_CONTAINER_ENDING] = { NEVER, NEVER, NEVER, SPARE_CONTAINER_NONE },
};
_Static_assert(ARRAY_SIZE(edges) == SPARE_CONTAINER_STATE_COUNT, "each state has its edges");

static void spare_container_enter(struct spare_container *s, enum spare_container_event event)
{
	enum spare_container_state to = edges[s->state][event];

	assert(to != NEVER);
	s->state = to;
	loop_timer_stop(&s->timer);
	if (to == SPARE_CONTAINER_WAITING)
		loop_timer_set(&s->timer, SPARE_CONTAINER_LIFE);
	if (to == SPARE_CONTAINER_ENDING) {
		s->delay = 0;
		s->n_tries = 0;
		(void)pidfd_kill(s->process.child.pidfd, SIGKILL);
	}
	if (to == SPARE_CONTAINER_NONE && event == SPARE_CONTAINER_END)
		s->gone(s->userdata);
}

void spare_process_done(struct spare_process *p)
{
	p->cell_fd = fd_close(p->cell_fd);
	p->leaf_fd = fd_close(p->leaf_fd);
	isolate_prepared_done(&p->prepared);
	isolate_child_done(&p->child);
}

/* ---- its making ---- */

static int spare_container_make_groups(struct spare_container *s, struct spare_process *p,
				       struct error *err)
{
	int r = FAILPOINT("cell.spare_container");

	if (r < 0)
		return error_set(err, r, "make a group ahead of need");
	p->cell_fd = cgroup_make_numbered(s->layer_fd, SPARE_CONTAINER_CELL_PREFIX, &s->number,
					  p->dir, err);
	if (p->cell_fd < 0)
		return p->cell_fd;
	cgroup_enable_workload(p->cell_fd);
	p->leaf_fd = leaf_make(p->cell_fd, SPARE_CONTAINER_LEAF, true, s->devices_fd, NULL, err);
	FAILPOINT_AFTER("cell.spare_container");
	return p->leaf_fd < 0 ? p->leaf_fd : 0;
}

static int spare_container_spawn(struct spare_process *p, struct error *err)
{
	static const struct isolate_user nobody_yet = { .uid = 0 };
	const struct container_security baseline = { .has_caps = true,
						     .caps = cap_baseline,
						     .may_gain = true };
	struct isolate_plan plan;

	isolate_plan_init(&plan);
	program_plan(&plan, CONTAINER_IMAGE, &nobody_yet);
	program_secure(&plan, &baseline);
	plan.ns[ISOLATE_NS_PID] = ISOLATE_NEW;
	plan.ns[ISOLATE_NS_MOUNT] = ISOLATE_NEW;
	plan.ns[ISOLATE_NS_CGROUP] = ISOLATE_NEW;
	for (size_t i = 0; i < ISOLATE_NS_COUNT; i++) {
		if (p->prepared.ns_fd[i] < 0)
			continue;
		plan.ns[i] = ISOLATE_JOIN;
		plan.ns_fd[i] = p->prepared.ns_fd[i];
	}
	plan.root = ISOLATE_ROOT_CONTAINER;
	plan.root_later = true;
	plan.rest_later = true;
	plan.prepared_ns_fd = p->prepared.prepared_ns_fd;
	plan.cgroup_fd = p->leaf_fd;
	return isolate_spawn(&plan, &p->child, err);
}

/* Its process is gone; whether its group is too. */
static bool spare_container_drop_group(struct spare_container *s)
{
	int r = cgroup_remove(s->layer_fd, s->process.dir);

	if (r != -EBUSY || s->n_tries == SPARE_CONTAINER_TRIES_MAX)
		return true;
	s->n_tries++;
	s->delay =
		s->delay ? MIN(s->delay * 2, SPARE_CONTAINER_RETRY_MAX) : SPARE_CONTAINER_RETRY_MIN;
	loop_timer_set(&s->timer, s->delay);
	return false;
}

static void spare_container_finish(struct spare_container *s)
{
	if (!spare_container_drop_group(s))
		return;
	spare_process_done(&s->process);
	spare_container_enter(s, SPARE_CONTAINER_END);
}

static void spare_container_reaped(struct loop_child *watch, int code _unused_, int status _unused_)
{
	struct spare_container *s = container_of(watch, struct spare_container, watch);

	loop_child_done(&s->watch);
	if (s->state == SPARE_CONTAINER_WAITING) {
		log_debug("the process that waited for a container has ended");
		spare_container_enter(s, SPARE_CONTAINER_END);
	}
	isolate_child_done(&s->process.child);
	spare_container_finish(s);
}

static void spare_container_on_time(struct loop_timer *timer)
{
	struct spare_container *s = container_of(timer, struct spare_container, timer);

	if (s->state == SPARE_CONTAINER_WAITING)
		spare_container_enter(s, SPARE_CONTAINER_END);
	else
		spare_container_finish(s);
}

void spare_container_make(struct spare_container *s, struct isolate_prepared *prepared)
{
	struct spare_process p = SPARE_PROCESS_NONE;
	struct error err = ERROR_INIT;
	int r;

	assert(spare_container_lacks(s));
	p.prepared = *prepared;
	*prepared = (struct isolate_prepared)ISOLATE_PREPARED_NONE;
	r = spare_container_make_groups(s, &p, &err);
	if (r == 0)
		r = spare_container_spawn(&p, &err);
	if (r < 0) {
		log_debug("cannot clone ahead of need", LOG_ERR(&err));
		spare_process_done(&p);
		if (*p.dir)
			(void)cgroup_remove(s->layer_fd, p.dir);
		return;
	}
	/* The process has it. */
	p.prepared.prepared_ns_fd = fd_close(p.prepared.prepared_ns_fd);
	s->process = p;
	loop_child_init(&s->watch, s->loop, p.child.pidfd, spare_container_reaped);
	spare_container_enter(s, SPARE_CONTAINER_MAKE);
}

/* ---- what it is for ---- */

bool spare_container_fits(const struct cell_spec *cell, const struct container_spec *spec)
{
	if (cell->shares_instance || cell->host_network || cell->given_network ||
	    strv_len(cell->limits) > 0 || isolate_ids_are_set(&cell->ids))
		return false;
	if (spec->kind != CONTAINER_IMAGE || !spec->late || spec->root_disk || spec->n_mounts > 0 ||
	    spec->tty || strv_len(spec->limits) > 0 ||
	    !container_security_is_baseline(&spec->security))
		return false;
	return isolate_rest_fits(spec->argv, spec->env, spec->cwd, SPARE_CONTAINER_STRINGS_MORE,
				 SPARE_CONTAINER_BYTES_MORE);
}

void spare_container_want(struct spare_container *s, bool wanted)
{
	s->wanted = wanted;
}

bool spare_container_lacks(const struct spare_container *s)
{
	return s->state == SPARE_CONTAINER_NONE && s->wanted && !s->held;
}

/* Whether it still waits, as far as its parent can know. */
static bool spare_container_lives(const struct spare_container *s)
{
	siginfo_t si = { .si_pid = 0 };

	return waitid(P_PIDFD, (id_t)s->process.child.pidfd, &si, WEXITED | WNOHANG | WNOWAIT) ==
		       0 &&
	       si.si_pid == 0;
}

int spare_container_take(struct spare_container *s, struct spare_process *ret)
{
	if (s->state != SPARE_CONTAINER_WAITING || !spare_container_lives(s))
		return -ENOENT;
	loop_child_done(&s->watch);
	*ret = s->process;
	s->process = (struct spare_process)SPARE_PROCESS_NONE;
	spare_container_enter(s, SPARE_CONTAINER_TAKE);
	return 0;
}

void spare_container_give_back(struct spare_container *s, struct spare_process *p)
{
	s->process = *p;
	*p = (struct spare_process)SPARE_PROCESS_NONE;
	loop_child_init(&s->watch, s->loop, s->process.child.pidfd, spare_container_reaped);
	spare_container_enter(s, SPARE_CONTAINER_RETURN);
}

/* ---- life and death ---- */

void spare_container_hold(struct spare_container *s, bool held)
{
	s->held = held;
	if (held && s->state == SPARE_CONTAINER_WAITING)
		spare_container_enter(s, SPARE_CONTAINER_END);
}

bool spare_container_has_pid(const struct spare_container *s, pid_t pid)
{
	return s->process.child.pidfd >= 0 && s->process.child.pid == pid;
}

void spare_container_init(struct spare_container *s, struct loop *loop, int layer_fd,
			  int devices_fd, void (*gone)(void *userdata), void *userdata)
{
	*s = (struct spare_container){ .process = SPARE_PROCESS_NONE,
				       .loop = loop,
				       .layer_fd = layer_fd,
				       .devices_fd = devices_fd,
				       .gone = gone,
				       .userdata = userdata };
	loop_timer_init(&s->timer, loop, spare_container_on_time);
}

void spare_container_done(struct spare_container *s)
{
	spare_container_hold(s, true);
	loop_timer_done(&s->timer);
	loop_child_done(&s->watch);
	if (s->state != SPARE_CONTAINER_NONE)
		(void)cgroup_remove(s->layer_fd, s->process.dir);
	spare_process_done(&s->process);
}
