/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/client.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/file/fd.h"
#include "base/process/thread.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/remote/remote.h"
#include "cli/remote/target.h"
#include "io/unix.h"
#include "loop/loop.h"
#include "rpc/exchange/client.h"

struct client {
	struct loop *loop;
	struct rpc_client *rpc;
	struct remote *remote; /* NULL: the daemon is here */
};

/* A path that is too long for a socket's address goes by the descriptor of its directory. */
static int client_connect(const char *path, struct error *err)
{
	_cleanup_str_ char *dir = NULL;
	_cleanup_fd_ int dir_fd = -1;
	const char *slash = strrchr(path, '/');

	if (!slash || strlen(path) < sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return unix_connect(AT_FDCWD, path, SOCK_STREAM, err);
	dir = xformat("%.*s", (int)(slash - path + 1), path);
	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return error_set(err, -errno, "open %s", dir);
	return unix_connect(dir_fd, slash + 1, SOCK_STREAM, err);
}

static void client_explain(const char *path, int r, struct error *err)
{
	const char *hint = r == -ENOENT || r == -ECONNREFUSED ? " (is `nacre daemon` running?)"
			   : r == -EACCES || r == -EPERM      ? " (are you root?)"
							      : "";

	*err = (struct error)ERROR_INIT;
	(void)error_refuse(err, ERROR_UNAVAILABLE, "cannot reach the daemon at %s: %s%s", path,
			   strerror(-r), hint);
}

/* A socket to speak HTTP/2 over, or a negative errno with err. */
static int client_reach(struct client *c, const struct client_target *target, struct error *err)
{
	int fd, r;

	if (!target->socket) {
		r = remote_connect(&c->remote, target, &fd, err);
		return r < 0 ? r : fd;
	}
	fd = client_connect(target->socket, err);
	if (fd < 0)
		client_explain(target->socket, fd, err);
	return fd;
}

struct client *client_open(const struct client_target *target, struct error *err)
{
	_cleanup_client_ struct client *c = xrealloc(NULL, 1, sizeof(*c));
	int fd, r;

	*c = (struct client){ .loop = NULL };
	/* It waits for answers, and a person for it. */
	(void)thread_be_prompt();
	fd = client_reach(c, target, err);
	if (fd < 0)
		return NULL;
	r = loop_new(&c->loop);
	if (r < 0) {
		(void)fd_close(fd);
		(void)error_set(err, r, "make an event loop");
		return NULL;
	}
	r = rpc_client_new(&c->rpc, c->loop, fd);
	if (r == 0)
		r = rpc_client_widen(c->rpc);
	if (r < 0) {
		(void)error_set(err, r, "begin HTTP/2 with the daemon");
		return NULL;
	}
	return TAKE_PTR(c);
}

struct client *client_free(struct client *c)
{
	if (!c)
		return NULL;
	if (c->rpc)
		(void)rpc_client_free(c->rpc);
	(void)loop_free(c->loop);
	(void)remote_free(c->remote);
	free(c);
	return NULL;
}

struct loop *client_loop(struct client *c)
{
	return c->loop;
}

static void client_call_message(struct rpc_stream *s, const uint8_t *data, size_t len,
				void *userdata)
{
	struct client_call *call = userdata;
	ProtobufCMessage *message;

	if (call->done)
		return;
	message = rpc_decode(call->type, data, len, NULL, &call->err);
	if (!message) {
		/* Not cancelled here: the stream is the one that calls. */
		(void)error_wrap(&call->err, 0, "the daemon's answer");
		call->done = true;
		return;
	}
	if (!call->on_message) {
		client_message_freep(&call->answer);
		call->answer = message;
		return;
	}
	call->on_message(call, message);
	protobuf_c_message_free_unpacked(message, NULL);
}

static void client_call_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
			    void *userdata)
{
	struct client_call *call = userdata;

	call->stream = NULL;
	if (!call->done && err && err->code)
		(void)error_copy(&call->err, err);
	call->done = true;
	if (call->on_end)
		call->on_end(call);
}

static void client_call_drained(struct rpc_stream *s, void *userdata)
{
	struct client_call *call = userdata;

	if (!call->done && call->on_writable)
		call->on_writable(call);
}

void client_call_start(struct client *c, struct client_call *call, const char *method,
		       const ProtobufCMessage *request)
{
	static const struct rpc_stream_ops ops = {
		.on_message = client_call_message,
		.on_end = client_call_end,
		.on_writable = client_call_drained,
	};
	struct rpc_request r = {
		.method = method,
		.message = request,
		.timeout = call->timeout ? call->timeout : NSEC_NEVER,
		.more = call->more,
	};
	int code;

	assert(!call->stream);
	call->done = false;
	call->err = (struct error)ERROR_INIT;
	code = rpc_client_call(c->rpc, &r, &ops, call, &call->stream);
	if (code < 0) {
		(void)error_set(&call->err, code, "call %s", method);
		call->done = true;
	}
}

void client_call_send(struct client_call *call, const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	uint8_t *data;
	int r;

	if (!call->stream || !call->more || call->done)
		return;
	data = xrealloc(NULL, len + 1, 1);
	(void)protobuf_c_message_pack(message, data);
	r = rpc_stream_send(call->stream, data, len);
	free(data);
	if (r < 0) {
		(void)error_set(&call->err, r, "send to the daemon");
		call->done = true;
	}
}

bool client_call_writable(const struct client_call *call)
{
	return call->stream && rpc_stream_writable(call->stream);
}

void client_call_close_send(struct client_call *call)
{
	if (call->stream && call->more)
		rpc_stream_close_send(call->stream);
	call->more = false;
}

int client_call_wait(struct client *c, struct client_call *call)
{
	while (!call->done)
		loop_turn(c->loop, true);
	if (call->err.kind == ERROR_UNAVAILABLE && c->remote)
		remote_explain(c->remote, &call->err);
	return call->err.code;
}

void client_call_done(struct client_call *call)
{
	struct rpc_stream *stream = TAKE_PTR(call->stream);

	call->done = true;
	if (stream)
		rpc_stream_cancel(stream);
	client_message_freep(&call->answer);
	call->answer = NULL;
}

static void *client_question(struct client *c, const char *method, const ProtobufCMessage *request,
			     const ProtobufCMessageDescriptor *type, nsec_t timeout,
			     struct error *err)
{
	struct client_call call = { .type = type, .timeout = timeout };
	void *answer;

	client_call_start(c, &call, method, request);
	(void)client_call_wait(c, &call);
	answer = call.err.code ? NULL : TAKE_PTR(call.answer);
	if (call.err.code)
		(void)error_copy(err, &call.err);
	else if (!answer)
		(void)error_refuse(err, ERROR_FAULT, "the daemon's answer to %s is empty", method);
	client_call_done(&call);
	return answer;
}

void *client_ask(struct client *c, const char *method, const ProtobufCMessage *request,
		 const ProtobufCMessageDescriptor *type, struct error *err)
{
	return client_question(c, method, request, type, 0, err);
}

void *client_ask_once(const struct client_target *target, const char *method,
		      const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type,
		      nsec_t timeout, struct error *err)
{
	_cleanup_client_ struct client *c = client_open(target, err);

	if (!c)
		return NULL;
	return client_question(c, method, request, type, timeout, err);
}
