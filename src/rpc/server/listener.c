/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "loop/loop.h"

#define LISTENER_BACKOFF (100 * NSEC_PER_MSEC)
#define LISTENER_ACCEPTS_MAX 32 /* in one turn of the loop */

struct listener {
	int fd;
	struct loop_fd source;
	struct loop_timer backoff;
	listener_fn fn;
	void *owner;
	bool waiting; /* for the backoff */
};

static void listener_arm(struct listener *l)
{
	loop_fd_set(&l->source, l->waiting ? 0 : LOOP_READ);
}

static void listener_backoff_over(struct loop_timer *t)
{
	struct listener *l = container_of(t, struct listener, backoff);

	l->waiting = false;
	listener_arm(l);
}

static void listener_take(struct listener *l, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct rpc_peer peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		fd_close(fd);
		return;
	}
	peer = (struct rpc_peer){ .uid = cred.uid, .gid = cred.gid, .pid = cred.pid };
	l->fn(l, fd, &peer, l->owner);
}

static void listener_event(struct loop_fd *source, unsigned events)
{
	struct listener *l = container_of(source, struct listener, source);
	int fd;

	for (unsigned i = 0; i < LISTENER_ACCEPTS_MAX; i++) {
		fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			listener_take(l, fd);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno == EAGAIN)
			return;
		l->waiting = true;
		loop_timer_set(&l->backoff, LISTENER_BACKOFF);
		listener_arm(l);
		return;
	}
}

int listener_new(struct listener **ret, struct loop *loop, int fd, listener_fn fn, void *owner)
{
	_cleanup_fd_ int owned = fd;
	struct listener *l = malloc(sizeof(*l));

	if (!l)
		return -ENOMEM;
	*l = (struct listener){ .fd = TAKE_FD(owned), .fn = fn, .owner = owner };
	loop_fd_init(&l->source, loop, l->fd, LOOP_READ, listener_event);
	loop_timer_init(&l->backoff, loop, listener_backoff_over);
	*ret = l;
	return 0;
}

struct listener *listener_free(struct listener *l)
{
	if (!l)
		return NULL;
	loop_fd_done(&l->source);
	loop_timer_done(&l->backoff);
	fd_close(l->fd);
	free(l);
	return NULL;
}
