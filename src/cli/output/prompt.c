/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The terminal is raw meanwhile (cli/output/tty.h), so that it gets back what it had however this
 * ends. That makes lines our business: what is typed is shown, and taken back, here.
 */

#include "cli/output/prompt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/output/tty.h"

#define PROMPT_MAX 16384
#define KEY(letter) ((letter)&0x1f)
#define KEY_DELETE 0x7f

/* The last character of UTF-8 goes, and its place on the screen. */
static void prompt_take_back(struct buf *line, bool secret)
{
	size_t n = line->len;

	if (n == 0)
		return;
	while (--n > 0 && (buf_data(line)[n] & 0xc0) == 0x80)
		;
	line->len = n;
	if (!secret)
		(void)fd_write_full(STDERR_FILENO, "\b \b", 3);
}

/* 1: the line goes on. */
static int prompt_key(struct buf *line, bool secret, char key, struct error *err)
{
	switch (key) {
	case '\r':
	case '\n':
		return 0;
	case KEY('C'):
	case KEY('D'):
		return error_refuse(err, ERROR_CANCELLED, "cancelled");
	case '\b':
	case KEY_DELETE:
		prompt_take_back(line, secret);
		return 1;
	case KEY('U'):
		while (line->len > 0)
			prompt_take_back(line, secret);
		return 1;
	default:
		if (buf_add(line, &key, 1) < 0)
			return error_refuse(err, ERROR_INVALID, "more than %d bytes were typed",
					    PROMPT_MAX);
		if (!secret)
			(void)fd_write_full(STDERR_FILENO, &key, 1);
		return 1;
	}
}

static int prompt_read(struct buf *line, bool secret, struct error *err)
{
	int r;

	do {
		char key;
		ssize_t n = read(STDIN_FILENO, &key, 1);

		if (n < 0 && errno == EINTR) {
			r = 1;
			continue;
		}
		if (n <= 0)
			return error_refuse(err, ERROR_CANCELLED, "the terminal has gone");
		r = prompt_key(line, secret, key, err);
		explicit_bzero(&key, 1);
	} while (r > 0);
	return r;
}

int prompt_line(char **ret, const char *question, bool secret, struct error *err)
{
	_cleanup_(buf_done) struct buf line = BUF_INIT_LIMIT(PROMPT_MAX);
	struct tty tty = TTY_INIT;
	int r;

	if (!isatty(STDIN_FILENO))
		return error_refuse(err, ERROR_PRECONDITION,
				    "standard input is no terminal to ask at for the %s", question);
	r = tty_init(&tty, STDIN_FILENO, err);
	if (r < 0)
		return r;
	(void)fd_write_full(STDERR_FILENO, question, strlen(question));
	(void)fd_write_full(STDERR_FILENO, ": ", 2);
	r = prompt_read(&line, secret, err);
	(void)fd_write_full(STDERR_FILENO, "\r\n", 2);
	tty_done(&tty);
	if (r == 0)
		*ret = xformat("%.*s", (int)line.len,
			       line.len ? (const char *)buf_data(&line) : "");
	if (line.base)
		explicit_bzero(line.base, line.size);
	return r;
}
