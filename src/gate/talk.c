/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/talk.h"

#include <errno.h>

#include "base/file/fd.h"
#include "gate/handshake.h"

static uint8_t talk_packet[GATEMSG_SIZE_MAX];

static void talk_wait(struct talk *t)
{
	bool write = t->out.len > 0 || (t->ending && !t->ended);

	loop_fd_set(&t->source, handshake_events(t->tls, true, write));
}

static int talk_write(struct talk *t, struct error *err)
{
	int r;

	while (t->out.len > 0) {
		ssize_t n = tls_write(t->tls, buf_data(&t->out), t->out.len, err);

		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return (int)n;
		buf_consume(&t->out, (size_t)n);
	}
	if (!t->ending || t->ended)
		return 0;
	r = tls_end(t->tls, err);
	t->ended = r == 0;
	return r == -EAGAIN ? 0 : r;
}

/* All messages that are there whole. */
static int talk_take(struct talk *t, struct error *err)
{
	for (;;) {
		struct gatemsg m;
		int len = gatemsg_length(buf_data(&t->in), t->in.len);
		int r;

		if (len < 0 || len > TALK_MESSAGE_MAX)
			return error_set(err, -EBADMSG, "a message of an enrolment");
		if (len == 0 || (size_t)len > t->in.len)
			return 0;
		r = gatemsg_decode(&m, buf_data(&t->in), (size_t)len, err);
		if (r == 0)
			r = t->ops->on_message(t, &m, err);
		if (r < 0)
			return r;
		buf_consume(&t->in, (size_t)len);
	}
}

/* 1: the peer's direction has ended. */
static int talk_read(struct talk *t, struct error *err)
{
	for (;;) {
		uint8_t piece[2048];
		ssize_t n = tls_read(t->tls, piece, sizeof(piece), err);
		int r;

		if (n == -EAGAIN)
			return 0;
		if (n == 0)
			return t->in.len > 0 ? error_set(err, -EBADMSG, "a message without an end")
					     : 1;
		r = n < 0 ? (int)n : buf_add(&t->in, piece, (size_t)n);
		if (r == -ENOBUFS || r == -ENOMEM)
			return error_set(err, r, "a message of an enrolment");
		if (r == 0)
			r = talk_take(t, err);
		if (r < 0)
			return r;
	}
}

static void talk_event(struct loop_fd *source, unsigned events)
{
	struct talk *t = container_of(source, struct talk, source);
	struct error err = ERROR_INIT;
	int r;

	(void)events;
	r = talk_read(t, &err);
	if (r == 0)
		r = talk_write(t, &err);
	if (r == 0) {
		talk_wait(t);
		return;
	}
	loop_fd_done(&t->source);
	loop_timer_done(&t->patience);
	t->ops->on_end(t, r < 0 ? &err : NULL);
}

static void talk_patience_over(struct loop_timer *timer)
{
	struct talk *t = container_of(timer, struct talk, patience);
	struct error err = ERROR_INIT;

	loop_fd_done(&t->source);
	(void)error_set(&err, -ETIMEDOUT, "enrol");
	t->ops->on_end(t, &err);
}

void talk_init(struct talk *t, struct loop *loop, int fd, struct tls *tls,
	       const struct talk_ops *ops)
{
	*t = (struct talk){
		.ops = ops,
		.tls = tls,
		.fd = fd,
		.in = BUF_INIT_LIMIT(TALK_MESSAGE_MAX + 2048),
		.out = BUF_INIT_LIMIT(TALK_MESSAGE_MAX),
	};
	/* Writable at once: what has come with the handshake already is read then. */
	loop_fd_init(&t->source, loop, fd, LOOP_READ | LOOP_WRITE, talk_event);
	loop_timer_init(&t->patience, loop, talk_patience_over);
	loop_timer_set(&t->patience, TALK_PATIENCE);
}

void talk_done(struct talk *t)
{
	if (t->fd < 0)
		return;
	loop_fd_done(&t->source);
	loop_timer_done(&t->patience);
	t->tls = tls_free(t->tls);
	t->fd = fd_close(t->fd);
	buf_done(&t->in);
	buf_done(&t->out);
}

int talk_send(struct talk *t, const struct gatemsg *m, struct error *err)
{
	int len = gatemsg_encode(m, talk_packet, err);
	int r;

	if (len < 0)
		return len;
	r = buf_add(&t->out, talk_packet, (size_t)len);
	if (r < 0)
		return error_set(err, r, "hold a message of an enrolment");
	loop_fd_set(&t->source, handshake_events(t->tls, true, true));
	return 0;
}

void talk_finish(struct talk *t)
{
	t->ending = true;
	loop_fd_set(&t->source, handshake_events(t->tls, true, true));
}
