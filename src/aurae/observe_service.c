/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/cells.pb-c.h"
#include "api/observe.pb-c.h"
#include "aurae/services.h"
#include "base/file/fd.h"
#include "base/log/log_ring.h"
#include "base/memory/arena.h"
#include "base/text/str.h"
#include "pod/log/log_cursor.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/services.h"
#include "runtime/start/settings.h"
#include "runtime/workload/logs_call.h"

#define OBSERVE_LOGS_MAX 64
#define OBSERVE_LINE_MAX ((size_t)64 * 1024)

/* Text as protobuf has it: each byte that is none in UTF-8 becomes U+FFFD. In the arena. */
static char *observe_text(struct arena *a, const char *line, size_t len)
{
	static const char unknown[] = "\xef\xbf\xbd";
	char *text = arena_alloc(a, len * 3 + 1);
	size_t n = 0;

	for (size_t i = 0, k; text && i < len; i += k) {
		k = 1;
		while (k < 4 && i + k < len && ((unsigned char)line[i + k] & 0xc0) == 0x80)
			k++;
		if (str_is_utf8(line + i, k)) {
			memcpy(text + n, line + i, k);
			n += k;
			continue;
		}
		for (size_t j = 0; j < k; j++, n += 3)
			memcpy(text + n, unknown, 3);
	}
	if (text)
		text[n] = '\0';
	return text;
}

/* ---- the daemon's log ---- */

struct observe_log {
	struct list link; /* aurae_observe.streams */
	struct aurae_observe *service;
	struct rpc_call *call;
	uint64_t next;
};

static void observe_log_free(struct observe_log *l)
{
	rpc_call_on_cancel(l->call, NULL, NULL);
	rpc_call_on_writable(l->call, NULL, NULL);
	list_remove(&l->link);
	l->service->n_streams--;
	free(l);
}

static void observe_log_fail(struct observe_log *l, const struct error *err)
{
	struct rpc_call *call = l->call;

	observe_log_free(l);
	rpc_call_fail(call, err);
}

static int observe_log_send(struct observe_log *l, const struct log_ring_line *line)
{
	Aurae__Observe__V0__GetAuraeDaemonLogStreamResponse m =
		AURAE__OBSERVE__V0__GET_AURAE_DAEMON_LOG_STREAM_RESPONSE__INIT;
	Aurae__Observe__V0__LogItem item = AURAE__OBSERVE__V0__LOG_ITEM__INIT;

	item.channel = (char *)(uintptr_t) "nacre";
	/* Lines of the log are UTF-8: what is not was quoted. */
	item.line = line->text;
	item.timestamp = (int64_t)(line->at / NSEC_PER_SEC);
	m.item = &item;
	return rpc_call_send(l->call, &m.base);
}

/* What is there, as far as the client takes it. */
static void observe_log_go_on(struct observe_log *l)
{
	struct log_ring_line line = { .number = l->next };
	struct error err = ERROR_INIT;
	int r = 0;

	while (rpc_call_writable(l->call)) {
		line.number = l->next;
		r = log_ring_read(&line);
		if (r <= 0)
			break;
		l->next = line.number + 1;
		r = observe_log_send(l, &line);
		free(line.text);
		if (r < 0)
			break;
	}
	if (r < 0) {
		(void)error_set(&err, r, "send the log");
		observe_log_fail(l, &err);
	}
}

static void observe_log_writable(struct rpc_call *call, void *data)
{
	(void)call;
	observe_log_go_on(data);
}

static void observe_log_cancelled(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)call;
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	observe_log_fail(data, &err);
}

static void observe_on_lines(struct loop_fd *source, unsigned events)
{
	struct aurae_observe *s = container_of(source, struct aurae_observe, source);
	struct observe_log *l;
	uint64_t n;

	(void)events;
	if (read(s->wake_fd, &n, sizeof(n)) < 0)
		return;
	list_for_each (l, &s->streams, struct observe_log, link)
		observe_log_go_on(l);
}

