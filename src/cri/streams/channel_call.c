/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/streams/channel_call.h"

#include <errno.h>
#include <stdlib.h>

#include "api/cri.pb-c.h"
#include "api/instance.pb-c.h"
#include "base/text/id.h"
#include "base/text/str.h"
#include "cri/sandbox/find.h"
#include "cri/sandbox/record.h"
#include "cri/services.h"
#include "keeper/client/client.h"
#include "keeper/server/passing.h"
#include "pod/workload/workload.h"
#include "rpc/exchange/client.h"
#include "rpc/server/server.h"
#include "runtime/core/check.h"
#include "stream/server.h"

#define METHOD(name) "/nacre.instance.v1.InstanceService/" name
#define URL_MAX 256

/* Between a client of the streaming server and a keeper. Responses of Exec and Attach have the
 * fields that are looked at here in common, and so have the inputs. */
struct channel {
	struct cri_runtime_service *service;
	char id[ID_SIZE]; /* of the container */
	bool is_exec;
	bool closes_input; /* the end of the client's input is that of the program's */
	uint8_t *request;  /* packed: the first message */
	size_t request_len;
	struct passing_turn turn;
	struct stream_session *session;
	struct rpc_stream *stream; /* NULL: not asked yet, or ended */
	bool has_ended;
	int exit_code;
	struct error failure;
};

static struct channel *channel_free(struct channel *c)
{
	if (!c)
		return NULL;
	passing_turn_done(&c->turn);
	if (c->stream)
		rpc_stream_cancel(c->stream);
	free(c->request);
	free(c);
	return NULL;
}

/* ---- from the keeper ---- */

static void channel_output(struct channel *c, int stream, const ProtobufCBinaryData *bytes)
{
	if (bytes->len > 0)
		stream_session_output(c->session, stream, bytes->data, bytes->len);
}

static void channel_on_message(struct rpc_stream *s, const uint8_t *data, size_t len,
			       void *userdata)
{
	struct channel *c = userdata;
	ProtobufCMessage *decoded = rpc_decode(&nacre__instance__v1__exec_response__descriptor,
					       data, len, NULL, &c->failure);
	const Nacre__Instance__V1__ExecResponse *m = (const void *)decoded;

	if (!m)
		return;
	channel_output(c, 1, &m->stdout);
	channel_output(c, 2, &m->stderr);
	if (m->exit) {
		c->has_ended = true;
		c->exit_code = m->exit->exit_code;
	}
	protobuf_c_message_free_unpacked(decoded, NULL);
	if (stream_session_is_full(c->session))
		rpc_stream_pause(s, true);
}

static void channel_on_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
			   void *userdata)
{
	struct channel *c = userdata;
	struct error own = c->failure;

	(void)s;
	(void)code;
	c->stream = NULL;
	if (!own.code && err && err->code)
		own = *err;
	if (!own.code && !c->has_ended)
		(void)error_refuse(&own, ERROR_UNAVAILABLE, "how it ended is not known");
	if (own.code)
		stream_session_fail(c->session, &own);
	/* Who only looked on is told that it is over. */
	else
		stream_session_exit(c->session, c->is_exec ? c->exit_code : 0);
}

static void channel_on_writable(struct rpc_stream *s, void *userdata)
{
	struct channel *c = userdata;

	(void)s;
	stream_session_hold_input(c->session, false);
}

static const struct rpc_stream_ops channel_ops = {
	.on_message = channel_on_message,
	.on_end = channel_on_end,
	.on_writable = channel_on_writable,
};

/* ---- from the client ---- */

static int channel_ask(struct channel *c, struct error *err)
{
	struct rpc_request request = {
		.method = c->is_exec ? METHOD("Exec") : METHOD("Attach"),
		.data = c->request,
		.len = c->request_len,
		.timeout = NSEC_NEVER,
		.more = true,
	};
	struct pod_container *of;
	struct peer *peer;
	int r = cri_find_running(c->service, c->id, &of, &peer, err);

	if (r == 0)
		r = passing_queue(peer, &c->turn, err);
	if (r <= 0)
		return r;
	request.target = keeper_client_target(peer);
	r = rpc_client_call(keeper_client_rpc(peer), &request, &channel_ops, c, &c->stream);
	if (r < 0)
		return error_set(err, r, "call its keeper");
	stream_session_hold_input(c->session, false);
	return 0;
}

