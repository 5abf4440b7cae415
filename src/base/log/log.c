/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log/log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text/str.h"
#include "base/time/clock.h"

#define LOG_LINE_MAX 4096
/* Kept free while values are written, for the quotes and brackets that end what was begun. */
#define LOG_LINE_TAIL 128

static int log_fd = STDERR_FILENO;
static enum log_level log_least = LOG_INFO;
static enum log_form log_form = LOG_FORM_TEXT;
static void (*log_tap)(enum log_level level, const char *line, size_t len);

static const char *const log_words[] = {
	[LOG_DEBUG] = "debug",
	[LOG_INFO] = "info",
	[LOG_WARN] = "warn",
	[LOG_ERROR] = "error",
};

_Static_assert(ARRAY_SIZE(log_words) == LOG_LEVEL_COUNT, "one word for each level");

/*
 * A line under construction. A value that does not fit is cut between two characters, and a field
 * that has no room left is dropped, so that what closes the line always fits and JSON stays JSON.
 */
struct log_line {
	char text[LOG_LINE_MAX];
	size_t len;
};

void log_configure(int fd, enum log_level least, enum log_form form)
{
	log_fd = fd;
	log_least = least;
	log_form = form;
}

void log_set_tap(void (*tap)(enum log_level level, const char *line, size_t len))
{
	log_tap = tap;
}

int log_level_parse(const char *word)
{
	for (int i = 0; i < LOG_LEVEL_COUNT; i++)
		if (str_eq(word, log_words[i]))
			return i;
	return -1;
}

static void log_put(struct log_line *l, const char *s, size_t n)
{
	size_t room = sizeof(l->text) - 1 - l->len;

	n = MIN(n, room);
	memcpy(l->text + l->len, s, n);
	l->len += n;
}

static void log_puts(struct log_line *l, const char *s)
{
	log_put(l, s, strlen(s));
}

static bool log_has_room(const struct log_line *l, size_t n)
{
	return l->len + n <= sizeof(l->text) - LOG_LINE_TAIL;
}

/* The bytes of the character at s: one, and what continues it. */
static size_t log_char_len(const char *s)
{
	size_t n = 1;

	while (((unsigned char)s[n] & 0xc0) == 0x80)
		n++;
	return n;
}

/* One character as JSON has it; a byte that is no UTF-8 is shown by its number. */
static bool log_quote_char(struct log_line *l, const char *s, size_t n, bool utf8)
{
	unsigned char c = (unsigned char)*s;
	char escape[8];

	if (c == '"' || c == '\\')
		(void)str_printf(escape, sizeof(escape), "\\%c", c);
	else if (c >= 0x80 && !utf8)
		(void)str_printf(escape, sizeof(escape), "\\u%04x", c);
	else if (str_control_len(s))
		(void)str_printf(escape, sizeof(escape), "\\u%04x",
				 n == 2 ? (unsigned char)s[1] : c);
	else
		escape[0] = '\0';

	if (escape[0]) {
		s = escape;
		n = strlen(escape);
	}
	if (!log_has_room(l, n))
		return false;
	log_put(l, s, n);
	return true;
}

/* As a JSON string; the text form quotes the same way, so both can be read back. */
static void log_quote(struct log_line *l, const char *s)
{
	bool utf8 = str_is_utf8(s, strlen(s));

	log_puts(l, "\"");
	while (*s) {
		size_t n = utf8 ? log_char_len(s) : 1;

		if (!log_quote_char(l, s, n, utf8))
			break;
		s += n;
	}
	log_puts(l, "\"");
}

static bool log_needs_quotes(const char *s)
{
	if (!*s)
		return true;
	if (!str_is_utf8(s, strlen(s)))
		return true;
	for (; *s; s++)
		if (*s == ' ' || *s == '"' || *s == '=' || *s == '\\' || str_control_len(s))
			return true;
	return false;
}

/* Whether a field can be begun: its name is a short constant of ours. */
static bool log_takes_field(const struct log_line *l, const struct log_field *f)
{
	return f->name && log_has_room(l, strlen(f->name) + 32);
}

static void log_field_value(struct log_line *l, const struct log_field *f, bool always_quote)
{
	char number[24];

	if (!f->text) {
		(void)str_printf(number, sizeof(number), "%lld", (long long)f->number);
		log_puts(l, number);
	} else if (always_quote || log_needs_quotes(f->text) || !log_has_room(l, strlen(f->text))) {
		log_quote(l, f->text);
	} else {
		log_puts(l, f->text);
	}
}

static void log_text(struct log_line *l, const char *time, enum log_level level,
		     const char *message, const struct log_field *fields, size_t n)
{
	log_puts(l, time);
	log_puts(l, " ");
	log_puts(l, log_words[level]);
	log_puts(l, " ");
	log_puts(l, message);
	for (size_t i = 0; i < n; i++) {
		if (!log_takes_field(l, &fields[i]))
			continue;
		log_puts(l, " ");
		log_puts(l, fields[i].name);
		log_puts(l, "=");
		log_field_value(l, &fields[i], false);
	}
}

static void log_json(struct log_line *l, const char *time, enum log_level level,
		     const char *message, const struct log_field *fields, size_t n)
{
	log_puts(l, "{\"time\":");
	log_quote(l, time);
	log_puts(l, ",\"level\":");
	log_quote(l, log_words[level]);
	log_puts(l, ",\"msg\":");
	log_quote(l, message);
	for (size_t i = 0; i < n; i++) {
		if (!log_takes_field(l, &fields[i]))
			continue;
		log_puts(l, ",");
		log_quote(l, fields[i].name);
		log_puts(l, ":");
		log_field_value(l, &fields[i], true);
	}
	log_puts(l, "}");
}

void log_write(enum log_level level, const char *message, const struct log_field *fields, size_t n)
{
	struct log_line l = { .len = 0 };
	char time[CLOCK_TEXT_SIZE];
	int saved = errno;

	if (level < log_least)
		return;
	clock_format(time, clock_real());
	if (log_form == LOG_FORM_JSON)
		log_json(&l, time, level, message, fields, n);
	else
		log_text(&l, time, level, message, fields, n);
	l.text[l.len++] = '\n';
	/* One write: lines of processes that share the descriptor do not mix. */
	if (write(log_fd, l.text, l.len) < 0) {
		/* There is nowhere to say so. */
	}
	if (log_tap)
		log_tap(level, l.text, l.len - 1);
	errno = saved;
}
