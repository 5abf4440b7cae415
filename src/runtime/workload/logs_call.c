/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/logs_call.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text/str.h"
#include "base/time/clock.h"
#include "pod/log/log_reader.h"
#include "pod/workload/workload.h"
#include "runtime/services.h"

struct logs_call {
	struct rpc_call *call;
	struct workload_service *service;
	struct log_reader *reader;
	struct logs_form form;
	char workload[ID_SIZE];
	char name[NAME_PATH_MAX + NAME_LABEL_MAX + 2]; /* for people */
	bool waits;                                    /* is a waiter of the workload */
	struct loop_timer until;                       /* when it ends at the latest */
};

static void logs_call_free(struct logs_call *c)
{
	struct workload *w = workloads_find(c->service->workloads, c->workload);

	if (w && c->waits)
		workload_forget_waiter(w, c);
	rpc_call_on_cancel(c->call, NULL, NULL);
	rpc_call_on_writable(c->call, NULL, NULL);
	loop_timer_done(&c->until);
	c->reader = log_reader_free(c->reader);
	free(c);
}

static void logs_call_fail(struct logs_call *c, const struct error *err)
{
	struct rpc_call *call = c->call;

	logs_call_free(c);
	rpc_call_fail(call, err);
}

static void logs_call_cancelled(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)call;
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	logs_call_fail(data, &err);
}

static void logs_call_writable(struct rpc_call *call, void *data)
{
	struct logs_call *c = data;

	(void)call;
	log_reader_pause(c->reader, false);
}

/* What its form has sent, or not. */
static bool logs_call_sent(struct logs_call *c, int r)
{
	struct error err = ERROR_INIT;

	if (r < 0) {
		(void)error_set(&err, r, "send a log");
		logs_call_fail(c, &err);
	} else if (!rpc_call_writable(c->call)) {
		log_reader_pause(c->reader, true);
	}
	return r >= 0;
}

static void logs_call_data(void *userdata, int stream, uint64_t time, const void *data, size_t len)
{
	struct logs_call *c = userdata;

	(void)logs_call_sent(c, c->form.data(c->form.state, c->call, stream, time, data, len));
}

static void logs_call_skipped(void *userdata, uint64_t n)
{
	struct logs_call *c = userdata;

	(void)logs_call_sent(c, c->form.skipped(c->form.state, c->call, n));
}

static int logs_form_data(void *state, struct rpc_call *call, int stream, uint64_t time,
			  const void *data, size_t len)
{
	Nacre__V1__LogsResponse m = NACRE__V1__LOGS_RESPONSE__INIT;

	(void)state;
	m.stream = stream == 2 ? NACRE__V1__LOGS_RESPONSE__STREAM__STREAM_STDERR
			       : NACRE__V1__LOGS_RESPONSE__STREAM__STREAM_STDOUT;
	m.time = time;
	m.data.data = (uint8_t *)(uintptr_t)data;
	m.data.len = len;
	return rpc_call_send(call, &m.base);
}

static int logs_form_skipped(void *state, struct rpc_call *call, uint64_t n)
{
	Nacre__V1__LogsResponse m = NACRE__V1__LOGS_RESPONSE__INIT;

	(void)state;
	m.skipped = n;
	return rpc_call_send(call, &m.base);
}

static int logs_form_end(void *state, struct rpc_call *call)
{
	(void)state;
	(void)call;
	return 0;
}

static int logs_call_missing(const struct logs_call *c, struct error *err)
{
	return error_refuse(err, ERROR_NOT_FOUND, "%s has no log: it never started", c->name);
}

static void logs_call_end(void *userdata, const struct error *err)
{
	struct logs_call *c = userdata;
	struct rpc_call *call = c->call;
	struct error own = ERROR_INIT;

	if (err) {
		own = *err;
		(void)(err->code == -ENOENT ? logs_call_missing(c, &own)
					    : error_wrap(&own, err->code, "%s", c->name));
		logs_call_fail(c, &own);
		return;
	}
	if (!logs_call_sent(c, c->form.end(c->form.state, call)))
		return;
	logs_call_free(c);
	rpc_call_finish(call);
}

static const struct log_reader_ops logs_call_ops = {
	.on_data = logs_call_data,
	.on_skipped = logs_call_skipped,
	.on_end = logs_call_end,
};

/* The container has ended, and all of its output is in the file. */
static void logs_call_ended(void *userdata, struct workload *w, const struct error *err)
{
	struct logs_call *c = userdata;

	(void)w;
	(void)err;
	c->waits = false;
	log_reader_finish(c->reader);
}

static void logs_call_until(struct loop_timer *t)
{
	log_reader_finish(container_of(t, struct logs_call, until)->reader);
}

int logs_call_start_as(struct rpc_call *call, struct workload_service *service,
		       const struct log_wish *wish, uint64_t until, const struct logs_form *form,
		       struct pod_container *container, struct error *err)
{
	struct workload *w = container->workload;
	struct logs_call *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "read a log");
	c->call = call;
	c->service = service;
	c->form = *form;
	loop_timer_init(&c->until, service->loop, logs_call_until);
	(void)str_copy(c->workload, sizeof(c->workload), w->id);
	(void)str_printf(c->name, sizeof(c->name), "%s/%s", w->path, container->name);
	r = log_reader_new(&c->reader, service->logs, w->id, container->name, wish, &logs_call_ops,
			   c);
	if (r < 0) {
		(void)(r == -ENOENT ? logs_call_missing(c, err)
				    : error_set(err, r, "open the log of %s", c->name));
		loop_timer_done(&c->until);
		free(c);
		return err->code;
	}
	rpc_call_on_cancel(call, logs_call_cancelled, c);
	rpc_call_on_writable(call, logs_call_writable, c);
	if (wish->follow && until)
		loop_timer_set(&c->until, until - MIN(until, clock_real()));
	if (wish->follow) {
		c->waits = true;
		workload_wait(w, container, logs_call_ended, c);
	}
	return 0;
}

int logs_call_start(struct rpc_call *call, struct workload_service *service,
		    const Nacre__V1__LogsRequest *request, struct pod_container *container,
		    struct error *err)
{
	static const struct logs_form form = { .data = logs_form_data,
					       .skipped = logs_form_skipped,
					       .end = logs_form_end };
	struct log_wish wish = { .follow = request->follow &&
					   (!request->until || request->until > clock_real()),
				 .since = request->since,
				 .until = request->until,
				 .has_tail = request->tail != NULL,
				 .tail = request->tail ? request->tail->lines : 0 };

	return logs_call_start_as(call, service, &wish, request->until, &form, container, err);
}
