/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_COMMAND_H
#define NACRE_STREAM_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/time/clock.h"

/*
 * The interface between the two ends of a connection of the streaming server (stream/server.h): the
 * command behind it, and the session of its client (stream/session.c).
 */

#define STREAM_PATIENCE (30 * NSEC_PER_SEC)
#define STREAM_TOKEN_PATIENCE (5 * NSEC_PER_SEC)
#define STREAM_IDLE_MAX (4 * 3600 * NSEC_PER_SEC) /* without a byte in either direction */
#define STREAM_WAITING_MAX ((size_t)256 * 1024)

struct dial;
struct stream_session;

/* The purpose of a connection. The functions get `userdata`; `gone` comes once and last, also where
 * the URL was never used. */
struct stream_command {
	const char *kind; /* "exec", "attach", "portforward": the first part of the path */
	/* Only this and `gone` where the client's streams are connections to ports of a pod
	 * (stream/dial.h). */
	void (*dial)(void *userdata, struct dial *d);
	/* Of such a command, for clients whose protocol does not name them itself; userdata's. */
	const uint16_t *ports;
	size_t n_ports;
	bool in, out, err, tty;
	/* All streams are there. An error is told to the client. */
	int (*begin)(void *userdata, struct stream_session *s, struct error *err);
	void (*on_input)(void *userdata, const void *data, size_t len);
	void (*on_input_end)(void *userdata);
	void (*on_resize)(void *userdata, uint16_t width, uint16_t height);
	/* stream_session_is_full() is false again. */
	void (*on_room)(void *userdata);
	void (*gone)(void *userdata);
	void *userdata;
};

/* stream: 1 or 2. What the client has not asked for is thrown away. */
void stream_session_output(struct stream_session *s, int stream, const void *data, size_t len);
bool stream_session_is_full(const struct stream_session *s);
/* No more input is read meanwhile. */
void stream_session_hold_input(struct stream_session *s, bool held);
/* The command has ended. What was written is still sent; `gone` follows. */
void stream_session_exit(struct stream_session *s, int exit_code);
void stream_session_fail(struct stream_session *s, const struct error *err);

#endif
