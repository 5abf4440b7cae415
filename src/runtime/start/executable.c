/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/executable.h"

#include <errno.h>
#include <stdlib.h>

#include "api/instance.pb-c.h"
#include "base/log/log.h"
#include "base/memory/arena.h"
#include "base/text/str.h"
#include "keeper/client/client.h"
#include "keeper/server/passing.h"
#include "pod/log/log_reader.h"
#include "pod/workload/workload.h"
#include "rpc/exchange/client.h"
#include "runtime/core/check.h"
#include "runtime/core/labels.h"
#include "runtime/core/request.h"
#include "runtime/core/words.h"
#include "runtime/start/cell_place.h"
#include "runtime/start/settings.h"

/*
 * Theory of operation. The process is a workload like any other. When it has ended, its output is
 * read back from its log; then its record is removed, and only then the call is answered, so that
 * its name is free for whoever has the answer.
 */

/* What one stream may give back, and what a process may be fed. */
#define EXECUTABLE_OUTPUT_MAX ((size_t)4 * 1024 * 1024)
#define EXECUTABLE_STDIN_MAX ((size_t)4 * 1024 * 1024)
#define EXECUTABLE_COMMAND_MAX ((size_t)1024 * 1024)
#define EXECUTABLE_COMMENT_MAX ((size_t)4096)

/* Lives from the request until the answer was sent; so does `call`. */
struct executable_call {
	struct list link; /* of the service's */
	struct rpc_call *call;
	struct runtime_service *service;
	const Aurae__Runtime__V0__RunExecutableRequest *request; /* in the call's arena */
	char id[ID_SIZE];
	char path[NAME_PATH_MAX + 1];
	struct loop_timer timeout;
	const struct rpc_stream_ops *feed_ops;
	struct passing_turn turn; /* while its keeper cannot take the next piece yet */
	struct rpc_stream *feed;  /* while a piece of its input is on its way */
	size_t fed;               /* bytes of the input that were taken */
	struct log_reader *reader;
	struct container_status status; /* once it has ended */
	struct error err;               /* code 0: the answer is its status */
	struct buf out[2];
	bool truncated[2];
	bool timed_out;
	bool cancelled;
	bool left;   /* cancelled, while others wait for the same process */
	bool repeat; /* the process was there: another call has started it */
};

static const char executable_timeout_reason[] = "it was killed: its timeout has passed";

static void executable_free(struct executable_call *x)
{
	list_remove(&x->link);
	loop_timer_done(&x->timeout);
	passing_turn_done(&x->turn);
	if (x->feed)
		rpc_stream_cancel(x->feed);
	x->reader = log_reader_free(x->reader);
	buf_done(&x->out[0]);
	buf_done(&x->out[1]);
	free(x);
}

/* ---- the answer ---- */

static ProtobufCBinaryData executable_bytes(const struct buf *b)
{
	return (ProtobufCBinaryData){ .len = b->len, .data = b->len ? b->base + b->head : NULL };
}

static void executable_reply(struct executable_call *x)
{
	Aurae__Runtime__V0__RunExecutableResponse m =
		AURAE__RUNTIME__V0__RUN_EXECUTABLE_RESPONSE__INIT;

	m.id = x->id;
	m.name = x->path;
	m.pid = x->status.pid;
	m.exit_code = x->status.exit_code;
	m.signal = x->status.signal;
	m.stdout = executable_bytes(&x->out[0]);
	m.stderr = executable_bytes(&x->out[1]);
	m.stdout_truncated = x->truncated[0];
	m.stderr_truncated = x->truncated[1];
	m.started_at = x->status.started_at;
	m.finished_at = x->status.finished_at;
	m.reason = x->timed_out ? (char *)(uintptr_t)executable_timeout_reason : x->status.reason;
	rpc_call_reply(x->call, &m.base);
}

static void executable_answer(struct executable_call *x)
{
	rpc_call_on_cancel(x->call, NULL, NULL);
	if (x->err.code)
		rpc_call_fail(x->call, &x->err);
	else
		executable_reply(x);
	executable_free(x);
}

