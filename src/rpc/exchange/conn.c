/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/exchange/conn.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "loop/loop.h"

/* How long a client may take to hang up after the last word. */
#define CONN_LINGER (1 * NSEC_PER_SEC)
/* What gives half of a stream's window back, with room for the heads of its frames: the other half
 * is on its way meanwhile. */
#define CONN_READ_SIZE (HTTP_WINDOW / 2 + 4096)
#define CONN_READS_MAX 32 /* in one turn of the loop, so that no connection starves the others */
#define CONN_WRITE_SIZE (64U * 1024)
#define CONN_WRITES_MAX 16
/* A socket that was full this often has a reader who keeps up: it gets more room. */
#define CONN_FULL_MIN 4

struct conn {
	struct loop *loop;
	int fd;
	struct loop_fd source;
	struct loop_defer work;
	struct http_session *http; /* NULL: lost */
	struct buf out;            /* taken from the session, not yet in the socket */
	struct list items;
	void (*lost)(struct conn *c, void *owner);
	void *owner;
	unsigned busy; /* frames of ours that still need the struct */
	bool freed;
	bool told; /* lost() was called */
	/* All is said and our side is shut; what the client still writes is read until it hangs up.
	 * A socket that is closed at once answers its writes with an error, and it throws away what
	 * it has not read yet. */
	bool server;
	bool lingering;
	struct loop_timer linger;
	struct loop_timer alive;
	nsec_t ping_after, ping_wait;
	unsigned n_full; /* times that the socket did not take all */
	bool roomy;
	bool heard; /* something has come since the timer was set */
	bool asked; /* we wait for an answer */
};

/* Of all connections of this process: those whose sockets were given more room. */
static unsigned n_roomy;

/*
 * A socket holds some 200 KiB, which a reader takes in less time than it takes to wake the writer:
 * then each waits for the other in turns. Room for all would be memory for a thousand readers who
 * have stopped, so it is for a few, who have shown that they read.
 */
static void conn_make_roomy(struct conn *c)
{
	static const int want = CONN_ROOM;
	int size = 0;
	socklen_t len = sizeof(size);

	if (c->roomy || ++c->n_full < CONN_FULL_MIN || n_roomy >= CONN_ROOMY_MAX)
		return;
	if (getsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &size, &len) < 0 || size >= want)
		return;
	if (setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof(want)) < 0)
		return;
	c->roomy = true;
	n_roomy++;
}

/* The socket is gone; the session's streams hear of it. */
static void conn_break(struct conn *c)
{
	if (!c->http)
		return;
	n_roomy -= c->roomy;
	c->roomy = false;
	loop_fd_done(&c->source);
	loop_timer_done(&c->linger);
	loop_timer_done(&c->alive);
	c->fd = fd_close(c->fd);
	buf_done(&c->out);
	c->http = http_session_free(c->http);
}

static void conn_delete(struct conn *c)
{
	struct conn_item *i;

	loop_defer_done(&c->work);
	for (;;) {
		i = list_first(&c->items, struct conn_item, member);
		if (!i)
			break;
		list_remove(&i->member);
	}
	free(c);
}

static void conn_run_items(struct conn *c)
{
	struct conn_item *i;

	while (!c->freed) {
		i = list_first(&c->items, struct conn_item, member);
		if (!i)
			return;
		list_remove(&i->member);
		i->fn(i);
	}
}

/* How many of the bytes the socket has taken, or -EPIPE: it takes nothing. */
static ssize_t conn_send(struct conn *c, struct iovec *parts, size_t n_parts)
{
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = n_parts };
	ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	return n;
}

/* What the session has to say goes from where it lies into the socket; only what that does not take
 * is kept. */
static int conn_write_fresh(struct conn *c, struct http_out *out)
{
	struct iovec parts[HTTP_OUT_PARTS];
	ssize_t n = 0;
	int r = http_session_pull(c->http, out, CONN_WRITE_SIZE);

	if (r < 0)
		return r;
	if (out->len > 0)
		n = conn_send(c, parts, http_out_iov(out, parts));
	if (n >= 0 && (size_t)n < out->len)
		conn_make_roomy(c);
	r = n < 0 ? (int)n : http_out_rest(out, (size_t)n, &c->out);
	/* Also where nothing was taken: the session may still have to read. */
	http_session_pulled(c->http);
	return r;
}

static int conn_write_rest(struct conn *c)
{
	/* What is sent is not changed; the type only lacks the const. */
	struct iovec all = { (void *)(uintptr_t)buf_data(&c->out), c->out.len };
	ssize_t n = conn_send(c, &all, 1);

	if (n < 0)
		return (int)n;
	buf_consume(&c->out, (size_t)n);
	return 0;
}

/* 1: all is written that there was; 0: there is more, or the socket is full; -EPIPE: it takes
 * nothing; or what the session has failed with. */
static int conn_write_some(struct conn *c)
{
	struct http_out out = HTTP_OUT_INIT;
	int r;

	if (c->out.len > 0)
		r = conn_write_rest(c);
	else
		r = conn_write_fresh(c, &out);
	http_out_done(&out);
	if (r < 0)
		return r;
	return c->out.len == 0 && !http_session_wants_write(c->http);
}

/* 1: there may be more; 0: not now; or a negative errno. */
static int conn_read_some(struct conn *c)
{
	/* Too large for a stack, and for each connection to have: one thread reads them all, one
	 * after the other. */
	static uint8_t data[CONN_READ_SIZE];
	ssize_t n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT);
	int r;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	c->heard = true;
	if (c->lingering)
		return n == sizeof(data);
	r = http_session_receive(c->http, data, (size_t)n);
	return r < 0 ? r : n == sizeof(data);
}

