/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/client.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/parse.h"
#include "base/str.h"
#include "io/unix.h"
#include "keeper/convert.h"
#include "keeper/tokens.h"
#include "keeper/unary.h"
#include "loop/loop.h"
#include "rpc/client.h"

/*
 * Theory of operation. A connection is shared by the peer of a direct child and by the peers for
 * what is below that, which differ in their target only; it lasts as long as the last of them. The
 * loss of the connection is seen as the end of the Watch stream.
 *
 * A Start that carries descriptors sends them over the second socket first. So that the keeper
 * never has to drop one (keeper/tokens.h), no more than STARTS_MAX such calls are under way on a
 * connection; the others wait here, in order.
 */

#define HELLO_TIMEOUT (5 * NSEC_PER_SEC)
#define START_FDS 3
/* Room for what another connection may have left. */
#define STARTS_MAX (TOKENS_HELD_MAX / START_FDS - 8)

struct connection {
	struct loop *loop;
	struct rpc_client *rpc;
	int channel_fd;
	unsigned n_refs;
	unsigned n_starts;      /* under way */
	struct list starts;     /* that wait */
	unsigned n_inside;      /* callbacks of ours that run */
	struct loop_defer free; /* nobody frees the rpc_client from within its callback */
};

struct keeper_client {
	struct peer peer;
	struct connection *connection;
	char target[NAME_PATH_MAX + 1];
	struct list calls;
	struct rpc_stream *watch;
	const struct peer_events *events;
	void *events_userdata;
	char *path; /* to say in hello, or NULL */
	bool opened;
	bool rotates; /* the keeper, its containers' logs */
};

struct client_call;
typedef void (*client_finish_fn)(struct client_call *call, const ProtobufCMessage *response,
				 const struct error *err);

struct client_call {
	struct unary unary;
	struct list link; /* of the client */
	struct keeper_client *client;
	client_finish_fn finish;
	union {
		peer_done_fn done;
		peer_started_fn started;
		void (*spawned)(void *userdata, int64_t pid, const struct error *err);
	};
	void *userdata;
	/* Start only. */
	struct list waiting; /* of the connection */
	bool counted;
	uint64_t tokens[START_FDS];
	int fds[START_FDS];
	uint8_t *data;
	size_t len;
};

static struct keeper_client *client_of(struct peer *p)
{
	return container_of(p, struct keeper_client, peer);
}

/* ---- the connection ---- */

static void connection_free(struct connection *c)
{
	if (c->rpc)
		c->rpc = rpc_client_free(c->rpc);
	loop_defer_done(&c->free);
	c->channel_fd = fd_close(c->channel_fd);
	free(c);
}

static void connection_on_free(struct loop_defer *d)
{
	connection_free(container_of(d, struct connection, free));
}

static void connection_unref(struct connection *c)
{
	if (--c->n_refs)
		return;
	if (c->n_inside)
		loop_defer_schedule(&c->free);
	else
		connection_free(c);
}

/* Around everything that calls back: the connection lasts until the callback of rpc has returned.
 */
static struct connection *connection_enter(struct keeper_client *client)
{
	client->connection->n_inside++;
	return client->connection;
}

static void connection_leave(struct connection *c)
{
	c->n_inside--;
}

/* ---- calls ---- */

/* Takes the call out of all lists. */
static void client_call_unlink(struct client_call *call)
{
	if (call->counted)
		call->client->connection->n_starts--;
	call->counted = false;
	list_remove(&call->link);
	list_remove(&call->waiting);
	for (size_t i = 0; i < ARRAY_SIZE(call->fds); i++)
		call->fds[i] = fd_close(call->fds[i]);
	free(call->data);
	call->data = NULL;
}

static void client_call_free(struct client_call *call)
{
	client_call_unlink(call);
	unary_done(&call->unary);
	free(call);
}

