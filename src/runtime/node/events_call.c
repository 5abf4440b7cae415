/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/node/events_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/nacre.pb-c.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "pod/workload/workload.h"
#include "runtime/core/check.h"
#include "runtime/core/target.h"
#include "runtime/node/feed.h"
#include "runtime/services.h"

static const char *const events_objects[] = { "workload", "container", "instance", "image",
					      "cloud" };

struct events_call {
	struct feed feed;
	char target[NAME_PATH_MAX + 1]; /* path; "": all */
	unsigned objects;               /* a set of words, one bit each; 0: all */
};

static bool events_call_wants(const struct events_call *c, const struct event *e)
{
	size_t n = strlen(c->target);

	if (n > 0 && (strncmp(e->name, c->target, n) != 0 || (e->name[n] && e->name[n] != '/')))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(events_objects); i++)
		if (c->objects >> i & 1 && str_eq(events_objects[i], e->object))
			return true;
	return c->objects == 0;
}

static char *events_str(const char *s)
{
	return (char *)(uintptr_t)(s ? s : "");
}

static int events_call_event(struct feed *f, const struct event *e, struct error *err)
{
	Nacre__V1__EventsResponse m = NACRE__V1__EVENTS_RESPONSE__INIT;
	char token[EVENTS_TOKEN_SIZE];
	int r;

	if (!events_call_wants(container_of(f, struct events_call, feed), e))
		return 0;
	events_token(f->events, e->sequence, token);
	m.sequence = e->sequence;
	m.time = e->time;
	m.object = events_str(e->object);
	m.id = events_str(e->id);
	m.name = events_str(e->name);
	m.kind = events_str(e->kind);
	m.state = events_str(e->state);
	m.reason = events_str(e->reason);
	m.exit_code = e->exit_code;
	m.resume_token = token;
	r = rpc_call_send(f->call, &m.base);
	return r < 0 ? error_set(err, r, "send an event") : 0;
}

static void events_call_free(struct feed *f)
{
	free(container_of(f, struct events_call, feed));
}

static const struct feed_ops events_call_ops = {
	.event = events_call_event,
	.free = events_call_free,
};

static int events_call_fill(struct events_call *c, const struct workload_service *s,
			    const Nacre__V1__EventsRequest *q, struct error *err)
{
	char entry[ERROR_FIELD_MAX];
	const char *word;
	struct target t;
	int r = 0;

	if (!str_empty(q->target)) {
		r = target_find(s, q->target, &t, err);
		if (r == 0)
			(void)str_copy(c->target, sizeof(c->target),
				       t.workload ? t.workload->path : t.instance->path);
	}
	for (size_t i = 0; i < q->n_objects && r == 0; i++) {
		(void)str_printf(entry, sizeof(entry), "objects[%zu]", i);
		if (str_empty(q->objects[i]))
			return error_field(err, ERROR_INVALID, entry, "empty");
		r = check_word(entry, q->objects[i], events_objects, ARRAY_SIZE(events_objects),
			       &word, err);
		for (size_t k = 0; k < ARRAY_SIZE(events_objects) && r == 0; k++)
			if (events_objects[k] == word)
				c->objects |= 1U << k;
	}
	c->feed.next = s->events->sequence + 1;
	if (r == 0 && !str_empty(q->resume_token))
		r = events_resume(s->events, q->resume_token, &c->feed.next, err);
	return r;
}

void events_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const struct workload_service *s = userdata;
	struct events_call *c = calloc(1, sizeof(*c));
	struct error err = ERROR_INIT;
	int r;

	if (c)
		r = events_call_fill(c, s, (const Nacre__V1__EventsRequest *)(const void *)request,
				     &err);
	else
		r = error_set(&err, -ENOMEM, "tell events");
	if (r < 0) {
		free(c);
		rpc_call_fail(call, &err);
		return;
	}
	c->feed.call = call;
	c->feed.events = s->events;
	c->feed.ops = &events_call_ops;
	feed_start(&c->feed);
}
