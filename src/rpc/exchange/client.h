/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_CLIENT_H
#define NACRE_RPC_CLIENT_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/time/clock.h"
#include "rpc/message/status.h"

/*
 * gRPC over HTTP/2, the calling side: one connection, many calls.
 *
 * A server that sends GOAWAY has only to deliver the data that it still holds: then the windows of
 * paused streams are given back too, up to RPC_REST_MAX, so that it can end at once, and its data
 * wait here for slow readers.
 */

/* The most bytes that the paused streams of a connection hold from a server that ends. Past that it
 * waits for their readers as ever. */
#define RPC_REST_MAX (16U * 1024 * 1024)
/* Of a client that is retired, a stream ends where nothing of it was taken for so long. */
#define RPC_REST_PATIENCE (10 * NSEC_PER_SEC)

struct loop;
struct rpc_client;
struct rpc_stream;

/* Takes fd (a connected, non-blocking stream) over. */
int rpc_client_new(struct rpc_client **ret, struct loop *l, int fd);
/* For a program that takes each message as soon as it is there and holds none back: servers may
 * send further ahead, which a stream of many bytes needs to be fast. Before the first call. 0 or
 * -ENOMEM. */
int rpc_client_widen(struct rpc_client *c) _must_check_;
/* Ends every call with UNAVAILABLE (their on_end is called), closes. */
struct rpc_client *rpc_client_free(struct rpc_client *c);
/*
 * For the owner the same, but calls that are still there outlive it: they go on to their end, or to
 * that of the connection, and are told all that the server has said before. Then the client frees
 * itself. on_close is not called. A call that takes nothing for RPC_REST_PATIENCE ends with
 * RESOURCE_EXHAUSTED, one that is told nothing for that long with UNAVAILABLE. There must be no
 * call left when the loop ends.
 */
struct rpc_client *rpc_client_retire(struct rpc_client *c);
/* fn is called once, when the connection is lost (after the ends of its calls), not by
 * rpc_client_free(). The client is then only good for rpc_client_free(), which fn may call. */
void rpc_client_on_close(struct rpc_client *c, void (*fn)(struct rpc_client *c, void *data),
			 void *data);
bool rpc_client_connected(const struct rpc_client *c);

struct rpc_stream_ops {
	/* One message, undecoded; the bytes are the callee's until it returns. */
	void (*on_message)(struct rpc_stream *s, const uint8_t *data, size_t len, void *userdata);
	/* The end, exactly once unless the stream was cancelled: err->code is 0 for OK. The stream
	 * is gone afterwards. code is the status as it came. */
	void (*on_end)(struct rpc_stream *s, enum rpc_code code, const struct error *err,
		       void *userdata);
	/* May be NULL: rpc_stream_writable() is true again. */
	void (*on_writable)(struct rpc_stream *s, void *userdata);
	/* May be NULL: how much of what on_message was told still waits to be taken behind it. What
	 * becomes less is taken (RPC_REST_PATIENCE). */
	size_t (*waiting)(struct rpc_stream *s, void *userdata);
};

/* Every stream whose end was not told yet. fn must not end any. */
void rpc_client_each_stream(const struct rpc_client *c,
			    void (*fn)(void *data, const struct rpc_stream_ops *ops,
				       const void *userdata),
			    void *data);

struct rpc_request {
	const char *method;              /* "/pkg.Service/Method" */
	const char *target;              /* RPC_TARGET_HEADER; NULL or "": the peer itself */
	const ProtobufCMessage *message; /* or NULL, then data */
	const uint8_t *data;
	size_t len;
	nsec_t timeout; /* NSEC_NEVER: none. Also sent as grpc-timeout */
	/* Messages follow by rpc_stream_send(), until rpc_stream_close_send(). `message` may be
	 * NULL and len 0 then: the first one follows too. */
	bool more;
};

/* Never calls an op before it has returned; a connection that is lost already is reported by
 * on_end. 0, -ENOMEM, -EMSGSIZE (more than RPC_MESSAGE_MAX), or -EPIPE from within
 * rpc_client_free(). */
int rpc_client_call(struct rpc_client *c, const struct rpc_request *request,
		    const struct rpc_stream_ops *ops, void *userdata, struct rpc_stream **ret);
/* The client's RST_STREAM; no op is called any more, the stream is gone. */
void rpc_stream_cancel(struct rpc_stream *s);
/* Back-pressure: no on_message while paused; what was received waits, and the window closes. */
void rpc_stream_pause(struct rpc_stream *s, bool paused);

/* For a request with `more`. Queued in full; a sender looks at rpc_stream_writable() first and else
 * waits for on_writable. 0, -ENOMEM or -EMSGSIZE. */
int rpc_stream_send(struct rpc_stream *s, const void *data, size_t len) _must_check_;
bool rpc_stream_writable(const struct rpc_stream *s);
void rpc_stream_close_send(struct rpc_stream *s);

/* Decodes a message after the wire walker has looked at it; allocator may be NULL. NULL with err
 * set (ERROR_INVALID) where it is not one. Free with protobuf_c_message_free_unpacked(). */
ProtobufCMessage *rpc_decode(const ProtobufCMessageDescriptor *type, const uint8_t *data,
			     size_t len, ProtobufCAllocator *allocator, struct error *err);

#endif
