/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/console_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "foreign/foreign.h"
#include "pod/workload/hosted.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/services.h"

#define CONSOLE_PIECE 8192
#define CONSOLE_INPUT_MAX (1U << 20)

/*
 * The client's messages are paused while the console takes nothing, and the console is not read
 * while the client takes nothing: its relay drops what gets too old. At the end of the console the
 * end of the machine is waited for, which is told with it.
 */
struct console_call {
	struct rpc_call *call;
	struct workload_service *service;
	struct loop_fd source;
	int fd;
	char id[ID_SIZE];
	uint8_t *typed; /* what waits; NULL: nothing */
	size_t n_typed, at;
	bool stdin;
	bool waits; /* for the end of the machine */
};

static void console_call_free(struct console_call *c)
{
	struct workload *w = workloads_find_id(c->service->workloads, c->id);

	if (c->waits && w)
		workload_forget_waiter(w, c);
	rpc_call_on_cancel(c->call, NULL, NULL);
	rpc_call_on_message(c->call, NULL, NULL);
	rpc_call_on_writable(c->call, NULL, NULL);
	loop_fd_done(&c->source);
	(void)fd_close(c->fd);
	free(c->typed);
	free(c);
}

static void console_call_fail(struct console_call *c, const struct error *err)
{
	struct rpc_call *call = c->call;

	console_call_free(c);
	rpc_call_fail(call, err);
}

static void console_call_wait(struct console_call *c)
{
	unsigned events = 0;

	if (c->waits)
		return;
	if (rpc_call_writable(c->call))
		events |= LOOP_READ;
	if (c->typed)
		events |= LOOP_WRITE;
	loop_fd_set(&c->source, events);
}

static void console_call_writable(struct rpc_call *call, void *data)
{
	(void)call;
	console_call_wait(data);
}

static void console_call_cancelled(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)call;
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	console_call_fail(data, &err);
}

static void console_call_ended(void *userdata, struct workload *w, const struct error *err)
{
	Nacre__V1__AttachResponse m = NACRE__V1__ATTACH_RESPONSE__INIT;
	Nacre__V1__ExecExit end = NACRE__V1__EXEC_EXIT__INIT;
	struct console_call *c = userdata;
	struct rpc_call *call = c->call;
	struct error own = ERROR_INIT;
	int r = -ENOENT;

	c->waits = false;
	if (w && !err) {
		end.exit_code = w->containers[0]->status.exit_code;
		end.signal = w->containers[0]->status.signal;
		m.exit = &end;
		r = rpc_call_send(call, &m.base);
	}
	console_call_free(c);
	if (r == 0) {
		rpc_call_finish(call);
		return;
	}
	(void)error_refuse(&own, ERROR_ABORTED, "it was removed before its end was told");
	rpc_call_fail(call, err ? err : &own);
}

static void console_call_over(struct console_call *c)
{
	struct workload *w = workloads_find_id(c->service->workloads, c->id);
	struct error err = ERROR_INIT;

	loop_fd_done(&c->source);
	if (!w) {
		(void)error_refuse(&err, ERROR_ABORTED, "it was removed");
		console_call_fail(c, &err);
		return;
	}
	c->waits = true;
	workload_wait(w, NULL, console_call_ended, c);
}

static void console_call_type(struct console_call *c)
{
	while (c->typed) {
		ssize_t n = send(c->fd, c->typed + c->at, c->n_typed - c->at,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return;
		/* A console that is gone takes nothing; its end comes by itself. */
		c->at = n < 0 ? c->n_typed : c->at + (size_t)n;
		if (c->at < c->n_typed)
			continue;
		free(TAKE_PTR(c->typed));
		rpc_call_pause(c->call, false);
	}
}

static void console_call_event(struct loop_fd *source, unsigned events)
{
	struct console_call *c = container_of(source, struct console_call, source);
	Nacre__V1__AttachResponse m = NACRE__V1__ATTACH_RESPONSE__INIT;
	struct error err = ERROR_INIT;
	uint8_t data[CONSOLE_PIECE];
	ssize_t n;

	if (events & LOOP_WRITE)
		console_call_type(c);
	if (!rpc_call_writable(c->call)) {
		console_call_wait(c);
		return;
	}
	n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		console_call_wait(c);
		return;
	}
	if (n <= 0) {
		console_call_over(c);
		return;
	}
	m.stdout = (ProtobufCBinaryData){ (size_t)n, data };
	if (rpc_call_send(c->call, &m.base) < 0) {
		(void)error_set(&err, -ENOMEM, "pass a console on");
		console_call_fail(c, &err);
		return;
	}
	console_call_wait(c);
}

static void console_call_message(struct rpc_call *call, const ProtobufCMessage *message,
				 void *userdata)
{
	const Nacre__V1__AttachRequest *q = (const Nacre__V1__AttachRequest *)(const void *)message;
	struct console_call *c = userdata;
	struct error err = ERROR_INIT;

	if (!q || !q->input || q->input->data.len == 0 || c->waits)
		return;
	if (!c->stdin || q->input->data.len > CONSOLE_INPUT_MAX) {
		(void)error_field(&err, ERROR_INVALID, "input.data",
				  c->stdin ? "more than 1 MiB" : "it was attached without stdin");
		console_call_fail(c, &err);
		return;
	}
	c->typed = malloc(q->input->data.len);
	if (!c->typed) {
		(void)error_set(&err, -ENOMEM, "type on a console");
		console_call_fail(c, &err);
		return;
	}
	memcpy(c->typed, q->input->data.data, q->input->data.len);
	c->n_typed = q->input->data.len;
	c->at = 0;
	rpc_call_pause(call, true);
	console_call_wait(c);
}

int console_call_start(struct rpc_call *call, struct workload_service *s, struct pod_container *pc,
		       const Nacre__V1__AttachRequest *q, struct error *err)
{
	struct workload *w = pc->workload;
	struct console_call *c;

	if (workload_has_ended(w))
		return error_refuse(err, ERROR_PRECONDITION, "%s is %s, not running", w->path,
				    workload_state_word(w->state));
	if (hosted_is_in_cloud(w))
		return error_field(err, ERROR_UNSUPPORTED, "target",
				   "%s is a machine in a cloud, whose console can be read and not "
				   "typed on (nacre logs)",
				   w->path);
	c = calloc(1, sizeof(*c));
	if (!c)
		return error_set(err, -ENOMEM, "attach to %s", w->path);
	c->fd = foreign_console(s->foreigns, w->id, q->replay, err);
	if (c->fd < 0) {
		int r = c->fd;

		free(c);
		return r;
	}
	c->call = call;
	c->service = s;
	c->stdin = q->stdin;
	(void)str_copy(c->id, sizeof(c->id), w->id);
	loop_fd_init(&c->source, s->loop, c->fd, LOOP_READ, console_call_event);
	rpc_call_on_cancel(call, console_call_cancelled, c);
	rpc_call_on_writable(call, console_call_writable, c);
	rpc_call_on_message(call, console_call_message, c);
	return 0;
}