static void observe_daemon_log(struct rpc_call *call, const ProtobufCMessage *request,
			       void *userdata)
{
	struct aurae_observe *s = userdata;
	struct error err = ERROR_INIT;
	struct observe_log *l;

	(void)request;
	if (s->n_streams >= OBSERVE_LOGS_MAX) {
		(void)error_refuse(&err, ERROR_EXHAUSTED,
				   "%d streams of the daemon's log are open, the limit",
				   OBSERVE_LOGS_MAX);
		rpc_call_fail(call, &err);
		return;
	}
	l = calloc(1, sizeof(*l));
	if (!l) {
		(void)error_set(&err, -ENOMEM, "follow the log");
		rpc_call_fail(call, &err);
		return;
	}
	*l = (struct observe_log){ .service = s, .call = call, .next = 1 };
	list_init(&l->link);
	list_add_tail(&s->streams, &l->link);
	s->n_streams++;
	rpc_call_on_cancel(call, observe_log_cancelled, l);
	rpc_call_on_writable(call, observe_log_writable, l);
	observe_log_go_on(l);
}

static int observe_open(struct aurae_observe *s, struct workload_service *work)
{
	*s = (struct aurae_observe){ .work = work };
	list_init(&s->streams);
	aurae_signals_open(&s->signals, work);
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake_fd < 0)
		return -errno;
	loop_fd_init(&s->source, work->loop, s->wake_fd, LOOP_READ, observe_on_lines);
	return log_ring_open(s->wake_fd);
}

/* ---- output of an executable ---- */

/* In the arena of its call. */
struct observe_output {
	int stream; /* 1 or 2 */
	char *channel;
	char *line; /* of which the end was not read yet: room for OBSERVE_LINE_MAX */
	size_t len;
	uint64_t at;
};

static int output_send(struct observe_output *o, struct rpc_call *call)
{
	Aurae__Observe__V0__GetSubProcessStreamResponse m =
		AURAE__OBSERVE__V0__GET_SUB_PROCESS_STREAM_RESPONSE__INIT;
	Aurae__Observe__V0__LogItem item = AURAE__OBSERVE__V0__LOG_ITEM__INIT;
	struct arena own = ARENA_INIT;
	int r = -ENOMEM;

	item.line = observe_text(&own, o->line, o->len);
	if (item.line) {
		item.channel = o->channel;
		item.timestamp = (int64_t)(o->at / NSEC_PER_SEC);
		if (!str_is_utf8(o->line, o->len)) {
			item.data.data = (uint8_t *)o->line;
			item.data.len = o->len;
		}
		m.item = &item;
		r = rpc_call_send(call, &m.base);
	}
	arena_done(&own);
	return r;
}

/* Each whole line, and a piece of one that is too long. */
static int output_take(void *state, struct rpc_call *call, int stream, uint64_t time,
		       const void *data, size_t len)
{
	struct observe_output *o = state;
	const char *from = data;
	int r = 0;

	while (stream == o->stream && len > 0 && r == 0) {
		const char *end = memchr(from, '\n', MIN(len, OBSERVE_LINE_MAX - o->len));
		size_t n = end ? (size_t)(end - from) : MIN(len, OBSERVE_LINE_MAX - o->len);

		if (o->len == 0)
			o->at = time;
		memcpy(o->line + o->len, from, n);
		o->len += n;
		n += end ? 1 : 0;
		from += n;
		len -= n;
		if (!end && o->len < OBSERVE_LINE_MAX)
			break;
		r = output_send(o, call);
		o->len = 0;
	}
	return r;
}

static int output_skipped(void *state, struct rpc_call *call, uint64_t n)
{
	(void)state;
	(void)call;
	(void)n;
	return 0;
}

static int output_end(void *state, struct rpc_call *call)
{
	struct observe_output *o = state;

	return o->len > 0 ? output_send(o, call) : 0;
}

/* The newest executable with that number: in its cell, or on the host. */
static struct pod_container *observe_find(struct aurae_observe *s, int32_t pid)
{
	struct pod_container *found = NULL, *c;
	struct workload *w;

	list_for_each (w, workloads_list(s->work->workloads), struct workload, link) {
		if (w->kind != WORKLOAD_EXECUTABLE || w->n_containers != 1)
			continue;
		c = w->containers[0];
		if (c->status.pid == pid || (pid > 0 && pod_container_pid(c) == pid))
			found = c;
	}
	return found;
}

