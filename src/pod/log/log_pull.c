/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/log/log_pull.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/id.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cell/output/log_file.h"
#include "instance/peer.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "wire/format/crilog.h"

/*
 * Theory of operation. One piece at a time: while a thread writes it the peer's log is paused, and
 * when it is written the keeper is told. What comes is a guest's word: lines that are none, places
 * that go back, and marks that say which file this is (only the writer of files makes those) end
 * the pull.
 *
 * A disk that is full holds up the keeper, and so the container, for as long as the policy says;
 * from then on lines are counted instead, and taken, and a mark that tells is what waits for room.
 */

#define LOG_PULL_PIECE_MAX ((size_t)128 << 10)
#define LOG_PULL_RETRY_MIN (100 * NSEC_PER_MSEC)
#define LOG_PULL_RETRY_MAX (5 * NSEC_PER_SEC)

struct log_pull {
	struct log_pull_config config;
	char dir[ID_SIZE + NAME_LABEL_MAX], id[ID_SIZE], name[NAME_LABEL_MAX + 1];
	struct peer_log *source; /* NULL: not open */
	struct log_file file;    /* with the thread, while work.busy */
	bool resumed;            /* `file` is open */
	struct buf piece;        /* with the thread likewise */
	uint64_t at;             /* place behind all that is in the files, or counted as lost */
	uint64_t piece_end;      /* place behind the piece */
	uint64_t lost;           /* that no mark in a file tells yet */
	bool dropping, ended, dying;
	bool switching; /* the thread has next_fd in hand; `due`: the piece follows behind that */
	bool due;
	uint64_t switch_at;
	nsec_t delay, block_until;
	struct pool_work work;
	struct loop_timer retry;
	struct loop_defer end;
	struct error err;
	int next_fd; /* the file that follows; -1: none */
	void (*changed)(void *userdata, const struct error *err);
	void *changed_userdata;
	/* Of the thread. */
	int result;
	size_t n_written;
};

static void log_pull_destroy(struct log_pull *p)
{
	log_file_done(&p->file);
	(void)fd_close(p->next_fd);
	(void)fd_close(p->config.own_fd);
	buf_done(&p->piece);
	free(p);
}

static void log_pull_close(struct log_pull *p)
{
	struct peer_log *source = TAKE_PTR(p->source);

	if (source)
		p->config.peer->ops->log_close(source);
}

static void log_pull_tell_changed(struct log_pull *p, const struct error *err)
{
	void (*changed)(void *userdata, const struct error *err) = p->changed;

	p->changed = NULL;
	if (changed)
		changed(p->changed_userdata, err);
}

/* Also an end that is none: err without a code. */
static void log_pull_finish(struct log_pull *p, const struct error *err)
{
	struct error over = ERROR_INIT;

	(void)error_refuse(&over, ERROR_PRECONDITION, "nothing more is written to this log");
	log_pull_tell_changed(p, &over);
	log_pull_close(p);
	p->err = *err;
	p->ended = true;
	loop_defer_schedule(&p->end);
}

static void log_pull_on_end(struct loop_defer *d)
{
	struct log_pull *p = container_of(d, struct log_pull, end);

	p->config.on_end(p->config.userdata, p->err.code ? &p->err : NULL);
}

static void log_pull_again(struct log_pull *p)
{
	p->delay = p->delay ? MIN(p->delay * 2, LOG_PULL_RETRY_MAX) : LOG_PULL_RETRY_MIN;
	loop_timer_set(&p->retry, p->delay);
}

/* ---- what the keeper tells ---- */

/* How many bytes the lines stand for; -EBADMSG. */
static int log_pull_check(const uint8_t *line, size_t len, uint64_t *ret)
{
	const uint8_t *end = line + len;
	struct crilog_record record;
	uint64_t n = 0;

	while (line < end) {
		const uint8_t *feed = memchr(line, '\n', (size_t)(end - line));
		uint64_t stands;

		if (!feed || crilog_parse(&record, line, (size_t)(feed - line) + 1) < 0 ||
		    record.mark == CRILOG_MARK_FILE)
			return -EBADMSG;
		stands = record.mark == CRILOG_MARK_LOST ? record.number : record.len;
		if (stands == 0 || stands > INT64_MAX - n)
			return -EBADMSG;
		n += stands;
		line = feed + 1;
	}
	*ret = n;
	return 0;
}

static void log_pull_submit(struct log_pull *p)
{
	if (p->source)
		p->config.peer->ops->log_pause(p->source, true);
	p->due = p->switching;
	if (!p->due)
		pool_submit(p->config.pool, &p->work);
}

static int log_pull_add_mark(struct log_pull *p)
{
	char mark[CRILOG_MARK_MAX];
	int r;

	if (p->lost == 0)
		return 0;
	r = buf_add(&p->piece, mark, crilog_mark_lost(mark, clock_real(), p->lost));
	if (r == 0)
		p->lost = 0;
	return r;
}

