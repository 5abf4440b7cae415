/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_SERVER_H
#define NACRE_RPC_SERVER_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "base/time/clock.h"
#include "rpc/message/frame.h"
#include "rpc/message/status.h"
#include "rpc/server/method.h"
#include "rpc/server/peer.h"

/*
 * gRPC over HTTP/2, the serving side. The server owns its connections, a connection its calls. A
 * handler is called with a request that was checked (wire walker) and decoded in the call's arena,
 * and later ends the call with exactly one rpc_call_reply() or rpc_call_fail() (or, for a stream,
 * rpc_call_finish()). Until then the call is valid, also after the client went away; `on_cancel`
 * tells of that, of a deadline that has passed and of a lost connection, after which nothing that
 * is sent arrives but the handler still has to end the call.
 */

struct loop;
struct rpc_server;
struct rpc_call;
struct rpc_client;
struct rpc_measure;

/*
 * Beside RPC_MESSAGE_MAX (rpc/message/frame.h): what a server holds at most for its clients. No
 * peer has all of it (rpc/server/share.h), and none waits: what is past its share, or past the
 * whole, is told RESOURCE_EXHAUSTED at once. Where all connections are in use and a peer comes that
 * has none, the oldest one without a call makes room.
 */
#define RPC_CONNECTIONS_MAX 1000 /* and half of the descriptors that the process may have */
/* Connections beside those whose calls are refused, or that make room, and how long each may stay.
 * Past that the oldest is closed. */
#define RPC_PARTING_MAX 64
#define RPC_PARTING_TIME (5 * NSEC_PER_SEC)
#define RPC_LISTENERS_MAX 4
/* A client that has said nothing for so long is asked whether it is there, and its connection is
 * closed where nothing comes. One that is stopped (SIGSTOP) cannot answer. */
#define RPC_PING_AFTER (7200 * NSEC_PER_SEC)
#define RPC_PING_WAIT (20 * NSEC_PER_SEC)
#define RPC_CALLS_MAX 10000                   /* not ended */
#define RPC_REQUESTS_MAX (256U * 1024 * 1024) /* bytes of requests */

struct rpc_server_config {
	struct loop *loop;
	/*
	 * Finds the connection for a call with RPC_TARGET_HEADER: the first name of `target` is the
	 * child, *ret_rest what is left (a pointer into target). NULL: every target is refused. The
	 * call is then passed on message by message, undecoded, with back-pressure in both
	 * directions.
	 */
	int (*route)(void *userdata, const char *target, struct rpc_client **ret_client,
		     const char **ret_rest, struct error *err);
	void *userdata;
	/* Decides on a connection by its peer; NULL lets only the effective uid of this process in.
	 */
	bool (*admit)(void *userdata, const struct rpc_peer *peer);
	/* Decides on a call, before anything of it is looked at but its method; 0 or an error. NULL
	 * lets every call of an admitted peer through. */
	int (*authorize)(void *userdata, const struct rpc_peer *peer, const char *method,
			 struct error *err);
	/* A call has ended, with this code, whether or not its client has heard of it; or NULL. */
	void (*done)(void *userdata, const struct rpc_peer *peer, const char *method,
		     enum rpc_code code);
	/* Each call must have this field of metadata, once and with the value "true": the name;
	 * NULL: none. */
	const char *mark;
	/* A connection that rpc_server_take() has served is over, and its calls are; or NULL. */
	void (*closed)(void *userdata, const struct rpc_remote *remote);
	/* The only client is a server that has divided its own: a peer may have everything. */
	bool undivided;
	/* 0: RPC_PING_AFTER and RPC_PING_WAIT. NSEC_NEVER: silent clients may stay. */
	nsec_t ping_after, ping_wait;
	/* Serialised google.protobuf.FileDescriptorSet for server reflection; NULL: no reflection.
	 */
	const uint8_t *descriptors;
	size_t descriptors_len;
};

/* All that config points to must live as long as the server. 0 or -ENOMEM. */
int rpc_server_new(struct rpc_server **ret, const struct rpc_server_config *config);
/* Ends every call (on_cancel) and connection at once. */
struct rpc_server *rpc_server_free(struct rpc_server *s);

/* The tables must live as long as the server; userdata goes to the handlers. Reflection and
 * grpc.health.v1 are there without being added; health is SERVING for "" and each added service. 0,
 * -ENOMEM, or -EEXIST where a method is there already. */
int rpc_server_add(struct rpc_server *s, const struct rpc_service *service, void *userdata);
/* Takes listen_fd (a listening unix stream socket, non-blocking) over; at most RPC_LISTENERS_MAX of
 * them (-ENOSPC). */
