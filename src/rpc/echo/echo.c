/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/echo/echo.h"

#include <errno.h>

#include "base/file/fd.h"
#include "loop/loop.h"
#include "rpc/rpc_test.pb-c.h"
#include "rpc/server/server.h"

static void echo_echo(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__Test__V1__EchoRequest *in = (const void *)request;
	Nacre__Test__V1__EchoResponse out = NACRE__TEST__V1__ECHO_RESPONSE__INIT;

	out.data = in->data;
	out.text = in->text;
	rpc_call_reply(call, &out.base);
}

/* ---- Gather ---- */

struct echo_gather {
	struct echo *echo;
	Nacre__Test__V1__GatherResponse sum;
};

static void echo_gather_cancel(struct rpc_call *call, void *data)
{
	struct echo_gather *g = data;

	g->echo->n_cancelled++;
	rpc_call_finish(call);
}

static void echo_gather_more(struct rpc_call *call, const ProtobufCMessage *message, void *data)
{
	const Nacre__Test__V1__EchoRequest *in = (const void *)message;
	struct echo_gather *g = data;

	if (!in) {
		rpc_call_reply(call, &g->sum.base);
		return;
	}
	g->sum.messages++;
	g->sum.bytes += in->data.len;
}

static void echo_gather(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct echo_gather *g = arena_zalloc(rpc_call_arena(call), 1, sizeof(*g));
	struct error err = ERROR_INIT;

	if (!g) {
		(void)error_set(&err, -ENOMEM, "gather");
		rpc_call_fail(call, &err);
		return;
	}
	g->echo = userdata;
	nacre__test__v1__gather_response__init(&g->sum);
	echo_gather_more(call, request, g);
	if (!request)
		return;
	rpc_call_on_cancel(call, echo_gather_cancel, g);
	rpc_call_on_message(call, echo_gather_more, g);
}

/* ---- Talk ---- */

static void echo_talk_more(struct rpc_call *call, const ProtobufCMessage *message, void *data)
{
	const Nacre__Test__V1__EchoRequest *in = (const void *)message;
	Nacre__Test__V1__EchoResponse out = NACRE__TEST__V1__ECHO_RESPONSE__INIT;
	struct error err = ERROR_INIT;
	struct echo *echo = data;
	int r;

	if (!in) {
		rpc_call_finish(call);
		return;
	}
	out.data = in->data;
	out.text = in->text;
	echo->n_sent++;
	r = rpc_call_send(call, &out.base);
	if (r < 0) {
		(void)error_set(&err, r, "send");
		rpc_call_fail(call, &err);
		return;
	}
	rpc_call_pause(call, !rpc_call_writable(call));
}

static void echo_talk_writable(struct rpc_call *call, void *data)
{
	rpc_call_pause(call, false);
}

static void echo_talk_cancel(struct rpc_call *call, void *data)
{
	struct echo *echo = data;

	echo->n_cancelled++;
	rpc_call_finish(call);
}

static void echo_talk(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	if (request) {
		rpc_call_on_cancel(call, echo_talk_cancel, userdata);
		rpc_call_on_writable(call, echo_talk_writable, userdata);
		rpc_call_on_message(call, echo_talk_more, userdata);
	}
	echo_talk_more(call, request, userdata);
}

/* ---- Count ---- */

struct echo_count {
	struct echo *echo;
	uint32_t next, count;
	ProtobufCBinaryData ballast;
};

static void echo_count_more(struct rpc_call *call, void *data)
{
	struct echo_count *n = data;
	Nacre__Test__V1__CountResponse out = NACRE__TEST__V1__COUNT_RESPONSE__INIT;
	struct error err = ERROR_INIT;
	int r;

	while (n->next < n->count && rpc_call_writable(call)) {
		out.number = n->next++;
		out.ballast = n->ballast;
		n->echo->n_sent++;
		r = rpc_call_send(call, &out.base);
		if (r < 0) {
			(void)error_set(&err, r, "send");
			rpc_call_fail(call, &err);
			return;
		}
	}
	if (n->next == n->count)
		rpc_call_finish(call);
}

static void echo_count_cancel(struct rpc_call *call, void *data)
{
	struct echo_count *n = data;

	n->echo->n_cancelled++;
	rpc_call_finish(call);
}

