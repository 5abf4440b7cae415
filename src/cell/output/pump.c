/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two buffers: the loop appends to `waiting` while the thread owns `writing`. When the thread comes
 * back they change places. A short write goes on at the exact byte, so the file never has a line
 * twice or a half line followed by another, whatever fails in between.
 *
 * A read becomes lines at once: complete ones are F, a rest without its line feed is P. So nothing
 * is remembered about a stream between two reads.
 *
 * Dropping empties both buffers but for the rest of a line that is half in the file, so that what
 * follows stands on a line of its own. The next try is then that rest and a mark: `lost` counts for
 * the state of the container, `unmarked` what the next mark has to tell.
 *
 * Of a log that is kept, `waiting` is all: nothing is given to a thread. It is full where nothing
 * more may be read; what is in it stays, and what is dropped is what would have come behind it.
 */
#include "cell/output/pump.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "wire/format/crilog.h"

#define PUMP_THREADS_MAX 2
/* More than the kernel keeps between the two ends of a terminal. */
#define PUMP_TERMINAL_REST ((size_t)128 << 10)
/* Less room than for this many bytes: wait for the thread. */
#define PUMP_READ_MIN ((size_t)512)
/* Reads of one stream before the loop gets its turn again. */
#define PUMP_READS_MAX 4
#define PUMP_RETRY_MIN (100 * NSEC_PER_MSEC)
#define PUMP_RETRY_MAX (5 * NSEC_PER_SEC)
/* What is kept when all is ended waits so long for who reads it. */
#define PUMP_KEPT_GRACE (3 * NSEC_PER_SEC)

void pump_threads_done(struct pump_threads *t)
{
	t->pool = pool_free(t->pool);
}

void pump_threads_hold(struct pump_threads *t, bool held)
{
	t->held = held;
}

const char *pump_busy(const struct pump *p)
{
	if (p->work.busy)
		return "a log is being written";
	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++)
		if (p->streams[i].chunk)
			return "there was no memory for some output";
	return NULL;
}

static bool pump_has_open_stream(const struct pump *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++)
		if (p->streams[i].fd >= 0 || p->streams[i].chunk)
			return true;
	return false;
}

bool pump_drained(const struct pump *p)
{
	return !pump_has_open_stream(p) && !p->work.busy && p->writing.len == 0 &&
	       p->waiting.len == 0 && p->unmarked == 0;
}

static void stream_drop_chunk(struct pump_stream *s)
{
	free(TAKE_PTR(s->chunk));
	s->chunk_len = 0;
}

static void stream_close(struct pump_stream *s)
{
	loop_fd_done(&s->source);
	s->fd = fd_close(s->fd);
}

/* How many bytes may be read so that their encoded form fits whatever they are. */
static size_t pump_room(const struct pump *p)
{
	size_t used = p->waiting.len + p->writing.len;
	size_t n;

	if (p->keeps && p->dropping)
		return PUMP_READ_MAX;
	n = used < PUMP_WAITING_MAX ? (PUMP_WAITING_MAX - used) / CRILOG_LINE_COST : 0;

	return n < PUMP_READ_MIN ? 0 : MIN(n, PUMP_READ_MAX);
}

/* What is dropped needs no disk, though it does need memory. */
static bool pump_may_read(const struct pump *p)
{
	return !p->held && (!p->resting || (p->dropping && p->trouble != -ENOMEM));
}

static void pump_set_trouble(struct pump *p, int trouble)
{
	if (p->trouble == trouble)
		return;
	p->trouble = trouble;
	loop_defer_schedule(&p->notify);
}

/* What is kept fills all the room that there is: who reads it has the policy's time. */
static void pump_watch_kept(struct pump *p)
{
	nsec_t limit = p->policy.drop ? 0 : p->policy.block_for;

	if (!p->keeps || p->dropping || !pump_has_open_stream(p))
		return;
	if (pump_room(p) > 0) {
		p->block_until = 0;
	} else if (limit == 0) {
		p->dropping = true;
		pump_set_trouble(p, -ENOBUFS);
	} else if (limit != NSEC_NEVER && !p->resting) {
		nsec_t now = clock_mono();

		p->block_until = p->block_until ?: now + limit;
		loop_timer_set(&p->retry, p->block_until > now ? p->block_until - now : 0);
	}
}