/* Everything before the place was taken over, or is not to be had. */
static void log_pull_took(struct log_pull *p, uint64_t at)
{
	p->at = at;
	if (!p->source || p->config.peer->ops->log_take(p->source, at) == 0)
		return;
	log_pull_close(p);
	log_pull_again(p);
}

static void log_pull_lose(struct log_pull *p, uint64_t n)
{
	p->lost += n;
	p->config.on_lost(p->config.userdata, n);
}

static void log_pull_on_lines(void *userdata, uint64_t at, const uint8_t *lines, size_t len)
{
	struct log_pull *p = userdata;
	struct error err = ERROR_INIT;
	uint64_t n;

	if (len == 0 || len > LOG_PULL_PIECE_MAX || at < p->at || at > INT64_MAX ||
	    log_pull_check(lines, len, &n) < 0) {
		(void)error_refuse(&err, ERROR_FAULT, "its keeper tells a log that is none");
		log_pull_finish(p, &err);
		return;
	}
	p->lost += at - p->at;
	if (p->dropping) {
		log_pull_lose(p, n);
		log_pull_took(p, at + n);
		return;
	}
	p->piece_end = at + n;
	if (log_pull_add_mark(p) < 0 || buf_add(&p->piece, lines, len) < 0) {
		/* It is told again. */
		p->lost = 0;
		buf_clear(&p->piece);
		log_pull_close(p);
		log_pull_again(p);
		return;
	}
	log_pull_submit(p);
}

static void log_pull_on_eof(void *userdata, uint64_t at)
{
	struct log_pull *p = userdata;

	if (at <= p->at || at > INT64_MAX)
		return;
	p->lost += at - p->at;
	p->at = at;
	p->piece_end = at;
	if (!p->dropping && log_pull_add_mark(p) == 0)
		log_pull_submit(p);
}

static void log_pull_on_source_end(void *userdata, const struct error *err)
{
	struct log_pull *p = userdata;
	struct error none = ERROR_INIT;

	p->source = NULL;
	if (p->work.busy && !err)
		p->ended = true;
	else if (!err || err->kind != ERROR_UNAVAILABLE)
		log_pull_finish(p, err ? err : &none);
	else if (!p->work.busy)
		log_pull_again(p);
}

static const struct peer_log_ops log_pull_ops = {
	.on_lines = log_pull_on_lines,
	.on_eof = log_pull_on_eof,
	.on_end = log_pull_on_source_end,
};

static void log_pull_open(struct log_pull *p)
{
	struct peer *peer = p->config.peer;

	if (peer->ops->log_open(peer, p->id, p->at, &log_pull_ops, p, &p->source) < 0)
		log_pull_again(p);
}

/* ---- the files ---- */

