/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/exchange/conn.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/time/clock.h"
#include "http/pull_test.h"
#include "loop/loop.h"
#include "unit.h"

/* Connections that write as much as they can, and peers that read when a test says so. */

/* Many times what a socket holds. */
#define LOAD (2U * 1024 * 1024)

struct pair {
	struct conn *conn;
	struct http_stream *stream;
	int own_fd; /* a copy of the connection's */
	int far_fd;
	struct http_session *far;
	size_t n_data; /* bytes that the peer has seen */
};

static struct loop *loop;
static struct pair pairs[CONN_ROOMY_MAX + 2];

/* What a fixture needs in order to be one. */
static void must(bool held)
{
	if (!held)
		abort();
}

static int on_begin(struct http_session *h, struct http_stream *s)
{
	http_stream_attach(s, http_session_userdata(h));
	return 0;
}

static void on_field(struct http_stream *s, const char *name, const char *value)
{
}

static void on_nothing(struct http_stream *s)
{
}

static void on_data(struct http_stream *s, const uint8_t *data, size_t len)
{
	struct pair *p = http_stream_data(s);

	p->n_data += len;
	http_stream_consumed(s, len);
}

static void on_close(struct http_stream *s, uint32_t code)
{
}

static const struct http_ops ops = {
	.begin = on_begin,
	.field = on_field,
	.headers = on_nothing,
	.data = on_data,
	.end = on_nothing,
	.close = on_close,
	.drain = on_nothing,
};

static void pair_begin(struct pair *p)
{
	static const struct http_field request[] = {
		{ ":method", "POST" },
		{ ":scheme", "http" },
		{ ":path", "/" },
		{ ":authority", "test" },
	};
	int fds[2];
	uint8_t *to;

	*p = (struct pair){ .own_fd = -1 };
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
	p->own_fd = fd_copy(fds[0]);
	must(p->own_fd >= 0);
	p->far_fd = fds[1];
	must(http_session_new(&p->far, HTTP_SERVER, &ops, p) == 0);
	must(http_session_widen(p->far) == 0);
	must(conn_new(&p->conn, loop, fds[0], HTTP_CLIENT, &ops, NULL, NULL) == 0);
	must(http_session_request(conn_http(p->conn), request, ARRAY_SIZE(request), p,
				  &p->stream) == 0);
	must(http_stream_reserve(p->stream, LOAD, &to) == 0);
	memset(to, 0, LOAD);
	http_stream_commit(p->stream, LOAD);
	conn_touch(p->conn);
}

static void pair_end(struct pair *p)
{
	p->conn = conn_free(p->conn);
	p->far = http_session_free(p->far);
	p->own_fd = fd_close(p->own_fd);
	p->far_fd = fd_close(p->far_fd);
}

static int pair_room(const struct pair *p)
{
	int size = 0;
	socklen_t len = sizeof(size);

	must(getsockopt(p->own_fd, SOL_SOCKET, SO_SNDBUF, &size, &len) == 0);
	return size;
}

/* The peer says what it has to say, and reads all that is there. */
static void pair_read(struct pair *p)
{
	static uint8_t in[65536];
	struct buf out = BUF_INIT;
	ssize_t n;

	for (;;) {
		must(pull_into(p->far, &out, 65536) == 0);
		if (out.len > 0)
			must(write(p->far_fd, buf_data(&out), out.len) == (ssize_t)out.len);
		buf_done(&out);
		n = read(p->far_fd, in, sizeof(in));
		if (n <= 0)
			return;
		must(http_session_receive(p->far, in, (size_t)n) == 0);
	}
}

static void pair_read_all(struct pair *p)
{
	time_t since = unit_now();

	while (p->n_data < LOAD && unit_waits(since)) {
		pair_read(p);
		loop_turn(loop, false);
	}
	must(p->n_data == LOAD);
}

static void room_is_for_who_reads(void)
{
	struct pair *p = &pairs[0];
	int usual;

	must(loop_new(&loop) == 0);
	pair_begin(p);
	usual = pair_room(p);
	/* The peer says how far ahead it may be sent; then it stops. */
	pair_read(p);
	for (unsigned i = 0; i < 20; i++)
		loop_turn(loop, false);
	CHECK_INT(pair_room(p), usual);
	pair_read_all(p);
	/* As far as net.core.wmem_max lets it. */
	CHECK(pair_room(p) > usual);
	pair_end(p);
	loop = loop_free(loop);
}

static void room_is_for_a_few(void)
{
	int usual;

	must(loop_new(&loop) == 0);
	for (unsigned i = 0; i < ARRAY_SIZE(pairs); i++)
		pair_begin(&pairs[i]);
	usual = pair_room(&pairs[0]);
	for (unsigned i = 0; i < CONN_ROOMY_MAX; i++) {
		pair_read_all(&pairs[i]);
		CHECK(pair_room(&pairs[i]) > usual);
	}
	pair_read_all(&pairs[CONN_ROOMY_MAX]);
	CHECK_INT(pair_room(&pairs[CONN_ROOMY_MAX]), usual);
	/* One goes, another one may. */
	pair_end(&pairs[0]);
	pair_read_all(&pairs[CONN_ROOMY_MAX + 1]);
	CHECK(pair_room(&pairs[CONN_ROOMY_MAX + 1]) > usual);
	for (unsigned i = 1; i < ARRAY_SIZE(pairs); i++)
		pair_end(&pairs[i]);
	loop = loop_free(loop);
}

UNIT_MAIN({ "room is for who reads", room_is_for_who_reads },
	  { "room is for a few", room_is_for_a_few })
