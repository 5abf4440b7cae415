/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_HANDLER_H
#define NACRE_RPC_HANDLER_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The inputs of calls that a method's handler serves: one message, or a stream of them. The
 * method of the call is a struct rpc_method.
 */

struct call_input;
struct error;
struct rpc_call;
struct rpc_method;

const struct call_input *handler_input(const struct rpc_method *m);

/* A message behind the first: ERROR_INVALID names a field that only the first one may set. What
 * cannot be read, or is of a later release, is not this function's affair. */
int handler_check_later(const struct rpc_method *m, const uint8_t *data, size_t len,
			struct error *err);

/* rpc_call_on_message() and rpc_call_pause(). */
void handler_on_message(struct rpc_call *c,
			void (*fn)(struct rpc_call *c, const ProtobufCMessage *message, void *data),
			void *data);
void handler_pause(struct rpc_call *c, bool paused);

#endif
