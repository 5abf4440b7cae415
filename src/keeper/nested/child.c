/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/nested/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "instance/spawn.h"
#include "io/unix.h"
#include "isolate/cgroup/cgroup.h"
#include "keeper/message/convert.h"
#include "rpc/exchange/client.h"

#define CHILD_HELLO_TIMEOUT (5 * NSEC_PER_SEC)
#define CHILD_END_GRACE (5 * NSEC_PER_SEC)
/* The same of a machine: emulated twice over, on a busy host. Its own provider presses its button
 * and kills it before. */
#define CHILD_MACHINE_HELLO_TIMEOUT (300 * NSEC_PER_SEC)
#define CHILD_MACHINE_END_GRACE (120 * NSEC_PER_SEC)
/* A keeper that closed its connection is most likely dying: its end will say why. */
#define CHILD_LOST_GRACE (200 * NSEC_PER_MSEC)
/* One whose connection has lasted longer than the grace goes on as another program, or dies. */
#define CHILD_REOPEN_DELAY NSEC_PER_MSEC
#define CHILD_CLEAN_PAUSE (5 * NSEC_PER_MSEC)
#define CHILD_CLEAN_TRIES 600

enum child_event { CHILD_HELLO, CHILD_END, CHILD_EXIT, CHILD_CLEAN, CHILD_EVENT_COUNT };

static const enum child_state edges[CHILD_STATE_COUNT][CHILD_EVENT_COUNT] = {
	[CHILD_STARTING] = { CHILD_RUNNING, CHILD_ENDING, CHILD_CLEANING, CHILD_STARTING },
	[CHILD_RUNNING] = { CHILD_RUNNING, CHILD_ENDING, CHILD_CLEANING, CHILD_RUNNING },
	[CHILD_ENDING] = { CHILD_ENDING, CHILD_ENDING, CHILD_CLEANING, CHILD_ENDING },
	[CHILD_CLEANING] = { CHILD_CLEANING, CHILD_CLEANING, CHILD_CLEANING, CHILD_ENDED },
	[CHILD_ENDED] = { CHILD_ENDED, CHILD_ENDED, CHILD_ENDED, CHILD_ENDED },
};

struct child_waiter {
	struct list link;
	void (*done)(void *userdata);
	void *userdata;
};

static void child_group_name(const struct child *c, char ret[NAME_LABEL_MAX + 8])
{
	(void)str_printf(ret, NAME_LABEL_MAX + 8, "inst.%s", c->name);
}

/* ---- the object ---- */

static void child_disconnect(struct child *c)
{
	unary_done(&c->unary);
	if (c->rpc)
		c->rpc = rpc_client_retire(c->rpc);
	c->channel_fd = fd_close(c->channel_fd);
}

static void child_release_process(struct child *c)
{
	child_disconnect(c);
	loop_fd_done(&c->report);
	loop_fd_done(&c->line);
	c->line_fd = fd_close(c->line_fd);
	loop_child_done(&c->watch);
	isolate_child_done(&c->process);
	c->process = (struct isolate_child)ISOLATE_CHILD_INIT;
}

static void child_release_rest(struct child *c)
{
	loop_timer_stop(&c->timer);
	c->dir_fd = fd_close(c->dir_fd);
	c->cgroup_fd = fd_close(c->cgroup_fd);
}

static void child_enter(struct child *c, enum child_state state)
{
	assert(edges[c->state][CHILD_HELLO] == state || edges[c->state][CHILD_END] == state ||
	       edges[c->state][CHILD_EXIT] == state || edges[c->state][CHILD_CLEAN] == state);
	c->state = state;
	if (state >= CHILD_ENDING)
		loop_timer_stop(&c->timer);
	if (state >= CHILD_CLEANING)
		child_release_process(c);
	if (state == CHILD_ENDED)
		child_release_rest(c);
}

static void child_event(struct child *c, enum child_event event)
{
	enum child_state next = edges[c->state][event];

	if (next != c->state)
		child_enter(c, next);
}

struct child *child_free(struct child *c)
{
	struct child_waiter *w;

	if (!c)
		return NULL;
	list_for_each (w, &c->waiters, struct child_waiter, link) {
		list_remove(&w->link);
		free(w);
	}
	list_remove(&c->link);
	child_release_process(c);
	child_release_rest(c);
	loop_timer_done(&c->timer);
	free(c);
	return NULL;
}

