/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_TALK_H
#define NACRE_STREAM_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/buf.h"
#include "stream/spdy.h"
#include "stream/upgrade.h"

/*
 * The protocol of a client once its connection is upgraded (enum upgrade_kind), as streams with
 * numbers. A channel of a WebSocket is the stream of its number plus one; it is there from the
 * beginning, is not opened, and has no end but the one of the connection, save that version 5 can
 * end what a client sends. Pings are answered in here. A codec.
 */

struct talk;

/* It writes to `out`, which must live as long. NULL without memory. */
struct talk *talk_new(const struct upgrade *u, struct buf *out);
struct talk *talk_free(struct talk *t);

/*
 * Takes the next event from what was received, OPEN, DATA, RESET or OTHER: 1 with *ret filled in,
 * which lives until the next call; 0: more is needed first. Nothing can be taken after an error:
 * -ESHUTDOWN: the client ends the connection, and talk_close() is its answer; errors of
 * websocket_take() and spdy_take(); -EBADMSG: a message is not in base64; -ENOMEM.
 */
int talk_take(struct talk *t, struct buf *in, struct spdy_event *ret);

/* Each adds to `out`: 0, or a negative errno of it. Channels can neither be accepted, which does
 * nothing, nor ended, which is left out, nor reset, which is -EOPNOTSUPP. */
int talk_accept(struct talk *t, uint32_t stream);
int talk_data(struct talk *t, uint32_t stream, const void *data, size_t len, bool fin);
int talk_reset(struct talk *t, uint32_t stream, uint32_t status);
/* That this end is alive. */
int talk_pulse(struct talk *t);
/* The last word, where the protocol has one: why, as talk_take() has it, or 0. A second one adds
 * nothing. */
int talk_close(struct talk *t, int why);

#endif
