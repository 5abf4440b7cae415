/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/tty.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/text/str.h"

/* Whose terminal is to be restored. */
static struct tty *tty_taken;

static void tty_set(const struct tty *t, const struct termios *mode)
{
	while (tcsetattr(t->fd, TCSADRAIN, mode) < 0 && errno == EINTR)
		;
}

static void tty_at_exit(void)
{
	tty_done(tty_taken);
}

/* tcsetattr() may be called here (signal-safety(7)). The signal acts once this has returned. */
static void tty_on_fault(int sig)
{
	if (tty_taken && tty_taken->raw)
		(void)tcsetattr(tty_taken->fd, TCSANOW, &tty_taken->saved);
	(void)raise(sig);
}

static void tty_guard(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
	static bool guarded;
	struct sigaction action = { .sa_handler = tty_on_fault, .sa_flags = (int)SA_RESETHAND };

	if (guarded)
		return;
	guarded = true;
	(void)atexit(tty_at_exit);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		(void)sigaction(faults[i], &action, NULL);
}

static bool tty_is_ours(const struct tty *t)
{
	return tcgetpgrp(t->fd) == getpgrp();
}

void tty_resume(struct tty *t)
{
	struct termios raw;

	/* From the background it would only stop us. */
	if (t->fd < 0 || !tty_is_ours(t))
		return;
	raw = t->saved;
	cfmakeraw(&raw);
	t->raw = true;
	tty_set(t, &raw);
}

void tty_rest(struct tty *t)
{
	if (t->fd < 0 || !t->raw)
		return;
	t->raw = false;
	if (tty_is_ours(t))
		tty_set(t, &t->saved);
}

int tty_init(struct tty *t, int fd, struct error *err)
{
	if (tcgetattr(fd, &t->saved) < 0)
		return error_set(err, -errno, "look at the terminal");
	t->fd = fd;
	tty_taken = t;
	tty_guard();
	tty_resume(t);
	return 0;
}

void tty_done(struct tty *t)
{
	if (!t || t->fd < 0)
		return;
	tty_rest(t);
	t->fd = -1;
	tty_taken = NULL;
}

bool tty_measure(int fd, unsigned *ret_width, unsigned *ret_height)
{
	struct winsize size = { .ws_col = 0 };
	bool known = ioctl(fd, TIOCGWINSZ, &size) == 0;

	*ret_width = known ? size.ws_col : 0;
	*ret_height = known ? size.ws_row : 0;
	return known;
}

/* ---- the keys that leave ---- */

/* One of "a", "ctrl-a", "ctrl-@", "ctrl-[", ...; -1 for anything else. */
static int detach_key(const char *word, size_t len)
{
	static const char prefix[] = "ctrl-";
	const size_t n = sizeof(prefix) - 1;

	if (len == 1 && (unsigned char)*word > ' ' && (unsigned char)*word < 0x7f)
		return *word;
	if (len != n + 1 || memcmp(word, prefix, n) != 0)
		return -1;
	if (word[n] >= 'a' && word[n] <= 'z')
		return word[n] - 'a' + 1;
	return word[n] >= '@' && word[n] <= '_' ? word[n] - '@' : -1;
}

int detach_parse(struct detach *d, const char *text, struct error *err)
{
	*d = (struct detach){ .n = 0 };
	for (const char *word = text; *text;) {
		size_t len = strcspn(word, ",");
		int key = detach_key(word, len);

		if (key < 0 || d->n == DETACH_KEYS_MAX)
			return error_refuse(err, ERROR_INVALID,
					    "--detach-keys is up to %d keys such as %s, not \"%s\"",
					    DETACH_KEYS_MAX, DETACH_KEYS_DEFAULT, text);
		d->keys[d->n++] = (uint8_t)key;
		if (!word[len])
			break;
		word += len + 1;
	}
	return 0;
}

/* How many of the keys the end of (the first `matched` keys, byte) begins again. */
static size_t detach_overlap(const struct detach *d, uint8_t byte)
{
	for (size_t n = d->matched + 1; n > 0; n--)
		if (d->keys[n - 1] == byte &&
		    memcmp(d->keys, d->keys + (d->matched + 1 - n), n - 1) == 0)
			return n;
	return 0;
}

size_t detach_filter(struct detach *d, const uint8_t *data, size_t len, uint8_t *to,
		     bool *ret_leave)
{
	size_t out = 0;

	*ret_leave = false;
	for (size_t i = 0; i < len; i++) {
		size_t matched, held;

		if (d->n == 0) {
			to[out++] = data[i];
			continue;
		}
		matched = detach_overlap(d, data[i]);
		/* What was held back and begins no match any more is passed on. */
		held = d->matched + 1 - matched;
		for (size_t k = 0; k < held; k++)
			to[out++] = k < d->matched ? d->keys[k] : data[i];
		d->matched = matched;
		if (matched == d->n) {
			*ret_leave = true;
			return out;
		}
	}
	return out;
}
