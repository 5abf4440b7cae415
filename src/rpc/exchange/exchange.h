/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_EXCHANGE_H
#define NACRE_RPC_EXCHANGE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "http/session.h"
#include "rpc/exchange/conn.h"

struct share;

/*
 * One HTTP/2 stream that carries gRPC messages, either side: the part that a server's call and a
 * client's stream have in common. A value inside its owner, which is told by ready() that a flag
 * has changed or bytes have come, and then looks at all of them.
 */

struct exchange {
	struct conn_item item;
	struct conn *conn;        /* NULL: released */
	struct http_stream *http; /* NULL: closed */
	struct share *share;      /* NULL: bytes are not counted */
	size_t charged;           /* to the share */
	struct buf rx;
	struct buf plain; /* the message in hand, where it came compressed */
	size_t framed;    /* bytes of rx that the message in hand takes */
	bool gzip_in;     /* the peer said that messages may be compressed... */
	bool gzip_out;    /* ...and that it understands those that are */
	size_t held;      /* received bytes whose window was not given back */
	bool paused;
	bool flushed; /* the window is given back although it is paused: what comes is held here */
	bool headers; /* a header block has come since the owner cleared this */
	bool ended;   /* the peer sends no more */
	bool closed;  /* the stream is gone, for close_code */
	bool drained; /* is writable again, until the owner clears this */
	bool overrun; /* the share or the memory was not enough: bytes are lost */
	bool oversized; /* too many header fields came */
	uint32_t close_code;
	void (*field)(struct exchange *x, const char *name, const char *value);
	void (*ready)(struct exchange *x);
};

/* The slots of http_ops below `begin`. */
void exchange_on_field(struct http_stream *s, const char *name, const char *value);
void exchange_on_headers(struct http_stream *s);
void exchange_on_data(struct http_stream *s, const uint8_t *data, size_t len);
void exchange_on_end(struct http_stream *s);
void exchange_on_close(struct http_stream *s, uint32_t code);
void exchange_on_drain(struct http_stream *s);

void exchange_init(struct exchange *x, struct conn *conn,
		   void (*field)(struct exchange *x, const char *name, const char *value),
		   void (*ready)(struct exchange *x));
/* Lets go of the stream, which goes on sending what is queued, and of all memory. May be called
 * twice. */
void exchange_release(struct exchange *x);

/*
 * The next whole message: 1 with its bytes, which stay until exchange_drop(); 0 where none is
 * complete or the exchange is paused; or a refusal (too long, also once it is inflated; badly
 * compressed; past the peer's share).
 */
int exchange_next(struct exchange *x, const uint8_t **ret, size_t *ret_len, struct error *err);
void exchange_drop(struct exchange *x);
/* Drops what has come. */
void exchange_skip(struct exchange *x);
/* Something is left of a message that did not come whole. */
bool exchange_has_rest(const struct exchange *x);
/* Gives the window back for what has come, unless paused (and not flushed). */
void exchange_give_back(struct exchange *x);
/* Takes n bytes of the peer's share until the exchange is released. */
bool exchange_charge(struct exchange *x, size_t n);
void exchange_pause(struct exchange *x, bool paused);
/* ready() once more. */
void exchange_again(struct exchange *x);

/* Queues one message, framed. 0, -ENOMEM, or -EMSGSIZE (longer than RPC_MESSAGE_MAX). Dropped where
 * the stream is gone. */
int exchange_send(struct exchange *x, const void *data, size_t len) _must_check_;
int exchange_send_message(struct exchange *x, const ProtobufCMessage *message) _must_check_;
bool exchange_writable(const struct exchange *x);
int exchange_finish(struct exchange *x, const struct http_field *trailers, size_t n) _must_check_;
/* Queues bytes that are no message, for a client that does not speak gRPC. 0 or -ENOMEM. */
int exchange_send_text(struct exchange *x, const char *text) _must_check_;
/* Resets the stream and lets go of it. */
void exchange_reset(struct exchange *x, uint32_t code);

#endif
