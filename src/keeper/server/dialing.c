/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/dialing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "loop/loop.h"
#include "rpc/server/server.h"

#define DIALING_PIECE ((size_t)8192)

/* The loopback addresses in the order in which they are tried. */
static const int dialing_families[] = { AF_INET, AF_INET6 };

/* Lives in the arena of its call. */
struct dialed {
	struct dialing *all;
	struct rpc_call *call;
	uint16_t port;
	size_t at; /* of dialing_families */
	int fd;    /* -1: `source` is not there */
	struct loop_fd source;
	loop_fd_fn on_fd;
	bool connected;
	bool client_over; /* it sends nothing more */
	bool shut;        /* and the program was told so */
	struct buf waiting;
};

/* ---- the end ---- */

static void dialed_close(struct dialed *d)
{
	if (d->fd < 0)
		return;
	loop_fd_done(&d->source);
	d->fd = fd_close(d->fd);
}

/* Before the call is ended. */
static void dialed_release(struct dialed *d)
{
	dialed_close(d);
	buf_done(&d->waiting);
	d->all->n--;
	rpc_call_on_cancel(d->call, NULL, NULL);
	rpc_call_on_message(d->call, NULL, NULL);
	rpc_call_on_writable(d->call, NULL, NULL);
}

static void dialed_fail(struct dialed *d, const struct error *err)
{
	dialed_release(d);
	rpc_call_fail(d->call, err);
}

static void dialed_lose(struct dialed *d, int why)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_UNAVAILABLE, "port %u: %s", d->port, strerror(why));
	dialed_fail(d, &err);
}

static void dialed_no_memory(struct dialed *d, int r)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, r, "pass data of the port %u on", d->port);
	dialed_fail(d, &err);
}

static void dialed_on_cancel(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)call;
	(void)error_refuse(&err, ERROR_CANCELLED, "the client has left");
	dialed_fail(data, &err);
}

/* ---- bytes ---- */

static void dialed_watch(struct dialed *d)
{
	bool reads = rpc_call_writable(d->call);

	loop_fd_set(&d->source, (reads ? LOOP_READ : 0) | (d->waiting.len > 0 ? LOOP_WRITE : 0));
}

static void dialed_on_writable(struct rpc_call *call, void *data)
{
	(void)call;
	dialed_watch(data);
}

/* False where the call has ended. */
static bool dialed_send(struct dialed *d, const void *data, size_t len)
{
	Nacre__Instance__V1__DialResponse m = NACRE__INSTANCE__V1__DIAL_RESPONSE__INIT;
	int r;

	m.data = (ProtobufCBinaryData){ .data = (uint8_t *)(uintptr_t)data, .len = len };
	r = rpc_call_send(d->call, &m.base);
	if (r < 0) {
		dialed_no_memory(d, r);
		return false;
	}
	if (!rpc_call_writable(d->call))
		rpc_call_on_writable(d->call, dialed_on_writable, d);
	return true;
}

/* False where the call has ended. */
static bool dialed_read(struct dialed *d)
{
	uint8_t data[DIALING_PIECE];
	ssize_t n = recv(d->fd, data, sizeof(data), 0);

	if (n > 0)
		return dialed_send(d, data, (size_t)n);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n < 0) {
		dialed_lose(d, errno);
		return false;
	}
	/* What the client still sends goes nowhere. */
	dialed_release(d);
	rpc_call_finish(d->call);
	return false;
}

/* False where the call has ended. */
static bool dialed_write(struct dialed *d)
{
	ssize_t n = 0;

	if (d->waiting.len > 0)
		n = send(d->fd, buf_data(&d->waiting), d->waiting.len, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		dialed_lose(d, errno);
		return false;
	}
	if (n > 0)
		buf_consume(&d->waiting, (size_t)n);
	if (d->waiting.len > 0)
		return true;
	if (d->client_over && !d->shut) {
		d->shut = true;
		(void)shutdown(d->fd, SHUT_WR);
	}
	rpc_call_pause(d->call, false);
	return true;
}

static int dialed_take(struct dialed *d, const Nacre__Instance__V1__DialRequest *request,
		       struct error *err)
{
	int r;

	if (!request) {
		d->client_over = true;
		return 0;
	}
	if (request->data.len > DIALING_DATA_MAX)
		return error_field(err, ERROR_INVALID, "data", "%zu bytes are more than %zu",
				   request->data.len, DIALING_DATA_MAX);
	r = buf_add(&d->waiting, request->data.data, request->data.len);
	return r < 0 ? error_set(err, r, "take data for the port %u", d->port) : 0;
}