static void executable_on_removed(void *userdata, struct workload *w, const struct error *err)
{
	(void)w;
	(void)err;
	executable_answer(userdata);
}

/* A repeated call is answered from its record. */
static bool executable_is_kept(const struct executable_call *x)
{
	return x->request->keep || !str_empty(x->request->request_id);
}

/* What is to be answered is known: takes the record away, unless it shall be kept, and answers. */
static void executable_finish(struct executable_call *x)
{
	struct workload *w = workloads_find(x->service->workloads, x->id);
	struct error err = ERROR_INIT;

	loop_timer_stop(&x->timeout);
	if (!w || x->service->closing || x->left || (executable_is_kept(x) && !x->cancelled)) {
		executable_answer(x);
		return;
	}
	if (workload_remove(w, true, executable_on_removed, x, &err) == 0)
		return;
	log_warn("cannot remove an executable", LOG_STR("workload", w->path), LOG_ERR(&err));
	executable_answer(x);
}

/* ---- its output ---- */

static void executable_on_data(void *userdata, int stream, uint64_t time, const void *data,
			       size_t len)
{
	struct executable_call *x = userdata;
	struct buf *b = &x->out[stream == 2];
	size_t room = EXECUTABLE_OUTPUT_MAX - b->len;

	(void)time;
	if (len > room)
		x->truncated[stream == 2] = true;
	if (buf_add(b, data, MIN(len, room)) < 0)
		x->truncated[stream == 2] = true;
}

static void executable_on_log_end(void *userdata, const struct error *err)
{
	struct executable_call *x = userdata;

	/* An executable that never ran has no log. */
	if (err && err->code != -ENOENT)
		x->err = *err;
	executable_finish(x);
}

static void executable_on_skipped(void *userdata, uint64_t n)
{
	struct executable_call *x = userdata;

	/* Of which stream the bytes were is not known any more. */
	(void)n;
	x->truncated[0] = true;
	x->truncated[1] = true;
}

static const struct log_reader_ops executable_log_ops = {
	.on_data = executable_on_data,
	.on_skipped = executable_on_skipped,
	.on_end = executable_on_log_end,
};

static int executable_read_log(struct executable_call *x)
{
	static const struct log_wish all = { .follow = false };

	return log_reader_new(&x->reader, x->service->logs, x->id, "main", &all,
			      &executable_log_ops, x);
}

static void executable_on_end(void *userdata, struct workload *w, const struct error *err)
{
	struct executable_call *x = userdata;
	int r = 0;

	/* How its keeper ended says more than that it could not be fed. */
	if (x->err.code && (x->cancelled || !w || w->state != WORKLOAD_FAILED)) {
		executable_finish(x);
		return;
	}
	x->err = (struct error)ERROR_INIT;
	if (err) {
		x->err = *err;
	} else if (!w) {
		(void)error_refuse(&x->err, ERROR_ABORTED,
				   "the executable was removed while it ran");
	} else if (x->cancelled) {
		(void)error_refuse(&x->err, ERROR_CANCELLED,
				   "the call was cancelled, the process was killed");
	} else {
		x->status = w->containers[0]->status;
		x->timed_out |= str_eq(w->reason, executable_timeout_reason);
		r = executable_read_log(x);
		if (r == 0)
			return;
		(void)error_set(&x->err, r, "read the output of %s", w->path);
	}
	executable_finish(x);
}

/* ---- its life ---- */

static void executable_kill(struct executable_call *x)
{
	struct workload *w = workloads_find(x->service->workloads, x->id);

	if (w && !workload_has_ended(w))
		workload_stop(w, 0, NULL, NULL);
}

static void executable_on_timeout(struct loop_timer *t)
{
	struct executable_call *x = container_of(t, struct executable_call, timeout);
	struct workload *w = workloads_find(x->service->workloads, x->id);

	x->timed_out = true;
	/* All others that ask are told too. */
	if (w && !workload_has_ended(w) && !w->reason[0])
		(void)str_copy(w->reason, sizeof(w->reason), executable_timeout_reason);
	executable_kill(x);
}

