/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_CALL_H
#define NACRE_RPC_CALL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "base/memory/list.h"
#include "base/time/clock.h"
#include "loop/loop.h"
#include "rpc/exchange/exchange.h"
#include "rpc/message/status.h"
#include "rpc/server/peer.h"

/*
 * A call as the server's parts see it (users see rpc/server/server.h): what a client sends goes to
 * a call_input, which is a handler of one message (server.c), a forward, or a service of rpc's own.
 */

struct rpc_call;
struct call_no_grpc;
struct conn;
struct http_stream;
struct share;

/* Of a request with everything decoded. */
#define CALL_ARENA_MAX (64U * 1024 * 1024)

enum call_state {
	CALL_NO_STATE,
	CALL_NEW,  /* the head of the request is not complete; only the server knows the call */
	CALL_OPEN, /* it has an input; nothing was sent */
	CALL_ANSWERING, /* the head of the answer was sent, messages may follow */
	CALL_GONE,      /* the client hears no more; the holder of the call still has to end it */
	CALL_ENDED,     /* no longer the server's; freed when no function of ours is in it */
	CALL_STATE_COUNT
};

enum call_event {
	CALL_EVENT_OPENED,
	CALL_EVENT_ANSWERED,
	CALL_EVENT_LOST,
	CALL_EVENT_END,
	CALL_EVENT_COUNT
};

/* Each may end the call. */
struct call_input {
	/* The head has come; may be NULL. */
	void (*open)(struct rpc_call *c);
	/* A message, whose bytes are the server's again afterwards. */
	void (*message)(struct rpc_call *c, const uint8_t *data, size_t len);
	/* There are no more. */
	void (*end)(struct rpc_call *c);
	/* CALL_GONE was entered: end the call now, or later. */
	void (*lost)(struct rpc_call *c);
};

/* The state that the calls of one server share; a value in the server. */
struct call_host {
	struct loop *loop;
	struct list calls;
	size_t n_calls;   /* not CALL_ENDED, also those whose client is gone */
	const char *mark; /* rpc_server_config.mark */
	/* Sets c->input, or ends the call. */
	void (*open)(struct call_host *h, struct rpc_call *c);
	void (*ended)(struct call_host *h, const struct rpc_call *c);
};

/* Header fields that mean something to us; NULL where they did not come. */
struct call_head {
	char *method;
	char *path;
	char *content_type;
	char *timeout;
	char *encoding;
	char *accepts;
	char *target;
};

struct rpc_call {
	struct exchange x;
	struct list member; /* of host->calls */
	struct call_host *host;
	enum call_state state;
	unsigned busy;      /* functions of ours that still need the struct */
	struct arena arena; /* the call itself lies in it too */
	struct call_head head;
	struct share *share; /* of its client, until the call ends */
	struct rpc_peer peer;
	enum rpc_code code;      /* with which it has ended, whoever heard of it */
	nsec_t deadline;         /* NSEC_NEVER: none */
	nsec_t began;            /* where its server measures: when it was asked; else 0 */
	struct loop_timer timer; /* initialised while `timed` */
	bool timed;
	unsigned n_marks;                   /* more than 1: it has none that is valid */
	bool asked;                         /* its head is whole, and its host has looked at it */
	const struct call_no_grpc *no_grpc; /* of a request that is not gRPC; NULL: it is gRPC */
	const struct call_input *input;
	const void *method; /* the input's own, as are input_data and userdata */
	void *userdata;
	void *input_data;
	bool input_done; /* input->end() was called */
	bool handed;     /* the handler was called: the call is its to end */
	bool paused;     /* by the handler */
	bool passed_on;  /* to another server: the messages too */
	void (*on_message)(struct rpc_call *c, const ProtobufCMessage *message, void *data);
	void *message_data;
	void (*on_cancel)(struct rpc_call *c, void *data);
	void *cancel_data;
	void (*on_writable)(struct rpc_call *c, void *data);
	void *writable_data;
};

/* For http_ops.begin. share: of the peer, of which one call was taken for this one, and is given
 * back at its end; NULL: nothing is counted. 0 or -ENOMEM. */
int call_new(struct call_host *h, struct conn *conn, struct http_stream *s,
	     const struct rpc_peer *peer, struct share *share);
/* The server goes away: the call's client with it. */
void call_abandon(struct rpc_call *c);

static inline bool call_is_live(const struct rpc_call *c)
{
	return c->state == CALL_OPEN || c->state == CALL_ANSWERING;
}

/* 0; -ENOMEM or -EMSGSIZE, then end the call. */
int call_send(struct rpc_call *c, const void *data, size_t len) _must_check_;
int call_send_message(struct rpc_call *c, const ProtobufCMessage *message) _must_check_;
/* Each ends the call, which must not be used afterwards except in a frame below a call_input. */
void call_end(struct rpc_call *c, enum rpc_code code, const char *message);
/* With the details of err, and a code that need not be the one that err stands for. */
void call_end_error(struct rpc_call *c, enum rpc_code code, const struct error *err);
void call_fail(struct rpc_call *c, const struct error *err);
void call_fail_send(struct rpc_call *c, int r);
/* Of a method that is not served. */
void call_fail_unknown(struct rpc_call *c);
/* The client hears no more than this; the holder of the call is told as of a lost client. */
void call_refuse(struct rpc_call *c, enum rpc_code code, const char *message);
void call_refuse_error(struct rpc_call *c, const struct error *err);

#endif
