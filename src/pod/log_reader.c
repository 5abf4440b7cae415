/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/log_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sysio.h"
#include "loop/pool.h"
#include "wire/crilog.h"

/*
 * A reader is busy (a piece is being read on the pool), paused, waiting (at the end of a file that
 * grows: inotify wakes it), or ended. The pool's work belongs to the reader's memory, so a reader
 * that is freed while it is busy lives on, without callbacks, until the piece has come back.
 */

#define LOG_READER_PIECE ((size_t)128 * 1024)

struct log_reader {
	struct loop *loop;
	struct pool *pool;
	const struct log_reader_ops *ops;
	void *userdata;
	struct pool_work work;
	struct loop_fd watch;
	struct loop_defer defer;
	int fd, inotify_fd;
	bool follow;
	bool paused;
	bool at_end; /* of the file as it was when the last read began */
	bool stale;  /* the file has grown, or is complete, since the read in hand began */
	bool ended;
	bool freed;
	bool in_callback;
	struct crilog_decoder decoder;
	uint8_t *piece; /* LOG_READER_PIECE bytes, but not at the end of a file */
	ssize_t piece_len;
};

static void log_reader_destroy(struct log_reader *r)
{
	loop_fd_done(&r->watch);
	loop_defer_done(&r->defer);
	crilog_decoder_done(&r->decoder);
	(void)fd_close(r->fd);
	(void)fd_close(r->inotify_fd);
	free(r->piece);
	free(r);
}

static void log_reader_run(struct pool_work *work)
{
	struct log_reader *r = container_of(work, struct log_reader, work);

	do
		r->piece_len = sysio_read(r->fd, r->piece, LOG_READER_PIECE);
	while (r->piece_len < 0 && errno == EINTR);
	if (r->piece_len < 0)
		r->piece_len = -errno;
}

static void log_reader_end(struct log_reader *r, int code)
{
	struct error err = ERROR_INIT;

	r->ended = true;
	if (code < 0)
		(void)error_set(&err, code, "read a log");
	r->ops->on_end(r->userdata, code < 0 ? &err : NULL);
}

static int log_reader_line(void *userdata, nsec_t time, enum crilog_stream stream,
			   const uint8_t *data, size_t len)
{
	struct log_reader *r = userdata;

	if (!r->freed)
		r->ops->on_data(r->userdata, stream == CRILOG_STDERR ? 2 : 1, time, data, len);
	return 0;
}

/* Goes on with whatever comes next: reads, waits, or ends. */
static void log_reader_step(struct log_reader *r)
{
	if (r->paused || r->ended || r->work.busy)
		return;
	if (r->at_end && !r->follow) {
		log_reader_end(r, 0);
		return;
	}
	if (r->at_end)
		return;
	if (!r->piece)
		r->piece = malloc(LOG_READER_PIECE);
	if (!r->piece) {
		log_reader_end(r, -ENOMEM);
		return;
	}
	r->stale = false;
	pool_submit(r->pool, &r->work);
}

static void log_reader_done(struct pool_work *work)
{
	struct log_reader *r = container_of(work, struct log_reader, work);
	int code = 0;

	if (r->freed) {
		log_reader_destroy(r);
		return;
	}
	if (r->piece_len == 0) {
		r->at_end = !r->stale;
		free(TAKE_PTR(r->piece));
	}
	r->in_callback = true;
	if (r->piece_len > 0)
		code = crilog_decode(&r->decoder, r->piece, (size_t)r->piece_len, log_reader_line,
				     r);
	if (!r->freed && (code < 0 || r->piece_len < 0))
		log_reader_end(r, code < 0 ? code : (int)r->piece_len);
	else if (!r->freed)
		log_reader_step(r);
	r->in_callback = false;
	if (r->freed)
		log_reader_destroy(r);
}

static void log_reader_on_defer(struct loop_defer *d)
{
	struct log_reader *r = container_of(d, struct log_reader, defer);

	r->in_callback = true;
	log_reader_step(r);
	r->in_callback = false;
	if (r->freed && !r->work.busy)
		log_reader_destroy(r);
}

static void log_reader_on_change(struct loop_fd *source, unsigned events)
{
	struct log_reader *r = container_of(source, struct log_reader, watch);
	char event[sizeof(struct inotify_event) + 256];

	(void)events;
	while (read(r->inotify_fd, event, sizeof(event)) > 0)
		continue;
	r->at_end = false;
	r->stale = true;
	loop_defer_schedule(&r->defer);
}

static int log_reader_watch(struct log_reader *r)
{
	char name[64];

	r->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (r->inotify_fd < 0)
		return -errno;
	(void)str_printf(name, sizeof(name), "/proc/self/fd/%d", r->fd);
	if (inotify_add_watch(r->inotify_fd, name, IN_MODIFY) < 0)
		return -errno;
	loop_fd_init(&r->watch, r->loop, r->inotify_fd, LOOP_READ, log_reader_on_change);
	return 0;
}

int log_reader_new(struct log_reader **ret, struct loop *l, struct pool *pool, int fd, bool follow,
		   const struct log_reader_ops *ops, void *userdata)
{
	struct log_reader *r = calloc(1, sizeof(*r));
	int code = 0;

	if (!r) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	r->loop = l;
	r->pool = pool;
	r->ops = ops;
	r->userdata = userdata;
	r->fd = fd;
	r->inotify_fd = -1;
	r->follow = follow;
	r->work.run = log_reader_run;
	r->work.done = log_reader_done;
	loop_defer_init(&r->defer, l, log_reader_on_defer);
	/* The watch comes before the first read: nothing is missed in between. */
	if (follow)
		code = log_reader_watch(r);
	if (code < 0) {
		log_reader_destroy(r);
		return code;
	}
	loop_defer_schedule(&r->defer);
	*ret = r;
	return 0;
}

struct log_reader *log_reader_free(struct log_reader *r)
{
	if (!r)
		return NULL;
	r->freed = true;
	loop_fd_done(&r->watch);
	loop_defer_done(&r->defer);
	if (!r->work.busy && !r->in_callback)
		log_reader_destroy(r);
	return NULL;
}

void log_reader_pause(struct log_reader *r, bool paused)
{
	r->paused = paused;
	if (!paused)
		loop_defer_schedule(&r->defer);
}

void log_reader_finish(struct log_reader *r)
{
	r->follow = false;
	r->at_end = false;
	r->stale = true;
	loop_defer_schedule(&r->defer);
}