/* Another call that waits for the same process. */
static bool executable_is_shared(const struct executable_call *x)
{
	struct executable_call *other;

	list_for_each (other, &x->service->executables, struct executable_call, link)
		if (other != x && !other->cancelled && str_eq(other->id, x->id))
			return true;
	return false;
}

static void executable_on_cancel(struct rpc_call *call, void *data)
{
	struct executable_call *x = data;

	(void)call;
	/* The daemon's end is not the client's; workloads_free() tells of it. */
	if (x->service->closing)
		return;
	x->cancelled = true;
	x->left = executable_is_shared(x);
	if (!x->left)
		executable_kill(x);
}

/* ---- its input ---- */

/* It would wait for the rest for ever, or go on with a part of it. */
static void executable_starve(struct executable_call *x, const struct error *err)
{
	const struct workload *w = workloads_find(x->service->workloads, x->id);

	if (!w || workload_has_ended(w))
		return;
	x->err = *err;
	(void)error_wrap(&x->err, err->code, "feed the executable");
	executable_kill(x);
}

/* The next piece, if there is more and the process can still take it. */
static void executable_feed(struct executable_call *x)
{
	Nacre__Instance__V1__WriteStdinRequest m = NACRE__INSTANCE__V1__WRITE_STDIN_REQUEST__INIT;
	const ProtobufCBinaryData *input = &x->request->executable->stdin;
	struct rpc_request request = {
		.method = "/nacre.instance.v1.InstanceService/WriteStdin",
		.message = &m.base,
		.timeout = NSEC_NEVER,
	};
	struct workload *w = workloads_find(x->service->workloads, x->id);
	struct peer *peer = w && w->instance ? w->instance->peer : NULL;
	struct error err = ERROR_INIT;
	int r;

	if (x->fed == input->len || !peer || workload_has_ended(w))
		return;
	r = passing_queue(peer, &x->turn, &err);
	if (r < 0)
		executable_starve(x, &err);
	if (r <= 0)
		return;
	m.id = w->containers[0]->id;
	m.data.data = input->data + x->fed;
	m.data.len = MIN(input->len - x->fed, CONTAINER_STDIN_MAX);
	x->fed += m.data.len;
	m.close = x->fed == input->len;
	request.target = keeper_client_target(peer);
	r = rpc_client_call(keeper_client_rpc(peer), &request, x->feed_ops, x, &x->feed);
	if (r < 0) {
		(void)error_set(&err, r, "call its keeper");
		executable_starve(x, &err);
	}
}

static void executable_on_turn(struct passing_turn *t)
{
	executable_feed(container_of(t, struct executable_call, turn));
}

static void executable_fed_message(struct rpc_stream *s, const uint8_t *data, size_t len,
				   void *userdata)
{
	(void)s;
	(void)data;
	(void)len;
	(void)userdata;
}

static void executable_fed(struct rpc_stream *s, enum rpc_code code, const struct error *err,
			   void *userdata)
{
	struct executable_call *x = userdata;

	(void)s;
	x->feed = NULL;
	if (code == RPC_OK)
		executable_feed(x);
	/* A process that does not read its input, or has ended, is no fault. */
	else if (err->kind == ERROR_PRECONDITION || err->kind == ERROR_NOT_FOUND)
		log_debug("an executable did not take its input", LOG_ERR(err));
	else
		executable_starve(x, err);
}

static const struct rpc_stream_ops executable_feed_ops = {
	.on_message = executable_fed_message,
	.on_end = executable_fed,
};

static void executable_on_started(void *userdata, struct workload *w, const struct error *err)
{
	struct executable_call *x = userdata;

	if (!w || err) {
		executable_on_end(x, w, err);
		return;
	}
	if (w->state == WORKLOAD_RUNNING && !x->repeat)
		executable_feed(x);
	workload_wait(w, NULL, executable_on_end, x);
}

/* ---- the request ---- */

