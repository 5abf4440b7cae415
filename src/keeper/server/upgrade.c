/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/upgrade.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/process/handover.h"
#include "base/text/str.h"
#include "cell/layer/keeper.h"
#include "instance/keeper_env.h"
#include "keeper/message/convert.h"
#include "keeper/nested/children.h"
#include "rpc/server/server.h"

/*
 * Theory of operation. The state is written only while nothing is half done, so it knows no
 * requests, no clones under way and no threads. What is half done ends by itself, mostly in
 * milliseconds; logs are not written meanwhile, so that a busy one leaves a gap, and their bytes
 * wait in memory and pipes.
 *
 * Before the keeper stakes its layer on a program, that program reads the state as its child; so a
 * file that is no program, that is too old, or that cannot read what is in use here is refused
 * while everything goes on. Then the state is written again, and the process executes.
 */

#define UPGRADE_LOOK_MIN NSEC_PER_MSEC
#define UPGRADE_LOOK_MAX (50 * NSEC_PER_MSEC)
/* About a second. */
#define UPGRADE_LOOKS_MAX 24
#define UPGRADE_TRIAL_LIMIT (20 * NSEC_PER_SEC)
#define UPGRADE_WORDS_MAX 400

enum upgrade_event { UPGRADE_ASK, UPGRADE_TRY, UPGRADE_PASS, UPGRADE_FAIL, UPGRADE_EVENT_COUNT };

#define NEVER UPGRADE_STATE_COUNT

static const enum upgrade_state edges[][UPGRADE_EVENT_COUNT] = {
	[UPGRADE_IDLE] = { UPGRADE_WAITING, NEVER, NEVER, NEVER },
	[UPGRADE_WAITING] = { NEVER, UPGRADE_TRYING, NEVER, UPGRADE_IDLE },
	[UPGRADE_TRYING] = { NEVER, NEVER, UPGRADE_WAITING, UPGRADE_IDLE },
};
_Static_assert(ARRAY_SIZE(edges) == UPGRADE_STATE_COUNT, "each state has its edges");

/* Records of the state. */
enum {
	STATE_TAG_KEEPER = HANDOVER_NESTED,
	STATE_TAG_CHILDREN,
};

/* The only writer of the state: writing is held in WAITING only. */
static void upgrade_enter(struct upgrade *u, enum upgrade_event event)
{
	enum upgrade_state to = edges[u->state][event];

	assert(to != NEVER);
	u->state = to;
	keeper_hold(u->config.keeper, to == UPGRADE_WAITING);
	loop_timer_stop(&u->timer);
	if (to == UPGRADE_WAITING) {
		u->n_looks = 0;
		loop_timer_set(&u->timer, 0);
	}
	if (to == UPGRADE_TRYING)
		loop_timer_set(&u->timer, UPGRADE_TRIAL_LIMIT);
}

static void upgrade_drop_trial(struct upgrade *u)
{
	loop_child_done(&u->watch);
	isolate_child_done(&u->trial);
	u->trial = (struct isolate_child)ISOLATE_CHILD_INIT;
	u->words_fd = fd_close(u->words_fd);
}

static void upgrade_fail(struct upgrade *u, const struct error *err)
{
	struct rpc_call *call = TAKE_PTR(u->call);

	u->exe_fd = fd_close(u->exe_fd);
	upgrade_enter(u, UPGRADE_FAIL);
	rpc_call_on_cancel(call, NULL, NULL);
	rpc_call_fail(call, err);
}

/* ---- what is half done ---- */

struct look {
	const struct rpc_call *own;
	const char *busy;
};

static void look_at_call(void *userdata, const struct rpc_call *call, const char *method)
{
	struct look *look = userdata;

	if (call != look->own && !str_eq(method, KEEPER_METHOD("Watch")) && !look->busy)
		look->busy = "a call is under way";
}

static const char *upgrade_busy(const struct upgrade *u)
{
	struct look look = { .own = u->call };

	look.busy = keeper_busy(u->config.keeper);
	if (!look.busy)
		look.busy = children_busy(u->config.children);
	if (!look.busy)
		rpc_server_each_call(u->config.rpc, look_at_call, &look);
	/* What a call has said until its end may still wait for a reader. */
	if (!look.busy && !rpc_server_is_written(u->config.rpc))
		look.busy = "an answer is still being read";
	return look.busy;
}

/* ---- the state ---- */

