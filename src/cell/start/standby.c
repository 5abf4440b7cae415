/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/standby.h"

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

#define STANDBY_CELL_PREFIX "cell."
/* What a keeper may add to the strings of a spec: PATH, HOME, HOSTNAME. */
#define STANDBY_STRINGS_MORE 4
#define STANDBY_BYTES_MORE (8 << 10)
/* A cgroup can stay busy for an instant after its last process was reaped. */
#define STANDBY_RETRY_MIN NSEC_PER_MSEC
#define STANDBY_RETRY_MAX (500 * NSEC_PER_MSEC)
#define STANDBY_TRIES_MAX 30

enum standby_event { STANDBY_MAKE, STANDBY_TAKE, STANDBY_RETURN, STANDBY_END, STANDBY_EVENT_COUNT };

#define NEVER STANDBY_STATE_COUNT

static const enum standby_state edges[][STANDBY_EVENT_COUNT] = {
	[STANDBY_NONE] = { STANDBY_WAITING, NEVER, STANDBY_ENDING, NEVER },
	[STANDBY_WAITING] = { NEVER, STANDBY_NONE, NEVER, STANDBY_ENDING },
	[STANDBY_ENDING] = { NEVER, NEVER, NEVER, STANDBY_NONE },
};
_Static_assert(ARRAY_SIZE(edges) == STANDBY_STATE_COUNT, "each state has its edges");

static void standby_enter(struct standby *s, enum standby_event event)
{
	enum standby_state to = edges[s->state][event];

	assert(to != NEVER);
	s->state = to;
	loop_timer_stop(&s->timer);
	if (to == STANDBY_WAITING)
		loop_timer_set(&s->timer, STANDBY_LIFE);
	if (to == STANDBY_ENDING) {
		s->delay = 0;
		s->n_tries = 0;
		(void)pidfd_kill(s->process.child.pidfd, SIGKILL);
	}
	if (to == STANDBY_NONE && event == STANDBY_END)
		s->gone(s->userdata);
}

void standby_process_done(struct standby_process *p)
{
	p->cell_fd = fd_close(p->cell_fd);
	p->leaf_fd = fd_close(p->leaf_fd);
	isolate_kit_done(&p->kit);
	isolate_child_done(&p->child);
}

/* ---- its making ---- */

static int standby_make_groups(struct standby *s, struct standby_process *p, struct error *err)
{
	int r = FAILPOINT("cell.standby");

	if (r < 0)
		return error_set(err, r, "make a group ahead of need");
	p->cell_fd =
		cgroup_make_numbered(s->layer_fd, STANDBY_CELL_PREFIX, &s->number, p->dir, err);
	if (p->cell_fd < 0)
		return p->cell_fd;
	cgroup_enable_workload(p->cell_fd);
	p->leaf_fd = leaf_make(p->cell_fd, STANDBY_LEAF, true, s->devices_fd, NULL, err);
	FAILPOINT_AFTER("cell.standby");
	return p->leaf_fd < 0 ? p->leaf_fd : 0;
}

static int standby_spawn(struct standby_process *p, struct error *err)
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
		if (p->kit.ns_fd[i] < 0)
			continue;
		plan.ns[i] = ISOLATE_JOIN;
		plan.ns_fd[i] = p->kit.ns_fd[i];
	}
	plan.root = ISOLATE_ROOT_CONTAINER;
	plan.root_later = true;
	plan.rest_later = true;
	plan.kit_ns_fd = p->kit.kit_ns_fd;
	plan.cgroup_fd = p->leaf_fd;
	return isolate_spawn(&plan, &p->child, err);
}

/* Its process is gone; whether its group is too. */
static bool standby_drop_group(struct standby *s)
{
	int r = cgroup_remove(s->layer_fd, s->process.dir);

	if (r != -EBUSY || s->n_tries == STANDBY_TRIES_MAX)
		return true;
	s->n_tries++;
	s->delay = s->delay ? MIN(s->delay * 2, STANDBY_RETRY_MAX) : STANDBY_RETRY_MIN;
	loop_timer_set(&s->timer, s->delay);
	return false;
}

static void standby_finish(struct standby *s)
{
	if (!standby_drop_group(s))
		return;
	standby_process_done(&s->process);
	standby_enter(s, STANDBY_END);
}

static void standby_reaped(struct loop_child *watch, int code _unused_, int status _unused_)
{
	struct standby *s = container_of(watch, struct standby, watch);

	loop_child_done(&s->watch);
	if (s->state == STANDBY_WAITING) {
		log_debug("the process that waited for a container has ended");
		standby_enter(s, STANDBY_END);
	}
	isolate_child_done(&s->process.child);
	standby_finish(s);
}

