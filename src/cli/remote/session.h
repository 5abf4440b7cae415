/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_SESSION_H
#define NACRE_CLI_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/nacre.pb-c.h"
#include "base/log/error.h"
#include "cli/output/tty.h"
#include "cli/remote/client.h"
#include "loop/loop.h"

/*
 * This process in front of a program in a container, by Exec or Attach: standard input, output and
 * error, the terminal with its size, signals, and the keys that leave. One shape for `run`, `exec`
 * and `attach`, which say what it is to do with a signal.
 */

enum session_end {
	SESSION_EXITED,   /* `status` is the program's */
	SESSION_FAILED,   /* `err` says why */
	SESSION_DETACHED, /* the keys were typed */
	SESSION_LEFT,     /* by a signal: `status` is 128 and its number */
	SESSION_UNREAD,   /* nobody reads the output any more */
	SESSION_BEHIND,   /* output is missing: fall_back was set */
};

struct session {
	/* Set before the start. */
	struct client *client;
	bool exec;  /* Exec, else Attach */
	bool stdin; /* is passed on */
	bool tty;   /* the program has a terminal, and so have we */
	struct detach keys;
	/* A signal from outside, where there is no terminal between (SIGINT, SIGTERM, SIGHUP,
	 * SIGQUIT, SIGUSR1, SIGUSR2). True: leave. NULL: it goes to the program; the third
	 * SIGINT leaves. So does, from an exec, SIGTERM: a second later, so that the program can
	 * end by itself, the second one at once. Both leave at once where nobody reads. */
	bool (*on_signal)(struct session *s, int sig);
	/* Nobody reads. True: leave, else what still comes is dropped. NULL: leave. */
	bool (*on_unread)(struct session *s);
	bool fall_back; /* end with SESSION_BEHIND where output is missing */

	/* Once it has ended. */
	enum session_end end;
	int status;
	struct error err;
	char reason[ERROR_TEXT_MAX]; /* why the program did not start */
	uint64_t received[2];        /* bytes of stdout and stderr */

	/* Private. */
	struct client_call call;
	struct loop_fd input;
	struct loop_fd reader; /* of standard output, with a terminal and a pipe */
	struct loop_signal signals;
	struct loop_timer leaving;
	struct tty terminal;
	bool signals_on, ended, unread;
	bool stuck; /* a signal came while nobody took the output */
	int n_interrupts, n_terminations;
	int wake_fd; /* readable while SIGINT or SIGTERM waits */
	uint8_t *chunk;
};

/* Signals are listened to from here on, so that none gets lost between the start of a program and
 * that of the session. */
int session_init(struct session *s, struct error *err);
/* Makes the call with its first message (an ExecRequest or AttachRequest) and stays with it until
 * its end. The terminal is as it was before then. */
void session_run(struct session *s, const ProtobufCMessage *first);
void session_done(struct session *s);
/*
 * Writes output of the program. Where nobody takes it and SIGINT or SIGTERM waits, this and all
 * that comes later is dropped, so that the signal is looked at; a session with on_signal gives the
 * reader a second. 0 or a negative errno, as output_write().
 */
int session_write(struct session *s, int fd, const void *data, size_t len);
/*
 * After a call that ended with ERROR_UNAVAILABLE: whether the workload has ended with its keeper.
 * The daemon, if there is one, is given a moment to learn it. The answer to Wait, which the caller
 * frees, or NULL.
 */
Nacre__V1__WaitResponse *session_after_loss(struct client *client, const char *target);

/* The size of our terminal for a first message; NULL where it is unknown. */
Nacre__V1__TerminalSize *session_size(Nacre__V1__TerminalSize *size);
/* Whether --tty makes sense here. */
int session_check_tty(bool tty, bool interactive, struct error *err);

#endif
