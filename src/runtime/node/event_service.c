/* SPDX-License-Identifier: Apache-2.0 */
#include "api/nacre.pb-c.h"
#include "runtime/node/events_call.h"
#include "runtime/node/watch_call.h"
#include "runtime/services.h"

static const struct rpc_method event_methods[] = {
	{
		.name = "Events",
		.input = &nacre__v1__events_request__descriptor,
		.output = &nacre__v1__events_response__descriptor,
		.server_streaming = true,
		.handle = events_call,
	},
	{
		.name = "Watch",
		.input = &nacre__v1__watch_request__descriptor,
		.output = &nacre__v1__watch_response__descriptor,
		.server_streaming = true,
		.handle = watch_call,
	},
};

const struct rpc_service event_service = {
	.name = "nacre.v1.EventService",
	.methods = event_methods,
	.n_methods = ARRAY_SIZE(event_methods),
};