static int upgrade_write(const struct upgrade *u, struct handover_writer *w)
{
	size_t at;
	int r;

	r = handover_begin(w, STATE_TAG_KEEPER, &at);
	if (r == 0)
		r = keeper_write_state(u->config.keeper, w);
	if (r < 0)
		return r;
	handover_end(w, at);
	r = handover_begin(w, STATE_TAG_CHILDREN, &at);
	if (r == 0)
		r = children_write_state(u->config.children, w);
	if (r < 0)
		return r;
	handover_end(w, at);
	return 0;
}

/* A descriptor, or a negative errno. */
static int upgrade_make_state(const struct upgrade *u, struct handover_writer *w, struct error *err)
{
	int r;

	r = FAILPOINT("upgrade.write");
	if (r == 0)
		r = upgrade_write(u, w);
	if (r == -ENOBUFS)
		return error_refuse(err, ERROR_EXHAUSTED, "the state is longer than %zu bytes",
				    HANDOVER_MAX);
	return r < 0 ? error_set(err, r, "write the state") : handover_seal(w, err);
}

struct resume {
	struct keeper *keeper;
	struct children *children;
};

static int resume_record(void *userdata, uint32_t tag, struct handover_reader *r, struct error *err)
{
	struct resume *resume = userdata;

	if (tag == STATE_TAG_KEEPER)
		return keeper_read_state(resume->keeper, r, err);
	if (tag == STATE_TAG_CHILDREN)
		return children_read_state(resume->children, r, err);
	return -ENOENT;
}

static int upgrade_read(struct resume *resume, int state_fd, bool trial, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct handover_reader reader;
	int r;

	r = handover_open(state_fd, trial, &b, &reader, err);
	return r < 0 ? r : handover_read(&reader, "it", NULL, 0, NULL, resume_record, resume, err);
}

int upgrade_resume(struct keeper *k, struct children *children, int state_fd, struct error *err)
{
	struct resume resume = { .keeper = k, .children = children };
	int r;

	r = FAILPOINT("upgrade.resume");
	if (r < 0)
		return error_set(err, r, "go on as a new program");
	return upgrade_read(&resume, state_fd, false, err);
}

int upgrade_try(int state_fd, struct error *err)
{
	_cleanup_(loop_freep) struct loop *l = NULL;
	struct keeper_config none = {
		.cgroup_fd = -1,
		.proc_fd = -1,
		.shm_parent_fd = -1,
		.shm_fd = -1,
		.host_mount_ns_fd = -1,
	};
	struct children children;
	struct resume resume = { .children = &children };
	int r;

	r = loop_new(&l);
	none.loop = l;
	if (r == 0)
		r = keeper_new(&resume.keeper, &none);
	if (r < 0)
		return error_set(err, r, "make room for the state");
	children_init(&children, &(struct children_config){ .child = { .loop = l } });
	r = upgrade_read(&resume, state_fd, true, err);
	(void)keeper_free(resume.keeper);
	return r;
}

/* ---- the trial ---- */

static void upgrade_on_trial(struct loop_child *watch, int code, int status)
{
	struct upgrade *u = container_of(watch, struct upgrade, watch);
	char words[UPGRADE_WORDS_MAX + 1] = "";
	struct error err = ERROR_INIT;
	int exit_code, r;
	ssize_t n;

	n = pread(u->words_fd, words, UPGRADE_WORDS_MAX, 0);
	words[n > 0 ? n : 0] = '\0';
	/* It has ended, so this does not block. */
	r = isolate_child_report(&u->trial, &exit_code, &err);
	upgrade_drop_trial(u);
	if (r < 0)
		(void)error_wrap(&err, r, "execute the new program");
	else if (code != CLD_EXITED || status != 0)
		(void)error_refuse(&err, ERROR_PRECONDITION,
				   "the new program cannot go on from here (%s %d)%s%s",
				   code == CLD_EXITED ? "exit status" : "signal", status,
				   words[0] ? ": " : "", words);
	if (err.code) {
		upgrade_fail(u, &err);
		return;
	}
	u->tried = true;
	upgrade_enter(u, UPGRADE_PASS);
}

static int upgrade_spawn_trial(struct upgrade *u, int state_fd, struct error *err)
{
	static const char *const argv[] = { "nacre", "keeper", "--try", NULL };
	struct isolate_plan plan;

	isolate_plan_init(&plan);
	plan.exec_fd = u->exe_fd;
	plan.argv = (char *const *)(uintptr_t)argv;
	plan.env = keeper_env();
	plan.death_signal = SIGKILL;
	for (int i = 0; i < 3; i++)
		plan.stdio[i] = i == 2 ? STDERR_FILENO : -1;
	plan.keep_fds[UPGRADE_FD_STATE - 3] = state_fd;
	plan.keep_fds[UPGRADE_FD_WORDS - 3] = u->words_fd;
	plan.n_keep_fds = 2;
	return isolate_spawn(&plan, &u->trial, err);
}