static void child_freep(struct child **c)
{
	*c = child_free(*c);
}

/* ---- the end ---- */

void child_kill(struct child *c)
{
	c->killed = true;
	if (c->process.pidfd >= 0)
		(void)pidfd_kill(c->process.pidfd, SIGKILL);
}

static void child_tell(struct list *waiters)
{
	struct child_waiter *w;

	list_for_each (w, waiters, struct child_waiter, link) {
		list_remove(&w->link);
		w->done(w->userdata);
		free(w);
	}
}

/* Everything of it is cleaned up: tells all who wait. It may be freed on the way. */
static void child_settle(struct child *c)
{
	child_spawned_fn spawned = TAKE_PTR(c->spawned);
	struct list waiters;
	struct child_waiter *w;

	list_init(&waiters);
	list_for_each (w, &c->waiters, struct child_waiter, link) {
		list_remove(&w->link);
		list_add_tail(&waiters, &w->link);
	}
	if (spawned) {
		if (!c->spawn_err.code)
			(void)error_refuse(&c->spawn_err, ERROR_FAULT, "%s", c->reason);
		spawned(c->spawned_userdata, c, &c->spawn_err);
	}
	c->config->on_settled(c->config->userdata, c);
	child_tell(&waiters);
}

static void child_clean(struct child *c)
{
	char group[NAME_LABEL_MAX + 8];
	int r;

	FAILPOINT_BEFORE("keeper.clean");
	child_group_name(c, group);
	if (c->cgroup_fd >= 0)
		(void)cgroup_kill(c->cgroup_fd);
	r = cgroup_remove(c->config->cgroup_fd, group);
	if (r == -EBUSY && ++c->n_cleans < CHILD_CLEAN_TRIES) {
		/* The last process was killed but has not left its group yet. */
		loop_timer_set(&c->timer, CHILD_CLEAN_PAUSE);
		return;
	}
	if (r < 0)
		log_warn("cannot remove the cgroup of an instance", LOG_STR("instance", c->name),
			 LOG_STR("err", strerror(-r)));
	r = rootfd_remove_tree(c->config->run_fd, c->name);
	if (r < 0)
		log_warn("cannot remove the directory of an instance", LOG_STR("instance", c->name),
			 LOG_STR("err", strerror(-r)));
	FAILPOINT_AFTER("keeper.clean");
	child_event(c, CHILD_CLEAN);
	child_settle(c);
}

static void child_explain(struct child *c, int code, int status)
{
	char words[INSTANCE_LAST_WORDS_MAX + 1];

	instance_last_words(c->dir_fd, words, sizeof(words));
	if (c->machine && words[0])
		(void)str_copy(c->reason, sizeof(c->reason), words);
	else if (code == CLD_EXITED)
		(void)str_printf(c->reason, sizeof(c->reason),
				 "keeper of %s exited with status %d%s%s", c->name, status,
				 words[0] ? ": " : "", words);
	else if (code == CLD_KILLED || code == CLD_DUMPED)
		(void)str_printf(c->reason, sizeof(c->reason),
				 "keeper of %s was killed by signal %d%s%s", c->name, status,
				 words[0] ? ": " : "", words);
	else
		(void)str_printf(c->reason, sizeof(c->reason), "keeper of %s has ended%s%s",
				 c->name, words[0] ? ": " : "", words);
}

/* What the steps before the program had to say; nothing where it was executed or nothing is left to
 * read. */
static void child_read_report(struct child *c)
{
	struct error err = ERROR_INIT;
	int exit_code;

	if (!c->report.loop)
		return;
	loop_fd_done(&c->report);
	if (isolate_child_report(&c->process, &exit_code, &err) < 0) {
		c->spawn_err = err;
		(void)error_wrap(&c->spawn_err, err.code, "start the keeper of %s", c->name);
	}
}

static void child_on_exit(struct loop_child *watch, int code, int status)
{
	struct child *c = container_of(watch, struct child, watch);

	if (c->spawned) {
		/* Of the reasons why a Spawn failed, a failed step is the first, our own hand the
		 * last. */
		if (!c->killed)
			c->spawn_err = (struct error)ERROR_INIT;
		child_read_report(c);
		c->unwanted = true;
	}
	child_explain(c, code, status);
	child_event(c, CHILD_EXIT);
	child_clean(c);
}