static void standby_on_time(struct loop_timer *timer)
{
	struct standby *s = container_of(timer, struct standby, timer);

	if (s->state == STANDBY_WAITING)
		standby_enter(s, STANDBY_END);
	else
		standby_finish(s);
}

void standby_make(struct standby *s, struct isolate_kit *kit)
{
	struct standby_process p = STANDBY_PROCESS_NONE;
	struct error err = ERROR_INIT;
	int r;

	assert(standby_lacks(s));
	p.kit = *kit;
	*kit = (struct isolate_kit)ISOLATE_KIT_NONE;
	r = standby_make_groups(s, &p, &err);
	if (r == 0)
		r = standby_spawn(&p, &err);
	if (r < 0) {
		log_debug("cannot clone ahead of need", LOG_ERR(&err));
		standby_process_done(&p);
		if (*p.dir)
			(void)cgroup_remove(s->layer_fd, p.dir);
		return;
	}
	/* The process has it. */
	p.kit.kit_ns_fd = fd_close(p.kit.kit_ns_fd);
	s->process = p;
	loop_child_init(&s->watch, s->loop, p.child.pidfd, standby_reaped);
	standby_enter(s, STANDBY_MAKE);
}

/* ---- what it is for ---- */

bool standby_fits(const struct cell_spec *cell, const struct container_spec *spec)
{
	if (cell->shares_instance || cell->host_network || cell->given_network ||
	    strv_len(cell->limits) > 0 || isolate_ids_are_set(&cell->ids))
		return false;
	if (spec->kind != CONTAINER_IMAGE || !spec->late || spec->root_disk || spec->n_mounts > 0 ||
	    spec->tty || strv_len(spec->limits) > 0 ||
	    !container_security_is_baseline(&spec->security))
		return false;
	return isolate_rest_fits(spec->argv, spec->env, spec->cwd, STANDBY_STRINGS_MORE,
				 STANDBY_BYTES_MORE);
}

void standby_want(struct standby *s, bool wanted)
{
	s->wanted = wanted;
}

bool standby_lacks(const struct standby *s)
{
	return s->state == STANDBY_NONE && s->wanted && !s->held;
}

/* Whether it still waits, as far as its parent can know. */
static bool standby_lives(const struct standby *s)
{
	siginfo_t si = { .si_pid = 0 };

	return waitid(P_PIDFD, (id_t)s->process.child.pidfd, &si, WEXITED | WNOHANG | WNOWAIT) ==
		       0 &&
	       si.si_pid == 0;
}

int standby_take(struct standby *s, struct standby_process *ret)
{
	if (s->state != STANDBY_WAITING || !standby_lives(s))
		return -ENOENT;
	loop_child_done(&s->watch);
	*ret = s->process;
	s->process = (struct standby_process)STANDBY_PROCESS_NONE;
	standby_enter(s, STANDBY_TAKE);
	return 0;
}

void standby_give_back(struct standby *s, struct standby_process *p)
{
	s->process = *p;
	*p = (struct standby_process)STANDBY_PROCESS_NONE;
	loop_child_init(&s->watch, s->loop, s->process.child.pidfd, standby_reaped);
	standby_enter(s, STANDBY_RETURN);
}

/* ---- life and death ---- */

void standby_hold(struct standby *s, bool held)
{
	s->held = held;
	if (held && s->state == STANDBY_WAITING)
		standby_enter(s, STANDBY_END);
}

bool standby_has_pid(const struct standby *s, pid_t pid)
{
	return s->process.child.pidfd >= 0 && s->process.child.pid == pid;
}

void standby_init(struct standby *s, struct loop *loop, int layer_fd, int devices_fd,
		  void (*gone)(void *userdata), void *userdata)
{
	*s = (struct standby){ .process = STANDBY_PROCESS_NONE,
			       .loop = loop,
			       .layer_fd = layer_fd,
			       .devices_fd = devices_fd,
			       .gone = gone,
			       .userdata = userdata };
	loop_timer_init(&s->timer, loop, standby_on_time);
}

void standby_done(struct standby *s)
{
	standby_hold(s, true);
	loop_timer_done(&s->timer);
	loop_child_done(&s->watch);
	if (s->state != STANDBY_NONE)
		(void)cgroup_remove(s->layer_fd, s->process.dir);
	standby_process_done(&s->process);
}