static void echo_count(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__Test__V1__CountRequest *in = (const void *)request;
	struct echo_count *n = arena_zalloc(rpc_call_arena(call), 1, sizeof(*n));
	struct error err = ERROR_INIT;

	if (n)
		n->ballast.data = arena_zalloc(rpc_call_arena(call), 1, in->size);
	if (!n || !n->ballast.data) {
		(void)error_set(&err, -ENOMEM, "count");
		rpc_call_fail(call, &err);
		return;
	}
	n->echo = userdata;
	n->count = in->count;
	n->ballast.len = in->size;
	rpc_call_on_cancel(call, echo_count_cancel, n);
	rpc_call_on_writable(call, echo_count_more, n);
	echo_count_more(call, n);
}

/* ---- Wait ---- */

struct echo_wait {
	struct loop_timer timer;
	struct rpc_call *call;
	struct echo *echo;
};

static void echo_wait_over(struct loop_timer *t)
{
	struct echo_wait *w = container_of(t, struct echo_wait, timer);
	Nacre__Test__V1__WaitResponse out = NACRE__TEST__V1__WAIT_RESPONSE__INIT;

	loop_timer_done(&w->timer);
	rpc_call_reply(w->call, &out.base);
}

static void echo_wait_cancel(struct rpc_call *call, void *data)
{
	struct echo_wait *w = data;
	struct error err = ERROR_INIT;

	w->echo->n_cancelled++;
	loop_timer_done(&w->timer);
	(void)error_refuse(&err, ERROR_CANCELLED, "nobody waits any more");
	rpc_call_fail(call, &err);
}

static void echo_wait(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__Test__V1__WaitRequest *in = (const void *)request;
	struct echo_wait *w = arena_zalloc(rpc_call_arena(call), 1, sizeof(*w));
	struct error err = ERROR_INIT;

	if (!w) {
		(void)error_set(&err, -ENOMEM, "wait");
		rpc_call_fail(call, &err);
		return;
	}
	w->call = call;
	w->echo = userdata;
	loop_timer_init(&w->timer, w->echo->loop, echo_wait_over);
	loop_timer_set(&w->timer, in->milliseconds * NSEC_PER_MSEC);
	rpc_call_on_cancel(call, echo_wait_cancel, w);
}

static void echo_fail(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__Test__V1__FailRequest *in = (const void *)request;
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, (enum error_kind)in->kind, "%s", in->text);
	rpc_call_fail(call, &err);
}

static const struct rpc_method echo_methods[] = {
	{ .name = "Echo",
	  .input = &nacre__test__v1__echo_request__descriptor,
	  .output = &nacre__test__v1__echo_response__descriptor,
	  .handle = echo_echo },
	{ .name = "Gather",
	  .input = &nacre__test__v1__echo_request__descriptor,
	  .output = &nacre__test__v1__gather_response__descriptor,
	  .client_streaming = true,
	  .handle = echo_gather },
	{ .name = "Talk",
	  .input = &nacre__test__v1__echo_request__descriptor,
	  .output = &nacre__test__v1__echo_response__descriptor,
	  .client_streaming = true,
	  .server_streaming = true,
	  .handle = echo_talk },
	{ .name = "Count",
	  .input = &nacre__test__v1__count_request__descriptor,
	  .output = &nacre__test__v1__count_response__descriptor,
	  .server_streaming = true,
	  .handle = echo_count },
	{ .name = "Wait",
	  .input = &nacre__test__v1__wait_request__descriptor,
	  .output = &nacre__test__v1__wait_response__descriptor,
	  .handle = echo_wait },
	{ .name = "Fail",
	  .input = &nacre__test__v1__fail_request__descriptor,
	  .output = &nacre__test__v1__fail_response__descriptor,
	  .handle = echo_fail },
};

int echo_listen(struct echo_address *ret)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	*ret = (struct echo_address){ .address.sun_family = AF_UNIX,
				      .len = sizeof(struct sockaddr_un) };
	if (fd < 0 || bind(fd, (const struct sockaddr *)&ret->address, sizeof(sa_family_t)) < 0 ||
	    listen(fd, 128) < 0 || getsockname(fd, (struct sockaddr *)&ret->address, &ret->len) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int echo_connect(const struct echo_address *to)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to->address, to->len) < 0 ||
	    fd_set_nonblock(fd, true) < 0)
		return -errno;
	return TAKE_FD(fd);
}

const struct rpc_service echo_service = {
	.name = "nacre.test.v1.Test",
	.methods = echo_methods,
	.n_methods = ARRAY_SIZE(echo_methods),
};
