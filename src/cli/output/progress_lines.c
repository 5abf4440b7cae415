/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/progress_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/output/output.h"
#include "cli/output/text.h"

#define LINES_PERIOD (100 * NSEC_PER_MSEC)
#define LINES_SHOWN_MAX 16 /* at once on a terminal: those that something happens to */
#define LINES_BAR 24

struct progress_line {
	char digest[TEXT_SIZE];
	char state[16];
	uint64_t n_bytes, size;
	uint64_t first; /* bytes that were there when it began */
	nsec_t begun;
	bool moves, ended;
};

void progress_lines_wipe(struct progress_lines *p)
{
	if (p->n_drawn)
		(void)fprintf(stderr, "\033[%uA\r\033[J", p->n_drawn);
	p->n_drawn = 0;
}

/* "31.4 MB/s, 12 s left"; "" where that is not known yet. */
static void lines_rate(char *to, size_t size, const struct progress_line *l, nsec_t now)
{
	nsec_t passed = now > l->begun ? now - l->begun : 0;
	double rate;
	char text[TEXT_SIZE];

	*to = '\0';
	if (passed < NSEC_PER_SEC / 2 || l->n_bytes <= l->first)
		return;
	rate = (double)(l->n_bytes - l->first) * 1e9 / (double)passed;
	text_bytes(text, (uint64_t)rate);
	(void)str_printf(to, size, "%s/s, %.0f s left", text,
			 (double)(l->size - MIN(l->n_bytes, l->size)) / rate);
}

static void lines_draw_line(const struct progress_lines *p, unsigned k, nsec_t now)
{
	const struct progress_line *l = &p->list[k];
	unsigned full = l->size ? (unsigned)(l->n_bytes * LINES_BAR / l->size) : LINES_BAR;
	char bar[LINES_BAR + 1], size[TEXT_SIZE], rate[64] = "", line[256];
	unsigned width = output_width(STDERR_FILENO);

	for (unsigned i = 0; i < LINES_BAR; i++)
		bar[i] = i < full ? '#' : '.';
	bar[LINES_BAR] = '\0';
	text_bytes(size, l->size);
	if (l->moves)
		lines_rate(rate, sizeof(rate), l, now);
	(void)str_printf(line, sizeof(line), "%3u/%u %s [%s] %9s %s", k + 1, p->n, l->digest, bar,
			 size, *rate ? rate : l->state);
	if (width > 1)
		line[text_prefix(line, width - 1)] = '\0';
	(void)fprintf(stderr, "%s\n", line);
}

static void lines_draw(struct progress_lines *p)
{
	nsec_t now = clock_mono();
	unsigned n = 0;

	if (!p->live || now < p->due)
		return;
	progress_lines_wipe(p);
	for (unsigned k = 0; k < p->n && n < LINES_SHOWN_MAX; k++) {
		if (!*p->list[k].state || p->list[k].ended)
			continue;
		lines_draw_line(p, k, now);
		n++;
	}
	p->n_drawn = n;
	p->due = now + LINES_PERIOD;
	(void)fflush(stderr);
}

void progress_lines_say(struct progress_lines *p, const char *text)
{
	progress_lines_wipe(p);
	(void)fprintf(stderr, "%s\n", text);
	p->due = 0;
}

static void lines_end(struct progress_lines *p, unsigned k, const char *how)
{
	const struct progress_line *l = &p->list[k];
	char size[TEXT_SIZE];
	_cleanup_str_ char *text = NULL;

	text_bytes(size, l->size);
	text = xformat("%3u/%u %s %s %s", k + 1, p->n, l->digest, size, how);
	progress_lines_say(p, text);
}

void progress_lines_tell(struct progress_lines *p, const struct progress_word *w)
{
	bool moves = str_eq(w->state, "loading") || str_eq(w->state, "sending");
	struct progress_line *l;

	if (w->count > PROGRESS_LINES_MAX || w->number == 0 || w->number > w->count)
		return;
	if (w->count > p->n) {
		p->list = xrealloc(p->list, w->count, sizeof(*p->list));
		for (; p->n < w->count; p->n++)
			p->list[p->n] = (struct progress_line){ .size = 0 };
	}
	l = &p->list[w->number - 1];
	if (moves && !l->moves) {
		l->begun = clock_mono();
		l->first = w->n_bytes;
	}
	text_short_id(l->digest, w->digest);
	(void)str_copy(l->state, sizeof(l->state), w->state);
	l->moves = moves;
	l->ended = w->done != NULL;
	l->n_bytes = w->n_bytes;
	l->size = w->size;
	if (w->done)
		lines_end(p, w->number - 1, w->done);
	lines_draw(p);
}

void progress_lines_init(struct progress_lines *p)
{
	const char *term = getenv("TERM");

	*p = (struct progress_lines){ .live = isatty(STDERR_FILENO) && term &&
					      !str_eq(term, "dumb") };
}

void progress_lines_done(struct progress_lines *p)
{
	progress_lines_wipe(p);
	free(p->list);
	*p = (struct progress_lines){ .live = false };
}