static void channel_on_turn(struct passing_turn *t)
{
	struct channel *c = container_of(t, struct channel, turn);
	struct error err = ERROR_INIT;

	if (channel_ask(c, &err) < 0)
		stream_session_fail(c->session, &err);
}

static int channel_begin(void *userdata, struct stream_session *s, struct error *err)
{
	struct channel *c = userdata;

	c->session = s;
	stream_session_hold_input(s, true);
	return channel_ask(c, err);
}

static void channel_send(struct channel *c, Nacre__Instance__V1__StreamInput *input)
{
	Nacre__Instance__V1__ExecRequest m = NACRE__INSTANCE__V1__EXEC_REQUEST__INIT;
	uint8_t *data;
	struct error err = ERROR_INIT;
	size_t len;
	int r = -ENOMEM;

	if (!c->stream)
		return;
	/* The field has the same number in an AttachRequest. */
	m.input = input;
	len = nacre__instance__v1__exec_request__get_packed_size(&m);
	data = malloc(len + 1);
	if (data) {
		(void)nacre__instance__v1__exec_request__pack(&m, data);
		r = rpc_stream_send(c->stream, data, len);
	}
	free(data);
	if (r < 0) {
		(void)error_set(&err, r, "pass its input on");
		stream_session_fail(c->session, &err);
	} else if (!rpc_stream_writable(c->stream)) {
		stream_session_hold_input(c->session, true);
	}
}

static void channel_on_input(void *userdata, const void *data, size_t len)
{
	Nacre__Instance__V1__StreamInput input = NACRE__INSTANCE__V1__STREAM_INPUT__INIT;

	input.data = (ProtobufCBinaryData){ .data = (uint8_t *)(uintptr_t)data, .len = len };
	channel_send(userdata, &input);
}

static void channel_on_input_end(void *userdata)
{
	Nacre__Instance__V1__StreamInput input = NACRE__INSTANCE__V1__STREAM_INPUT__INIT;
	struct channel *c = userdata;

	input.close = true;
	if (c->closes_input)
		channel_send(c, &input);
}

static void channel_on_resize(void *userdata, uint16_t width, uint16_t height)
{
	Nacre__Instance__V1__TerminalSize size = NACRE__INSTANCE__V1__TERMINAL_SIZE__INIT;
	Nacre__Instance__V1__StreamInput input = NACRE__INSTANCE__V1__STREAM_INPUT__INIT;

	size.width = width;
	size.height = height;
	input.terminal = &size;
	channel_send(userdata, &input);
}

static void channel_on_room(void *userdata)
{
	struct channel *c = userdata;

	if (c->stream)
		rpc_stream_pause(c->stream, false);
}

static void channel_gone(void *userdata)
{
	(void)channel_free(userdata);
}

/* ---- the calls ---- */

/* What a client may want of both. */
struct wish {
	bool in, out, err, tty;
};

static int wish_check(const struct wish *w, struct error *err)
{
	if (w->tty && w->err)
		return error_field(err, ERROR_INVALID, "stderr",
				   "not with tty: a terminal has one output");
	if (!w->in && !w->out && !w->err)
		return error_field(err, ERROR_INVALID, "stdin",
				   "at least one of stdin, stdout and stderr is needed");
	return 0;
}

static struct channel *channel_new(struct cri_runtime_service *s, const struct pod_container *of,
				   const ProtobufCMessage *request)
{
	struct channel *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->service = s;
	(void)str_copy(c->id, sizeof(c->id), of->id);
	passing_turn_init(&c->turn, channel_on_turn);
	c->request_len = protobuf_c_message_get_packed_size(request);
	c->request = malloc(c->request_len + 1);
	if (!c->request)
		return channel_free(c);
	(void)protobuf_c_message_pack(request, c->request);
	return c;
}