static int executable_check(const Aurae__Runtime__V0__RunExecutableRequest *q, struct error *err)
{
	const Aurae__Runtime__V0__Executable *e = q->executable;
	uint32_t id;
	int r;

	if (!e)
		return error_field(err, ERROR_INVALID, "executable", "required");
	if (str_empty(e->command))
		return error_field(err, ERROR_INVALID, "executable.command", "required");
	r = check_text("executable.command", e->command, EXECUTABLE_COMMAND_MAX, err);
	if (r == 0)
		r = check_text("executable.comment", e->comment, EXECUTABLE_COMMENT_MAX, err);
	if (r == 0)
		r = check_name("meta.name", q->meta ? q->meta->name : "", err);
	if (r == 0)
		r = labels_check(q->meta, err);
	if (r == 0)
		r = check_path("cell", q->cell, err);
	if (r == 0)
		r = check_args("executable.args", e->args, e->n_args, err);
	if (r == 0)
		r = check_env("executable.env", e->env, e->n_env, err);
	if (r == 0)
		r = check_dir("executable.cwd", e->cwd, err);
	if (r == 0)
		r = check_user("executable.user", e->user, err);
	if (r < 0)
		return r;
	if (!str_empty(e->user)) {
		char user[32], *group;

		if (str_copy(user, sizeof(user), e->user) < 0)
			user[0] = '\0';
		group = strchr(user, ':');
		if (group)
			*group++ = '\0';
		if (parse_u32(user, &id) < 0 || id > INT32_MAX ||
		    (group && (parse_u32(group, &id) < 0 || id > INT32_MAX)))
			return error_field(err, ERROR_INVALID, "executable.user",
					   "\"%.80s\" is not uid or uid:gid in numbers up "
					   "to 2147483647",
					   e->user);
	}
	if (e->stdin.len > EXECUTABLE_STDIN_MAX)
		return error_field(err, ERROR_INVALID, "executable.stdin", "more than %zu bytes",
				   EXECUTABLE_STDIN_MAX);
	return 0;
}

/* The program and its arguments: `command` is split only where there are no args. */
static int executable_words(const Aurae__Runtime__V0__Executable *e, char ***ret, struct error *err)
{
	_cleanup_strv_ char **words = NULL;
	int r = 0;

	if (e->n_args == 0) {
		r = words_split(e->command, &words, err);
		if (r < 0)
			return error_wrap_field(err, r, "executable.command");
		if (strv_len(words) == 0)
			return error_field(err, ERROR_INVALID, "executable.command", "required");
	} else {
		r = strv_add(&words, e->command);
		for (size_t i = 0; i < e->n_args && r == 0; i++)
			r = strv_add(&words, e->args[i]);
		if (r < 0)
			return error_set(err, r, "executable");
	}
	*ret = TAKE_PTR(words);
	return 0;
}

static int executable_start(struct executable_call *x, const char *key, struct error *err)
{
	const Aurae__Runtime__V0__Executable *e = x->request->executable;
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	_cleanup_strv_ char **words = NULL;
	_cleanup_strv_ char **env = NULL;
	struct cell_place place;
	struct pod_container_spec c = {
		.name = "main",
		.working_dir = e->cwd,
		.user = e->user,
		.stdin_open = e->stdin.len > 0,
	};
	struct workload_spec spec = {
		.kind = WORKLOAD_EXECUTABLE,
		.name = x->request->meta ? x->request->meta->name : "",
		.network = "host",
		.request = key,
		.comment = e->comment,
		.containers = &c,
		.n_containers = 1,
	};
	struct workload *w;
	int r;

	r = cell_place_find(rpc_call_arena(x->call), x->service->instances, "cell",
			    x->request->cell, &place, err);
	if (r < 0)
		return r;
	spec.parent = place.instance;
	c.new_proc = place.new_proc;
	r = executable_words(e, &words, err);
	for (size_t i = 0; i < e->n_env && r == 0; i++) {
		r = strv_env_put(&env, e->env[i]);
		if (r < 0)
			(void)error_set(err, r, "executable.env");
	}
	c.command = words;
	c.env = env;
	if (r == 0)
		r = settings_add_labels(&a, &spec.settings, x->request->meta, err);
	if (r == 0)
		r = workload_run(x->service->workloads, &spec, executable_on_started, x, &w, err);
	if (r < 0)
		return r;
	(void)str_copy(x->id, sizeof(x->id), w->id);
	(void)str_copy(x->path, sizeof(x->path), w->path);
	return 0;
}

