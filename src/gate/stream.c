/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "gate/handshake.h"

/* Pieces that are moved in one turn, so that no stream keeps the others waiting. */
#define STREAM_TURNS 16

/* Shared by all: what could not be written at once is copied from it. */
static uint8_t stream_piece[STREAM_PIECE];

/* What a step did: bytes moved, nothing to do for now, or an error. */
enum { STREAM_IDLE = 0, STREAM_MOVED = 1 };

/* ---- from the plain side to the link ---- */

static int stream_put_link(struct stream *s, const uint8_t *data, size_t len, size_t *ret,
			   struct error *err)
{
	*ret = 0;
	while (*ret < len) {
		ssize_t n = tls_write(s->tls, data + *ret, len - *ret, err);

		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return (int)n;
		*ret += (size_t)n;
	}
	return 0;
}

static int stream_keep(struct buf *b, const uint8_t *data, size_t len, struct error *err)
{
	int r = len > 0 ? buf_add(b, data, len) : 0;

	return r < 0 ? error_set(err, r, "hold a piece of a stream") : STREAM_MOVED;
}

static int stream_end_link(struct stream *s, struct error *err)
{
	int r;

	if (s->link_ended)
		return STREAM_IDLE;
	r = tls_end(s->tls, err);
	if (r == -EAGAIN)
		return STREAM_IDLE;
	s->link_ended = true;
	return r < 0 ? r : STREAM_MOVED;
}

static int stream_up(struct stream *s, struct error *err)
{
	size_t done;
	ssize_t n;
	int r;

	if (s->up.len > 0) {
		r = stream_put_link(s, buf_data(&s->up), s->up.len, &done, err);
		buf_consume(&s->up, done);
		return r < 0 ? r : done > 0 ? STREAM_MOVED : STREAM_IDLE;
	}
	if (s->plain_eof)
		return stream_end_link(s, err);
	n = recv(s->plain_fd, stream_piece, sizeof(stream_piece), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return STREAM_IDLE;
	if (n < 0)
		return error_set(err, -errno, "read a plain stream");
	s->plain_eof = n == 0;
	if (n == 0)
		return STREAM_MOVED;
	r = stream_put_link(s, stream_piece, (size_t)n, &done, err);
	return r < 0 ? r : stream_keep(&s->up, stream_piece + done, (size_t)n - done, err);
}

/* ---- from the link to the plain side ---- */

static int stream_put_plain(struct stream *s, const uint8_t *data, size_t len, size_t *ret,
			    struct error *err)
{
	ssize_t n = send(s->plain_fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	*ret = n > 0 ? (size_t)n : 0;
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return error_set(err, -errno, "write a plain stream");
	return 0;
}

static int stream_end_plain(struct stream *s, struct error *err)
{
	if (s->plain_ended)
		return STREAM_IDLE;
	s->plain_ended = true;
	if (s->checked && !h2frame_is_whole(&s->frames))
		return error_set(err, -EPROTO, "a stream that ends within an HTTP/2 frame");
	if (shutdown(s->plain_fd, SHUT_WR) < 0)
		return error_set(err, -errno, "end a plain stream");
	return STREAM_MOVED;
}

static int stream_down(struct stream *s, struct error *err)
{
	size_t done;
	ssize_t n;
	int r = 0;

	if (s->down.len > 0) {
		r = stream_put_plain(s, buf_data(&s->down), s->down.len, &done, err);
		buf_consume(&s->down, done);
		return r < 0 ? r : done > 0 ? STREAM_MOVED : STREAM_IDLE;
	}
	if (s->link_eof)
		return stream_end_plain(s, err);
	n = tls_read(s->tls, stream_piece, sizeof(stream_piece), err);
	if (n == -EAGAIN)
		return STREAM_IDLE;
	if (n < 0)
		return (int)n;
	s->link_eof = n == 0;
	if (n == 0)
		return STREAM_MOVED;
	if (s->checked)
		r = h2frame_feed(&s->frames, stream_piece, (size_t)n, err);
	if (r == 0)
		r = stream_put_plain(s, stream_piece, (size_t)n, &done, err);
	return r < 0 ? r : stream_keep(&s->down, stream_piece + done, (size_t)n - done, err);
}

/* ---- both ---- */

static bool stream_has_ended(const struct stream *s)
{
	return s->plain_eof && s->plain_ended && s->link_eof && s->link_ended;
}

static void stream_wait(struct stream *s)
{
	unsigned plain = 0;

	loop_fd_set(&s->link, handshake_events(s->tls, s->down.len == 0 && !s->link_eof,
					       s->up.len > 0 || (s->plain_eof && !s->link_ended)));
	if (s->up.len == 0 && !s->plain_eof)
		plain |= LOOP_READ;
	if (s->down.len > 0)
		plain |= LOOP_WRITE;
	loop_fd_set(&s->plain, plain);
}

static void stream_pump(struct stream *s)
{
	struct error err = ERROR_INIT;
	int up = STREAM_MOVED, down = STREAM_MOVED;

	for (int i = 0; i < STREAM_TURNS && (up > 0 || down > 0) && !stream_has_ended(s); i++) {
		up = stream_up(s, &err);
		down = up < 0 ? 0 : stream_down(s, &err);
		if (up < 0 || down < 0) {
			s->on_end(s, &err);
			return;
		}
	}
	if (stream_has_ended(s)) {
		s->on_end(s, NULL);
		return;
	}
	stream_wait(s);
	/* What TLS has decoded already makes no descriptor readable. */
	if (up > 0 || down > 0)
		loop_defer_schedule(&s->again);
}

static void stream_plain_event(struct loop_fd *source, unsigned events)
{
	(void)events;
	stream_pump(container_of(source, struct stream, plain));
}

static void stream_again(struct loop_defer *d)
{
	stream_pump(container_of(d, struct stream, again));
}

static void stream_link_event(struct loop_fd *source, unsigned events)
{
	(void)events;
	stream_pump(container_of(source, struct stream, link));
}

int stream_new(struct stream **ret, struct loop *loop, int plain_fd, int link_fd, struct tls *tls,
	       bool checked, stream_end_fn on_end, void *owner)
{
	struct stream *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct stream){
		.owner = owner,
		.on_end = on_end,
		.plain_fd = plain_fd,
		.link_fd = link_fd,
		.tls = tls,
		.up = BUF_INIT_LIMIT(STREAM_PIECE),
		.down = BUF_INIT_LIMIT(STREAM_PIECE),
		.checked = checked,
	};
	list_init(&s->siblings);
	loop_fd_init(&s->plain, loop, plain_fd, 0, stream_plain_event);
	loop_fd_init(&s->link, loop, link_fd, 0, stream_link_event);
	loop_defer_init(&s->again, loop, stream_again);
	loop_defer_schedule(&s->again);
	*ret = s;
	return 0;
}

struct stream *stream_free(struct stream *s)
{
	if (!s)
		return NULL;
	list_remove(&s->siblings);
	loop_fd_done(&s->plain);
	loop_fd_done(&s->link);
	loop_defer_done(&s->again);
	s->tls = tls_free(s->tls);
	s->plain_fd = fd_close(s->plain_fd);
	s->link_fd = fd_close(s->link_fd);
	buf_done(&s->up);
	buf_done(&s->down);
	free(s);
	return NULL;
}
