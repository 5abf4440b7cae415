/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/node/feed.h"

#include <errno.h>

static void feed_end(struct feed *f, const struct error *err)
{
	struct rpc_call *call = f->call;

	events_remove(&f->listener);
	rpc_call_on_cancel(call, NULL, NULL);
	rpc_call_on_writable(call, NULL, NULL);
	f->ops->free(f);
	rpc_call_fail(call, err);
}

static void feed_cancelled(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)call;
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	feed_end(data, &err);
}

static int feed_next(struct feed *f, struct error *err)
{
	const struct event *e = events_get(f->events, f->next);

	if (!e)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "this client reads too slowly, only the last %d events are "
				    "kept: watch anew",
				    EVENTS_KEPT);
	f->next++;
	return f->ops->event(f, e, err);
}

/* Sends what there is and the client takes. */
static void feed_run(struct feed *f)
{
	struct error err = ERROR_INIT;
	int r = 1;

	if (!f->begun) {
		r = f->ops->begin ? f->ops->begin(f, &err) : 1;
		f->begun = r == 1;
	}
	while (r >= 0 && f->begun && f->next <= f->events->sequence && rpc_call_writable(f->call))
		r = feed_next(f, &err);
	/* A reader that is held up is told as soon as it cannot be helped any more, not when it
	 * reads again: what it holds is worth nothing to it. */
	if (r >= 0 && f->next <= f->events->sequence && !events_get(f->events, f->next))
		r = feed_next(f, &err);
	if (r < 0)
		feed_end(f, &err);
}

static void feed_writable(struct rpc_call *call, void *data)
{
	(void)call;
	feed_run(data);
}

static void feed_heard(struct event_listener *l, const struct event *e)
{
	(void)e;
	feed_run(container_of(l, struct feed, listener));
}

void feed_start(struct feed *f)
{
	f->listener.fn = feed_heard;
	events_add(f->events, &f->listener);
	rpc_call_on_cancel(f->call, feed_cancelled, f);
	rpc_call_on_writable(f->call, feed_writable, f);
	feed_run(f);
}
