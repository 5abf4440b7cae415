/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/container/container.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/signal_name.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "cell/container/leaf.h"
#include "cell/start/container_plan.h"
#include "cell/start/mounts.h"
#include "cell/start/program.h"
#include "cell/start/spare_container.h"
#include "cell/start/start.h"
#include "cell/start/users.h"
#include "cell/start/warm_pool.h"
#include "isolate/cgroup/cgroup.h"

/* A cgroup can stay busy for an instant after its last process was reaped. */
#define CONTAINER_RETRY_MIN NSEC_PER_MSEC
#define CONTAINER_RETRY_MAX (500 * NSEC_PER_MSEC)
/* Past this (some ten seconds) a process that cannot be killed is left to the removal of the cell.
 */
#define CONTAINER_RETRIES_MAX 30

enum container_event {
	CONTAINER_RUNS,
	CONTAINER_CANNOT,
	CONTAINER_ENDED,
	CONTAINER_DRAINED,
	CONTAINER_EVENT_COUNT
};

#define NEVER CONTAINER_STATE_COUNT

static const enum container_state edges[][CONTAINER_EVENT_COUNT] = {
	[CONTAINER_STARTING] = { CONTAINER_RUNNING, CONTAINER_FAILED, NEVER, NEVER },
	[CONTAINER_RUNNING] = { NEVER, NEVER, CONTAINER_DRAINING, NEVER },
	[CONTAINER_DRAINING] = { NEVER, NEVER, NEVER, CONTAINER_EXITED },
	[CONTAINER_EXITED] = { NEVER, NEVER, NEVER, NEVER },
	[CONTAINER_FAILED] = { NEVER, NEVER, NEVER, NEVER },
};
_Static_assert(ARRAY_SIZE(edges) == CONTAINER_STATE_COUNT, "each state has its edges");

/* ---- states ---- */

static void container_close_exec_fds(struct container *c)
{
	for (size_t i = 0; i < CONTAINER_NS_COUNT; i++)
		c->ns_fd[i] = fd_close(c->ns_fd[i]);
	c->null_fd = fd_close(c->null_fd);
}

static void container_hurry(struct container *c)
{
	c->hurries = true;
	warm_pool_start_begins(c->host->warm_pool);
}

static void container_hurry_no_more(struct container *c)
{
	if (c->hurries)
		warm_pool_start_ends(c->host->warm_pool);
	c->hurries = false;
}

static void container_say(struct container *c, const char *reason)
{
	/* A reason that is cut still tells the most of it. */
	(void)str_copy(c->status.reason, sizeof(c->status.reason), reason);
}

static void container_say_lost(struct container *c)
{
	struct error err = ERROR_INIT;

	if (c->pump.lost == 0)
		return;
	c->status.log_lost = c->pump.lost;
	if (str_eq(c->status.reason, CONTAINER_OUT_OF_MEMORY))
		return;
	(void)error_set(&err, c->pump.trouble ?: -EIO,
			"%llu bytes of its output are lost: cannot write its log",
			(unsigned long long)c->pump.lost);
	container_say(c, error_text(&err));
}

/* EXITED and FAILED hold nothing but what can be seen. */
static void container_drop_record(struct container *c)
{
	c->start = start_free(c->start);
	streams_done(&c->stdio);
	warm_pool_leave(c->host->warm_pool, &c->retry);
	strv_free(TAKE_PTR(c->env));
	free(TAKE_PTR(c->cwd));
	free(TAKE_PTR(c->user));
	buf_done(&c->filter);
	c->cgroup_fd = fd_close(c->cgroup_fd);
	loop_timer_done(&c->retry);
	pump_done(&c->pump);
	terminal_done(&c->terminal);
}

/* The only writer of the state. Its last act is the callback, after which c may be gone. */
static void container_enter(struct container *c, enum container_event event)
{
	enum container_state to = edges[c->status.state][event];

	assert(to != NEVER);
	c->status.state = to;
	if (to == CONTAINER_RUNNING) {
		c->status.started_at = clock_real();
		c->status.pid = c->child.pid;
		if (c->kind == CONTAINER_IMAGE && cell_is_apart(c->cell))
			warm_pool_want(c->host->warm_pool);
	} else {
		c->status.pid = 0;
		container_close_exec_fds(c);
		input_end(&c->input);
	}
	container_hurry_no_more(c);
	if (to == CONTAINER_EXITED || to == CONTAINER_FAILED) {
		container_say_lost(c);
		container_drop_record(c);
		attach_point_close(&c->attach, &c->status);
		kept_end(&c->kept, NULL);
	}
	c->host->on_change(c->host->userdata, c);
}

