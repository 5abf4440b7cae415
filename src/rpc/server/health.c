/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/health.h"

#include "base/text/str.h"
#include "rpc/message/pb.h"
#include "rpc/server/call.h"

enum health_status {
	HEALTH_SERVING = 1,
	HEALTH_NOT_SERVING = 2,
	HEALTH_SERVICE_UNKNOWN = 3,
};

/* HealthCheckRequest.service and HealthCheckResponse.status. */
#define HEALTH_FIELD_SERVICE 1
#define HEALTH_FIELD_STATUS 1

struct health_request {
	char *service;
	struct rpc_call *watch; /* linked in health.watches by member */
	struct list member;
};

static void health_message(struct rpc_call *c, const uint8_t *data, size_t len)
{
	struct health_request *request;
	struct pb_field f = { .data = NULL };

	if (c->input_data)
		return call_end(c, RPC_UNIMPLEMENTED, "one message was expected, two came");
	if (pb_find(data, len, HEALTH_FIELD_SERVICE, &f) < 0 || !str_is_utf8(f.data, f.len))
		return call_end(c, RPC_INVALID_ARGUMENT, "not a grpc.health.v1.HealthCheckRequest");
	request = arena_zalloc(&c->arena, 1, sizeof(*request));
	if (!request)
		return call_end(c, RPC_RESOURCE_EXHAUSTED, "out of memory");
	list_init(&request->member);
	request->watch = c;
	request->service = arena_strndup(&c->arena, f.len ? (const char *)f.data : "", f.len);
	if (!request->service)
		return call_end(c, RPC_RESOURCE_EXHAUSTED, "out of memory");
	c->input_data = request;
}

static enum health_status health_status(struct health *h, const char *service)
{
	if (!h->knows(h, service))
		return HEALTH_SERVICE_UNKNOWN;
	return h->serving ? HEALTH_SERVING : HEALTH_NOT_SERVING;
}

static int health_send(struct rpc_call *c, enum health_status status)
{
	/* A field of one byte: its tag and its value. */
	uint8_t bytes[] = { HEALTH_FIELD_STATUS << 3 | PB_VARINT, (uint8_t)status };

	return call_send(c, bytes, sizeof(bytes));
}

static void health_check_end(struct rpc_call *c)
{
	const struct health_request *request = c->input_data;
	enum health_status status;
	int r;

	if (!request)
		return call_end(c, RPC_UNIMPLEMENTED, "one message was expected, none came");
	status = health_status(c->userdata, request->service);
	if (status == HEALTH_SERVICE_UNKNOWN)
		return call_end(c, RPC_NOT_FOUND, "no such service");
	r = health_send(c, status);
	if (r < 0)
		call_fail_send(c, r);
	else
		call_end(c, RPC_OK, NULL);
}

static void health_watch_end(struct rpc_call *c)
{
	struct health *h = c->userdata;
	struct health_request *request = c->input_data;
	int r;

	if (!request)
		return call_end(c, RPC_UNIMPLEMENTED, "one message was expected, none came");
	r = health_send(c, health_status(h, request->service));
	if (r < 0)
		call_fail_send(c, r);
	else if (!h->serving)
		call_end(c, RPC_UNAVAILABLE, "the server shuts down");
	else
		list_add_tail(&h->watches, &request->member);
}

static void health_lost(struct rpc_call *c)
{
	struct health_request *request = c->input_data;

	if (request)
		list_remove(&request->member);
	call_end(c, RPC_CANCELLED, NULL);
}

const struct call_input health_check = {
	.message = health_message,
	.end = health_check_end,
	.lost = health_lost,
};

const struct call_input health_watch = {
	.message = health_message,
	.end = health_watch_end,
	.lost = health_lost,
};

void health_init(struct health *h, bool (*knows)(struct health *h, const char *service))
{
	*h = (struct health){ .serving = true, .knows = knows };
	list_init(&h->watches);
}

void health_drain(struct health *h)
{
	struct health_request *request;
	struct rpc_call *c;
	int r;

	h->serving = false;
	for (;;) {
		request = list_first(&h->watches, struct health_request, member);
		if (!request)
			return;
		list_remove(&request->member);
		c = request->watch;
		r = health_send(c, health_status(h, request->service));
		if (r < 0)
			call_fail_send(c, r);
		else
			call_end(c, RPC_UNAVAILABLE, "the server shuts down");
	}
}