static void pump_watch(struct pump *p)
{
	bool reading;

	pump_watch_kept(p);
	reading = pump_room(p) > 0 && pump_may_read(p);

	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++)
		if (p->streams[i].fd >= 0)
			loop_fd_set(&p->streams[i].source, reading ? LOOP_READ : 0);
}

/* Stops writing and reading for a while; what waits stays. */
static void pump_rest(struct pump *p, int trouble)
{
	p->resting = true;
	p->delay = p->delay ? MIN(p->delay * 2, PUMP_RETRY_MAX) : PUMP_RETRY_MIN;
	loop_timer_set(&p->retry, p->delay);
	pump_set_trouble(p, trouble);
}

/* On the thread: touches `writing`, the log and the two results. */
static void pump_run(struct pool_work *work)
{
	struct pump *p = container_of(work, struct pump, work);

	p->write_error = log_file_write(&p->log, buf_data(&p->writing), p->writing.len,
					p->writing_end, &p->n_written);
}

/* ---- what cannot be written ---- */

static void pump_lose(struct pump *p, uint64_t n)
{
	p->unmarked += n;
	p->lost += n;
}

/* The length of what belongs to a line that is half in the file. */
static size_t pump_torn(const struct pump *p)
{
	const uint8_t *data = buf_data(&p->writing), *feed;

	if (!p->log.torn || p->writing.len == 0)
		return 0;
	feed = memchr(data, '\n', p->writing.len);
	return feed ? (size_t)(feed - data) + 1 : p->writing.len;
}

/* From now on nothing waits. */
static void pump_drop(struct pump *p)
{
	size_t torn = pump_torn(p);

	p->dropping = true;
	if (p->writing.len > torn) {
		if (p->marked)
			p->unmarked += p->marked;
		else
			pump_lose(p, crilog_count(buf_data(&p->writing) + torn,
						  p->writing.len - torn));
		p->marked = 0;
		p->writing.len = torn;
	}
	if (torn == 0)
		buf_clear(&p->writing);
	pump_lose(p, crilog_count(buf_data(&p->waiting), p->waiting.len));
	buf_clear(&p->waiting);
	loop_defer_schedule(&p->notify);
}

/* What marks tell was counted before. */
static uint64_t pump_kept_bytes(const struct pump *p)
{
	const uint8_t *line = buf_data(&p->waiting), *end = line + p->waiting.len;
	struct crilog_record record;
	uint64_t n = 0;

	while (line < end) {
		const uint8_t *next = (const uint8_t *)memchr(line, '\n', (size_t)(end - line)) + 1;

		if (crilog_parse(&record, line, (size_t)(next - line)) == 0)
			n += record.len;
		line = next;
	}
	return n;
}

static void pump_drop_kept(struct pump *p)
{
	p->kept_at += crilog_count(buf_data(&p->waiting), p->waiting.len) + p->unmarked;
	p->lost += pump_kept_bytes(p);
	buf_clear(&p->waiting);
	pump_set_trouble(p, -ENOBUFS);
}

static void pump_drop_all(struct pump *p)
{
	if (p->keeps)
		pump_drop_kept(p);
	else
		pump_drop(p);
	/* A half line stands for nothing. */
	if (p->writing.len > 0)
		pump_lose(p, p->torn);
	p->torn = 0;
	buf_clear(&p->writing);
	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++) {
		struct pump_stream *s = &p->streams[i];
		int left = 0;

		if (s->fd >= 0 && ioctl(s->fd, FIONREAD, &left) == 0 && left > 0)
			pump_lose(p, (uint64_t)left);
		pump_lose(p, s->chunk_len);
		stream_drop_chunk(s);
		stream_close(s);
	}
	loop_timer_stop(&p->retry);
	p->resting = false;
	p->unmarked = 0;
	if (p->keeps)
		p->grown(p);
}

static void pump_cannot_write(struct pump *p, int code)
{
	nsec_t limit = p->policy.drop ? 0 : p->policy.block_for;
	nsec_t now = clock_mono();

	if (p->block_until == 0 || (limit < now && now - limit > p->block_until))
		p->block_until = limit < NSEC_NEVER - now ? now + limit : NSEC_NEVER;
	if (now >= p->block_until)
		pump_drop(p);
	pump_rest(p, code);
	if (!p->dropping && p->delay > p->block_until - now)
		loop_timer_set(&p->retry, p->block_until - now);
	/* Nobody waits for a mark in a log that cannot be written. */
	if (p->giving_up || (p->dropping && p->last))
		pump_drop_all(p);
}