/* ---- the end ---- */

/* Whether nothing of it lives any more; arms a timer otherwise. */
static bool container_drop_cgroup(struct container *c)
{
	int r;

	if (c->cgroup_fd < 0)
		return true;
	FAILPOINT_BEFORE("container.clean");
	r = cgroup_remove(c->cell->cgroup_fd, c->dir);
	FAILPOINT_AFTER("container.clean");
	if (r == -EBUSY && c->n_retries < CONTAINER_RETRIES_MAX) {
		(void)cgroup_kill(c->cgroup_fd);
		c->n_retries++;
		c->retry_delay = c->retry_delay ? MIN(c->retry_delay * 2, CONTAINER_RETRY_MAX)
						: CONTAINER_RETRY_MIN;
		loop_timer_set(&c->retry, c->retry_delay);
		return false;
	}
	if (r == -EBUSY && !c->failed)
		container_say(c, "a process of it cannot be killed");
	c->cgroup_fd = fd_close(c->cgroup_fd);
	return true;
}

/* Goes on with the end as far as possible. c may be gone afterwards. */
static void container_finish(struct container *c)
{
	if (!c->ended || container_is_over(c))
		return;
	if (!container_drop_cgroup(c))
		return;
	pump_last(&c->pump);
	if (!pump_drained(&c->pump))
		return;
	if (!attach_point_settle(&c->attach) && !c->failed)
		return;
	container_enter(c, c->failed ? CONTAINER_CANNOT : CONTAINER_DRAINED);
}

static void container_pumped(struct pump *p)
{
	struct container *c = container_of(p, struct container, pump);
	bool changed = c->status.log_lost != p->lost;
	struct error err = ERROR_INIT;

	c->status.log_lost = p->lost;
	if (p->trouble < 0 && !c->failed && !pump_drained(p)) {
		(void)error_set(&err, p->trouble, "cannot write its log; its output %s",
				p->dropping ? "is dropped" : "waits");
		container_say(c, error_text(&err));
		c->noted = true;
		changed = true;
	} else if (p->trouble == 0 && c->noted) {
		container_say(c, "");
		c->noted = false;
		changed = true;
	}
	if (changed)
		c->host->on_change(c->host->userdata, c);
	container_finish(c);
}

static void container_settled(struct attach_point *p)
{
	container_finish(container_of(p, struct container, attach));
}

static void container_fail(struct container *c, const struct error *err, int exit_code, int sig)
{
	c->failed = true;
	c->status.exit_code = exit_code;
	c->status.signal = sig;
	c->status.finished_at = clock_real();
	container_say(c, error_text(err));
}

/* Fails it where there is no process; the rest follows from the loop. */
static void container_fail_unborn(struct container *c, const struct error *err, int exit_code,
				  int sig)
{
	container_fail(c, err, exit_code, sig);
	c->start = start_free(c->start);
	c->ended = true;
	loop_timer_set(&c->retry, 0);
}

/* Where its start is not over: whether or not there is a process. */
static void container_give_up(struct container *c, const struct error *err, int exit_code, int sig)
{
	if (c->child.pidfd < 0) {
		container_fail_unborn(c, err, exit_code, sig);
		return;
	}
	if (!c->failed)
		container_fail(c, err, exit_code, sig);
	(void)pidfd_kill(c->child.pidfd, SIGKILL);
}

static void container_record_exit(struct container *c, int code, int status)
{
	c->status.finished_at = clock_real();
	switch (code) {
	case CLD_EXITED:
		c->status.exit_code = status;
		return;
	case CLD_KILLED:
	case CLD_DUMPED:
		c->status.exit_code = 128 + status;
		c->status.signal = status;
		if (status == SIGKILL && leaf_is_out_of_memory(c->cgroup_fd))
			container_say(c, CONTAINER_OUT_OF_MEMORY);
		return;
	default:
		c->status.exit_code = 255;
		container_say(c, "its exit status was taken by somebody else");
	}
}

/* ---- the start ---- */

/* Its namespaces belong to the cell from now on, so that they outlive it. */
static void container_lend_namespaces(struct container *c)
{
	struct error err = ERROR_INIT;
	int r;

	r = cell_hold(c->cell, c->host->proc_fd, c->child.pid, &err);
	if (r == 0 || r == -ESRCH)
		return;
	/* The next container could not join this one: better none than two that think they share.
	 */
	container_fail(c, &err, 125, 0);
	(void)pidfd_kill(c->child.pidfd, SIGKILL);
}

