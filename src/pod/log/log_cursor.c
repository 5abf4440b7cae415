/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/log/log_cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

/*
 * The names move while they are looked at: always from a lower number to the next, from the oldest
 * on, so that one name may be missing for a moment. Looking from NAME.log upwards therefore meets
 * each file that is kept, perhaps twice; files that are met again are known by their number.
 *
 * The end of a file is its end for good only when there is a newer one: then what was written
 * between the two looks is read first.
 */

struct log_found {
	int fd;
	uint64_t file;
	uint64_t position;
	nsec_t time; /* of its first line; 0: it has none */
};

/* From the newest file to the oldest. */
struct log_walk {
	const struct log_cursor *cursor;
	uint32_t n; /* of the next name */
	unsigned n_missing;
	bool any;
	uint64_t last; /* number of the file that was found last */
};

void log_cursor_init(struct log_cursor *c, int logs_fd, const char *id, const char *name)
{
	*c = (struct log_cursor){ .logs_fd = logs_fd, .fd = -1, .next_fd = -1 };
	(void)str_printf(c->name, sizeof(c->name), "%s/%s.log", id, name);
}

void log_cursor_done(struct log_cursor *c)
{
	c->fd = fd_close(c->fd);
	c->next_fd = fd_close(c->next_fd);
}