/* ---- the connection ---- */

static void child_on_closed(struct rpc_client *client, void *data)
{
	struct child *c = data;

	child_disconnect(c);
	if (c->state == CHILD_RUNNING)
		loop_timer_set(&c->timer, clock_mono() - c->connected_at > CHILD_LOST_GRACE
						  ? CHILD_REOPEN_DELAY
						  : CHILD_LOST_GRACE);
}

static int child_connect(struct child *c, struct error *err)
{
	_cleanup_fd_ int rpc_fd = -1, channel_fd = -1;
	int r;

	if (c->machine) {
		rpc_fd = unix_connect(c->dir_fd, "rpc.sock", SOCK_STREAM, err);
		r = MIN(rpc_fd, 0);
	} else {
		r = instance_connect(c->dir_fd, &rpc_fd, &channel_fd, err);
	}
	if (r < 0)
		return r;
	r = rpc_client_new(&c->rpc, c->config->loop, TAKE_FD(rpc_fd));
	if (r < 0)
		return error_set(err, r, "connect to the keeper of %s", c->name);
	c->channel_fd = TAKE_FD(channel_fd);
	c->connected_at = clock_mono();
	c->lost = false;
	rpc_client_on_close(c->rpc, child_on_closed, c);
	return 0;
}

/* A Spawn comes to nothing. */
static void child_fail(struct child *c, const struct error *err, nsec_t until_kill)
{
	c->spawn_err = *err;
	(void)error_wrap(&c->spawn_err, err->code, "keeper of %s", c->name);
	c->unwanted = true;
	child_event(c, CHILD_END);
	loop_timer_set(&c->timer, until_kill);
}

static void child_on_hello(struct unary *u, const ProtobufCMessage *response,
			   const struct error *err)
{
	struct child *c = container_of(u, struct child, unary);
	child_spawned_fn spawned;

	if (c->state != CHILD_STARTING)
		return;
	if (err) {
		child_fail(c, err, err->kind == ERROR_UNAVAILABLE ? CHILD_LOST_GRACE : 0);
		return;
	}
	FAILPOINT_BEFORE("keeper.spawned");
	spawned = TAKE_PTR(c->spawned);
	loop_fd_done(&c->report);
	child_event(c, CHILD_HELLO);
	FAILPOINT_AFTER("keeper.spawned");
	spawned(c->spawned_userdata, c, NULL);
}

static void child_say_hello(struct child *c)
{
	Nacre__Instance__V1__HelloRequest request;

	nacre__instance__v1__hello_request__init(&request);
	request.protocol = KEEPER_PROTOCOL;
	request.version = convert_str(NACRE_VERSION);
	unary_start(
		&c->unary, c->config->loop, c->rpc,
		&(struct unary_request){
			.method = KEEPER_METHOD("Hello"),
			.message = &request.base,
			.output = &nacre__instance__v1__hello_response__descriptor,
			.timeout = c->machine ? CHILD_MACHINE_HELLO_TIMEOUT : CHILD_HELLO_TIMEOUT,
		},
		child_on_hello);
}

static void child_on_shutdown(struct unary *u, const ProtobufCMessage *response,
			      const struct error *err)
{
	struct child *c = container_of(u, struct child, unary);

	/* What counts is the end of the process; the timer sees to it. */
	if (err)
		loop_timer_set(&c->timer, CHILD_LOST_GRACE);
}

void child_end(struct child *c)
{
	Nacre__Instance__V1__ShutdownRequest request;
	bool orderly = c->state == CHILD_RUNNING && c->rpc;

	nacre__instance__v1__shutdown_request__init(&request);
	if (c->state == CHILD_STARTING && !c->spawn_err.code)
		(void)error_refuse(&c->spawn_err, ERROR_ABORTED, "instance %s was ended", c->name);
	c->unwanted = true;
	if (c->state >= CHILD_ENDING)
		return;
	FAILPOINT_BEFORE("keeper.end");
	child_event(c, CHILD_END);
	unary_done(&c->unary);
	if (c->machine && c->line_fd >= 0) {
		loop_timer_set(&c->timer, CHILD_MACHINE_END_GRACE);
		nest_end(c->line_fd);
		return;
	}
	if (!orderly) {
		child_kill(c);
		return;
	}
	loop_timer_set(&c->timer, CHILD_END_GRACE);
	unary_start(&c->unary, c->config->loop, c->rpc,
		    &(struct unary_request){
			    .method = KEEPER_METHOD("Shutdown"),
			    .message = &request.base,
			    .output = &nacre__instance__v1__shutdown_response__descriptor,
			    .timeout = CHILD_END_GRACE,
		    },
		    child_on_shutdown);
	FAILPOINT_AFTER("keeper.end");
}

