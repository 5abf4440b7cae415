/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/output/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cell/output/pump.h"
#include "wire/format/crilog.h"

/*
 * Each line stands for one byte of output at least, so a place names one line. What was told and is
 * not taken yet is at the front of what the pump has: `told` bytes of it.
 */

struct keeper_log {
	struct kept *kept; /* NULL: over, to be freed */
	struct keeper_log_ops ops;
	void *userdata;
	size_t told;      /* bytes of lines */
	uint64_t told_at; /* the place behind them */
	bool paused;
	bool at_end; /* on_eof was called */
	bool over;   /* the container has ended and all was taken */
};

/* ---- places ---- */

/* How many bytes of the lines stand before the place; -EINVAL where no line begins there. */
static int kept_find(const struct pump *p, uint64_t at, size_t *ret)
{
	size_t len, begin = 0;
	bool end;
	const uint8_t *lines = pump_kept(p, 0, &len, &end);
	uint64_t place = p->kept_at;

	while (begin < len && place < at) {
		const uint8_t *feed = memchr(lines + begin, '\n', len - begin);
		size_t size = feed ? (size_t)(feed - lines) + 1 - begin : len - begin;

		place += crilog_count(lines + begin, size);
		begin += size;
	}
	if (place != at)
		return -EINVAL;
	*ret = begin;
	return 0;
}

/* Whole lines of at most KEEPER_LOG_MAX bytes. */
static size_t kept_piece(const uint8_t *lines, size_t len)
{
	const uint8_t *feed;

	if (len <= KEEPER_LOG_MAX)
		return len;
	feed = memrchr(lines, '\n', KEEPER_LOG_MAX);
	return feed ? (size_t)(feed - lines) + 1 : 0;
}

/* ---- telling ---- */

/* Whether there may be more at once. */
static bool kept_tell(struct kept *k)
{
	struct keeper_log *g = k->reader;
	uint64_t at = g->told_at;
	const uint8_t *lines;
	size_t len;
	bool end;

	lines = pump_kept(k->pump, g->told, &len, &end);
	len = kept_piece(lines, len);
	if (len == 0) {
		if (end && !g->at_end) {
			g->at_end = true;
			g->ops.on_eof(g->userdata, at);
		}
		return false;
	}
	g->told += len;
	g->told_at += crilog_count(lines, len);
	g->ops.on_lines(g->userdata, at, lines, len);
	return true;
}

static void kept_on_turn(struct loop_defer *d)
{
	struct kept *k = container_of(d, struct kept, turn);

	while (k->reader && !k->reader->paused)
		if (!kept_tell(k))
			break;
	if (k->reader && k->reader->over && k->reader->at_end)
		kept_end(k, NULL);
}

/* ---- one reader ---- */

static void keeper_log_free(struct keeper_log *g)
{
	struct kept *k = g->kept;

	k->reader = NULL;
	pump_set_read(k->pump, false);
	free(g);
}

int kept_open(struct kept *k, uint64_t from, bool over, const struct keeper_log_ops *ops,
	      void *userdata, struct keeper_log **ret, struct error *err)
{
	struct error other = ERROR_INIT;
	struct keeper_log *g;
	size_t n = 0;

	if (!k->pump->keeps)
		return error_refuse(err, ERROR_PRECONDITION, "its log is not kept by its keeper");
	/* What is gone is not waited for: the reader sees where he begins. */
	if (from > k->pump->kept_at && kept_find(k->pump, from, &n) < 0)
		return error_field(err, ERROR_INVALID, "from", "no line begins at byte %llu",
				   (unsigned long long)from);
	g = malloc(sizeof(*g));
	if (!g)
		return error_set(err, -ENOMEM, "read the log");
	(void)error_refuse(&other, ERROR_ABORTED, "somebody else reads the log now");
	kept_end(k, &other);
	if (n > 0)
		pump_take(k->pump, n);
	*g = (struct keeper_log){ .kept = k,
				  .ops = *ops,
				  .userdata = userdata,
				  .told_at = k->pump->kept_at,
				  .over = over };
	k->reader = g;
	pump_set_read(k->pump, true);
	loop_defer_schedule(&k->turn);
	*ret = g;
	return 0;
}

int kept_take(struct keeper_log *g, uint64_t at, struct error *err)
{
	struct kept *k = g->kept;
	size_t n;

	if (at > g->told_at || kept_find(k->pump, at, &n) < 0)
		return error_field(err, ERROR_INVALID, "ack", "no line that was told ends at %llu",
				   (unsigned long long)at);
	if (n == 0)
		return 0;
	g->told -= n;
	pump_take(k->pump, n);
	return 0;
}

void kept_pause(struct keeper_log *g, bool paused)
{
	g->paused = paused;
	if (!paused)
		loop_defer_schedule(&g->kept->turn);
}

void kept_close(struct keeper_log *g)
{
	keeper_log_free(g);
}

/* ---- the value ---- */

static void kept_on_growth(struct pump *p)
{
	struct kept *k = p->grown_data;

	if (!k->reader)
		return;
	/* All that was told is gone where it was given up. */
	if (p->waiting.len < k->reader->told) {
		k->reader->told = 0;
		k->reader->told_at = p->kept_at;
	}
	loop_defer_schedule(&k->turn);
}

void kept_init(struct kept *k, struct loop *l, struct pump *pump)
{
	*k = (struct kept){ .pump = pump };
	pump->grown = kept_on_growth;
	pump->grown_data = k;
	loop_defer_init(&k->turn, l, kept_on_turn);
}

void kept_end(struct kept *k, const struct error *err)
{
	struct keeper_log *g = k->reader;
	struct keeper_log_ops ops;
	void *userdata;

	if (!g)
		return;
	if (!err && !g->at_end) {
		/* It is told of the end first. */
		g->over = true;
		loop_defer_schedule(&k->turn);
		return;
	}
	ops = g->ops;
	userdata = g->userdata;
	keeper_log_free(g);
	ops.on_end(userdata, err);
}

void kept_done(struct kept *k)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_ABORTED, "the container is removed");
	kept_end(k, &err);
	loop_defer_done(&k->turn);
}

void kept_drop(struct kept *k)
{
	free(TAKE_PTR(k->reader));
	loop_defer_done(&k->turn);
}