static ssize_t log_pread(int fd, void *data, size_t len, uint64_t at)
{
	ssize_t n;

	do
		n = sysio_pread(fd, data, len, (off_t)at);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* ---- which file is which ---- */

static int log_found_open(struct log_found *f, const struct log_cursor *c, uint32_t n)
{
	_cleanup_fd_ int fd = -1;
	struct crilog_record record;
	char name[sizeof(c->name) + 12];
	uint8_t head[CRILOG_MARK_MAX];
	const uint8_t *feed;
	ssize_t len;

	if (n == 0)
		(void)str_copy(name, sizeof(name), c->name);
	else
		(void)str_printf(name, sizeof(name), "%s.%u", c->name, n);
	fd = sysio_openat(c->logs_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	len = log_pread(fd, head, sizeof(head), 0);
	if (len < 0)
		return (int)len;
	*f = (struct log_found){ .fd = -1 };
	feed = memchr(head, '\n', (size_t)len);
	/* A line without its end is cut to one that tells the time. */
	if (!feed && len == (ssize_t)sizeof(head)) {
		head[len - 1] = '\n';
		feed = head + len - 1;
	}
	if (feed && crilog_parse(&record, head, (size_t)(feed - head) + 1) == 0) {
		f->time = record.time;
		if (record.mark == CRILOG_MARK_FILE) {
			f->file = record.file;
			f->position = record.number;
		}
	}
	f->fd = TAKE_FD(fd);
	return 0;
}

/* 1 with the next older file, the descriptor of which is the caller's; 0: there is none. */
static int log_walk_next(struct log_walk *w, struct log_found *ret)
{
	for (; w->n_missing < 2; w->n++) {
		int r = log_found_open(ret, w->cursor, w->n);

		if (r < 0 && r != -ENOENT)
			return r;
		w->n_missing = r < 0 ? w->n_missing + 1 : 0;
		if (r < 0)
			continue;
		if (w->any && ret->file >= w->last) {
			(void)fd_close(ret->fd);
			continue;
		}
		w->any = true;
		w->last = ret->file;
		w->n++;
		return 1;
	}
	return 0;
}

static void log_cursor_set(struct log_cursor *c, const struct log_found *f)
{
	(void)fd_close(c->fd);
	c->fd = f->fd;
	c->at = (struct log_point){ .file = f->file };
	c->position = f->position;
}

/* Finds the oldest of the newer files; 1: c->next is set. */
static int log_cursor_find_next(struct log_cursor *c)
{
	struct log_walk walk = { .cursor = c };
	struct log_found f;
	int r;

	for (;;) {
		r = log_walk_next(&walk, &f);
		if (r <= 0)
			break;
		if (f.file <= c->at.file) {
			(void)fd_close(f.fd);
			break;
		}
		(void)fd_close(c->next_fd);
		c->next_fd = f.fd;
		c->next = (struct log_point){ .file = f.file };
		c->next_position = f.position;
	}
	return r < 0 ? r : c->next_fd >= 0;
}

/* ---- reading on ---- */

/* How many bytes of output a file holds. */
static int log_file_count(int fd, uint8_t *piece, uint64_t *ret)
{
	uint64_t at = 0;

	*ret = 0;
	for (;;) {
		ssize_t n = log_pread(fd, piece, LOG_PIECE_SIZE, at);
		const uint8_t *feed;

		if (n <= 0)
			return (int)n;
		feed = memrchr(piece, '\n', (size_t)n);
		if (feed)
			n = feed - piece + 1;
		*ret += crilog_count(piece, (size_t)n);
		at += (uint64_t)n;
		if (!feed && n < (ssize_t)LOG_PIECE_SIZE)
			return 0;
	}
}

/* To the file that follows. Where there were others between the two they are gone. */
static int log_cursor_advance(struct log_cursor *c, uint8_t *piece, uint64_t *ret_skipped)
{
	struct log_found next = { .fd = c->next_fd,
				  .file = c->next.file,
				  .position = c->next_position };
	uint64_t held = 0;
	int r;

	if (c->next.file != c->at.file + 1) {
		r = log_file_count(c->fd, piece, &held);
		if (r < 0)
			return r;
		if (c->next_position > c->position + held)
			*ret_skipped += c->next_position - c->position - held;
	}
	c->next_fd = -1;
	log_cursor_set(c, &next);
	return 0;
}

/* The whole lines of the file at hand, from c->at on. */
static ssize_t log_cursor_lines(struct log_cursor *c, uint8_t *piece)
{
	for (;;) {
		size_t size = LOG_PIECE_SIZE;
		const uint8_t *feed;
		ssize_t n;

		if (c->bounded && c->at.file >= c->end.file) {
			if (c->at.file > c->end.file || c->at.offset >= c->end.offset)
				return 0;
			size = MIN(size, (size_t)(c->end.offset - c->at.offset));
		}
		n = log_pread(c->fd, piece, size, c->at.offset);
		if (n <= 0)
			return n;
		feed = memrchr(piece, '\n', (size_t)n);
		if (feed)
			return feed - piece + 1;
		if (n < (ssize_t)LOG_PIECE_SIZE)
			return 0;
		/* No line of ours is that long. */
		c->at.offset += (uint64_t)n;
	}
}

ssize_t log_cursor_read(struct log_cursor *c, uint8_t *piece, uint64_t *ret_skipped)
{
	*ret_skipped = 0;
	for (;;) {
		bool complete = c->next_fd >= 0;
		ssize_t n = log_cursor_lines(c, piece);
		int r;

		if (n != 0)
			return n;
		if (c->bounded && c->at.file >= c->end.file)
			return 0;
		r = complete ? log_cursor_advance(c, piece, ret_skipped) : log_cursor_find_next(c);
		if (r < 0 || (r == 0 && !complete))
			return r;
	}
}

/* ---- where to begin ---- */

struct log_tail {
	uint64_t n_left; /* lines */
	uint64_t until;  /* of struct log_wish */
	struct log_point from[CRILOG_STREAMS];
	size_t len[CRILOG_STREAMS];
	bool seen[CRILOG_STREAMS];
	bool open[CRILOG_STREAMS]; /* the beginning of a line that counts is still to come */
};

static bool log_tail_is_done(const struct log_tail *t)
{
	return t->n_left == 0 && !t->open[CRILOG_STDOUT] && !t->open[CRILOG_STDERR];
}

/* The next record towards the beginning. Whether it is wanted. */
static bool log_tail_take(struct log_tail *t, const struct crilog_record *record,
			  const struct log_point *at)
{
	enum crilog_stream s = record->stream;

	/* A line that is too late for `until` is none of those that are counted. */
	if (t->until && record->time >= t->until) {
		t->seen[s] = true;
		t->open[s] = false;
		return false;
	}
	if (record->full || !t->seen[s]) {
		t->seen[s] = true;
		t->open[s] = t->n_left > 0;
		t->n_left -= t->open[s];
		t->len[s] = 0;
	}
	t->len[s] += record->len;
	if (t->len[s] > LOG_TAIL_LINE_MAX)
		t->open[s] = false;
	if (t->open[s])
		t->from[s] = *at;
	return t->open[s];
}

/* The lines of piece[first..len), from the last to the first; the piece is at `at`. */
static bool log_tail_lines(struct log_tail *t, const uint8_t *piece, size_t first, size_t len,
			   const struct log_point *at)
{
	bool wanted = false;

	while (len > first && !log_tail_is_done(t)) {
		const uint8_t *feed = memrchr(piece + first, '\n', len - first - 1);
		size_t begin = feed ? (size_t)(feed - piece) + 1 : first;
		struct log_point here = { .file = at->file, .offset = at->offset + begin };
		struct crilog_record record;

		if (crilog_parse(&record, piece + begin, len - begin) == 0 && record.len > 0)
			wanted = log_tail_take(t, &record, &here) || wanted;
		len = begin;
	}
	return wanted;
}

/* Through one file, from its end to its beginning. 1: it holds lines that are wanted. */
static int log_tail_file(struct log_tail *t, const struct log_found *f, uint64_t end,
			 uint8_t *piece)
{
	bool wanted = false;

	while (end > 0 && !log_tail_is_done(t)) {
		struct log_point at = { .file = f->file,
					.offset = end > LOG_PIECE_SIZE ? end - LOG_PIECE_SIZE : 0 };
		ssize_t n = log_pread(f->fd, piece, (size_t)(end - at.offset), at.offset);
		const uint8_t *feed, *last;
		size_t first = 0;

		if (n <= 0)
			return (int)n;
		/* The line that began before belongs to the next piece. */
		feed = memchr(piece, '\n', (size_t)n);
		last = memrchr(piece, '\n', (size_t)n);
		if (at.offset > 0 && feed)
			first = (size_t)(feed - piece) + 1;
		if (last && first <= (size_t)(last - piece))
			wanted = log_tail_lines(t, piece, first, (size_t)(last - piece) + 1, &at) ||
				 wanted;
		end = at.offset + (first < (size_t)n ? first : 0);
	}
	return wanted;
}

/* The end of the last whole line. */
static int log_found_end(const struct log_found *f, uint8_t *piece, uint64_t *ret)
{
	const uint8_t *feed;
	struct stat st;
	uint64_t size, from;
	ssize_t n;

	if (fstat(f->fd, &st) < 0)
		return -errno;
	size = (uint64_t)st.st_size;
	from = size > LOG_PIECE_SIZE ? size - LOG_PIECE_SIZE : 0;
	n = log_pread(f->fd, piece, (size_t)(size - from), from);
	if (n < 0)
		return (int)n;
	feed = memrchr(piece, '\n', (size_t)n);
	*ret = feed ? from + (uint64_t)(feed - piece) + 1 : from;
	return 0;
}

static bool log_point_is_before(const struct log_point *a, const struct log_point *b)
{
	return a->file != b->file ? a->file < b->file : a->offset < b->offset;
}

/* From the newest file, which the cursor has, backwards as far as the tail goes. */
static int log_cursor_start_tail(struct log_cursor *c, struct log_walk *walk, struct log_found *f,
				 const struct log_wish *wish, uint8_t *piece)
{
	struct log_tail tail = { .n_left = wish->tail,
				 .until = wish->until,
				 .from = { c->end, c->end } };
	uint64_t end = c->end.offset;
	struct stat st;
	int r;

	for (;;) {
		_cleanup_fd_ int fd = -1;

		r = log_tail_file(&tail, f, end, piece);
		if (r == 1 && f->fd != c->fd) {
			log_cursor_set(c, f);
			f->fd = -1;
		}
		if (f->fd != c->fd)
			fd = f->fd;
		if (r < 0 || log_tail_is_done(&tail))
			break;
		r = log_walk_next(walk, f);
		if (r <= 0)
			break;
		end = fstat(f->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
	}
	if (r < 0)
		return r;
	c->from[0] = tail.from[0];
	c->from[1] = tail.from[1];
	c->at = c->from[log_point_is_before(&c->from[1], &c->from[0])];
	return 0;
}

/* To the oldest file, or the newest that begins before the time. */
static int log_cursor_start_early(struct log_cursor *c, struct log_walk *walk, struct log_found *f,
				  uint64_t since, uint64_t *ret_skipped)
{
	int r = 1;

	while (r > 0 && !(since && f->time && f->time < since)) {
		r = log_walk_next(walk, f);
		if (r > 0)
			log_cursor_set(c, f);
	}
	if (r == 0 && !since)
		*ret_skipped = c->position;
	return r < 0 ? r : 0;
}

int log_cursor_start(struct log_cursor *c, const struct log_wish *wish, uint8_t *piece,
		     uint64_t *ret_skipped)
{
	struct log_walk walk = { .cursor = c };
	struct log_found f;
	int r;

	*ret_skipped = 0;
	r = log_walk_next(&walk, &f);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	log_cursor_set(c, &f);
	c->end.file = f.file;
	r = log_found_end(&f, piece, &c->end.offset);
	if (r < 0)
		return r;
	c->bounded = !wish->follow;
	if (wish->has_tail)
		return log_cursor_start_tail(c, &walk, &f, wish, piece);
	return log_cursor_start_early(c, &walk, &f, wish->since, ret_skipped);
}