/* The maker of the cell's namespaces has come through its steps, or not: those who waited go on.
 * Does nothing for others, and the second time. */
static void container_settle_cell(struct container *c, bool running)
{
	struct container *other;

	if (!c->maker)
		return;
	c->maker = false;
	cell_settle(c->cell, running);
	list_for_each (other, &c->cell->containers, struct container, link)
		if (other->start && !other->ended)
			loop_timer_set(&other->retry, 0);
}

/* Takes what the steps have to say; true where the program runs. */
static bool container_take_report(struct container *c)
{
	struct error err = ERROR_INIT;
	int exit_code = 0;
	int r;

	r = isolate_child_report(&c->child, &exit_code, &err);
	loop_fd_done(&c->report);
	c->child.report_fd = fd_close(c->child.report_fd);
	if (r == 0 && container_awaits(c)) {
		exit_code = 125;
		r = error_refuse(&err, ERROR_ABORTED,
				 "its process has ended while it waited for its root");
	}
	if (r < 0 && !c->failed)
		container_fail(c, &err, exit_code, 0);
	/* A kill between two steps looks like an exec from here: no reason to trust what it made.
	 */
	container_settle_cell(c, !c->failed && !c->killed);
	return !c->failed;
}

static void container_send_early(struct container *c)
{
	uint64_t signals = c->early_signals;

	c->early_signals = 0;
	for (int sig = 1; signals; sig++, signals >>= 1)
		if (signals & 1)
			(void)pidfd_kill(c->child.pidfd, sig);
}

static void container_reported(struct loop_fd *source, unsigned events)
{
	struct container *c = container_of(source, struct container, report);

	if (!container_take_report(c)) {
		(void)pidfd_kill(c->child.pidfd, SIGKILL);
		return;
	}
	FAILPOINT_BEFORE("container.runs");
	container_send_early(c);
	container_enter(c, CONTAINER_RUNS);
	FAILPOINT_AFTER("container.runs");
}

static void container_reaped(struct loop_child *watch, int code, int status)
{
	struct container *c = container_of(watch, struct container, watch);

	FAILPOINT_BEFORE("container.exit");
	c->killed = c->killed || code != CLD_EXITED;
	/* It may have run and ended within one turn of the loop. */
	if (c->status.state == CONTAINER_STARTING && !c->failed && container_take_report(c))
		container_enter(c, CONTAINER_RUNS);
	container_settle_cell(c, false);
	c->ended = true;
	terminal_let_go(&c->terminal);
	loop_fd_done(&c->report);
	isolate_child_done(&c->child);
	if (c->status.state == CONTAINER_RUNNING) {
		container_record_exit(c, code, status);
		container_enter(c, CONTAINER_ENDED);
	}
	FAILPOINT_AFTER("container.exit");
	container_finish(c);
}

static int container_take_stdio(struct container *c)
{
	struct streams *stdio = &c->stdio;
	bool tty = c->start->tty;
	int r = 0;

	/* The child has its own descriptor of the mount. */
	stdio->terminal.pty.mount_fd = fd_close(stdio->terminal.pty.mount_fd);
	c->terminal = stdio->terminal;
	stdio->terminal = (struct terminal)TERMINAL_INIT;
	attach_point_start(&c->attach, c->start->hold_output);
	if (stdio->ours[0] >= 0)
		r = tty ? input_start_terminal(&c->input, TAKE_FD(stdio->ours[0]))
			: input_start(&c->input, TAKE_FD(stdio->ours[0]));
	if (r == 0 && tty)
		return pump_start_terminal(&c->pump, TAKE_FD(stdio->ours[1]), &c->start->fds,
					   c->name, &c->start->log);
	if (r == 0)
		r = pump_start(&c->pump, TAKE_FD(stdio->ours[1]), TAKE_FD(stdio->ours[2]),
			       &c->start->fds, c->name, &c->start->log);
	return r;
}

/* The end of its start: its root (r) and its streams are where they belong, or not. */
static void container_spawned(struct container *c, int r, struct error *err)
{
	if (r == 0) {
		r = container_take_stdio(c);
		if (r < 0)
			(void)error_set(err, r, "set up its pipes");
	}
	c->start = start_free(c->start);
	streams_done(&c->stdio);
	if (r < 0 && !c->failed) {
		container_fail(c, err, 125, 0);
		(void)pidfd_kill(c->child.pidfd, SIGKILL);
	}
}

