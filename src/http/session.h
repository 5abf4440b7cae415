/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_HTTP_SESSION_H
#define NACRE_HTTP_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/memory/buf.h"
#include "http/code.h"
#include "http/out.h"

/*
 * One HTTP/2 connection (RFC 9113), either side, without any I/O: http_session_receive() takes what
 * came, http_session_pull() gives what is to be sent, and the ops tell what happened. A stream has
 * a queue of bytes to send; what is received is acknowledged (its window given back) only when the
 * owner says so, so a slow reader on one side slows the writer on the other.
 *
 * Ops run inside http_session_receive(), http_session_pull(), http_session_pulled() or
 * http_session_free(). They may call any http_stream function, but not these four.
 */

struct http_session;
struct http_stream;

enum http_side { HTTP_SERVER, HTTP_CLIENT };

/* Limits of the memory that a peer can make us hold; http/guard.h has those of the work. */
#define HTTP_STREAMS_MAX 1000 /* open at once, that a client may have */
#define HTTP_FIELDS_MAX                                                                            \
	(64U * 1024)              /* bytes of the header fields of a stream, 32 more for each      \
				   */
#define HTTP_CONTINUATIONS_MAX 8  /* frames of one header block */
#define HTTP_WINDOW (128U * 1024) /* received bytes of a stream that were not given back */
#define HTTP_SESSION_WINDOW (1024U * 1024) /* bytes on their way in a connection */
#define HTTP_WINDOW_WIDE (2048U * 1024)    /* both of them after http_session_widen() */
#define HTTP_ACKS_MAX 1000                 /* answers to PING and SETTINGS that wait to be sent */
#define HTTP_RESETS_BURST 2000             /* RST_STREAM frames at once... */
#define HTTP_RESETS_RATE 200               /* ...and each second after those */
/* Limits of the queues of our own side. */
#define HTTP_QUEUE_HIGH (32U * 1024)        /* a stream is not writable from here on... */
#define HTTP_QUEUE_LOW (8U * 1024)          /* ...until no more than this is left */
#define HTTP_QUEUE_MAX (128U * 1024 * 1024) /* of all streams of a connection */
/* Header fields in one call. */
#define HTTP_FIELDS_OUT_MAX 16

struct http_field {
	const char *name;
	const char *value;
};

struct http_ops {
	/* Servers only: a request begins; calls http_stream_attach(). Negative refuses the stream.
	 */
	int (*begin)(struct http_session *h, struct http_stream *s);
	/* One field of a header block, in order; pseudo fields (":path") too. The strings are clean
	 * (RFC 9113, 8.2.1). */
	void (*field)(struct http_stream *s, const char *name, const char *value);
	/* A header block is complete: the head of a message, or its trailers. */
	void (*headers)(struct http_stream *s);
	void (*data)(struct http_stream *s, const uint8_t *data, size_t len);
	/* The peer sends no more. */
	void (*end)(struct http_stream *s);
	/* The stream is gone once this returns; also for a loss of the connection (HTTP_CANCEL). */
	void (*close)(struct http_stream *s, uint32_t code);
	/* It was not writable and is again. */
	void (*drain)(struct http_stream *s);
	/* Clients only, may be NULL: the peer has said GOAWAY. */
	void (*goaway)(struct http_session *h);
};

/* 0 or -ENOMEM. */
int http_session_new(struct http_session **ret, enum http_side side, const struct http_ops *ops,
		     void *userdata);
/* Closes every stream first. */
struct http_session *http_session_free(struct http_session *h);
/* For a side that reads all that comes at once, and so holds nothing: the peer may send further
 * ahead, and does not wait for each word that its bytes have arrived. 0 or -ENOMEM. */
int http_session_widen(struct http_session *h) _must_check_;
void *http_session_userdata(const struct http_session *h);

/* 0; -EPROTO where the connection cannot go on (not HTTP/2, or a flood that is told by nothing
 * better); -ENOMEM. After a fault that is told (GOAWAY) what comes is dropped. */
int http_session_receive(struct http_session *h, const uint8_t *data, size_t len) _must_check_;
/* Puts what is to be sent into out, until it holds `max` bytes or a frame more; 0 or as above. Part
 * of it is lent, and stays until http_session_pulled(), which follows before anything else is asked
 * of the session or its streams. After a failure only http_session_free() may follow; out must not
 * be read then. */
int http_session_pull(struct http_session *h, struct http_out *out, size_t max) _must_check_;
void http_session_pulled(struct http_session *h);
bool http_session_wants_write(const struct http_session *h);
/* Bytes that wait in the queues of all streams, also for a window. */
size_t http_session_queued(const struct http_session *h);
/* False once nothing more will be read or written: time to close the connection. */
bool http_session_alive(const struct http_session *h);
/* Clients: false once the peer has said GOAWAY or stream ids are used up. */
bool http_session_accepts_requests(const struct http_session *h);
/* No stream is open. */
bool http_session_is_idle(const struct http_session *h);
/* Says GOAWAY: streams that are open go on, new ones are refused. */
void http_session_goaway(struct http_session *h);

/* Asks the peer whether it is there: it answers with a frame. */
void http_session_ping(struct http_session *h);

/* Clients: opens a stream. The strings are copied. 0, -ENOMEM or -EPIPE (no more requests). */
int http_session_request(struct http_session *h, const struct http_field *fields, size_t n,
			 void *data, struct http_stream **ret) _must_check_;

void http_stream_attach(struct http_stream *s, void *data);
void *http_stream_data(const struct http_stream *s);
struct http_session *http_stream_session(const struct http_stream *s);
/* No op is called for the stream any more; what is queued is still sent. */
void http_stream_detach(struct http_stream *s);
/* More header fields came than HTTP_FIELDS_MAX; the rest was dropped. */
bool http_stream_oversized(const struct http_stream *s);

/* Servers: the head of the answer; `end`: and nothing else. 0 or -ENOMEM. */
int http_stream_respond(struct http_stream *s, const struct http_field *fields, size_t n,
			bool end) _must_check_;
/* Room for n bytes in the queue, which http_stream_commit() then sends. 0, -ENOMEM, or -ENOBUFS
 * past HTTP_QUEUE_MAX. */
int http_stream_reserve(struct http_stream *s, size_t n, uint8_t **ret) _must_check_;
void http_stream_commit(struct http_stream *s, size_t n);
/* The end of what we send, behind the queue; with trailers where n > 0. 0 or -ENOMEM. */
int http_stream_finish(struct http_stream *s, const struct http_field *trailers,
		       size_t n) _must_check_;
/* RST_STREAM, and drops the queue. Where there is no memory for it, the session ends: the next
 * http_session_pull() says so. */
void http_stream_reset(struct http_stream *s, uint32_t code);
/* n received bytes have been dealt with. */
void http_stream_consumed(struct http_stream *s, size_t n);
size_t http_stream_queued(const struct http_stream *s);
bool http_stream_writable(const struct http_stream *s);

#endif
