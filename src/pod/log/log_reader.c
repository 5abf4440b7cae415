/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/log/log_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/list.h"
#include "base/text/str.h"
#include "loop/pool.h"
#include "pod/log/log_watch.h"
#include "wire/format/crilog.h"

/*
 * A reader is busy (it waits for a slot, or has one), paused, waiting (at the end of a log that
 * grows: inotify wakes it), or ended.
 *
 * A slot is a work for the pool and a piece of memory. While the pool works, the slot owns the
 * place in the log, and the reader may be freed: then the place goes with the slot. What a piece
 * brings is given out at once; where the reader is paused in between, the rest is read again.
 */

#define LOG_SLOTS 2
/* Of one call of on_data(), but for a single record. */
#define LOG_DATA_MAX ((size_t)64 * 1024)

struct log_slot {
	struct log_readers *all;
	struct log_reader *reader; /* NULL: it was freed meanwhile, or the slot is idle */
	struct pool_work work;
	struct log_cursor cursor;
	struct log_wish wish;
	bool start; /* else read */
	uint8_t *piece;
	ssize_t result; /* bytes of the piece, or a negative errno */
	uint64_t skipped;
};

struct log_readers {
	struct pool *pool;
	struct loop *loop;
	int logs_fd;
	struct log_watch watch;
	struct list waiting; /* for a slot */
	struct log_slot slots[LOG_SLOTS];
};

struct log_reader {
	struct log_readers *all;
	const struct log_reader_ops *ops;
	void *userdata;
	struct list link; /* in all->waiting */
	struct log_slot *slot;
	struct log_watched watched;
	struct loop_defer defer;
	struct log_cursor cursor;
	struct log_wish wish;
	char file[NAME_LABEL_MAX + 8];
	bool started;
	bool paused;
	bool at_end; /* of the log as it was when the last read began */
	bool stale;  /* the log has grown, or is complete, since the read in hand began */
	bool ended;
	bool freed;
	bool in_callback;
	bool inside[CRILOG_STREAMS]; /* a line whose beginning was met */
	bool wanted[CRILOG_STREAMS]; /* that line, by its time */
};

/* Records that go out as one: from the first one's place in the piece on. */
struct log_group {
	uint8_t *data;
	size_t len;
	nsec_t time;
	enum crilog_stream stream;
};

static void log_reader_destroy(struct log_reader *r)
{
	log_watch_remove(&r->all->watch, &r->watched);
	loop_defer_done(&r->defer);
	list_remove(&r->link);
	log_cursor_done(&r->cursor);
	free(r);
}

static void log_reader_end(struct log_reader *r, int code)
{
	struct error err = ERROR_INIT;

	r->ended = true;
	if (code < 0)
		(void)error_set(&err, code, "read a log");
	r->ops->on_end(r->userdata, code < 0 ? &err : NULL);
}

/* ---- giving out ---- */

static bool log_reader_stops(const struct log_reader *r)
{
	return r->paused || r->freed || r->ended;
}

/* Whether to go on. */
static bool log_reader_flush(struct log_reader *r, struct log_group *g)
{
	if (g->len > 0)
		r->ops->on_data(r->userdata, g->stream == CRILOG_STDERR ? 2 : 1, g->time, g->data,
				g->len);
	g->len = 0;
	return !log_reader_stops(r);
}

/* Whether the record belongs to what was asked for. */
static bool log_reader_wants(struct log_reader *r, const struct crilog_record *record)
{
	const struct log_point *from = &r->cursor.from[record->stream], *at = &r->cursor.at;
	enum crilog_stream s = record->stream;

	if (at->file < from->file || (at->file == from->file && at->offset < from->offset))
		return false;
	if (!r->inside[s])
		r->wanted[s] = record->time >= r->wish.since &&
			       (!r->wish.until || record->time < r->wish.until);
	r->inside[s] = !record->full;
	return r->wanted[s];
}

static void log_group_add(struct log_group *g, const struct crilog_record *record)
{
	if (g->len == 0)
		*g = (struct log_group){ .data = (uint8_t *)(uintptr_t)record->data,
					 .time = record->time,
					 .stream = record->stream };
	else
		memmove(g->data + g->len, record->data, record->len);
	g->len += record->len;
}

static bool log_group_takes(const struct log_group *g, const struct crilog_record *record)
{
	return g->len == 0 || (record->mark == CRILOG_NO_MARK && record->stream == g->stream &&
			       record->time == g->time && g->len + record->len <= LOG_DATA_MAX);
}

/* Lines of the piece until the reader is stopped; the place moves over each that was taken. */
static void log_reader_give(struct log_reader *r, uint8_t *piece, size_t len)
{
	struct log_group group = { .len = 0 };
	uint8_t *p = piece, *end = piece + len;

	while (p < end) {
		const uint8_t *feed = memchr(p, '\n', (size_t)(end - p));
		size_t size = (size_t)(feed - p) + 1;
		struct crilog_record record;

		if (crilog_parse(&record, p, size) == 0) {
			if (!log_group_takes(&group, &record) && !log_reader_flush(r, &group))
				return;
			if (record.mark == CRILOG_MARK_LOST)
				r->ops->on_skipped(r->userdata, record.number);
			if (record.len > 0 && log_reader_wants(r, &record))
				log_group_add(&group, &record);
		}
		p += size;
		r->cursor.at.offset += size;
		if (log_reader_stops(r))
			return;
	}
	(void)log_reader_flush(r, &group);
}

/* ---- slots ---- */