static void container_listen(struct container *c)
{
	loop_fd_init(&c->report, c->host->loop, c->child.report_fd, LOOP_READ, container_reported);
	loop_child_init(&c->watch, c->host->loop, c->child.pidfd, container_reaped);
}

static void container_spawn(struct container *c)
{
	struct error err = ERROR_INIT;
	int r;

	r = container_clone(c, &err);
	streams_close_child(&c->stdio);
	if (r < 0) {
		container_fail_unborn(c, &err, 125, 0);
		container_settle_cell(c, false);
		return;
	}
	container_listen(c);
	if (c->maker)
		container_lend_namespaces(c);
	if (!c->start->awaits)
		container_spawned(c, 0, &err);
}

void container_stand_in(struct container *c)
{
	struct error err = ERROR_INIT;

	container_listen(c);
	if (container_prepare_rest(c, &err) < 0)
		container_refuse(c, &err);
}

void container_give_back(struct container *c, struct spare_process *ret)
{
	ret->child = c->child;
	c->child = (struct isolate_child)ISOLATE_CHILD_INIT;
}

bool container_awaits(const struct container *c)
{
	return c->start && c->start->awaits && !c->ended;
}

void container_refuse(struct container *c, const struct error *err)
{
	container_give_up(c, err, 125, 0);
}

/* Once only, and not for long: what a prepared set has it can make itself. */
static bool container_waits_for_prepared(struct container *c)
{
	if (c->kind != CONTAINER_IMAGE || !cell_wants_prepared(c->cell) ||
	    c->start->waited_for_prepared)
		return false;
	c->start->waited_for_prepared = warm_pool_await(c->host->warm_pool, &c->retry);
	c->start->waits_for_prepared = c->start->waited_for_prepared;
	return c->start->waited_for_prepared;
}

/* Whether its process is there already, or nothing that it needs would be. */
static bool container_cannot_launch(const struct container *c)
{
	return c->ended || c->child.pidfd >= 0 || c->start->waits_for_prepared ||
	       (container_awaits(c) && !(c->user && c->start->ahead));
}

void container_launch(struct container *c)
{
	if (container_cannot_launch(c))
		return;
	if (c->kind == CONTAINER_IMAGE && !cell_open(c->cell))
		return;
	warm_pool_leave(c->host->warm_pool, &c->retry);
	if (!container_waits_for_prepared(c))
		container_spawn(c);
}

static void container_retry(struct loop_timer *timer)
{
	struct container *c = container_of(timer, struct container, retry);

	if (c->start && !c->ended) {
		c->start->waits_for_prepared = false;
		container_launch(c);
	} else {
		container_finish(c);
	}
}

/* ---- life and death of the object ---- */

/* The user, and what the environment has of it. */
static int container_set_user(struct container *c, char *const *spec_env,
			      const struct isolate_user *user)
{
	char hostname[HOST_NAME_MAX + 1] = "";
	const char *host = NULL;
	char **env = NULL;
	int r;

	/* gethostname() need not end what it cuts, hence one byte less. */
	if (c->kind == CONTAINER_IMAGE && !c->cell->shares_instance)
		host = c->cell->hostname;
	else if (c->kind == CONTAINER_IMAGE && gethostname(hostname, sizeof(hostname) - 1) == 0)
		host = hostname;

	c->user = malloc(sizeof(*c->user));
	if (!c->user)
		return -ENOMEM;
	*c->user = *user;
	program_add_groups(c->user, &c->security);
	r = program_env(&env, spec_env, user->home, host);
	if (r < 0)
		return r;
	strv_free(c->env);
	c->env = env;
	return c->tty ? program_env_terminal(&c->env) : 0;
}

static int container_copy_spec(struct container *c, const struct container_spec *spec,
			       const struct isolate_user *user)
{
	c->home_added = !strv_env_get(spec->env, "HOME");
	c->security = spec->security;
	c->cwd = strdup(str_empty(spec->cwd) ? "/" : spec->cwd);
	if (!c->start->argv || !c->cwd || container_keep_filter(c, &spec->filter) < 0)
		return -ENOMEM;
	if (user)
		return container_set_user(c, spec->env, user);
	c->env = strv_copy(spec->env);
	return c->env ? 0 : -ENOMEM;
}

