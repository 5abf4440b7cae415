/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_CLIENT_H
#define NACRE_CLI_CLIENT_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "base/log/error.h"
#include "base/macros.h"
#include "base/time/clock.h"

/* The daemon's calls, one after the other, on a loop of the client's own. */

struct client;
struct client_call;
struct client_target;
struct loop;
struct rpc_stream;

/* NULL with err where nobody answers there. */
struct client *client_open(const struct client_target *target, struct error *err);
struct client *client_free(struct client *c);
static inline void client_freep(struct client **c)
{
	*c = client_free(*c);
}
#define _cleanup_client_ _cleanup_(client_freep)

/* For sources of the caller's own while calls run. */
struct loop *client_loop(struct client *c);

/* Makes a call and waits for its answer (a message of `type`, see _cleanup_message_); NULL with
 * err. */
void *client_ask(struct client *c, const char *method, const ProtobufCMessage *request,
		 const ProtobufCMessageDescriptor *type, struct error *err);
/* The same over a connection for this one call, within `timeout`. */
void *client_ask_once(const struct client_target *target, const char *method,
		      const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type,
		      nsec_t timeout, struct error *err);

static inline void client_message_freep(void *p)
{
	ProtobufCMessage **message = p;

	if (*message)
		protobuf_c_message_free_unpacked(*message, NULL);
}
#define _cleanup_message_ _cleanup_(client_message_freep)

/*
 * A call with any number of answers, a value: fill in type and on_message (NULL: the last message
 * is kept in `answer`), then client_call_start(). `done` says that it has ended, `err` how (code 0:
 * well). A callback may set `done` itself: then no more is waited for, and client_call_done()
 * cancels the rest.
 */
struct client_call {
	const ProtobufCMessageDescriptor *type;
	void (*on_message)(struct client_call *call, const ProtobufCMessage *message);
	void (*on_end)(struct client_call *call); /* or NULL */
	/* Messages follow the first; on_writable, where that is wanted, says that
	 * client_call_writable() is true again. */
	bool more;
	void (*on_writable)(struct client_call *call);
	nsec_t timeout; /* 0: none */
	bool done;
	struct error err;
	ProtobufCMessage *answer;
	struct rpc_stream *stream; /* while it has not ended */
};

/* Where it cannot be started it is done, and err says why; on_end is not called then. */
void client_call_start(struct client *c, struct client_call *call, const char *method,
		       const ProtobufCMessage *request);
/* For a call with `more`. One that has ended takes nothing and complains of nothing; without memory
 * the call ends. */
void client_call_send(struct client_call *call, const ProtobufCMessage *message);
bool client_call_writable(const struct client_call *call);
void client_call_close_send(struct client_call *call);
/* Turns the loop until the call is done; returns its error's code. */
int client_call_wait(struct client *c, struct client_call *call);
/* Cancels what has not ended, frees the answer. */
void client_call_done(struct client_call *call);

#endif
