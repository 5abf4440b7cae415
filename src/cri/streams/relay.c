/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/streams/relay.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "api/instance.pb-c.h"
#include "base/file/fd.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "keeper/client/client.h"
#include "keeper/server/passing.h"
#include "loop/loop.h"
#include "rpc/exchange/client.h"
#include "stream/dial.h"

#define RELAY_METHOD "/nacre.instance.v1.InstanceService/Dial"
#define RELAY_PIECE ((size_t)4096)

/*
 * ASKING  its keeper connects, or is not to be asked yet.
 * OPEN    bytes go both ways.
 * ENDING  the pod is done; what waits for the reader is still written.
 */
enum relay_state { RELAY_ASKING, RELAY_OPEN, RELAY_ENDING };

struct relay {
	struct list link;
	enum relay_state state;
	struct peer *peer; /* until it was asked */
	struct dial *dial; /* in ASKING */
	struct passing_turn turn;
	struct rpc_stream *stream; /* NULL: not asked yet, or over */
	int fd, other_fd;          /* ours, and in ASKING that of the dial */
	struct loop_fd source;
	bool reader_over; /* nothing more comes from there */
	struct buf waiting;
};

static void relay_free(struct relay *r)
{
	passing_turn_done(&r->turn);
	if (r->stream)
		rpc_stream_cancel(r->stream);
	loop_fd_done(&r->source);
	(void)fd_close(r->fd);
	(void)fd_close(r->other_fd);
	buf_done(&r->waiting);
	list_remove(&r->link);
	if (r->dial)
		dial_answer(r->dial);
	free(r);
}

/* Nobody hears why once it is open: the connection is broken, as one of TCP would be. */
static void relay_fail(struct relay *r, const struct error *err)
{
	if (r->dial)
		r->dial->err = *err;
	relay_free(r);
}

static void relay_watch(struct relay *r)
{
	bool reads = r->state == RELAY_OPEN && !r->reader_over && r->stream &&
		     rpc_stream_writable(r->stream);

	loop_fd_set(&r->source, (reads ? LOOP_READ : 0) | (r->waiting.len > 0 ? LOOP_WRITE : 0));
}

/* ---- to the reader ---- */

/* False: the relay is gone. */
static bool relay_write(struct relay *r)
{
	ssize_t n = 0;

	if (r->waiting.len > 0)
		n = send(r->fd, buf_data(&r->waiting), r->waiting.len, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		relay_free(r);
		return false;
	}
	if (n > 0)
		buf_consume(&r->waiting, (size_t)n);
	if (r->waiting.len == 0 && r->state == RELAY_ENDING) {
		relay_free(r);
		return false;
	}
	if (r->stream)
		rpc_stream_pause(r->stream, r->waiting.len > 0);
	return true;
}

static void relay_opened(struct relay *r)
{
	struct dial *d = TAKE_PTR(r->dial);

	r->state = RELAY_OPEN;
	d->connected = true;
	d->fds[DIAL_IP4] = TAKE_FD(r->other_fd);
	/* Whoever wanted it may be gone: then the other end is closed, which is read here. */
	dial_answer(d);
}

static void relay_on_message(struct rpc_stream *s, const uint8_t *data, size_t len, void *userdata)
{
	struct error err = ERROR_INIT;
	struct relay *r = userdata;
	ProtobufCMessage *decoded =
		rpc_decode(&nacre__instance__v1__dial_response__descriptor, data, len, NULL, &err);
	const Nacre__Instance__V1__DialResponse *m = (const void *)decoded;
	int e = m ? buf_add(&r->waiting, m->data.data, m->data.len) : 0;

	(void)s;
	protobuf_c_message_free_unpacked(decoded, NULL);
	if (e < 0)
		(void)error_set(&err, e, "pass data of a port on");
	if (err.code) {
		relay_fail(r, &err);
		return;
	}
	if (r->state == RELAY_ASKING)
		relay_opened(r);
	if (relay_write(r))
		relay_watch(r);
}

