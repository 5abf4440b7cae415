/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/handshake.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/file/fd.h"

unsigned handshake_events(const struct tls *tls, bool read, bool write)
{
	unsigned events = read ? LOOP_READ : 0;

	return events | (write || tls_wants_write(tls) ? LOOP_WRITE : 0);
}

static void handshake_stop(struct handshake *s)
{
	loop_fd_done(&s->source);
	loop_timer_done(&s->patience);
}

/* Whether a connect() that was under way has failed. */
static int handshake_check_connect(struct handshake *s, struct error *err)
{
	int why = 0;
	socklen_t len = sizeof(why);

	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &why, &len) < 0)
		return error_set(err, -errno, "connect");
	return why ? error_set(err, -why, "connect") : 0;
}

static void handshake_event(struct loop_fd *source, unsigned events)
{
	struct handshake *s = container_of(source, struct handshake, source);
	struct error err = ERROR_INIT;
	int r;

	(void)events;
	r = handshake_check_connect(s, &err);
	if (r == 0)
		r = tls_handshake(s->tls, &err);
	if (r == 0) {
		loop_fd_set(&s->source, handshake_events(s->tls, true, false));
		return;
	}
	handshake_stop(s);
	s->fn(s, r < 0 ? &err : NULL);
}

static void handshake_patience_over(struct loop_timer *t)
{
	struct handshake *s = container_of(t, struct handshake, patience);
	struct error err = ERROR_INIT;

	handshake_stop(s);
	(void)error_set(&err, -ETIMEDOUT, "TLS handshake");
	s->fn(s, &err);
}

void handshake_init(struct handshake *s, struct loop *loop, int fd, struct tls *tls,
		    nsec_t patience, handshake_fn fn)
{
	*s = (struct handshake){ .fn = fn, .tls = tls, .fd = fd };
	/* A client speaks first, as soon as it is connected. A server is soon writable, and then
	 * finds out what it waits for. */
	loop_fd_init(&s->source, loop, fd, LOOP_WRITE, handshake_event);
	loop_timer_init(&s->patience, loop, handshake_patience_over);
	loop_timer_set(&s->patience, patience);
}

void handshake_done(struct handshake *s)
{
	if (s->fd < 0)
		return;
	handshake_stop(s);
	s->tls = tls_free(s->tls);
	s->fd = fd_close(s->fd);
}

void handshake_take(struct handshake *s, int *ret_fd, struct tls **ret_tls)
{
	*ret_tls = TAKE_PTR(s->tls);
	*ret_fd = TAKE_FD(s->fd);
}