/* What its user is, by the root file system that it has now, where that is not known yet. */
static int container_find_user(struct container *c, struct error *err)
{
	struct isolate_user user;
	int r;

	if (c->kind == CONTAINER_IMAGE && c->start->fds.rootfs < 0)
		return error_field(err, ERROR_INVALID, "rootfs",
				   "a container from an image needs one");
	if (c->user)
		return 0;
	r = users_find(c->host->users, c->kind, c->start->image, c->start->fds.rootfs,
		       c->start->user, &user, err);
	if (r < 0)
		return r;
	r = container_set_user(c, c->env, &user);
	return r < 0 ? error_set(err, r, "make container %s", c->name) : 0;
}

/* Its process waits: for the root, or for that and all that is its own. */
static int container_give(struct container *c, struct error *err)
{
	return c->start->prefetched ? container_give_rest(c, err)
				    : isolate_child_give_root(&c->child, c->start->fds.rootfs, err);
}

void container_supply(struct container *c, struct container_fds *fds)
{
	struct container_fds *to = &c->start->fds;
	struct error err = ERROR_INIT;

	assert(container_awaits(c));
	c->start->awaits = false;
	to->rootfs = TAKE_FD(fds->rootfs);
	to->log = TAKE_FD(fds->log);
	to->log_dir = TAKE_FD(fds->log_dir);
	/* Those that its keeper has made. */
	for (size_t i = 0; i < to->n_mounts && i < fds->n_mounts; i++)
		if (fds->mounts[i] >= 0)
			to->mounts[i] = TAKE_FD(fds->mounts[i]);
	container_fds_close(fds);
	if (container_find_user(c, &err) < 0)
		container_refuse(c, &err);
	else if (c->child.pidfd < 0)
		container_launch(c);
	else if (!c->failed)
		container_spawned(c, container_give(c, &err), &err);
}

struct container *container_free(struct container *c)
{
	if (!c)
		return NULL;
	assert(list_empty(&c->execs));
	container_hurry_no_more(c);
	list_remove(&c->link);
	loop_fd_done(&c->report);
	loop_child_done(&c->watch);
	isolate_child_done(&c->child);
	container_close_exec_fds(c);
	attach_point_done(&c->attach, false);
	/* Nobody is told: its reader goes with it. */
	kept_drop(&c->kept);
	input_done(&c->input);
	container_drop_record(c);
	free(c);
	return NULL;
}

int container_alloc(struct container **ret, const struct container_host *host, struct cell *cell)
{
	struct container *c = malloc(sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct container){ .cell = cell,
				 .host = host,
				 .cgroup_fd = -1,
				 .ns_fd = { -1, -1, -1 },
				 .null_fd = -1,
				 .filter = BUF_INIT,
				 .stdio = STREAMS_INIT,
				 .terminal = TERMINAL_INIT,
				 .child = ISOLATE_CHILD_INIT };
	list_init(&c->link);
	list_init(&c->execs);
	loop_timer_init(&c->retry, host->loop, container_retry);
	pump_init(&c->pump, host->threads, container_pumped);
	kept_init(&c->kept, host->loop, &c->pump);
	input_init(&c->input, host->loop);
	attach_point_init(&c->attach, host->loop, &c->pump, container_settled);
	*ret = c;
	return 0;
}

const char *container_busy(const struct container *c)
{
	if (c->status.state == CONTAINER_STARTING)
		return "a container is starting";
	if (!list_empty(&c->execs))
		return "an exec is open";
	if (attach_point_busy(&c->attach))
		return "a client is attached, or awaited";
	if (c->kept.reader)
		return "a log is being read";
	return pump_busy(&c->pump);
}

void container_resume(struct container *c)
{
	attach_point_resume(&c->attach);
	if (container_is_over(c)) {
		attach_point_close(&c->attach, &c->status);
		return;
	}
	if (c->child.pidfd >= 0)
		loop_child_init(&c->watch, c->host->loop, c->child.pidfd, container_reaped);
	input_resume(&c->input);
	pump_resume(&c->pump);
	if (c->ended)
		loop_timer_set(&c->retry, 0);
}

static int container_make_group(struct container *c, const struct container_spec *spec,
				struct error *err)
{
	int r;

	(void)str_copy(c->dir, sizeof(c->dir), c->name);
	c->cgroup_fd = leaf_make(c->cell->cgroup_fd, c->dir, c->kind == CONTAINER_IMAGE,
				 c->host->devices_fd, spec->limits, err);
	if (c->cgroup_fd < 0)
		return c->cgroup_fd;
	r = c->host->devices_fd < 0 ? 0
				    : leaf_allow_devices(c->cgroup_fd, spec, &c->start->fds, err);
	if (r >= 0)
		return 0;
	(void)cgroup_remove(c->cell->cgroup_fd, c->dir);
	return error_wrap(err, r, "the devices of container %s", c->name);
}