/* Before anything else comes the mark of what is missing. */
static int pump_add_mark(struct pump *p)
{
	char mark[CRILOG_MARK_MAX];
	int r;

	r = buf_add(&p->writing, mark, crilog_mark_lost(mark, clock_real(), p->unmarked));
	if (r < 0)
		return r;
	p->marked = p->unmarked;
	p->unmarked = 0;
	/* What waits has come after it. */
	p->writing_end = p->n_read - crilog_count(buf_data(&p->waiting), p->waiting.len);
	return 0;
}

/* That there is room again. */
static int pump_add_kept_mark(struct pump *p)
{
	char mark[CRILOG_MARK_MAX];
	int r;

	r = buf_add(&p->waiting, mark, crilog_mark_lost(mark, clock_real(), p->unmarked));
	if (r < 0)
		return r;
	p->unmarked = 0;
	return 0;
}

static bool pump_has_room_for_mark(const struct pump *p)
{
	return p->waiting.len + PUMP_READ_MIN * CRILOG_LINE_COST + CRILOG_MARK_MAX <=
	       PUMP_WAITING_MAX;
}

static void pump_submit_kept(struct pump *p)
{
	if (p->dropping && pump_has_room_for_mark(p)) {
		if (p->unmarked && pump_add_kept_mark(p) < 0) {
			pump_rest(p, -ENOMEM);
			return;
		}
		p->dropping = false;
		p->block_until = 0;
		pump_set_trouble(p, 0);
	}
	p->grown(p);
}

/* Gives the thread what waits, unless it has something, or a failed write rests. */
static void pump_submit(struct pump *p)
{
	int r;

	if (p->keeps) {
		pump_submit_kept(p);
		return;
	}
	if (p->work.busy || p->resting || p->threads->held)
		return;
	if (p->unmarked && !p->marked && pump_add_mark(p) < 0) {
		pump_rest(p, -ENOMEM);
		return;
	}
	if (p->writing.len == 0) {
		p->writing = p->waiting;
		p->writing_end = p->n_read;
		p->waiting = (struct buf)BUF_INIT;
	}
	if (p->writing.len == 0)
		return;
	if (!p->threads->pool) {
		r = pool_new(&p->threads->pool, p->threads->loop, PUMP_THREADS_MAX);
		if (r < 0) {
			pump_rest(p, r);
			return;
		}
	}
	pool_submit(p->threads->pool, &p->work);
}

/* 0, or -ENOMEM: then nothing was added. */
static int pump_encode(struct pump *p, const struct pump_stream *s)
{
	enum crilog_stream stream = s == &p->streams[0] ? CRILOG_STDOUT : CRILOG_STDERR;
	int r = 0;

	if (!p->has_log && !p->keeps)
		return 0;
	if (p->dropping)
		pump_lose(p, s->chunk_len);
	else
		r = crilog_encode(&p->waiting, s->chunk_time, stream, s->chunk, s->chunk_len);
	if (r == 0)
		p->n_read += s->chunk_len;
	return r;
}

/* Whether a read that failed was the last one: that of a terminal fails once its other end is
 * closed. Behind the last look, a stream that holds nothing is over, however much it held then:
 * strangers who have it open may have read that. Any other failure passes. */
static bool stream_is_over(const struct pump_stream *s, int error)
{
	return (error == EAGAIN && s->pump->last) || (error == EIO && s->is_tty);
}

/* Whether more may come at once. */
static bool stream_read(struct pump *p, struct pump_stream *s)
{
	size_t room = pump_room(p);
	ssize_t n;

	if (s->fd < 0 || !pump_may_read(p) || room == 0)
		return false;
	if (p->last)
		room = MIN(room, s->left);
	if (room == 0) {
		stream_close(s);
		return false;
	}
	s->chunk = malloc(room);
	if (!s->chunk) {
		pump_rest(p, -ENOMEM);
		return false;
	}
	n = sysio_read(s->fd, s->chunk, room);
	if (n > 0) {
		s->chunk_len = (size_t)n;
		s->chunk_time = clock_real();
		s->left -= p->last ? (size_t)n : 0;
		if (p->tee)
			p->tee(p->tee_userdata, s == &p->streams[0] ? 1 : 2, s->chunk, (size_t)n);
		if (pump_encode(p, s) < 0) {
			pump_rest(p, -ENOMEM);
			return false;
		}
	} else if (n == 0 || stream_is_over(s, errno)) {
		stream_close(s);
	} else if (errno != EAGAIN && errno != EINTR) {
		pump_rest(p, -errno);
	}
	stream_drop_chunk(s);
	return n > 0 && (p->last || (size_t)n == room);
}