static int observe_output_open(struct rpc_call *call, struct aurae_observe *s,
			       const Aurae__Observe__V0__GetSubProcessStreamRequest *q,
			       struct error *err)
{
	static const char *const words[] = { NULL, "stdout", "stderr" };
	struct log_wish wish = { .follow = true };
	struct arena *a = rpc_call_arena(call);
	struct logs_form form = { .data = output_take,
				  .skipped = output_skipped,
				  .end = output_end };
	const Aurae__Cells__V0__Executable *e;
	struct observe_output *o;
	struct pod_container *c;
	unsigned stream = (unsigned)q->channel_type;

	if (stream >= ARRAY_SIZE(words))
		return error_field(err, ERROR_INVALID, "channel_type", "%d is unknown",
				   (int)q->channel_type);
	c = q->process_id > 0 ? observe_find(s, q->process_id) : NULL;
	if (!c)
		return error_field(err, ERROR_NOT_FOUND, "process_id",
				   "%d is no process that this node has started", q->process_id);
	if (!words[stream])
		return error_field(err, ERROR_NOT_FOUND, "channel_type",
				   "must be 1 (standard output) or 2 (standard error)");
	o = arena_zalloc(a, 1, sizeof(*o));
	if (!o)
		return error_set(err, -ENOMEM, "read the output");
	e = settings_record(a, c->workload->settings, &aurae__cells__v0__executable__descriptor);
	*o = (struct observe_output){ .stream = (int)stream };
	o->line = arena_alloc(a, OBSERVE_LINE_MAX);
	o->channel = arena_printf(a, "%s::%s", e ? e->name : c->workload->path, words[stream]);
	if (!o->line || !o->channel)
		return error_set(err, -ENOMEM, "read the output");
	form.state = o;
	return logs_call_start_as(call, s->work, &wish, 0, &form, c, err);
}

static void observe_output(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;

	if (observe_output_open(call, userdata, (const void *)request, &err) < 0)
		rpc_call_fail(call, &err);
}

static void observe_signals(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct aurae_observe *s = userdata;

	aurae_signals_call(call, request, &s->signals);
}

static const struct rpc_method observe_methods[] = {
	{ "GetAuraeDaemonLogStream",
	  &aurae__observe__v0__get_aurae_daemon_log_stream_request__descriptor,
	  &aurae__observe__v0__get_aurae_daemon_log_stream_response__descriptor, true,
	  observe_daemon_log },
	{ "GetSubProcessStream", &aurae__observe__v0__get_sub_process_stream_request__descriptor,
	  &aurae__observe__v0__get_sub_process_stream_response__descriptor, true, observe_output },
	{ "GetPosixSignalsStream",
	  &aurae__observe__v0__get_posix_signals_stream_request__descriptor,
	  &aurae__observe__v0__get_posix_signals_stream_response__descriptor, true,
	  observe_signals },
};

const struct rpc_service aurae_observe_service = {
	.name = "aurae.observe.v0.ObserveService",
	.methods = observe_methods,
	.n_methods = ARRAY_SIZE(observe_methods),
};

int aurae_open(struct aurae *a, struct rpc_server *server, struct workload_service *work,
	       struct runtime_service *runtime)
{
	int r = observe_open(&a->observe, work);

	a->cells = (struct aurae_cells){ .work = work };
	a->vms.runtime = runtime;
	if (r == 0)
		r = rpc_server_add(server, &aurae_cells_service, &a->cells);
	if (r == 0)
		r = rpc_server_add(server, &aurae_observe_service, &a->observe);
	if (r == 0)
		r = rpc_server_add(server, &aurae_vms_service, &a->vms);
	return r < 0 ? r : rpc_server_add(server, &aurae_discovery_service, NULL);
}

void aurae_close(struct aurae *a)
{
	struct aurae_observe *s = &a->observe;

	if (!s->work)
		return;
	aurae_signals_stop(&s->signals);
	log_ring_close();
	loop_fd_done(&s->source);
	s->wake_fd = fd_close(s->wake_fd);
	s->work = NULL;
}