int rpc_server_listen(struct rpc_server *s, int listen_fd);
/* Serves a connection that somebody else has accepted, and who has found out who is there; admit()
 * is not asked. Takes fd over, and keeps a reference of remote. */
void rpc_server_take(struct rpc_server *s, int fd, struct rpc_remote *remote);
/* Stops accepting, answers health with NOT_SERVING, sends GOAWAY, lets calls end; `drained` is
 * called once no call is left or `grace` has passed. */
void rpc_server_drain(struct rpc_server *s, nsec_t grace, void (*drained)(void *userdata),
		      void *userdata);

/* Calls that have not ended and whose client is still there, passed on ones too; method as in the
 * request. fn must not end any. */
void rpc_server_each_call(struct rpc_server *s,
			  void (*fn)(void *userdata, const struct rpc_call *c, const char *method),
			  void *userdata);

/* Counts and times calls from now on (rpc/server/measure.h); once, before it serves. 0 or -ENOMEM.
 */
int rpc_server_measure(struct rpc_server *s);
/* Those that were called, in the order in which they first were. */
void rpc_server_each_measure(const struct rpc_server *s,
			     void (*fn)(void *userdata, const struct rpc_measure *m),
			     void *userdata);

/* The resources that its clients hold now. */
struct rpc_server_load {
	size_t connections, calls, request_bytes;
};
struct rpc_server_load rpc_server_load(const struct rpc_server *s);

/* The verdicts of config.authorize have changed: remote connections with a call that it does not
 * allow any more are closed. */
void rpc_server_recheck(struct rpc_server *s);

/* Whether everything that was said in calls, those that have ended too, has left this process. */
bool rpc_server_is_written(const struct rpc_server *s);

/* ---- calls ---- */

/* Memory that ends with the call. */
struct arena *rpc_call_arena(struct rpc_call *c);
const struct rpc_peer *rpc_call_peer(const struct rpc_call *c);
/* Monotonic time when the client stops waiting; NSEC_NEVER where it set none. */
nsec_t rpc_call_deadline(const struct rpc_call *c);
bool rpc_call_cancelled(const struct rpc_call *c);
/* fn is called at most once, never from within the handler; NULL takes it back. Not called for a
 * call that rpc_call_cancelled() already tells of. */
void rpc_call_on_cancel(struct rpc_call *c, void (*fn)(struct rpc_call *c, void *data), void *data);

/*
 * For a method with client_streaming: every message after the first one, checked and decoded, which
 * is freed when fn returns; then NULL, once, when the client has half-closed (not where the handler
 * was called with NULL, which said so). Messages from before fn was set wait, with the window
 * closed; fn is never called from within this function or the handler. A message that is refused
 * ends the call for the client with the reason, and for the handler as a cancellation.
 */
void rpc_call_on_message(struct rpc_call *c,
			 void (*fn)(struct rpc_call *c, const ProtobufCMessage *message,
				    void *data),
			 void *data);
/* No message while paused: what has come waits, at most HTTP_WINDOW bytes and what is left of one
 * message, and the client's window closes. */
void rpc_call_pause(struct rpc_call *c, bool paused);

/* A unary answer: the message and OK. Ends the call. */
void rpc_call_reply(struct rpc_call *c, const ProtobufCMessage *message);
/* Ends the call with the status of err (never OK: an err without a code is INTERNAL). */
void rpc_call_fail(struct rpc_call *c, const struct error *err);

/*
 * One message of a stream. Queued in full; a sender looks at rpc_call_writable() before it makes
 * the next one and otherwise waits for on_writable. 0; or -ENOMEM, or -EMSGSIZE for more than
 * RPC_MESSAGE_MAX (then end the call).
 */
int rpc_call_send(struct rpc_call *c, const ProtobufCMessage *message) _must_check_;
/* The same for bytes that are a serialised message already. */
int rpc_call_send_bytes(struct rpc_call *c, const void *data, size_t len) _must_check_;
/* Also false once the call is cancelled. */
bool rpc_call_writable(const struct rpc_call *c);
void rpc_call_on_writable(struct rpc_call *c, void (*fn)(struct rpc_call *c, void *data),
			  void *data);
/* Ends a stream with OK. */
void rpc_call_finish(struct rpc_call *c);

/*
 * Ends the call with whatever another server answers: opens `method` ("/pkg.Service/Method") at
 * client for `target`, sends the message, and passes everything on, with back-pressure,
 * cancellation and the deadline. Of a client-streaming call the messages that follow go too, as
 * they came, and the half-close; a pause ends. Before that a handler that has not set on_message,
 * or has paused, loses none of them. `message` may be NULL where the handler got NULL.
 */
void rpc_call_forward(struct rpc_call *c, struct rpc_client *client, const char *method,
		      const char *target, const ProtobufCMessage *message);

#endif
