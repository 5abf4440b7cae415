/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_FIXTURE_TEST_H
#define NACRE_RPC_FIXTURE_TEST_H

#include "base/text/str.h"
#include "base/time/clock.h"
#include "loop/loop.h"
#include "rpc/echo/echo.h"
#include "rpc/exchange/client.h"
#include "rpc/rpc_test.pb-c.h"
#include "rpc/server/server.h"
#include "unit.h"

/* Servers and clients in one loop. A chain of servers forwards to the next one, whatever the name.
 */

#define CHAIN 3

struct node {
	struct rpc_server *server;
	struct rpc_client *client; /* to it */
	struct echo echo;
};

static struct loop *loop;
static struct node nodes[CHAIN];
static unsigned n_nodes;

/* A call as its client sees it. */
struct seen {
	struct rpc_stream *stream;
	unsigned n_messages;
	size_t n_bytes;
	uint32_t next; /* number expected in the next CountResponse */
	unsigned n_wrong;
	unsigned n_ends;
	enum rpc_code code;
	struct error err;
	unsigned pause_after; /* messages; 0: never */
	bool cancel_at_once;
};

/* Aborts where a condition of the fixture itself does not hold. */
static _unused_ void must(bool held)
{
	if (!held)
		abort();
}

static _unused_ int route(void *userdata, const char *target, struct rpc_client **ret_client,
			  const char **ret_rest, struct error *err)
{
	struct node *n = userdata;
	const char *slash = strchr(target, '/');

	if (n + 1 == nodes + n_nodes)
		return error_refuse(err, ERROR_NOT_FOUND, "%s: no such instance", target);
	*ret_client = n[1].client;
	*ret_rest = slash ? slash + 1 : "";
	return 0;
}

static _unused_ void node_begin(struct node *n)
{
	struct rpc_server_config config = {
		.loop = loop,
		.route = route,
		.userdata = n,
		.descriptors = rpc_test_descriptors,
		.descriptors_len = rpc_test_descriptors_len,
	};
	struct echo_address address;
	int fd;

	*n = (struct node){ .echo = { .loop = loop } };
	must(rpc_server_new(&n->server, &config) == 0);
	must(rpc_server_add(n->server, &echo_service, &n->echo) == 0);
	fd = echo_listen(&address);
	must(fd >= 0);
	must(rpc_server_listen(n->server, fd) == 0);
	fd = echo_connect(&address);
	must(fd >= 0);
	must(rpc_client_new(&n->client, loop, fd) == 0);
}

static _unused_ void begin(unsigned n)
{
	must(loop_new(&loop) == 0);
	n_nodes = n;
	for (unsigned i = 0; i < n; i++)
		node_begin(&nodes[i]);
}

static _unused_ void end(void)
{
	for (unsigned i = 0; i < n_nodes; i++) {
		nodes[i].client = rpc_client_free(nodes[i].client);
		nodes[i].server = rpc_server_free(nodes[i].server);
	}
	loop = loop_free(loop);
}

static _unused_ void on_message(struct rpc_stream *s, const uint8_t *data, size_t len,
				void *userdata)
{
	struct seen *seen = userdata;
	Nacre__Test__V1__CountResponse *m;
	struct error err = ERROR_INIT;

	seen->n_messages++;
	seen->n_bytes += len;
	m = (void *)rpc_decode(&nacre__test__v1__count_response__descriptor, data, len, NULL, &err);
	if (!m || m->number != seen->next++)
		seen->n_wrong++;
	if (m)
		nacre__test__v1__count_response__free_unpacked(m, NULL);
	if (seen->cancel_at_once) {
		rpc_stream_cancel(s);
		seen->stream = NULL;
	} else if (seen->n_messages == seen->pause_after) {
		rpc_stream_pause(s, true);
	}
}

static _unused_ void on_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
			    void *userdata)
{
	struct seen *seen = userdata;

	seen->n_ends++;
	seen->code = code;
	seen->err = *err;
	seen->stream = NULL;
}

static const struct rpc_stream_ops ops = { .on_message = on_message, .on_end = on_end };

static _unused_ void call(struct seen *seen, const char *method, const char *target,
			  const ProtobufCMessage *message, nsec_t timeout)
{
	struct rpc_request request = {
		.method = method, .target = target, .message = message, .timeout = timeout
	};

	must(rpc_client_call(nodes[0].client, &request, &ops, seen, &seen->stream) == 0);
	must(seen->n_ends == 0);
}

/* Turns until the end was seen, at most a minute. */
static _unused_ void finish(struct seen *seen)
{
	time_t since = unit_now();

	while (seen->n_ends == 0 && unit_waits(since))
		loop_turn(loop, false);
	must(seen->n_ends == 1);
}

static _unused_ void turns(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		loop_turn(loop, false);
}

static _unused_ void count(struct seen *seen, const char *target, uint32_t n, uint32_t size,
			   nsec_t timeout)
{
	Nacre__Test__V1__CountRequest request = NACRE__TEST__V1__COUNT_REQUEST__INIT;

	request.count = n;
	request.size = size;
	call(seen, "/nacre.test.v1.Test/Count", target, &request.base, timeout);
}

static _unused_ void wait_for(struct seen *seen, const char *target, uint32_t ms, nsec_t timeout)
{
	Nacre__Test__V1__WaitRequest request = NACRE__TEST__V1__WAIT_REQUEST__INIT;

	request.milliseconds = ms;
	call(seen, "/nacre.test.v1.Test/Wait", target, &request.base, timeout);
}

#endif
