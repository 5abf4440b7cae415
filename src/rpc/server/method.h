/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_METHOD_H
#define NACRE_RPC_METHOD_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The tables by which a server knows what it serves. All four forms of gRPC are combinations of the
 * two booleans.
 */

struct rpc_call;

struct rpc_method {
	const char *name;
	const ProtobufCMessageDescriptor *input;
	const ProtobufCMessageDescriptor *output;
	bool server_streaming;
	/* request lives as long as the call. NULL: client_streaming, and the client half-closed
	 * without a message. */
	void (*handle)(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
	/* handle gets the first message; the others come by rpc_call_on_message(). */
	bool client_streaming;
	/* client_streaming: the number of the one field that messages behind the first may set; 0:
	 * any. Others that the message has are refused, also where the call is passed on. */
	uint32_t later_field;
};

struct rpc_service {
	const char *name; /* "aurae.runtime.v0.RuntimeService" */
	const struct rpc_method *methods;
	size_t n_methods;
};

#endif