static int channel_offer(struct channel *c, const struct wish *w, char url[URL_MAX],
			 struct error *err)
{
	const struct stream_command command = {
		.kind = c->is_exec ? "exec" : "attach",
		.in = w->in,
		.out = w->out,
		.err = w->err,
		.tty = w->tty,
		.begin = channel_begin,
		.on_input = channel_on_input,
		.on_input_end = channel_on_input_end,
		.on_resize = channel_on_resize,
		.on_room = channel_on_room,
		.gone = channel_gone,
		.userdata = c,
	};

	return stream_server_offer(c->service->streams, &command, url, URL_MAX, err);
}

static int exec_offer(struct cri_runtime_service *s, const Runtime__V1__ExecRequest *q,
		      char url[URL_MAX], struct error *err)
{
	Nacre__Instance__V1__ExecRequest m = NACRE__INSTANCE__V1__EXEC_REQUEST__INIT;
	const struct wish wish = { q->stdin, q->stdout, q->stderr, q->tty };
	struct pod_container *of;
	struct channel *c;
	struct peer *peer;
	int r = check_words("cmd", q->cmd, q->n_cmd, err);

	if (r == 0)
		r = wish_check(&wish, err);
	if (r == 0)
		r = cri_find_running(s, q->container_id, &of, &peer, err);
	if (r < 0)
		return r;
	m.id = of->id;
	m.argv = q->cmd;
	m.n_argv = q->n_cmd;
	m.stdin = q->stdin;
	m.tty = q->tty;
	c = channel_new(s, of, &m.base);
	if (!c)
		return error_set(err, -ENOMEM, "exec");
	c->is_exec = true;
	c->closes_input = true;
	r = channel_offer(c, &wish, url, err);
	if (r < 0)
		(void)channel_free(c);
	return r;
}

void cri_exec(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Runtime__V1__ExecResponse m = RUNTIME__V1__EXEC_RESPONSE__INIT;
	struct error err = ERROR_INIT;
	char url[URL_MAX];

	m.url = url;
	if (exec_offer(userdata, (const Runtime__V1__ExecRequest *)(const void *)request, url,
		       &err) < 0)
		rpc_call_fail(call, &err);
	else
		rpc_call_reply(call, &m.base);
}

static int attach_offer(struct cri_runtime_service *s, struct arena *a,
			const Runtime__V1__AttachRequest *q, char url[URL_MAX], struct error *err)
{
	Nacre__Instance__V1__AttachRequest m = NACRE__INSTANCE__V1__ATTACH_REQUEST__INIT;
	const Runtime__V1__CreateContainerRequest *record;
	struct wish wish = { q->stdin, q->stdout, q->stderr, q->tty };
	struct pod_container *of;
	struct channel *c;
	struct peer *peer;
	int r = wish_check(&wish, err);

	if (r == 0)
		r = cri_find_running(s, q->container_id, &of, &peer, err);
	if (r < 0)
		return r;
	if (q->tty != of->tty)
		return error_field(err, ERROR_INVALID, "tty", "the container %s has %s", of->id,
				   of->tty ? "a terminal" : "none");
	m.id = of->id;
	/* One without stdin reads nothing. */
	m.stdin = q->stdin && of->stdin_open;
	record = cri_record_of_container(a, of);
	c = channel_new(s, of, &m.base);
	if (!c)
		return error_set(err, -ENOMEM, "attach");
	c->closes_input = m.stdin && record && record->config && record->config->stdin_once;
	r = channel_offer(c, &wish, url, err);
	if (r < 0)
		(void)channel_free(c);
	return r;
}

void cri_attach(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Runtime__V1__AttachResponse m = RUNTIME__V1__ATTACH_RESPONSE__INIT;
	struct error err = ERROR_INIT;
	char url[URL_MAX];

	m.url = url;
	if (attach_offer(userdata, rpc_call_arena(call),
			 (const Runtime__V1__AttachRequest *)(const void *)request, url, &err) < 0)
		rpc_call_fail(call, &err);
	else
		rpc_call_reply(call, &m.base);
}