static void child_reconnect(struct child *c)
{
	struct error err = ERROR_INIT;

	if (child_connect(c, &err) == 0)
		return;
	if (!c->lost) {
		c->lost = true;
		loop_timer_set(&c->timer, CHILD_LOST_GRACE);
	} else {
		/* It lives but cannot be reached: as good as dead, and it must not linger. */
		log_warn("cannot reach a nested keeper", LOG_STR("instance", c->name),
			 LOG_ERR(&err));
		child_kill(c);
	}
}

static void child_on_timer(struct loop_timer *t)
{
	struct child *c = container_of(t, struct child, timer);

	if (c->state == CHILD_RUNNING)
		child_reconnect(c);
	else if (c->state == CHILD_ENDING)
		child_kill(c);
	else if (c->state == CHILD_CLEANING)
		child_clean(c);
}

/* ---- birth ---- */

int child_alloc(struct child **ret, const struct child_config *config, const char *name,
		struct error *err)
{
	_cleanup_(child_freep) struct child *c = calloc(1, sizeof(*c));

	if (!c)
		return error_set(err, -ENOMEM, "make instance %s", name);
	c->config = config;
	c->dir_fd = -1;
	c->cgroup_fd = -1;
	c->channel_fd = -1;
	c->line_fd = -1;
	c->process = (struct isolate_child)ISOLATE_CHILD_INIT;
	list_init(&c->link);
	list_init(&c->waiters);
	loop_timer_init(&c->timer, config->loop, child_on_timer);
	(void)str_copy(c->name, sizeof(c->name), name);
	*ret = TAKE_PTR(c);
	return 0;
}

static int child_make_places(struct child *c, const struct child_config *config, struct error *err)
{
	char group[NAME_LABEL_MAX + 8];

	child_group_name(c, group);
	(void)rootfd_remove_tree(config->run_fd, c->name);
	if (sysio_mkdirat(config->run_fd, c->name, 0700) < 0)
		return error_set(err, -errno, "make the directory of instance %s", c->name);
	c->dir_fd = sysio_openat(config->run_fd, c->name,
				 O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0);
	if (c->dir_fd < 0)
		return error_set(err, -errno, "open the directory of instance %s", c->name);
	c->cgroup_fd = cgroup_make_inner(config->cgroup_fd, group, err);
	return c->cgroup_fd < 0 ? c->cgroup_fd : 0;
}

static void child_on_report(struct loop_fd *source, unsigned events)
{
	child_read_report(container_of(source, struct child, report));
}

/* Its machine has come up: there is somebody to speak to. */
static void child_on_line(struct loop_fd *source, unsigned events)
{
	struct child *c = container_of(source, struct child, line);
	struct error failed = ERROR_INIT;
	int r = nest_read(c->line_fd, c->kernel, sizeof(c->kernel));

	if (r == -EAGAIN)
		return;
	/* Nothing more is said; its end tells. */
	loop_fd_done(&c->line);
	if (r < 0 || c->state != CHILD_STARTING)
		return;
	if (child_connect(c, &failed) < 0)
		child_fail(c, &failed, 0);
	else
		child_say_hello(c);
}

static int child_launch_machine(struct child *c, const struct child_config *config,
				const char *title, const struct nest *nest, struct error *err)
{
	const struct nest_spawn spawn = { .nest = nest,
					  .title = title,
					  .dir_fd = c->dir_fd,
					  .cgroup_fd = c->cgroup_fd,
					  .exe_fd = config->exe_fd };
	int r = nest_spawn(&spawn, &c->process, &c->line_fd, err);

	if (r == 0)
		loop_fd_init(&c->line, config->loop, c->line_fd, LOOP_READ, child_on_line);
	return r;
}

