/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_TTY_H
#define NACRE_CLI_TTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

#include "base/log/error.h"

/*
 * The user's terminal while the keys belong to somebody else. However this process ends, short of
 * SIGKILL, the terminal gets back what it had: by tty_done(), at the exit of the process, and
 * by a handler where a fault ends it. There is one at a time.
 */

struct tty {
	int fd;   /* -1: there is none */
	bool raw; /* now */
	struct termios saved;
};

#define TTY_INIT                                                                                   \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* Keys come as they are typed from now on. */
int tty_init(struct tty *t, int fd, struct error *err);
/* For a while: what it was before, and raw again (not while this process is in the background). */
void tty_rest(struct tty *t);
void tty_resume(struct tty *t);
void tty_done(struct tty *t);

/* Of the terminal of a descriptor; false and 0 by 0 where it has none. */
bool tty_measure(int fd, unsigned *ret_width, unsigned *ret_height);

/* ---- the keys that leave ---- */

#define DETACH_KEYS_MAX 16
#define DETACH_KEYS_DEFAULT "ctrl-p,ctrl-q"

struct detach {
	uint8_t keys[DETACH_KEYS_MAX];
	size_t n;       /* 0: there are none */
	size_t matched; /* of them typed, and not passed on yet */
};

/* "ctrl-p,ctrl-q": single characters and ctrl-X, parted by commas; "": none. ERROR_INVALID. */
int detach_parse(struct detach *d, const char *text, struct error *err);
/* Takes typed bytes and puts what is to be passed on into to (room for len + DETACH_KEYS_MAX
 * bytes); its length. *ret_leave: the keys were typed; nothing behind them is passed on. */
size_t detach_filter(struct detach *d, const uint8_t *data, size_t len, uint8_t *to,
		     bool *ret_leave);

#endif