static int log_pull_resume(struct log_pull *p)
{
	int dir_fd;

	if (p->config.own_fd >= 0)
		return log_file_take(&p->file, TAKE_FD(p->config.own_fd), &p->config.log,
				     p->config.fresh, &p->at);
	dir_fd = sysio_openat(p->config.logs_fd, p->dir,
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	if (dir_fd < 0)
		return -errno;
	return log_file_resume(&p->file, dir_fd, p->name, &p->config.log, &p->at);
}

/* Between two pieces, so no line is torn. */
/* To a file that cannot be written to nothing is switched: whoever gave it may put the old one back
 * in its place. */
static void log_pull_switch(struct log_pull *p)
{
	int old = p->file.fd, fd = TAKE_FD(p->next_fd);

	p->file.fd = fd;
	p->result = log_file_mark(&p->file, p->switch_at);
	p->file.fd = old;
	if (p->result < 0)
		(void)fd_close(fd);
	else
		log_file_change(&p->file, fd);
	p->n_written = 0;
}

static void log_pull_run(struct pool_work *work)
{
	struct log_pull *p = container_of(work, struct log_pull, work);

	if (p->switching)
		log_pull_switch(p);
	else if (!p->resumed)
		p->result = log_pull_resume(p);
	else
		p->result = log_file_write(&p->file, buf_data(&p->piece), p->piece.len,
					   p->piece_end, &p->n_written);
}

/* What cannot be written is counted; what belongs to a line that is half in the file stays. */
static void log_pull_drop(struct log_pull *p)
{
	const uint8_t *data = buf_data(&p->piece), *feed = NULL;
	size_t torn;

	if (p->file.torn && p->piece.len > 0)
		feed = memchr(data, '\n', p->piece.len);
	torn = feed ? (size_t)(feed - data) + 1 : 0;
	p->dropping = true;
	if (p->piece.len > torn)
		log_pull_lose(p, crilog_count(data + torn, p->piece.len - torn));
	p->piece.len = torn;
	if (torn == 0)
		buf_clear(&p->piece);
	log_pull_took(p, MAX(p->at, p->piece_end));
	if (p->source)
		p->config.peer->ops->log_pause(p->source, false);
}

static void log_pull_cannot_write(struct log_pull *p)
{
	nsec_t limit = p->config.log.drop ? 0 : p->config.log.block_for, now = clock_mono();
	struct error err = ERROR_INIT;

	/* Nor is there a next file before the end of this one. */
	if (p->next_fd >= 0) {
		p->next_fd = fd_close(p->next_fd);
		(void)error_set(&err, p->result, "write the log of %s", p->name);
		log_pull_tell_changed(p, &err);
	}
	if (p->block_until == 0)
		p->block_until = limit < NSEC_NEVER - now ? now + limit : NSEC_NEVER;
	if (p->dropping || now >= p->block_until)
		log_pull_drop(p);
	log_pull_again(p);
}

/* The file that follows is begun, once nothing waits to be written to this one. */
static void log_pull_begin_switch(struct log_pull *p)
{
	if (p->next_fd < 0 || p->work.busy || !p->resumed || p->piece.len > 0)
		return;
	p->switching = true;
	p->switch_at = p->at;
	pool_submit(p->config.pool, &p->work);
}

static void log_pull_wrote(struct log_pull *p)
{
	struct error none = ERROR_INIT;

	buf_consume(&p->piece, p->n_written);
	if (p->result < 0) {
		log_pull_cannot_write(p);
		return;
	}
	p->delay = 0;
	p->block_until = 0;
	p->dropping = false;
	if (p->ended) {
		log_pull_finish(p, &none);
		return;
	}
	log_pull_took(p, MAX(p->at, p->piece_end));
	if (p->source)
		p->config.peer->ops->log_pause(p->source, false);
	else
		log_pull_again(p);
	log_pull_begin_switch(p);
}

/* A mark that could not be written is missed only by a daemon that comes later. */
static void log_pull_switched(struct log_pull *p)
{
	struct error err = ERROR_INIT, none = ERROR_INIT;

	p->switching = false;
	if (p->result < 0)
		(void)error_set(&err, p->result, "write the new log of %s", p->name);
	log_pull_tell_changed(p, p->result < 0 ? &err : NULL);
	if (p->due) {
		p->due = false;
		pool_submit(p->config.pool, &p->work);
	} else if (p->ended) {
		log_pull_finish(p, &none);
	} else if (!p->source) {
		log_pull_again(p);
	}
}

static void log_pull_ran(struct pool_work *work)
{
	struct log_pull *p = container_of(work, struct log_pull, work);
	struct error err = ERROR_INIT;

	if (p->dying) {
		log_pull_destroy(p);
	} else if (p->switching) {
		log_pull_switched(p);
	} else if (p->resumed) {
		log_pull_wrote(p);
	} else if (p->result < 0) {
		(void)error_set(&err, p->result, "open the log of %s", p->name);
		log_pull_finish(p, &err);
	} else {
		p->resumed = true;
		log_pull_open(p);
		log_pull_begin_switch(p);
	}
}

static void log_pull_on_retry(struct loop_timer *t)
{
	struct log_pull *p = container_of(t, struct log_pull, retry);

	if (p->work.busy)
		return;
	if ((p->piece.len > 0 || p->lost > 0) && log_pull_add_mark(p) == 0)
		log_pull_submit(p);
	else if (!p->source && !p->ended)
		log_pull_open(p);
}

/* ---- the object ---- */

int log_pull_change(struct log_pull *p, int fd,
		    void (*done)(void *userdata, const struct error *err), void *userdata)
{
	if (p->changed)
		return -EBUSY;
	if (p->ended)
		return -EPIPE;
	p->next_fd = fd;
	p->changed = done;
	p->changed_userdata = userdata;
	log_pull_begin_switch(p);
	return 0;
}

int log_pull_new(struct log_pull **ret, const struct log_pull_config *config)
{
	struct log_pull *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	*p = (struct log_pull){ .config = *config,
				.file = LOG_FILE_NONE,
				.next_fd = -1,
				.work = { .run = log_pull_run, .done = log_pull_ran },
				.err = ERROR_INIT };
	(void)str_copy(p->dir, sizeof(p->dir), config->dir);
	(void)str_copy(p->id, sizeof(p->id), config->id);
	(void)str_copy(p->name, sizeof(p->name), config->name);
	loop_timer_init(&p->retry, config->loop, log_pull_on_retry);
	loop_defer_init(&p->end, config->loop, log_pull_on_end);
	pool_submit(config->pool, &p->work);
	*ret = p;
	return 0;
}

struct log_pull *log_pull_free(struct log_pull *p)
{
	struct error over = ERROR_INIT;

	if (!p)
		return NULL;
	(void)error_refuse(&over, ERROR_PRECONDITION, "nothing more is written to this log");
	log_pull_tell_changed(p, &over);
	log_pull_close(p);
	p->dying = true;
	loop_timer_done(&p->retry);
	loop_defer_done(&p->end);
	if (!p->work.busy)
		log_pull_destroy(p);
	return NULL;
}
