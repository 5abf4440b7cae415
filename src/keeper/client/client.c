/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/client/client.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/file/fd.h"
#include "base/memory/list.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "io/unix.h"
#include "keeper/client/client_call.h"
#include "keeper/client/client_files.h"
#include "keeper/client/client_groups.h"
#include "keeper/client/client_log.h"
#include "keeper/client/client_machine.h"
#include "keeper/client/client_reopen.h"
#include "keeper/client/client_watch.h"
#include "keeper/message/convert.h"
#include "keeper/message/unary.h"
#include "keeper/server/passing.h"
#include "keeper/server/tokens.h"
#include "loop/loop.h"
#include "rpc/exchange/client.h"

/*
 * Theory of operation. A connection that nobody needs any more is retired, not closed: calls that
 * were passed on (passing.h) belong to who made them, and what their keeper had said before its end
 * is still on its way (rpc_client_retire()).
 *
 * The loss of a connection is seen as the end of the Watch stream. Calls wait
 * (client_call.h) while their keeper goes on as another program (client_reopen.h).
 */

static struct keeper_client *client_of(struct peer *p)
{
	return container_of(p, struct keeper_client, peer);
}

/* ---- the connection ---- */

static void connection_free(struct connection *c)
{
	reopen_done(c);
	if (c->rpc)
		c->rpc = rpc_client_retire(c->rpc);
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

static void client_finish_spawn(struct client_call *call, const ProtobufCMessage *response,
				const struct error *err)
{
	const Nacre__Instance__V1__SpawnResponse *answer = (const void *)response;
	struct error wrong = ERROR_INIT;

	if (!err && answer->pid <= 0) {
		(void)error_set(&wrong, -EPROTO, "pid: the keeper says %lld",
				(long long)answer->pid);
		err = &wrong;
	}
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

/* ---- hello ---- */

static void client_finish_hello(struct client_call *call, const ProtobufCMessage *response,
				const struct error *err)
{
	struct keeper_client *client = call->client;
	struct error failed = ERROR_INIT;
	int r;

	r = client_take_hello(client, response, err, &failed);
	if (r < 0) {
		call->done(call->userdata, &failed);
		return;
	}
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
	/* As it will say. */
	client->rotates = true;
	client->mounts = true;
	client->limits = true;
	client->late = true;
	client->disks = true;
	client->logs = true;
	client->shares = true;
	client->groups = true;
	client->files = true;
	client->secures = true;
	client->devices = true;
	client->rlimits = true;
	client->filters = true;
	client->tmpfs_owner = true;
	client->cell_network = true;
	client->visitors = true;
	return 0;
}

static void open_(struct peer *p, const struct peer_events *events, void *userdata,
		  peer_done_fn done)
{
	Nacre__Instance__V1__HelloRequest request;
	struct keeper_client *client = client_of(p);
	struct client_call *call = client_call_new(client, client_finish_hello, userdata);
	struct error err;

	client_make_hello(client, &request);
	if (!call) {
		client_no_memory(&err);
		done(userdata, &err);
		return;
	}
	client->events = events;
	client->events_userdata = userdata;
	call->done = done;
	client_call_ask(call, KEEPER_METHOD("Hello"), &request.base,
			&nacre__instance__v1__hello_response__descriptor,
			keeper_client_has_channel(client) ? HELLO_TIMEOUT : HELLO_REMOTE_TIMEOUT);
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
	call->late = spec->late;
	(void)str_copy(call->id, sizeof(call->id), spec->id);
	call->fds[0] = TAKE_FD(own.rootfs);
	call->fds[1] = TAKE_FD(own.log);
	/* One that does not ask for it would keep it for ever. */
	if (client->rotates)
		call->fds[2] = TAKE_FD(own.log_dir);
	call->mounts.network = TAKE_FD(own.network);
	memcpy(call->mounts.mounts, own.mounts, sizeof(own.mounts));
	call->mounts.n_mounts = own.n_mounts;
	own.n_mounts = 0;
	if (client->refusal.code) {
		client_call_refuse(call, &client->refusal);
		return;
	}
	r = client_check_features(call, cell, spec, &err);
	if (r < 0) {
		client_call_refuse(call, &err);
		return;
	}
	r = client_call_prepare_start(call, cell, spec);
	if (r < 0) {
		(void)error_set(&err, r, "ask the keeper to start %s", spec->name);
		client_call_refuse(call, &err);
		return;
	}
	list_add_tail(&client->connection->starts, &call->waiting);
	connection_pump(client->connection);
}

static bool late(struct peer *p)
{
	return client_of(p)->late && keeper_client_has_channel(client_of(p));
}

static bool has_channel(struct peer *p)
{
	return keeper_client_has_channel(client_of(p));
}

static int log_open(struct peer *p, const char *id, uint64_t from, const struct peer_log_ops *ops,
		    void *userdata, struct peer_log **ret)
{
	return client_log_open(client_of(p), id, from, ops, userdata, ret);
}

static struct client_call *client_find_late(struct keeper_client *client, const char *id)
{
	struct client_call *call;

	list_for_each (call, &client->calls, struct client_call, link)
		if (call->late && str_eq(call->id, id))
			return call;
	return NULL;
}

static void give(struct peer *p, const char *id, struct container_fds *fds)
{
	_cleanup_(container_fds_close) struct container_fds own = container_fds_take(fds);
	struct keeper_client *client = client_of(p);
	struct client_call *call = client_find_late(client, id);

	if (!call)
		return;
	call->late = false;
	call->fds[0] = TAKE_FD(own.rootfs);
	call->fds[1] = TAKE_FD(own.log);
	if (client->rotates)
		call->fds[2] = TAKE_FD(own.log_dir);
	/* One that waits takes them along. */
	if (!call->counted)
		return;
	client_call_give(call);
}

static void withdraw(struct peer *p, const char *id)
{
	struct keeper_client *client = client_of(p);
	struct client_call *call = client_find_late(client, id);

	if (!call)
		return;
	client_call_free(call);
	connection_pump(client->connection);
}

static void signal_(struct peer *p, const char *id, int sig, bool all, peer_done_fn done,
		    void *userdata)
{
	Nacre__Instance__V1__SignalRequest request;

	nacre__instance__v1__signal_request__init(&request);
	request.id = convert_str(id);
	request.signal = (uint32_t)sig;
	request.all = all;
	client_call_plain(client_of(p), KEEPER_METHOD("Signal"), &request.base,
			  &nacre__instance__v1__signal_response__descriptor, NSEC_NEVER, done,
			  userdata);
}

static void change_log(struct peer *p, const char *id, int fd, peer_done_fn done, void *userdata)
{
	client_change_log(client_of(p), id, fd, done, userdata);
}

static void remove_(struct peer *p, const char *id, peer_done_fn done, void *userdata)
{
	Nacre__Instance__V1__RemoveRequest request;

	nacre__instance__v1__remove_request__init(&request);
	request.id = convert_str(id);
	client_call_plain(client_of(p), KEEPER_METHOD("Remove"), &request.base,
			  &nacre__instance__v1__remove_response__descriptor, NSEC_NEVER, done,
			  userdata);
}

static void remove_cell(struct peer *p, const char *cell, peer_done_fn done, void *userdata)
{
	Nacre__Instance__V1__RemoveCellRequest request;

	nacre__instance__v1__remove_cell_request__init(&request);
	request.cell = convert_str(cell);
	client_call_plain(client_of(p), KEEPER_METHOD("RemoveCell"), &request.base,
			  &nacre__instance__v1__remove_cell_response__descriptor, NSEC_NEVER, done,
			  userdata);
}

static void spawn(struct peer *p, const char *name, const struct peer_shares *shares,
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
	if ((shares->pids || shares->ipc || shares->uts) && !client_of(p)->visitors) {
		err = (struct error)ERROR_INIT;
		(void)error_refuse(&err, ERROR_PRECONDITION,
				   "its parent's keeper (version %s) cannot share its namespaces",
				   client_of(p)->hello.version);
		call->spawned = done;
		client_call_refuse(call, &err);
		return;
	}
	call->spawned = done;
	request.name = convert_str(name);
	request.host_network = shares->network;
	request.host_pids = shares->pids;
	request.host_ipc = shares->ipc;
	request.host_uts = shares->uts;
	client_call_ask(call, KEEPER_METHOD("Spawn"), &request.base,
			&nacre__instance__v1__spawn_response__descriptor, NSEC_NEVER);
}

static void end(struct peer *p, const char *name, peer_done_fn done, void *userdata)
{
	Nacre__Instance__V1__EndRequest request;

	nacre__instance__v1__end_request__init(&request);
	request.name = convert_str(name);
	client_call_plain(client_of(p), KEEPER_METHOD("End"), &request.base,
			  &nacre__instance__v1__end_response__descriptor, NSEC_NEVER, done,
			  userdata);
}

static void shutdown_(struct peer *p, peer_done_fn done, void *userdata)
{
	Nacre__Instance__V1__ShutdownRequest request;

	nacre__instance__v1__shutdown_request__init(&request);
	client_call_plain(client_of(p), KEEPER_METHOD("Shutdown"), &request.base,
			  &nacre__instance__v1__shutdown_response__descriptor, NSEC_NEVER, done,
			  userdata);
}

/* A hello of which only the arrival of its answer counts. */
static void ping(struct peer *p, nsec_t within, peer_done_fn done, void *userdata)
{
	Nacre__Instance__V1__HelloRequest request;

	client_make_hello(client_of(p), &request);
	client_call_plain(client_of(p), KEEPER_METHOD("Hello"), &request.base,
			  &nacre__instance__v1__hello_response__descriptor, within, done, userdata);
}

static const struct peer_hello *hello(struct peer *p)
{
	return &client_of(p)->hello;
}

static int upgrade(struct peer *p, const struct peer_upgrade *how, peer_done_fn done,
		   void *userdata, struct error *err)
{
	return reopen_begin(client_of(p), how, done, userdata, err);
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
	client_log_forget(client);
	passing_forget(client);
	reopen_forget(client);
	list_remove(&client->link);
	free(client->path);
	free(client);
	connection_pump(c);
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
	list_init(&client->link);
	list_add_tail(&c->clients, &client->link);
	list_init(&client->calls);
	list_init(&client->logs_open);
	*ret = client;
	return 0;
}

static int child(struct peer *p, const char *name, struct peer **ret)
{
	struct keeper_client *parent = client_of(p);
	struct keeper_client *client;
	int r;

	if (!name_is_label_of_any_case(name) || name_depth(parent->target) >= NAME_DEPTH_MAX)
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
	.late = late,
	.give = give,
	.withdraw = withdraw,
	.has_channel = has_channel,
	.log_open = log_open,
	.log_take = client_log_take,
	.log_pause = client_log_pause,
	.log_close = client_log_close,
	.signal = signal_,
	.change_log = change_log,
	.remove = remove_,
	.remove_cell = remove_cell,
	.limit = client_limit,
	.set_sysctls = client_set_sysctls,
	.usage = client_usage,
	.processes = client_processes,
	.takes_files = client_takes_files,
	.put_files = client_put_files,
	.takes_hosts = client_takes_hosts,
	.put_hosts = client_put_hosts,
	.put_link = client_put_link,
	.put_disk = client_put_disk,
	.spawn = spawn,
	.spawn_machine = client_spawn_machine,
	.end = end,
	.shutdown = shutdown_,
	.ping = ping,
	.hello = hello,
	.upgrade = upgrade,
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
	list_init(&c->clients);
	list_init(&c->starts);
	list_init(&c->held);
	list_init(&c->passing);
	list_init(&c->turns);
	c->go_on = connection_go_on;
	reopen_init(c);
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
