/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_UNARY_H
#define NACRE_KEEPER_UNARY_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "base/log/error.h"
#include "base/time/clock.h"
#include "loop/loop.h"

/*
 * One call with one answer, as a value inside its owner. A zeroed unary is one that does nothing.
 * fn is called once and never before the call that led to it has returned; it may start the same
 * unary again, or free its owner.
 */

struct rpc_client;
struct rpc_stream;
struct unary;

/* response NULL: err says why. Both last until fn returns. */
typedef void (*unary_fn)(struct unary *u, const ProtobufCMessage *response,
			 const struct error *err);

struct unary {
	struct rpc_stream *stream;
	struct loop_defer defer;
	const ProtobufCMessageDescriptor *output;
	ProtobufCMessage *response;
	struct error *late; /* an error that waits to be told by `defer` */
	unary_fn fn;        /* NULL: nothing is under way */
};

struct unary_request {
	const char *method; /* of nacre.instance.v1.InstanceService, as "/package.Service/Method" */
	const char *target;
	const ProtobufCMessage *message; /* or NULL, then data */
	const uint8_t *data;
	size_t len;
	const ProtobufCMessageDescriptor *output;
	nsec_t timeout;
};

void unary_start(struct unary *u, struct loop *l, struct rpc_client *rpc,
		 const struct unary_request *request, unary_fn fn);
/* Answers with err without asking anybody. */
void unary_fail(struct unary *u, struct loop *l, const struct error *err, unary_fn fn);
/* Takes the call back: fn is not called any more. */
void unary_done(struct unary *u);

static inline bool unary_active(const struct unary *u)
{
	return u->fn != NULL;
}

#endif