/* The peer has closed, and takes nothing more; but what it had said before that is still in the
 * socket, and waits to be read like what is read before an end of file. */
static void conn_break_unwritable(struct conn *c)
{
	int r = c->server ? 0 : 1;

	for (unsigned i = 0; i < CONN_READS_MAX && r > 0; i++)
		r = conn_read_some(c);
	conn_break(c);
}

/* Tells and writes in turns: what is told may give more to write, what is written makes room. */
static void conn_run(struct conn *c)
{
	int r = 0;

	if (c->lingering) {
		conn_run_items(c);
		return;
	}
	for (unsigned i = 0; i < CONN_WRITES_MAX; i++) {
		conn_run_items(c);
		if (c->freed || !c->http)
			break;
		r = conn_write_some(c);
		if (r == -EPIPE)
			conn_break_unwritable(c);
		else if (r < 0)
			conn_break(c);
		else if (c->out.len > 0 || (r == 1 && list_empty(&c->items)))
			break;
	}
	conn_run_items(c);
	if (c->freed || !c->http)
		return;
	if (!http_session_alive(c->http) && c->out.len == 0) {
		if (c->server && shutdown(c->fd, SHUT_WR) == 0) {
			c->lingering = true;
			loop_timer_set(&c->linger, CONN_LINGER);
			loop_fd_set(&c->source, LOOP_READ);
		} else {
			conn_break(c);
		}
		conn_run_items(c);
		return;
	}
	loop_fd_set(&c->source,
		    LOOP_READ | (c->out.len || http_session_wants_write(c->http) ? LOOP_WRITE : 0));
}

static void conn_settle(struct conn *c)
{
	assert(c->busy == 0);
	c->busy++;
	conn_run(c);
	if (!c->freed && !c->http && !c->told) {
		c->told = true;
		if (c->lost)
			c->lost(c, c->owner);
	}
	c->busy--;
	if (c->freed)
		conn_delete(c);
	else if (!list_empty(&c->items))
		conn_touch(c);
}

static void conn_work(struct loop_defer *d)
{
	conn_settle(container_of(d, struct conn, work));
}

static void conn_event(struct loop_fd *source, unsigned events)
{
	struct conn *c = container_of(source, struct conn, source);
	int r = events & LOOP_READ ? 1 : 0;

	c->busy++;
	for (unsigned i = 0; i < CONN_READS_MAX && r > 0; i++) {
		r = conn_read_some(c);
		/* A peer that sends as fast as this shall not stand still while more is read. */
		if (r > 0)
			conn_run(c);
		if (c->freed || !c->http)
			break;
	}
	if (r < 0)
		conn_break(c);
	c->busy--;
	conn_settle(c);
}

static void conn_linger_over(struct loop_timer *t)
{
	struct conn *c = container_of(t, struct conn, linger);

	conn_break(c);
	conn_settle(c);
}

static void conn_alive_over(struct loop_timer *t)
{
	struct conn *c = container_of(t, struct conn, alive);

	if (!c->heard && c->asked) {
		conn_break(c);
		conn_settle(c);
		return;
	}
	c->asked = !c->heard;
	c->heard = false;
	loop_timer_set(&c->alive, c->asked ? c->ping_wait : c->ping_after);
	if (!c->asked)
		return;
	http_session_ping(c->http);
	conn_touch(c);
}

void conn_keep_alive(struct conn *c, nsec_t after, nsec_t wait)
{
	c->ping_after = after;
	c->ping_wait = wait;
	c->heard = false;
	loop_timer_set(&c->alive, after);
}

int conn_new(struct conn **ret, struct loop *l, int fd, enum http_side side,
	     const struct http_ops *ops, void (*lost)(struct conn *c, void *owner), void *owner)
{
	_cleanup_fd_ int owned = fd;
	struct conn *c = malloc(sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	*c = (struct conn){ .loop = l, .fd = -1, .out = BUF_INIT, .lost = lost, .owner = owner };
	list_init(&c->items);
	r = http_session_new(&c->http, side, ops, c);
	if (r < 0) {
		free(c);
		return r;
	}
	c->fd = TAKE_FD(owned);
	loop_fd_init(&c->source, l, c->fd, LOOP_READ, conn_event);
	loop_defer_init(&c->work, l, conn_work);
	loop_timer_init(&c->linger, l, conn_linger_over);
	loop_timer_init(&c->alive, l, conn_alive_over);
	c->server = side == HTTP_SERVER;
	conn_touch(c);
	*ret = c;
	return 0;
}

struct conn *conn_free(struct conn *c)
{
	if (!c || c->freed)
		return NULL;
	c->freed = true;
	c->lost = NULL;
	conn_break(c);
	if (c->busy == 0)
		conn_delete(c);
	return NULL;
}

void *conn_owner(const struct conn *c)
{
	return c->owner;
}

struct loop *conn_loop(const struct conn *c)
{
	return c->loop;
}

struct http_session *conn_http(const struct conn *c)
{
	return c->http;
}

bool conn_is_written(const struct conn *c)
{
	return !c->http || (c->out.len == 0 && http_session_queued(c->http) == 0 &&
			    !http_session_wants_write(c->http));
}

void conn_touch(struct conn *c)
{
	if (c->busy == 0 && !c->freed)
		loop_defer_schedule(&c->work);
}

void conn_item_init(struct conn_item *i, void (*fn)(struct conn_item *i))
{
	i->fn = fn;
	list_init(&i->member);
}

void conn_item_ready(struct conn *c, struct conn_item *i)
{
	if (list_empty(&i->member))
		list_add_tail(&c->items, &i->member);
	conn_touch(c);
}