/* One at a time: the next one when this one has been written. */
static void dialed_on_message(struct rpc_call *call, const ProtobufCMessage *message, void *data)
{
	struct error err = ERROR_INIT;
	struct dialed *d = data;

	rpc_call_pause(call, true);
	if (dialed_take(d, (const void *)message, &err) < 0)
		dialed_fail(d, &err);
	else if (dialed_write(d))
		dialed_watch(d);
}

/* ---- connecting ---- */

/* 0, also while that is under way, or why not. */
static int dialed_try(struct dialed *d)
{
	struct sockaddr_in ip4 = { .sin_family = AF_INET, .sin_port = htons(d->port) };
	struct sockaddr_in6 ip6 = { .sin6_family = AF_INET6, .sin6_port = htons(d->port) };
	int family = dialing_families[d->at];
	bool is_ip4 = family == AF_INET;
	int r;

	ip4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ip6.sin6_addr = in6addr_loopback;
	d->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0)
		return -errno;
	r = connect(d->fd, is_ip4 ? (const void *)&ip4 : (const void *)&ip6,
		    is_ip4 ? sizeof(ip4) : sizeof(ip6));
	if (r < 0 && errno != EINPROGRESS) {
		r = -errno;
		d->fd = fd_close(d->fd);
		return r;
	}
	loop_fd_init(&d->source, d->all->loop, d->fd, LOOP_WRITE, d->on_fd);
	return 0;
}

/* The first address that can be tried, from `at` on; `why` is how the one before failed. */
static void dialed_connect(struct dialed *d, int why)
{
	for (; d->at < ARRAY_SIZE(dialing_families); d->at++) {
		int r = dialed_try(d);

		if (r == 0)
			return;
		/* A kernel without IPv6 says nothing of the port. */
		why = why ?: -r;
	}
	dialed_lose(d, why);
}

static void dialed_connected(struct dialed *d)
{
	socklen_t len = sizeof(int);
	int why = 0;

	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &why, &len) < 0)
		why = errno;
	if (why) {
		dialed_close(d);
		d->at++;
		dialed_connect(d, why);
		return;
	}
	d->connected = true;
	if (!dialed_send(d, NULL, 0))
		return;
	rpc_call_on_message(d->call, dialed_on_message, d);
	dialed_watch(d);
}

static void dialed_on_fd(struct loop_fd *source, unsigned events)
{
	struct dialed *d = container_of(source, struct dialed, source);

	if (!d->connected) {
		dialed_connected(d);
		return;
	}
	if (events & LOOP_READ && rpc_call_writable(d->call) && !dialed_read(d))
		return;
	if (events & LOOP_WRITE && !dialed_write(d))
		return;
	dialed_watch(d);
}

/* ---- the call ---- */

static int dialing_begin(struct dialing *all, struct rpc_call *call,
			 const Nacre__Instance__V1__DialRequest *request, struct error *err)
{
	struct dialed *d;

	if (!request)
		return error_refuse(err, ERROR_INVALID, "the first message is missing");
	if (request->port < 1 || request->port > UINT16_MAX)
		return error_field(err, ERROR_INVALID, "port", "%u is not from 1 to 65535",
				   request->port);
	if (request->data.len > 0)
		return error_field(err, ERROR_INVALID, "data", "not in the first message");
	if (all->n == DIALING_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%d connections to ports are open",
				    DIALING_MAX);
	d = arena_zalloc(rpc_call_arena(call), 1, sizeof(*d));
	if (!d)
		return error_set(err, -ENOMEM, "connect to the port %u", request->port);
	*d = (struct dialed){ .all = all,
			      .call = call,
			      .port = (uint16_t)request->port,
			      .fd = -1,
			      .on_fd = dialed_on_fd,
			      .waiting = BUF_INIT };
	all->n++;
	rpc_call_on_cancel(call, dialed_on_cancel, d);
	dialed_connect(d, 0);
	return 0;
}

void dialing_dial(struct dialing *d, struct rpc_call *call,
		  const Nacre__Instance__V1__DialRequest *request)
{
	struct error err = ERROR_INIT;

	if (dialing_begin(d, call, request, &err) < 0)
		rpc_call_fail(call, &err);
}
