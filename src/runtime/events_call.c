/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/events_call.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/buf.h"
#include "base/parse.h"
#include "base/str.h"
#include "pod/events.h"
#include "rpc/server.h"

struct events_call {
	struct event_listener listener;
	struct rpc_call *call;
	char below[NAME_PATH_MAX + 1];
	/* Serialised events, each behind its length, for a client that does not read just now. */
	struct buf waiting;
};

static void events_call_end(struct events_call *c, const struct error *err)
{
	events_remove(&c->listener);
	rpc_call_on_cancel(c->call, NULL, NULL);
	rpc_call_on_writable(c->call, NULL, NULL);
	rpc_call_fail(c->call, err);
	buf_done(&c->waiting);
	free(c);
}

static void events_call_cancelled(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)call;
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	events_call_end(data, &err);
}

static void events_call_writable(struct rpc_call *call, void *data)
{
	struct events_call *c = data;
	struct error err = ERROR_INIT;
	uint32_t len;

	while (c->waiting.len && rpc_call_writable(call)) {
		memcpy(&len, buf_data(&c->waiting), sizeof(len));
		if (rpc_call_send_bytes(call, buf_data(&c->waiting) + sizeof(len), len) < 0) {
			(void)error_set(&err, -ENOMEM, "send an event");
			events_call_end(c, &err);
			return;
		}
		buf_consume(&c->waiting, sizeof(len) + len);
	}
}

static bool events_call_wants(const struct events_call *c, const struct event *e)
{
	size_t n = strlen(c->below);

	return n == 0 || (strncmp(e->name, c->below, n) == 0 && (!e->name[n] || e->name[n] == '/'));
}

static char *events_str(const char *s)
{
	return (char *)(uintptr_t)(s ? s : "");
}

static void events_call_event(struct event_listener *l, const struct event *e)
{
	struct events_call *c = container_of(l, struct events_call, listener);
	Nacre__V1__EventsResponse m = NACRE__V1__EVENTS_RESPONSE__INIT;
	struct error err = ERROR_INIT;
	uint8_t *to;
	uint32_t len;

	if (!events_call_wants(c, e))
		return;
	m.sequence = e->sequence;
	m.time = e->time;
	m.object = events_str(e->object);
	m.id = events_str(e->id);
	m.name = events_str(e->name);
	m.kind = events_str(e->kind);
	m.state = events_str(e->state);
	m.reason = events_str(e->reason);
	m.exit_code = e->exit_code;
	len = (uint32_t)nacre__v1__events_response__get_packed_size(&m);
	if (buf_reserve(&c->waiting, sizeof(len) + len, &to) < 0) {
		(void)error_refuse(&err, ERROR_EXHAUSTED,
				   "more than %zu bytes of events wait for this client to read",
				   EVENTS_WAITING_MAX);
		events_call_end(c, &err);
		return;
	}
	memcpy(to, &len, sizeof(len));
	(void)nacre__v1__events_response__pack(&m, to + sizeof(len));
	buf_added(&c->waiting, sizeof(len) + len);
	events_call_writable(c->call, c);
}

int events_call_start(struct rpc_call *call, struct events *events, const char *below,
		      struct error *err)
{
	struct events_call *c = calloc(1, sizeof(*c));

	if (!c)
		return error_set(err, -ENOMEM, "watch events");
	c->call = call;
	c->waiting = (struct buf)BUF_INIT_LIMIT(EVENTS_WAITING_MAX);
	c->listener.fn = events_call_event;
	(void)str_copy(c->below, sizeof(c->below), below);
	events_add(events, &c->listener);
	rpc_call_on_cancel(call, events_call_cancelled, c);
	rpc_call_on_writable(call, events_call_writable, c);
	return 0;
}