static int client_call_send_fds(const struct client_call *call)
{
	struct keeper_client *client = call->client;

	for (size_t i = 0; i < ARRAY_SIZE(call->fds); i++) {
		int r;

		if (call->fds[i] < 0)
			continue;
		r = fdchan_send(client->connection->channel_fd, call->tokens[i], client->target,
				call->fds[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* fn is given by the caller, so that what follows upon an answer can start the next one. */
static void client_call_begin_start(struct client_call *call, unary_fn fn)
{
	struct connection *c = call->client->connection;
	struct error err = ERROR_INIT;
	int r;

	c->n_starts++;
	call->counted = true;
	r = client_call_send_fds(call);
	if (r < 0) {
		(void)error_set(&err, r, "pass descriptors to the keeper");
		if (r == -EPIPE || r == -ECONNRESET || r == -EAGAIN)
			err.kind = ERROR_UNAVAILABLE;
		unary_fail(&call->unary, c->loop, &err, fn);
		return;
	}
	unary_start(&call->unary, c->loop, c->rpc,
		    &(struct unary_request){
			    .method = KEEPER_METHOD("Start"),
			    .target = call->client->target,
			    .data = call->data,
			    .len = call->len,
			    .output = &nacre__instance__v1__start_response__descriptor,
			    .timeout = NSEC_NEVER,
		    },
		    fn);
}

static void connection_pump(struct connection *c, unary_fn fn)
{
	while (c->n_starts < STARTS_MAX && !list_empty(&c->starts)) {
		struct client_call *call = list_first(&c->starts, struct client_call, waiting);

		list_remove(&call->waiting);
		client_call_begin_start(call, fn);
		for (size_t i = 0; i < ARRAY_SIZE(call->fds); i++)
			call->fds[i] = fd_close(call->fds[i]);
	}
}

static void client_call_on_answer(struct unary *u, const ProtobufCMessage *response,
				  const struct error *err)
{
	struct client_call *call = container_of(u, struct client_call, unary);
	struct connection *c = connection_enter(call->client);

	/* Out of all lists before it tells: whom it tells may free the peer. */
	client_call_unlink(call);
	connection_pump(c, client_call_on_answer);
	call->finish(call, response, err);
	free(call);
	connection_leave(c);
}

static void client_finish_plain(struct client_call *call, const ProtobufCMessage *response,
				const struct error *err)
{
	call->done(call->userdata, err);
}

static void client_finish_spawn(struct client_call *call, const ProtobufCMessage *response,
				const struct error *err)
{
	const Nacre__Instance__V1__SpawnResponse *answer = (const void *)response;

	call->spawned(call->userdata, err ? 0 : answer->pid, err);
}

static void client_finish_start(struct client_call *call, const ProtobufCMessage *response,
				const struct error *err)
{
	const Nacre__Instance__V1__StartResponse *answer = (const void *)response;
	struct error wrong = ERROR_INIT;
	struct container_view view;
	int r;

	if (err) {
		call->started(call->userdata, NULL, err);
		return;
	}
	r = convert_view(&view, answer->container);
	if (r < 0) {
		(void)error_set(&wrong, r, "read the answer of a keeper");
		call->started(call->userdata, NULL, &wrong);
		return;
	}
	call->started(call->userdata, &view, NULL);
}

static struct client_call *client_call_new(struct keeper_client *client, client_finish_fn finish,
					   void *userdata)
{
	struct client_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->client = client;
	call->finish = finish;
	call->userdata = userdata;
	for (size_t i = 0; i < START_FDS; i++)
		call->fds[i] = -1;
	list_init(&call->link);
	list_init(&call->waiting);
	list_add_tail(&client->calls, &call->link);
	return call;
}

static void client_call_start(struct client_call *call, const char *method,
			      const ProtobufCMessage *message,
			      const ProtobufCMessageDescriptor *output, nsec_t timeout)
{
	struct connection *c = call->client->connection;

	unary_start(&call->unary, c->loop, c->rpc,
		    &(struct unary_request){
			    .method = method,
			    .target = call->client->target,
			    .message = message,
			    .output = output,
			    .timeout = timeout,
		    },
		    client_call_on_answer);
}

/* Without memory for the call there is no later either: the one completion that comes at once. */
static void client_no_memory(struct error *err)
{
	*err = (struct error)ERROR_INIT;
	(void)error_set(err, -ENOMEM, "call the keeper");
}

/* A call whose answer says nothing but yes. */
static void client_ask(struct keeper_client *client, const char *method,
		       const ProtobufCMessage *message, const ProtobufCMessageDescriptor *output,
		       peer_done_fn done, void *userdata)
{
	struct client_call *call = client_call_new(client, client_finish_plain, userdata);
	struct error err;

	if (!call) {
		client_no_memory(&err);
		done(userdata, &err);
		return;
	}
	call->done = done;
	client_call_start(call, method, message, output, NSEC_NEVER);
}

/* ---- watching ---- */

static void client_tell(struct keeper_client *client,
			const Nacre__Instance__V1__WatchResponse *change)
{
	const struct peer_events *events = client->events;
	void *userdata = client->events_userdata;
	struct container_view view;

	/* A message says one thing: after an event the peer may be gone. */
	if (change->synced)
		events->on_synced(userdata);
	else if (change->child && !change->child->alive)
		events->on_child_end(userdata, change->child->name, change->child->reason);
	else if (convert_view(&view, change->container) == 0)
		events->on_container(userdata, &view);
}

static void client_on_change(struct rpc_stream *stream, const uint8_t *data, size_t len,
			     void *userdata)
{
	struct keeper_client *client = userdata;
	struct connection *c = connection_enter(client);
	ProtobufCMessage *message;

	message =
		rpc_decode(&nacre__instance__v1__watch_response__descriptor, data, len, NULL, NULL);
	if (message) {
		client_tell(client, (const void *)message);
		protobuf_c_message_free_unpacked(message, NULL);
	}
	connection_leave(c);
}

static void client_on_watch_end(struct rpc_stream *stream, enum rpc_code code,
				const struct error *err, void *userdata)
{
	struct keeper_client *client = userdata;
	struct connection *c = connection_enter(client);
	struct error ended = ERROR_INIT;

	client->watch = NULL;
	(void)error_refuse(&ended, ERROR_UNAVAILABLE, "the keeper has ended its watch");
	/* Before hello was answered, that answer tells. */
	if (client->opened)
		client->events->on_lost(client->events_userdata, err && err->code ? err : &ended);
	connection_leave(c);
}

static const struct rpc_stream_ops client_watch_ops = {
	.on_message = client_on_change,
	.on_end = client_on_watch_end,
};

static int client_watch(struct keeper_client *client)
{
	Nacre__Instance__V1__WatchRequest request;
	struct rpc_request call = {
		.method = KEEPER_METHOD("Watch"),
		.target = client->target,
		.message = &request.base,
		.timeout = NSEC_NEVER,
	};

	nacre__instance__v1__watch_request__init(&request);
	return rpc_client_call(client->connection->rpc, &call, &client_watch_ops, client,
			       &client->watch);
}

static void client_finish_hello(struct client_call *call, const ProtobufCMessage *response,
				const struct error *err)
{
	const Nacre__Instance__V1__HelloResponse *answer = (const void *)response;
	struct keeper_client *client = call->client;
	struct error failed = ERROR_INIT;
	int r;

	if (err) {
		call->done(call->userdata, err);
		return;
	}
	for (size_t i = 0; i < answer->n_features; i++)
		if (str_eq(answer->features[i], "log-rotation"))
			client->rotates = true;
	r = client_watch(client);
	if (r < 0) {
		(void)error_set(&failed, r, "watch the keeper");
		call->done(call->userdata, &failed);
		return;
	}
	client->opened = true;
	call->done(call->userdata, NULL);
}

/* ---- the operations of a peer ---- */

static int name_(struct peer *p, const char *path)
{
	struct keeper_client *client = client_of(p);
	char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	free(client->path);
	client->path = copy;
	return 0;
}

static void open_(struct peer *p, const struct peer_events *events, void *userdata,
		  peer_done_fn done)
{
	Nacre__Instance__V1__HelloRequest request;
	struct keeper_client *client = client_of(p);
	struct client_call *call = client_call_new(client, client_finish_hello, userdata);
	struct error err;

	nacre__instance__v1__hello_request__init(&request);
	if (!call) {
		client_no_memory(&err);
		done(userdata, &err);
		return;
	}
	client->events = events;
	client->events_userdata = userdata;
	call->done = done;
	request.protocol = KEEPER_PROTOCOL;
	request.version = convert_str(NACRE_VERSION);
	if (client->path)
		request.path = client->path;
	client_call_start(call, KEEPER_METHOD("Hello"), &request.base,
			  &nacre__instance__v1__hello_response__descriptor, HELLO_TIMEOUT);
}

/* A number that the keeper does not know yet; 0 means none. */
static int token_draw(uint64_t *ret)
{
	do {
		ssize_t n = getrandom(ret, sizeof(*ret), 0);

		if (n != (ssize_t)sizeof(*ret))
			return n < 0 ? -errno : -EIO;
	} while (*ret == 0);
	return 0;
}

static int client_call_prepare_start(struct client_call *call, const struct cell_spec *cell,
				     const struct container_spec *spec)
{
	Nacre__Instance__V1__StartRequest request;

	convert_start_request(&request, cell, spec);
	for (size_t i = 0; i < ARRAY_SIZE(call->fds); i++) {
		int r = call->fds[i] < 0 ? 0 : token_draw(&call->tokens[i]);

		if (r < 0)
			return r;
	}
	request.rootfs_token = call->tokens[0];
	request.log_token = call->tokens[1];
	request.log_dir_token = call->tokens[2];
	call->len = nacre__instance__v1__start_request__get_packed_size(&request);
	call->data = malloc(call->len + 1);
	if (!call->data)
		return -ENOMEM;
	(void)nacre__instance__v1__start_request__pack(&request, call->data);
	return 0;
}

static void start(struct peer *p, const struct cell_spec *cell, const struct container_spec *spec,
		  struct container_fds *fds, peer_started_fn done, void *userdata)
{
	_cleanup_(container_fds_close) struct container_fds own = container_fds_take(fds);
	struct keeper_client *client = client_of(p);
	struct client_call *call = client_call_new(client, client_finish_start, userdata);
	struct error err = ERROR_INIT;
	int r;

	if (!call) {
		client_no_memory(&err);
		done(userdata, NULL, &err);
		return;
	}
	call->started = done;
	call->fds[0] = TAKE_FD(own.rootfs);
	call->fds[1] = TAKE_FD(own.log);
	/* One that does not ask for it would keep it for ever. */
	if (client->rotates)
		call->fds[2] = TAKE_FD(own.log_dir);
	r = client_call_prepare_start(call, cell, spec);
	if (r < 0) {
		(void)error_set(&err, r, "ask the keeper to start %s", spec->name);
		unary_fail(&call->unary, client->connection->loop, &err, client_call_on_answer);
		return;
	}
	list_add_tail(&client->connection->starts, &call->waiting);
	connection_pump(client->connection, client_call_on_answer);
}

static void signal_(struct peer *p, const char *id, int sig, bool all, peer_done_fn done,
		    void *userdata)
{
	Nacre__Instance__V1__SignalRequest request;

	nacre__instance__v1__signal_request__init(&request);
	request.id = convert_str(id);
	request.signal = (uint32_t)sig;
	request.all = all;
	client_ask(client_of(p), KEEPER_METHOD("Signal"), &request.base,
		   &nacre__instance__v1__signal_response__descriptor, done, userdata);
}

static void remove_(struct peer *p, const char *id, peer_done_fn done, void *userdata)
{
	Nacre__Instance__V1__RemoveRequest request;

	nacre__instance__v1__remove_request__init(&request);
	request.id = convert_str(id);
	client_ask(client_of(p), KEEPER_METHOD("Remove"), &request.base,
		   &nacre__instance__v1__remove_response__descriptor, done, userdata);
}

static void remove_cell(struct peer *p, const char *cell, peer_done_fn done, void *userdata)
{
	Nacre__Instance__V1__RemoveCellRequest request;

	nacre__instance__v1__remove_cell_request__init(&request);
	request.cell = convert_str(cell);
	client_ask(client_of(p), KEEPER_METHOD("RemoveCell"), &request.base,
		   &nacre__instance__v1__remove_cell_response__descriptor, done, userdata);
}

static void spawn(struct peer *p, const char *name, bool host_network,
		  void (*done)(void *userdata, int64_t pid, const struct error *err),
		  void *userdata)
{
	Nacre__Instance__V1__SpawnRequest request;
	struct client_call *call = client_call_new(client_of(p), client_finish_spawn, userdata);
	struct error err;

	nacre__instance__v1__spawn_request__init(&request);
	if (!call) {
		client_no_memory(&err);
		done(userdata, 0, &err);
		return;
	}
	call->spawned = done;
	request.name = convert_str(name);
	request.host_network = host_network;
	client_call_start(call, KEEPER_METHOD("Spawn"), &request.base,
			  &nacre__instance__v1__spawn_response__descriptor, NSEC_NEVER);
}

static void end(struct peer *p, const char *name, peer_done_fn done, void *userdata)
{
	Nacre__Instance__V1__EndRequest request;

	nacre__instance__v1__end_request__init(&request);
	request.name = convert_str(name);
	client_ask(client_of(p), KEEPER_METHOD("End"), &request.base,
		   &nacre__instance__v1__end_response__descriptor, done, userdata);
}

static void shutdown_(struct peer *p, peer_done_fn done, void *userdata)
{
	Nacre__Instance__V1__ShutdownRequest request;

	nacre__instance__v1__shutdown_request__init(&request);
	client_ask(client_of(p), KEEPER_METHOD("Shutdown"), &request.base,
		   &nacre__instance__v1__shutdown_response__descriptor, done, userdata);
}

static struct peer *free_(struct peer *p)
{
	struct keeper_client *client;
	struct client_call *call;
	struct connection *c;

	if (!p)
		return NULL;
	client = client_of(p);
	c = client->connection;
	list_for_each (call, &client->calls, struct client_call, link)
		client_call_free(call);
	if (client->watch)
		rpc_stream_cancel(client->watch);
	free(client->path);
	free(client);
	connection_pump(c, client_call_on_answer);
	connection_unref(c);
	return NULL;
}

/* ---- making one ---- */

static int client_new(struct keeper_client **ret, struct connection *c, const struct peer_ops *ops)
{
	struct keeper_client *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	client->peer.ops = ops;
	client->connection = c;
	c->n_refs++;
	list_init(&client->calls);
	*ret = client;
	return 0;
}

static int child(struct peer *p, const char *name, struct peer **ret)
{
	struct keeper_client *parent = client_of(p);
	struct keeper_client *client;
	int r;

	if (!name_is_label(name) || name_depth(parent->target) >= NAME_DEPTH_MAX)
		return -EINVAL;
	r = client_new(&client, parent->connection, parent->peer.ops);
	if (r < 0)
		return r;
	(void)str_printf(client->target, sizeof(client->target), "%s%s%s", parent->target,
			 parent->target[0] ? "/" : "", name);
	*ret = &client->peer;
	return 0;
}

static const struct peer_ops client_ops = {
	.name = name_,
	.open = open_,
	.start = start,
	.signal = signal_,
	.remove = remove_,
	.remove_cell = remove_cell,
	.spawn = spawn,
	.end = end,
	.shutdown = shutdown_,
	.child = child,
	.free = free_,
};

int keeper_client_new(struct peer **ret, struct loop *l, int rpc_fd, int fd_fd)
{
	_cleanup_fd_ int rpc = rpc_fd, channel = fd_fd;
	struct keeper_client *client;
	struct connection *c;
	int r;

	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->loop = l;
	c->channel_fd = TAKE_FD(channel);
	list_init(&c->starts);
	loop_defer_init(&c->free, l, connection_on_free);
	r = rpc_client_new(&c->rpc, l, TAKE_FD(rpc));
	if (r < 0) {
		connection_free(c);
		return r;
	}
	r = client_new(&client, c, &client_ops);
	if (r < 0) {
		connection_free(c);
		return r;
	}
	*ret = &client->peer;
	return 0;
}

struct rpc_client *keeper_client_rpc(struct peer *p)
{
	return client_of(p)->connection->rpc;
}

const char *keeper_client_target(struct peer *p)
{
	return client_of(p)->target;
}