static int upgrade_begin_trial(struct upgrade *u, int state_fd, struct error *err)
{
	int r;

	u->words_fd = memfd_create("nacre-words", MFD_CLOEXEC);
	if (u->words_fd < 0)
		return error_set(err, -errno, "make a file for its words");
	r = upgrade_spawn_trial(u, state_fd, err);
	if (r < 0) {
		u->words_fd = fd_close(u->words_fd);
		return r;
	}
	loop_child_init(&u->watch, u->config.loop, u->trial.pidfd, upgrade_on_trial);
	upgrade_enter(u, UPGRADE_TRY);
	return 0;
}

/* ---- going on ---- */

static void upgrade_go_on(struct upgrade *u)
{
	_cleanup_(handover_writer_done) struct handover_writer w = HANDOVER_WRITER_INIT;
	_cleanup_fd_ int state_fd = -1;
	struct error err = ERROR_INIT;
	int r;

	state_fd = upgrade_make_state(u, &w, &err);
	r = state_fd < 0 ? state_fd : 0;
	if (r == 0 && !u->tried)
		r = upgrade_begin_trial(u, state_fd, &err);
	else if (r == 0)
		r = u->config.execute(u->config.userdata, u->exe_fd, state_fd, &w, &err);
	if (r < 0)
		upgrade_fail(u, &err);
}

static void upgrade_look(struct upgrade *u)
{
	const char *busy = upgrade_busy(u);
	struct error err = ERROR_INIT;
	nsec_t delay;

	if (!busy) {
		upgrade_go_on(u);
		return;
	}
	if (++u->n_looks > UPGRADE_LOOKS_MAX) {
		(void)error_refuse(&err, ERROR_ABORTED, "the keeper is busy: %s", busy);
		upgrade_fail(u, &err);
		return;
	}
	delay = UPGRADE_LOOK_MIN << MIN(u->n_looks, 10U);
	loop_timer_set(&u->timer, MIN(delay, UPGRADE_LOOK_MAX));
}

static void upgrade_on_timer(struct loop_timer *t)
{
	struct upgrade *u = container_of(t, struct upgrade, timer);

	if (u->state == UPGRADE_WAITING)
		upgrade_look(u);
	else
		(void)pidfd_kill(u->trial.pidfd, SIGKILL);
}

static void upgrade_on_cancel(struct rpc_call *call, void *data)
{
	struct upgrade *u = data;
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_CANCELLED, "nobody waits for the upgrade");
	if (u->trial.pidfd >= 0)
		(void)pidfd_kill(u->trial.pidfd, SIGKILL);
	if (u->state == UPGRADE_WAITING)
		upgrade_fail(u, &err);
}

void upgrade_begin(struct upgrade *u, struct rpc_call *call, int exe_fd)
{
	struct error err = ERROR_INIT;

	if (u->state != UPGRADE_IDLE) {
		(void)fd_close(exe_fd);
		(void)error_refuse(&err, ERROR_ABORTED, "an upgrade is under way already");
		rpc_call_fail(call, &err);
		return;
	}
	u->call = call;
	u->exe_fd = exe_fd;
	u->tried = false;
	rpc_call_on_cancel(call, upgrade_on_cancel, u);
	upgrade_enter(u, UPGRADE_ASK);
}

bool upgrade_owns(const struct upgrade *u, pid_t pid)
{
	return u->trial.pidfd >= 0 && u->trial.pid == pid;
}

void upgrade_init(struct upgrade *u, const struct upgrade_config *config)
{
	*u = (struct upgrade){
		.config = *config, .exe_fd = -1, .words_fd = -1, .trial = ISOLATE_CHILD_INIT
	};
	loop_timer_init(&u->timer, config->loop, upgrade_on_timer);
}

void upgrade_done(struct upgrade *u)
{
	struct error err = ERROR_INIT;

	if (!u->config.loop)
		return;
	if (u->trial.pidfd >= 0)
		(void)pidfd_kill(u->trial.pidfd, SIGKILL);
	upgrade_drop_trial(u);
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "this instance is shutting down");
	if (u->state != UPGRADE_IDLE)
		upgrade_fail(u, &err);
	loop_timer_done(&u->timer);
	u->config.loop = NULL;
}