/* The last thing that can fail: what was taken is the container's. */
static int container_take_process(struct container *c, struct spare_process *ahead,
				  struct error *err)
{
	int r = cgroup_set_name(ahead->leaf_fd, c->name);

	if (r < 0)
		return error_set(err, r, "name the cgroup of container %s", c->name);
	(void)str_copy(c->dir, sizeof(c->dir), SPARE_CONTAINER_LEAF);
	c->cgroup_fd = TAKE_FD(ahead->leaf_fd);
	c->child = ahead->child;
	ahead->child = (struct isolate_child)ISOLATE_CHILD_INIT;
	c->start->prepared = ahead->prepared;
	ahead->prepared = (struct isolate_prepared)ISOLATE_PREPARED_NONE;
	c->start->prefetched = true;
	return 0;
}

int container_new(struct container **ret, const struct container_host *host, struct cell *cell,
		  const struct container_spec *spec, const struct isolate_user *user,
		  struct container_fds *fds, struct spare_process *ahead, struct error *err)
{
	struct container_start *start = start_new(spec, fds);
	struct container *c;
	int r;

	if (!start || container_alloc(&c, host, cell) < 0) {
		start_free(start);
		return error_set(err, -ENOMEM, "make container %s", spec->name);
	}
	c->kind = spec->kind;
	c->start = start;
	c->stdin_open = spec->stdin_open;
	c->tty = spec->tty;
	c->pump.keeps = spec->keep_log;

	r = str_copy(c->id, sizeof(c->id), spec->id);
	if (r == 0)
		r = str_copy(c->name, sizeof(c->name), spec->name);
	if (r == 0)
		r = container_copy_spec(c, spec, user);
	if (r < 0) {
		container_free(c);
		return error_set(err, r, "make container %s", spec->name);
	}
	r = FAILPOINT("container.make");
	if (r < 0) {
		container_free(c);
		return error_set(err, r, "make the cgroup of container %s", spec->name);
	}
	r = ahead ? container_take_process(c, ahead, err) : container_make_group(c, spec, err);
	if (r < 0) {
		container_free(c);
		return r;
	}
	FAILPOINT_AFTER("container.make");
	container_hurry(c);
	list_add_tail(&cell->containers, &c->link);
	*ret = c;
	return 0;
}

/* ---- what is asked of it ---- */

static int container_signal_early(struct container *c, int sig)
{
	struct error err = ERROR_INIT;

	if (c->failed)
		return 0;
	if (sig != SIGKILL) {
		c->early_signals |= (uint64_t)1 << (sig - 1);
		return 0;
	}
	(void)error_refuse(&err, ERROR_ABORTED, "killed before its program ran");
	if (c->start) {
		container_give_up(c, &err, 128 + SIGKILL, SIGKILL);
		return 0;
	}
	c->killed = true;
	return pidfd_kill(c->child.pidfd, SIGKILL);
}

int container_signal(struct container *c, int sig, bool all, struct error *err)
{
	int r = 0;

	if (sig < 1 || sig > SIGNAL_MAX_NUMBER)
		return error_field(err, ERROR_INVALID, "signal", "%d is not from 1 to %d", sig,
				   SIGNAL_MAX_NUMBER);
	if (all && sig != SIGKILL)
		return error_field(err, ERROR_INVALID, "signal",
				   "only SIGKILL can go to all processes, not %d", sig);
	/* Whoever kills it does not wait for a disk that is full. */
	if (all && !container_is_over(c) && !c->pump.keeps)
		pump_give_up(&c->pump);
	if (c->ended)
		return 0;
	if (c->status.state == CONTAINER_STARTING)
		r = container_signal_early(c, sig);
	else if (all)
		r = cgroup_kill(c->cgroup_fd);
	else
		r = pidfd_kill(c->child.pidfd, sig);
	if (r < 0 && r != -ESRCH)
		return error_set(err, r, "send signal %d to container %s", sig, c->name);
	return 0;
}

int container_change_log(struct container *c, int fd, void (*changed)(void *data), void *data)
{
	return pump_change_log(&c->pump, fd, changed, data);
}

void container_finish_off(struct container *c)
{
	if (container_is_over(c))
		return;
	pump_give_up(&c->pump);
	attach_point_abandon(&c->attach);
	(void)container_signal(c, SIGKILL, true, NULL);
}
