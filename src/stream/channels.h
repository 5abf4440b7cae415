/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_CHANNELS_H
#define NACRE_STREAM_CHANNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/buf.h"
#include "stream/websocket.h"

/*
 * Several streams in the messages of one WebSocket, as Kubernetes has it: the first byte of a
 * message is the number of its channel. In the base64 form that byte is the character '0' plus the
 * number, and the rest is base64 in a text message. A codec.
 */

/* Version 5: the byte behind it is the channel that its sender will not write to any more. */
#define CHANNEL_CLOSE 255U
/* Above it the character of a channel would not be ASCII. */
#define CHANNEL_MAX 63U

struct channels;

/* NULL without memory. */
struct channels *channels_new(bool is_base64);
struct channels *channels_free(struct channels *c);

/*
 * A piece of a message: 1 with what it says, which lives until the next call; 0: nothing yet.
 * -EBADMSG: it is not base64, and nothing can be taken any more.
 */
int channels_take(struct channels *c, const struct websocket_event *e, unsigned *ret_channel,
		  const uint8_t **ret, size_t *ret_len);

/* Adds a message: 0, or a negative errno of the buffer. */
int channels_put(const struct channels *c, struct buf *to, unsigned channel, const void *data,
		 size_t len);

#endif