static void log_slot_run(struct pool_work *work)
{
	struct log_slot *s = container_of(work, struct log_slot, work);

	s->skipped = 0;
	if (s->start)
		s->result = log_cursor_start(&s->cursor, &s->wish, s->piece, &s->skipped);
	else
		s->result = log_cursor_read(&s->cursor, s->piece, &s->skipped);
}

static void log_reader_step(struct log_reader *r)
{
	if (log_reader_stops(r) || r->slot || !list_empty(&r->link))
		return;
	if (r->at_end && !r->wish.follow)
		log_reader_end(r, 0);
	else if (!r->at_end)
		list_add_tail(&r->all->waiting, &r->link);
}

static void log_slot_begin(struct log_slot *s, struct log_reader *r)
{
	list_remove(&r->link);
	if (!s->piece)
		s->piece = malloc(LOG_PIECE_SIZE);
	if (!s->piece) {
		log_reader_end(r, -ENOMEM);
		return;
	}
	s->reader = r;
	s->cursor = r->cursor;
	s->wish = r->wish;
	s->start = !r->started;
	r->slot = s;
	r->stale = false;
	r->cursor.fd = -1;
	r->cursor.next_fd = -1;
	pool_submit(s->all->pool, &s->work);
}

static void log_readers_serve(struct log_readers *all)
{
	for (size_t i = 0; i < LOG_SLOTS; i++)
		while (!all->slots[i].work.busy && !list_empty(&all->waiting))
			log_slot_begin(&all->slots[i],
				       list_first(&all->waiting, struct log_reader, link));
}

static void log_reader_take(struct log_reader *r, struct log_slot *s)
{
	bool started = r->started;

	if (s->skipped)
		r->ops->on_skipped(r->userdata, s->skipped);
	if (r->freed)
		return;
	r->started = true;
	if (s->result < 0)
		log_reader_end(r, (int)s->result);
	else if (s->result > 0 && !log_reader_stops(r))
		log_reader_give(r, s->piece, (size_t)s->result);
	else if (s->result == 0 && started)
		r->at_end = !r->stale;
}

static void log_slot_done(struct pool_work *work)
{
	struct log_slot *s = container_of(work, struct log_slot, work);
	struct log_reader *r = s->reader;

	s->reader = NULL;
	if (r) {
		r->slot = NULL;
		r->cursor = s->cursor;
		s->cursor.fd = -1;
		s->cursor.next_fd = -1;
		r->in_callback = true;
		log_reader_take(r, s);
		log_reader_step(r);
		r->in_callback = false;
		if (r->freed)
			log_reader_destroy(r);
	} else {
		log_cursor_done(&s->cursor);
	}
	if (list_empty(&s->all->waiting)) {
		free(s->piece);
		s->piece = NULL;
	}
	log_readers_serve(s->all);
}

/* ---- the readers ---- */

static void log_reader_on_defer(struct loop_defer *d)
{
	struct log_reader *r = container_of(d, struct log_reader, defer);
	struct log_readers *all = r->all;

	r->in_callback = true;
	log_reader_step(r);
	r->in_callback = false;
	if (r->freed)
		log_reader_destroy(r);
	log_readers_serve(all);
}

static void log_reader_changed(struct log_watched *w)
{
	struct log_reader *r = container_of(w, struct log_reader, watched);

	r->at_end = false;
	r->stale = true;
	loop_defer_schedule(&r->defer);
}

int log_reader_new(struct log_reader **ret, struct log_readers *all, const char *id,
		   const char *name, const struct log_wish *wish, const struct log_reader_ops *ops,
		   void *userdata)
{
	struct log_reader *r = calloc(1, sizeof(*r));
	int code = 0;

	if (!r)
		return -ENOMEM;
	r->all = all;
	r->ops = ops;
	r->userdata = userdata;
	r->wish = *wish;
	r->watched.fn = log_reader_changed;
	list_init(&r->link);
	list_init(&r->watched.link);
	loop_defer_init(&r->defer, all->loop, log_reader_on_defer);
	log_cursor_init(&r->cursor, all->logs_fd, id, name);
	(void)str_printf(r->file, sizeof(r->file), "%s.log", name);
	/* The watch comes before the first read: nothing is missed in between. */
	if (wish->follow)
		code = log_watch_add(&all->watch, &r->watched, id, r->file);
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
	if (r->slot)
		r->slot->reader = NULL;
	r->slot = NULL;
	if (!r->in_callback)
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
	r->wish.follow = false;
	r->at_end = false;
	r->stale = true;
	loop_defer_schedule(&r->defer);
}

int log_readers_new(struct log_readers **ret, struct loop *l, struct pool *pool, int logs_fd)
{
	struct log_readers *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->loop = l;
	all->pool = pool;
	all->logs_fd = logs_fd;
	list_init(&all->waiting);
	log_watch_init(&all->watch, l, logs_fd);
	for (size_t i = 0; i < LOG_SLOTS; i++) {
		struct log_slot *s = &all->slots[i];

		s->all = all;
		s->work.run = log_slot_run;
		s->work.done = log_slot_done;
		log_cursor_init(&s->cursor, logs_fd, "", "");
	}
	*ret = all;
	return 0;
}

struct log_readers *log_readers_free(struct log_readers *all)
{
	if (!all)
		return NULL;
	log_watch_done(&all->watch);
	for (size_t i = 0; i < LOG_SLOTS; i++) {
		/* A work that the pool dropped had the place still. */
		log_cursor_done(&all->slots[i].cursor);
		free(all->slots[i].piece);
	}
	free(all);
	return NULL;
}