static void executable_on_way_free(void *userdata, struct workload *w, const struct error *err)
{
	struct executable_call *x = userdata;
	struct runtime_service *service = x->service;
	struct rpc_call *call = x->call;
	const Aurae__Runtime__V0__RunExecutableRequest *request = x->request;
	struct error own = ERROR_INIT;

	(void)w;
	if (err)
		own = *err;
	else if (x->cancelled)
		(void)error_refuse(&own, ERROR_CANCELLED, "the call was cancelled");
	rpc_call_on_cancel(call, NULL, NULL);
	executable_free(x);
	if (own.code)
		rpc_call_fail(call, &own);
	else
		executable_run(call, request, service);
}

/* The process of this request is there, or was. */
static int executable_repeat(struct executable_call *x, struct workload *w, struct error *err)
{
	bool shared;

	(void)str_copy(x->id, sizeof(x->id), w->id);
	(void)str_copy(x->path, sizeof(x->path), w->path);
	if (workload_is_leaving(w))
		return workload_remove(w, true, executable_on_way_free, x, err);
	x->repeat = true;
	shared = executable_is_shared(x);
	if (x->request->executable->stdin.len > 0 && !shared && !workload_has_ended(w)) {
		/* How much of it was taken died with the daemon that fed it. */
		(void)error_field(&x->err, ERROR_ABORTED, "executable.stdin",
				  "the daemon was restarted while the process was fed, so it was "
				  "killed");
		x->cancelled = true;
		workload_wait(w, NULL, executable_on_end, x);
		executable_kill(x);
		return 0;
	}
	workload_wait_started(w, executable_on_started, x);
	return 0;
}

/* What has the name and is on its way out. */
static struct workload *executable_in_the_way(const struct runtime_service *s,
					      const Aurae__Runtime__V0__RunExecutableRequest *q)
{
	const char *name = q->meta ? q->meta->name : "";
	char path[NAME_PATH_MAX + 1];
	struct workload *w;

	if (str_empty(name) || str_printf(path, sizeof(path), "%s%s%s", q->cell,
					  str_empty(q->cell) ? "" : "/", name) < 0)
		return NULL;
	w = workloads_find(s->workloads, path);
	return w && workload_is_leaving(w) ? w : NULL;
}

void executable_run(struct rpc_call *call, const Aurae__Runtime__V0__RunExecutableRequest *request,
		    struct runtime_service *service)
{
	struct executable_call *x = NULL;
	char key[REQUEST_KEY_SIZE];
	struct target found;
	struct workload *w;
	struct error err = ERROR_INIT;
	int r, repeat = 0;

	r = executable_check(request, &err);
	if (r == 0)
		repeat = request_find(service, &request->base, request->request_id, key, &found,
				      &err);
	if (r == 0 && repeat < 0)
		r = repeat;
	if (r == 0) {
		x = calloc(1, sizeof(*x));
		if (!x)
			r = error_set(&err, -ENOMEM, "run an executable");
	}
	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	x->call = call;
	x->service = service;
	x->request = request;
	x->feed_ops = &executable_feed_ops;
	passing_turn_init(&x->turn, executable_on_turn);
	list_init(&x->link);
	list_add_tail(&service->executables, &x->link);
	loop_timer_init(&x->timeout, service->loop, executable_on_timeout);
	w = repeat ? found.workload : executable_in_the_way(service, request);
	r = w ? executable_repeat(x, w, &err) : executable_start(x, key, &err);
	if (r < 0) {
		rpc_call_fail(call, &err);
		executable_free(x);
		return;
	}
	rpc_call_on_cancel(call, executable_on_cancel, x);
	/* A limit that is longer than any clock runs is none. */
	if (request->executable->timeout_ms &&
	    request->executable->timeout_ms <= INT64_MAX / NSEC_PER_MSEC)
		loop_timer_set(&x->timeout, request->executable->timeout_ms * NSEC_PER_MSEC);
}
