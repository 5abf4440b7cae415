/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/screen.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/output/output.h"

/* ECMA-48 and xterm: the other screen, the cursor away; home; clear to the end of the line, and of
 * the screen. */
static const char enter[] = "\033[?1049h\033[?25l";
static const char leave[] = "\033[?25h\033[?1049l";
static const char home[] = "\033[H";
static const char clear_line[] = "\033[K";
static const char clear_rest[] = "\033[J";

static void screen_signal(struct loop_signal *source, int sig, pid_t sender)
{
	struct screen *s = container_of(source, struct screen, signals);

	(void)sender;
	if (sig == SIGWINCH)
		s->resized = true;
	else
		s->ended = true;
}

static void screen_put(struct screen *s, const char *text, size_t len)
{
	if (output_write(STDOUT_FILENO, text, len) < 0)
		s->ended = true;
}

int screen_init(struct screen *s, struct loop *l, bool lines)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH };
	const char *term = getenv("TERM");
	int r;

	*s = (struct screen){ .lines = lines };
	r = loop_signal_init(&s->signals, l, signals, ARRAY_SIZE(signals), screen_signal);
	if (r < 0)
		return r;
	s->live = !lines && isatty(STDOUT_FILENO) && term && !str_eq(term, "dumb");
	(void)fflush(stdout);
	if (s->live)
		screen_put(s, enter, strlen(enter));
	return 0;
}

void screen_done(struct screen *s)
{
	if (s->live)
		(void)output_write(STDOUT_FILENO, leave, strlen(leave));
	s->live = false;
	if (s->frame)
		(void)fclose(s->frame);
	s->frame = NULL;
	free(s->text);
	s->text = NULL;
	loop_signal_done(&s->signals);
}

unsigned screen_width(const struct screen *s)
{
	return s->live ? output_width(STDOUT_FILENO) : 0;
}

FILE *screen_begin(struct screen *s)
{
	s->frame = open_memstream(&s->text, &s->len);
	if (!s->frame)
		abort();
	return s->frame;
}

/* As many lines as the terminal has, each cleared behind its end; the last without a line feed, so
 * that nothing scrolls. */
static void screen_put_lines(struct screen *s)
{
	unsigned left = output_height(STDOUT_FILENO);
	const char *line = s->text;
	char *all = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&all, &len);

	if (!to)
		abort();
	(void)fputs(home, to);
	while (*line && left != 1) {
		size_t n = strcspn(line, "\n");

		(void)fprintf(to, "%.*s%s\n", (int)n, line, clear_line);
		line += n + (line[n] == '\n');
		left -= left > 0;
	}
	(void)fputs(clear_rest, to);
	(void)fclose(to);
	screen_put(s, all, len);
	free(all);
}

void screen_show(struct screen *s)
{
	(void)fclose(s->frame);
	s->frame = NULL;
	if (s->live) {
		screen_put_lines(s);
	} else {
		if (s->n_frames > 0 && !s->lines)
			screen_put(s, "\n", 1);
		screen_put(s, s->text, s->len);
	}
	s->n_frames++;
	free(TAKE_PTR(s->text));
}