static void relay_on_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
			 void *userdata)
{
	struct error own = ERROR_INIT;
	struct relay *r = userdata;

	(void)s;
	(void)code;
	r->stream = NULL;
	if (err && err->code) {
		own = *err;
		relay_fail(r, &own);
		return;
	}
	if (r->state == RELAY_ASKING)
		(void)error_refuse(&r->dial->err, ERROR_UNAVAILABLE, "its keeper ended the call");
	r->state = RELAY_ENDING;
	if (relay_write(r))
		relay_watch(r);
}

static void relay_on_writable(struct rpc_stream *s, void *userdata)
{
	(void)s;
	relay_watch(userdata);
}

static const struct rpc_stream_ops relay_ops = {
	.on_message = relay_on_message,
	.on_end = relay_on_end,
	.on_writable = relay_on_writable,
};

/* ---- from the reader ---- */

static int relay_send(struct relay *r, uint8_t *data, size_t len)
{
	Nacre__Instance__V1__DialRequest m = NACRE__INSTANCE__V1__DIAL_REQUEST__INIT;
	uint8_t packed[RELAY_PIECE + 16];

	m.data = (ProtobufCBinaryData){ .data = data, .len = len };
	return rpc_stream_send(r->stream, packed,
			       nacre__instance__v1__dial_request__pack(&m, packed));
}

/* Whether the other end is closed, and not only its half: nobody reads there any more. */
static bool relay_is_left(const struct relay *r)
{
	struct pollfd p = { .fd = r->fd };

	return poll(&p, 1, 0) > 0 && p.revents & POLLHUP;
}

/* False: the relay is gone. */
static bool relay_read(struct relay *r)
{
	uint8_t data[RELAY_PIECE];
	ssize_t n = recv(r->fd, data, sizeof(data), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n == 0 && !relay_is_left(r)) {
		r->reader_over = true;
		rpc_stream_close_send(r->stream);
		return true;
	}
	if (n > 0 && relay_send(r, data, (size_t)n) == 0)
		return true;
	relay_free(r);
	return false;
}

static void relay_on_fd(struct loop_fd *source, unsigned events)
{
	struct relay *r = container_of(source, struct relay, source);

	if (events & LOOP_WRITE && !relay_write(r))
		return;
	if (events & LOOP_READ && r->state == RELAY_OPEN && !r->reader_over && r->stream &&
	    rpc_stream_writable(r->stream) && !relay_read(r))
		return;
	relay_watch(r);
}

/* ---- opening ---- */

static int relay_ask(struct relay *r, struct error *err)
{
	Nacre__Instance__V1__DialRequest m = NACRE__INSTANCE__V1__DIAL_REQUEST__INIT;
	struct rpc_request request = {
		.method = RELAY_METHOD,
		.message = &m.base,
		.timeout = NSEC_NEVER,
		.more = true,
	};
	int n = passing_queue(r->peer, &r->turn, err);

	if (n <= 0)
		return n;
	m.port = r->dial->port;
	request.target = keeper_client_target(r->peer);
	n = rpc_client_call(keeper_client_rpc(r->peer), &request, &relay_ops, r, &r->stream);
	return n < 0 ? error_set(err, n, "call its keeper") : 0;
}

static void relay_on_turn(struct passing_turn *t)
{
	struct relay *r = container_of(t, struct relay, turn);
	struct error err = ERROR_INIT;

	if (relay_ask(r, &err) < 0)
		relay_fail(r, &err);
}

int relay_open(struct list *relays, struct peer *peer, struct dial *d, struct error *err)
{
	struct relay *r = calloc(1, sizeof(*r));
	int fds[2], e;

	if (!r)
		return error_set(err, -ENOMEM, "forward a port");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0) {
		e = -errno;
		free(r);
		return error_set(err, e, "forward a port");
	}
	*r = (struct relay){
		.peer = peer, .dial = d, .fd = fds[0], .other_fd = fds[1], .waiting = BUF_INIT
	};
	list_init(&r->link);
	list_add_tail(relays, &r->link);
	passing_turn_init(&r->turn, relay_on_turn);
	loop_fd_init(&r->source, d->loop, r->fd, 0, relay_on_fd);
	e = relay_ask(r, err);
	if (e < 0) {
		r->dial = NULL;
		relay_free(r);
	}
	return e;
}

void relays_free(struct list *relays)
{
	struct relay *r;

	list_for_each (r, relays, struct relay, link)
		relay_free(r);
}