static void pump_pull(struct pump *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++)
		for (int reads = 0; reads < PUMP_READS_MAX || p->last; reads++)
			if (!stream_read(p, &p->streams[i]))
				break;
	pump_submit(p);
	pump_watch(p);
	if (pump_drained(p))
		loop_defer_schedule(&p->notify);
}

static void stream_event(struct loop_fd *source, unsigned events)
{
	struct pump_stream *s = container_of(source, struct pump_stream, source);
	struct pump *p = s->pump;

	for (int reads = 0; reads < PUMP_READS_MAX; reads++)
		if (!stream_read(p, s))
			break;
	pump_submit(p);
	pump_watch(p);
	if (pump_drained(p))
		loop_defer_schedule(&p->notify);
}

/* Before what was written is forgotten: what the line stands for that ends in the middle. */
static void pump_note_torn(struct pump *p)
{
	const uint8_t *data = buf_data(&p->writing), *feed, *line, *end;
	struct crilog_record record;
	size_t n = p->n_written;

	if (n == 0)
		return;
	feed = memrchr(data, '\n', n);
	if (p->log.torn && !feed && p->torn > 0)
		return; /* a further piece of the same line */
	p->torn = 0;
	line = feed ? feed + 1 : data;
	end = memchr(data + n, '\n', p->writing.len - n);
	if (p->log.torn && end && crilog_parse(&record, line, (size_t)(end - line) + 1) == 0)
		p->torn = record.len;
}

/* No thread has the log. */
static void pump_take_next_log(struct pump *p)
{
	void (*changed)(void *data) = TAKE_PTR(p->changed);

	if (p->next_log >= 0)
		log_file_change(&p->log, TAKE_FD(p->next_log));
	if (changed)
		changed(p->changed_data);
}

static void pump_wrote(struct pool_work *work)
{
	struct pump *p = container_of(work, struct pump, work);

	pump_note_torn(p);
	buf_consume(&p->writing, p->n_written);
	pump_take_next_log(p);
	if (p->write_error == 0) {
		p->delay = 0;
		p->dropping = false;
		p->marked = 0;
		pump_set_trouble(p, 0);
	} else {
		pump_cannot_write(p, p->write_error);
	}
	if (p->last)
		pump_pull(p);
	pump_submit(p);
	pump_watch(p);
	if (pump_drained(p))
		loop_defer_schedule(&p->notify);
}

static void pump_retry(struct loop_timer *timer)
{
	struct pump *p = container_of(timer, struct pump, retry);

	p->resting = false;
	if (p->keeps && p->block_until != 0 && p->block_until <= clock_mono()) {
		p->dropping = true;
		pump_set_trouble(p, -ENOBUFS);
	} else if (p->waiting.len + p->writing.len == 0) {
		pump_set_trouble(p, 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++) {
		struct pump_stream *s = &p->streams[i];

		if (!s->chunk)
			continue;
		if (pump_encode(p, s) < 0)
			pump_rest(p, -ENOMEM);
		else
			stream_drop_chunk(s);
	}
	if ((p->resting || p->keeps) && p->giving_up)
		pump_drop_all(p);
	pump_pull(p);
}

static void pump_notify(struct loop_defer *defer)
{
	struct pump *p = container_of(defer, struct pump, notify);

	p->fn(p);
}

void pump_init(struct pump *p, struct pump_threads *threads, pump_fn fn)
{
	*p = (struct pump){ .threads = threads, .fn = fn, .log = LOG_FILE_NONE, .next_log = -1 };
	/* Until it is told, and where a program that knew no policy hands it over. */
	p->policy.block_for = NSEC_NEVER;
	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++) {
		p->streams[i].pump = p;
		p->streams[i].fd = -1;
	}
	p->work.run = pump_run;
	p->work.done = pump_wrote;
	loop_timer_init(&p->retry, threads->loop, pump_retry);
	loop_defer_init(&p->notify, threads->loop, pump_notify);
}

