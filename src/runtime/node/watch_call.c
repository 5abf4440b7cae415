/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/node/watch_call.h"

#include <errno.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "pod/workload/workload.h"
#include "runtime/core/convert.h"
#include "runtime/core/shown.h"
#include "runtime/node/feed.h"
#include "runtime/services.h"

struct watch_call {
	struct feed feed;
	const struct workload_service *service;
	struct shown_filter filter;
	struct shown_place place; /* what was there is sent up to here */
};

static struct watch_call *watch_of(struct feed *f)
{
	return container_of(f, struct watch_call, feed);
}

static int watch_send(const struct feed *f, const Nacre__V1__WatchResponse *m, struct error *err)
{
	int r = rpc_call_send(f->call, &m->base);

	return r < 0 ? error_set(err, r, "send a change") : 0;
}

static int watch_send_target(const struct feed *f, const struct target *t, const char *token,
			     struct error *err)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	Nacre__V1__WatchResponse m = NACRE__V1__WATCH_RESPONSE__INIT;

	m.workload = convert_target(&a, t, CONVERT_ALL);
	m.resume_token = (char *)(uintptr_t)token;
	return m.workload ? watch_send(f, &m, err) : error_set(err, -ENOMEM, "send a change");
}

/* ---- what is there ---- */

static int watch_synced(const struct feed *f, struct error *err)
{
	Nacre__V1__WatchResponse m = NACRE__V1__WATCH_RESPONSE__INIT;
	char token[EVENTS_TOKEN_SIZE];
	int r;

	events_token(f->events, f->next - 1, token);
	m.synced = true;
	m.resume_token = token;
	r = watch_send(f, &m, err);
	return r < 0 ? r : 1;
}

static int watch_begin(struct feed *f, struct error *err)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	struct watch_call *c = watch_of(f);
	struct target *found;
	size_t n;
	int r;

	if (!rpc_call_writable(f->call))
		return 0;
	r = shown_collect(c->service, &c->filter, &c->place, &a, &found, &n);
	if (r < 0)
		return error_set(err, r, "watch");
	for (size_t i = 0; i < n; i++) {
		if (!rpc_call_writable(f->call))
			return 0;
		r = watch_send_target(f, &found[i], "", err);
		if (r < 0)
			return r;
		c->place = shown_place_of(&found[i]);
	}
	return watch_synced(f, err);
}

/* ---- what changes ---- */

static int watch_removed(struct feed *f, const struct event *e, const char *token,
			 struct error *err)
{
	Nacre__V1__WatchResponse m = NACRE__V1__WATCH_RESPONSE__INIT;

	if (!shown_covers(&watch_of(f)->filter, e->kind, e->name))
		return 0;
	m.removed = (char *)(uintptr_t)e->id;
	m.resume_token = (char *)(uintptr_t)token;
	return watch_send(f, &m, err);
}

static int watch_event(struct feed *f, const struct event *e, struct error *err)
{
	const struct watch_call *c = watch_of(f);
	bool whole = !str_eq(e->object, "container");
	char token[EVENTS_TOKEN_SIZE];
	struct target t = { .workload = NULL };

	if (str_eq(e->object, "image"))
		return 0;
	events_token(f->events, e->sequence, token);
	if (whole && str_eq(e->state, "removed"))
		return watch_removed(f, e, token, err);
	if (str_eq(e->object, "instance"))
		t.instance = instances_find_id(c->service->instances, e->id);
	else
		t.workload = workloads_find_id(c->service->workloads, whole ? e->id : e->workload);
	/* What is gone by now is told by an event further on. */
	if ((!t.workload && !t.instance) || !shown_is(&t) || !shown_matches(&c->filter, &t))
		return 0;
	return watch_send_target(f, &t, token, err);
}

static void watch_free(struct feed *f)
{
	free(watch_of(f));
}

static const struct feed_ops watch_ops = {
	.begin = watch_begin,
	.event = watch_event,
	.free = watch_free,
};

void watch_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__WatchRequest *q = (const Nacre__V1__WatchRequest *)(const void *)request;
	struct watch_call *c = calloc(1, sizeof(*c));
	struct error err = ERROR_INIT;
	int r;

	if (c)
		r = shown_filter_set(&c->filter, q->kinds, q->n_kinds, NULL, 0, q->below, &err);
	else
		r = error_set(&err, -ENOMEM, "watch");
	if (r < 0) {
		free(c);
		rpc_call_fail(call, &err);
		return;
	}
	c->filter.ended = true;
	c->service = userdata;
	c->feed.call = call;
	c->feed.events = c->service->events;
	c->feed.next = c->feed.events->sequence + 1;
	c->feed.ops = &watch_ops;
	feed_start(&c->feed);
}