static int child_launch_keeper(struct child *c, const struct child_config *config,
			       const char *title, const struct peer_shares *shares,
			       struct error *err)
{
	struct instance_spawn spawn = {
		.title = title,
		.dir_fd = c->dir_fd,
		.cgroup_fd = c->cgroup_fd,
		.exe_fd = config->exe_fd,
		.walled = true,
		.host_network = shares->network,
		.host_pids = shares->pids,
		.host_ipc = shares->ipc,
		.host_uts = shares->uts,
		.death_signal = SIGKILL,
		.disks = config->disks,
	};
	struct disk_places seen = DISK_PLACES_NONE;
	int r = config->in_guest ? disk_places_open(&seen, err) : 0;

	if (r < 0)
		return r;
	if (config->in_guest)
		spawn.disks = &seen;
	r = instance_spawn(&spawn, &c->process, err);
	disk_places_close(&seen);
	return r;
}

static int child_launch(struct child *c, const struct child_config *config,
			const struct child_spec *spec, struct error *err)
{
	char title[NAME_PATH_MAX + 1];
	int r;

	r = str_printf(title, sizeof(title), "%s%s%s", config->path, config->path[0] ? "/" : "",
		       c->name);
	if (r < 0 || name_depth(title) > NAME_DEPTH_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "instance %s: more than %d levels deep",
				    c->name, NAME_DEPTH_MAX);
	r = child_make_places(c, config, err);
	if (r < 0)
		return r;
	r = spec->nest ? child_launch_machine(c, config, title, spec->nest, err)
		       : child_launch_keeper(c, config, title, &spec->shares, err);
	if (r < 0)
		return r;
	loop_child_init(&c->watch, config->loop, c->process.pidfd, child_on_exit);
	loop_fd_init(&c->report, config->loop, c->process.report_fd, LOOP_READ, child_on_report);
	return 0;
}

int child_new(struct child **ret, const struct child_config *config, const struct child_spec *spec,
	      child_spawned_fn done, void *userdata, struct error *err)
{
	_cleanup_(child_freep) struct child *new = NULL;
	struct error failed = ERROR_INIT;
	char group[NAME_LABEL_MAX + 8];
	struct child *c;
	int r;

	r = FAILPOINT("keeper.spawn");
	if (r < 0)
		return error_set(err, r, "make instance %s", spec->name);
	r = child_alloc(&new, config, spec->name, err);
	if (r < 0)
		return r;
	new->machine = spec->nest;
	r = child_launch(new, config, spec, err);
	if (r < 0) {
		child_group_name(new, group);
		(void)cgroup_remove(config->cgroup_fd, group);
		(void)rootfd_remove_tree(config->run_fd, spec->name);
		return r;
	}

	/* From here on there is a process, and it is cleaned up when that has ended. */
	c = TAKE_PTR(new);
	c->spawned = done;
	c->spawned_userdata = userdata;
	/* It listened before it was cloned, so the hello waits for it in its socket; a machine says
	 * when. */
	if (!c->machine && child_connect(c, &failed) < 0)
		child_fail(c, &failed, 0);
	else if (!c->machine)
		child_say_hello(c);
	FAILPOINT_AFTER("keeper.spawn");
	*ret = c;
	return 0;
}

void child_resume(struct child *c)
{
	struct error err = ERROR_INIT;

	if (c->state != CHILD_RUNNING)
		return;
	loop_child_init(&c->watch, c->config->loop, c->process.pidfd, child_on_exit);
	/* It may have ended meanwhile: then its process says so before the timer does. */
	if (child_connect(c, &err) < 0)
		loop_timer_set(&c->timer, CHILD_LOST_GRACE);
}

const char *child_busy(const struct child *c)
{
	if (c->state != CHILD_RUNNING && c->state != CHILD_ENDED)
		return "an instance is starting or ending";
	if (c->machine && c->state == CHILD_RUNNING)
		return "an instance has a kernel of its own";
	return unary_active(&c->unary) || !list_empty(&c->waiters) ? "an instance is waited for"
								   : NULL;
}

int child_wait(struct child *c, void (*done)(void *userdata), void *userdata)
{
	struct child_waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->done = done;
	w->userdata = userdata;
	list_init(&w->link);
	list_add_tail(&c->waiters, &w->link);
	return 0;
}
