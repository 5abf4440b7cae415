/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/shake.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/file/fd.h"

unsigned shake_events(const struct tls *tls, bool read, bool write)
{
	unsigned events = read ? LOOP_READ : 0;

	return events | (write || tls_wants_write(tls) ? LOOP_WRITE : 0);
}

static void shake_stop(struct shake *s)
{
	loop_fd_done(&s->source);
	loop_timer_done(&s->patience);
}

/* Whether a connect() that was under way has failed. */
static int shake_check_connect(struct shake *s, struct error *err)
{
	int why = 0;
	socklen_t len = sizeof(why);

	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &why, &len) < 0)
		return error_set(err, -errno, "connect");
	return why ? error_set(err, -why, "connect") : 0;
}

static void shake_event(struct loop_fd *source, unsigned events)
{
	struct shake *s = container_of(source, struct shake, source);
	struct error err = ERROR_INIT;
	int r;

	(void)events;
	r = shake_check_connect(s, &err);
	if (r == 0)
		r = tls_handshake(s->tls, &err);
	if (r == 0) {
		loop_fd_set(&s->source, shake_events(s->tls, true, false));
		return;
	}
	shake_stop(s);
	s->fn(s, r < 0 ? &err : NULL);
}

static void shake_patience_over(struct loop_timer *t)
{
	struct shake *s = container_of(t, struct shake, patience);
	struct error err = ERROR_INIT;

	shake_stop(s);
	(void)error_set(&err, -ETIMEDOUT, "TLS handshake");
	s->fn(s, &err);
}

void shake_init(struct shake *s, struct loop *loop, int fd, struct tls *tls, nsec_t patience,
		shake_fn fn)
{
	*s = (struct shake){ .fn = fn, .tls = tls, .fd = fd };
	/* A client speaks first, as soon as it is connected. A server is soon writable, and then
	 * finds out what it waits for. */
	loop_fd_init(&s->source, loop, fd, LOOP_WRITE, shake_event);
	loop_timer_init(&s->patience, loop, shake_patience_over);
	loop_timer_set(&s->patience, patience);
}

void shake_done(struct shake *s)
{
	if (s->fd < 0)
		return;
	shake_stop(s);
	s->tls = tls_free(s->tls);
	s->fd = fd_close(s->fd);
}

void shake_take(struct shake *s, int *ret_fd, struct tls **ret_tls)
{
	*ret_tls = TAKE_PTR(s->tls);
	*ret_fd = TAKE_FD(s->fd);
}
