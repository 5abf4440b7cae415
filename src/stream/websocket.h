/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_WEBSOCKET_H
#define NACRE_STREAM_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/buf.h"

/*
 * Frames of WebSocket (RFC 6455) as a server reads and writes them, without extensions. A codec: no
 * descriptor is known here.
 *
 * A message is told piece by piece as it arrives, whatever its fragments are, so that its size
 * costs no memory; WEBSOCKET_MESSAGE_MAX bounds it all the same. Text and binary messages are told
 * alike: clients of Kubernetes send either. Control frames are told whole.
 */

#define WEBSOCKET_MESSAGE_MAX ((uint64_t)32 * 1024 * 1024)
#define WEBSOCKET_PIECE_MAX ((size_t)16384)
#define WEBSOCKET_CONTROL_MAX 125U
#define WEBSOCKET_ACCEPT_SIZE 29

enum websocket_opcode {
	WEBSOCKET_CONTINUATION = 0,
	WEBSOCKET_TEXT = 1,
	WEBSOCKET_BINARY = 2,
	WEBSOCKET_CLOSE = 8,
	WEBSOCKET_PING = 9,
	WEBSOCKET_PONG = 10,
};

/* Codes of a close. */
#define WEBSOCKET_NORMAL 1000U
#define WEBSOCKET_PROTOCOL_ERROR 1002U
#define WEBSOCKET_NO_CODE 1005U /* never sent: the frame has none */
#define WEBSOCKET_BAD_DATA 1007U
#define WEBSOCKET_TOO_BIG 1009U
#define WEBSOCKET_INTERNAL 1011U

struct websocket_event {
	enum websocket_opcode opcode; /* BINARY for every piece of a message, CLOSE, PING, PONG */
	const uint8_t *data;          /* until the next call; of CLOSE: its reason */
	size_t len;
	bool begins, ends; /* a message, with this piece */
	unsigned code;     /* of CLOSE */
};

struct websocket;

/* NULL without memory. */
struct websocket *websocket_new(void);
struct websocket *websocket_free(struct websocket *w);

/*
 * Takes the next event from what was received: 1 with *used bytes taken and *ret filled in; 0: more
 * is needed first, and nothing of it was taken. Nothing can be taken after an error:
 * -EPROTO     that is no WebSocket, or the frame is not masked
 * -EMSGSIZE   the message is longer than WEBSOCKET_MESSAGE_MAX
 * -EILSEQ     the reason of a close is not UTF-8
 */
int websocket_take(struct websocket *w, const uint8_t *data, size_t len, size_t *used,
		   struct websocket_event *ret);
/* The code of the close that answers such an error, and what it is in words. */
unsigned websocket_code(int error, const char **ret_words);

/* Each adds an unmasked final frame: 0, or a negative errno of the buffer. put_head() announces a
 * payload that the caller adds. */
int websocket_put_head(struct buf *to, enum websocket_opcode opcode, size_t len);
int websocket_put(struct buf *to, enum websocket_opcode opcode, const void *data, size_t len);
/* WEBSOCKET_NO_CODE: without one. What is too long of `words` is left out. */
int websocket_put_close(struct buf *to, unsigned code, const char *words);

/* The answer to Sec-WebSocket-Key: 0, or -EINVAL where that is not 16 bytes in base64. */
int websocket_accept(const char *key, char ret[WEBSOCKET_ACCEPT_SIZE]);

#endif
