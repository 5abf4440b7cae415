/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/pause.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"

static void pause_on_end(struct loop_fd *source, unsigned events _unused_)
{
	struct loop_pause *p = container_of(source, struct loop_pause, source);
	uint64_t n;

	/* It may have begun anew since it was seen to be over. */
	if (read(p->fd, &n, sizeof(n)) == (ssize_t)sizeof(n))
		p->fn(p);
}

static void pause_on_begin(struct loop_defer *begin)
{
	struct loop_pause *p = container_of(begin, struct loop_pause, begin);
	const struct itimerspec spec = {
		.it_value = { .tv_sec = (time_t)(p->length / NSEC_PER_SEC),
			      .tv_nsec = (long)(p->length % NSEC_PER_SEC) },
	};

	/* What it takes is there since the descriptor is. */
	(void)timerfd_settime(p->fd, 0, &spec, NULL);
}

int loop_pause_init(struct loop_pause *p, struct loop *l, loop_pause_fn fn)
{
	*p = (struct loop_pause){ .fn = fn };
	p->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (p->fd < 0)
		return -errno;
	loop_fd_init(&p->source, l, p->fd, LOOP_READ, pause_on_end);
	loop_defer_init(&p->begin, l, pause_on_begin);
	return 0;
}

void loop_pause_begin(struct loop_pause *p, nsec_t length)
{
	p->length = MAX(length, (nsec_t)1);
	loop_defer_schedule_last(&p->begin);
}

void loop_pause_done(struct loop_pause *p)
{
	loop_fd_done(&p->source);
	loop_defer_done(&p->begin);
	p->fd = fd_close(p->fd);
}