int pump_change_log(struct pump *p, int fd, void (*changed)(void *data), void *data)
{
	if (p->changed) {
		(void)fd_close(fd);
		return -EBUSY;
	}
	p->next_log = fd;
	p->changed = changed;
	p->changed_data = data;
	if (!p->work.busy)
		pump_take_next_log(p);
	return 0;
}

int pump_start(struct pump *p, int out_fd, int err_fd, struct container_fds *fds, const char *name,
	       const struct log_policy *policy)
{
	int pipes[] = { out_fd, err_fd };
	int r = 0;

	p->policy = *policy;
	log_file_init(&p->log, TAKE_FD(fds->log), TAKE_FD(fds->log_dir), name, policy);
	p->has_log = p->log.fd >= 0;
	for (size_t i = 0; i < ARRAY_SIZE(pipes); i++) {
		struct pump_stream *s = &p->streams[i];

		s->fd = pipes[i];
		if (s->fd < 0)
			continue;
		/* A new pipe's reading end has no other flag that would get lost. */
		if (fcntl(s->fd, F_SETFL, O_NONBLOCK) < 0)
			r = -errno;
		loop_fd_init(&s->source, p->threads->loop, s->fd, LOOP_READ, stream_event);
	}
	return r;
}

void pump_resume(struct pump *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++) {
		struct pump_stream *s = &p->streams[i];

		if (s->fd >= 0 && !s->source.loop)
			loop_fd_init(&s->source, p->threads->loop, s->fd, LOOP_READ, stream_event);
	}
	if (p->work.busy)
		return;
	p->has_log = p->log.fd >= 0;
	if (!pump_drained(p))
		loop_timer_set(&p->retry, 0);
}

int pump_start_terminal(struct pump *p, int master_fd, struct container_fds *fds, const char *name,
			const struct log_policy *policy)
{
	p->streams[0].is_tty = true;
	return pump_start(p, master_fd, -1, fds, name, policy);
}

void pump_tee(struct pump *p, pump_tee_fn fn, void *userdata)
{
	p->tee = fn;
	p->tee_userdata = userdata;
}

static bool pump_is_started(const struct pump *p)
{
	return p->has_log || p->keeps || pump_has_open_stream(p);
}

void pump_hold(struct pump *p, bool held)
{
	if (p->held == held)
		return;
	p->held = held;
	if (!pump_is_started(p))
		return;
	pump_watch(p);
	/* What is left at the end is not waited for: it has to be fetched. */
	if (!held && p->last)
		loop_timer_set(&p->retry, 0);
}

void pump_last(struct pump *p)
{
	if (p->last)
		return;
	p->last = true;
	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++) {
		struct pump_stream *s = &p->streams[i];
		int left = 0;

		if (s->is_tty)
			s->left = PUMP_TERMINAL_REST;
		else if (s->fd >= 0 && ioctl(s->fd, FIONREAD, &left) == 0 && left > 0)
			s->left = (size_t)left;
	}
	if (p->dropping && p->resting)
		loop_timer_set(&p->retry, 0);
	pump_pull(p);
}

void pump_give_up(struct pump *p)
{
	if (p->keeps && !p->giving_up)
		loop_timer_set(&p->retry, p->is_read ? PUMP_KEPT_GRACE : 0);
	p->giving_up = true;
	if (p->resting && !p->keeps)
		loop_timer_set(&p->retry, 0);
}

/* ---- a log that is kept ---- */

const uint8_t *pump_kept(const struct pump *p, size_t from, size_t *ret_len, bool *ret_end)
{
	*ret_len = p->waiting.len - from;
	*ret_end = !pump_has_open_stream(p) && p->unmarked == 0;
	return *ret_len > 0 ? buf_data(&p->waiting) + from : NULL;
}

void pump_take(struct pump *p, size_t n)
{
	p->kept_at += crilog_count(buf_data(&p->waiting), n);
	buf_consume(&p->waiting, n);
	pump_pull(p);
}

void pump_set_read(struct pump *p, bool is_read)
{
	p->is_read = is_read;
	if (p->keeps && p->giving_up && !is_read && !pump_drained(p))
		loop_timer_set(&p->retry, 0);
}

void pump_done(struct pump *p)
{
	loop_timer_done(&p->retry);
	loop_defer_done(&p->notify);
	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++) {
		stream_drop_chunk(&p->streams[i]);
		stream_close(&p->streams[i]);
	}
	buf_done(&p->waiting);
	buf_done(&p->writing);
	pump_take_next_log(p);
	log_file_done(&p->log);
}
