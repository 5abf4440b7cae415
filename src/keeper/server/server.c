/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/memory/arena.h"
#include "base/process/build_id.h"
#include "base/text/str.h"
#include "keeper/message/convert.h"
#include "keeper/nested/children.h"
#include "keeper/nested/spawning.h"
#include "keeper/server/attach.h"
#include "keeper/server/copying.h"
#include "keeper/server/dialing.h"
#include "keeper/server/disks.h"
#include "keeper/server/exec.h"
#include "keeper/server/files.h"
#include "keeper/server/given.h"
#include "keeper/server/groups.h"
#include "keeper/server/hosts.h"
#include "keeper/server/late.h"
#include "keeper/server/links.h"
#include "keeper/server/logs.h"
#include "keeper/server/tokens.h"
#include "keeper/server/upgrade.h"
#include "keeper/server/watch.h"
#include "loop/loop.h"
#include "rpc/server/server.h"

/*
 * Theory of operation. A handler checks and converts, tells the keeper or the children, and leaves
 * its call as the userdata of the completion, which answers. Calls with a target never come here:
 * rpc passes them on to the connection that keeper_server_route() names. Descriptors come over a
 * second socket, always before the message that names them (but see late.h), so both the handlers
 * that take tokens and the routing first take in what waits there.
 */

/* For a parent to take what the last containers wrote, which it does at once whatever the pace of
 * those who read it (RPC_REST_MAX). Within the time that it waits for the end of a keeper
 * (INSTANCE_STOP_GRACE, CHILD_END_GRACE). */
#define SERVER_DRAIN_GRACE (4 * NSEC_PER_SEC)

struct keeper_server {
	struct keeper_server_config config;
	struct keeper *keeper;
	struct rpc_server *rpc;
	struct tokens tokens;
	struct lates lates;
	struct disks disks;
	struct copying copying;
	struct dialing dialing;
	struct groups groups;
	struct files files;
	struct hosts hosts;
	struct links links;
	struct given given;
	struct children children;
	struct watchers watchers;
	struct upgrade upgrade;
	bool shutting;
	unsigned n_to_end; /* the keeper and the children, while shutting down */
};

/* ---- what happens on its own ---- */

static void server_on_container(void *userdata, const struct container_view *view, bool removed)
{
	struct keeper_server *s = userdata;

	/* Who asked for the removal knows of it, and who asked for a start waits for its answer: a
	 * change less, at a moment at which the processor is wanted for the start. */
	if (!removed && view->status.state != CONTAINER_STARTING)
		watchers_tell_container(&s->watchers, view);
}

static void server_on_child_end(void *userdata, const char *name, const char *reason)
{
	Nacre__Instance__V1__WatchResponse change;
	Nacre__Instance__V1__ChildStatus status;
	struct keeper_server *s = userdata;

	nacre__instance__v1__watch_response__init(&change);
	nacre__instance__v1__child_status__init(&status);
	status.name = convert_str(name);
	status.reason = convert_str(reason);
	change.child = &status;
	watchers_tell(&s->watchers, &change);
}

static bool server_is_other_child(void *userdata, pid_t pid)
{
	struct keeper_server *s = userdata;

	return children_own(&s->children, pid) || upgrade_owns(&s->upgrade, pid);
}

static void server_on_packet(void *userdata, const struct fdchan_packet *packet)
{
	struct keeper_server *s = userdata;

	children_forward(&s->children, packet);
}

static int server_route(void *userdata, const char *target, struct rpc_client **ret_client,
			const char **ret_rest, struct error *err)
{
	struct keeper_server *s = userdata;

	tokens_drain(&s->tokens);
	return children_route(&s->children, target, ret_client, ret_rest, err);
}

static void server_on_token(void *userdata)
{
	struct keeper_server *s = userdata;

	lates_look(&s->lates);
}

/* ---- answers ---- */

/* The completion of a call whose answer is empty, with its type as the last word. */
static void server_reply_empty(struct rpc_call *call, const ProtobufCMessageDescriptor *type)
{
	ProtobufCMessage empty = PROTOBUF_C_MESSAGE_INIT(type);

	rpc_call_reply(call, &empty);
}

static int server_check_open(const struct keeper_server *s, struct error *err)
{
	if (s->shutting)
		return error_refuse(err, ERROR_UNAVAILABLE, "this instance is shutting down");
	return 0;
}

/* ---- the connection ---- */

static void server_hello(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	static const char *const features[] = {
		"exec",         "stdin",    "spawn",    "mounts",      "limits",   "log-rotation",
		"upgrade",      "attach",   "tty",      "stream-exec", "late-fds", "logs",
		"disks",        "shares",   "copy",     "groups",      "files",    "log-change",
		"security",     "devices",  "visitors", "rlimits",     "filters",  "tmpfs-owner",
		"cell-network", "put-disk", "hosts",    "scratch",     "sysctls"
	};
	const Nacre__Instance__V1__HelloRequest *request = (const void *)message;
	Nacre__Instance__V1__HelloResponse response;
	struct keeper_server *s = userdata;
	struct error err = ERROR_INIT;

	nacre__instance__v1__hello_response__init(&response);
	/* What an earlier parent has left in the channel is found to be over now. */
	tokens_drain(&s->tokens);
	if (request->protocol != KEEPER_PROTOCOL) {
		(void)error_field(&err, ERROR_PRECONDITION, "protocol",
				  "%u is not spoken by this keeper (version %s, protocol %u)",
				  request->protocol, NACRE_VERSION, KEEPER_PROTOCOL);
		rpc_call_fail(call, &err);
		return;
	}
	if (request->path[0] && !name_is_path(request->path)) {
		(void)error_field(&err, ERROR_INVALID, "path", "\"%.80s\" is not a path of names",
				  request->path);
		rpc_call_fail(call, &err);
		return;
	}
	if (request->path[0] && s->config.on_named)
		s->config.on_named(s->config.userdata, request->path);
	response.protocol = KEEPER_PROTOCOL;
	response.version = convert_str(NACRE_VERSION);
	response.n_features = ARRAY_SIZE(features);
	response.features = (char **)(uintptr_t)features;
	response.pid = getpid();
	response.build = convert_str(build_id());
	FAILPOINT_BEFORE("keeper.hello");
	rpc_call_reply(call, &response.base);
	FAILPOINT_AFTER("keeper.hello");
}

/* A snapshot may end early, where its watcher could not be told and is gone. */
struct server_snapshot {
	struct watchers *watchers;
	struct watcher *to;
	size_t n_watchers;
};

static void snapshot_tell(struct server_snapshot *snapshot,
			  const Nacre__Instance__V1__WatchResponse *change)
{
	if (snapshot->watchers->n == snapshot->n_watchers)
		watcher_tell(snapshot->to, change);
}

static void snapshot_container(void *userdata, const struct container_view *view)
{
	const struct server_snapshot *snapshot = userdata;

	if (snapshot->watchers->n == snapshot->n_watchers)
		watcher_tell_container(snapshot->to, view);
}

static void snapshot_child(void *userdata, const char *name, int64_t pid, const char *reason)
{
	Nacre__Instance__V1__WatchResponse change;
	Nacre__Instance__V1__ChildStatus status;

	nacre__instance__v1__watch_response__init(&change);
	nacre__instance__v1__child_status__init(&status);
	status.name = convert_str(name);
	status.alive = reason == NULL;
	status.reason = convert_str(reason);
	status.pid = pid;
	change.child = &status;
	snapshot_tell(userdata, &change);
}

static void server_watch(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	Nacre__Instance__V1__WatchResponse synced;
	struct keeper_server *s = userdata;
	struct server_snapshot snapshot = { .watchers = &s->watchers };

	nacre__instance__v1__watch_response__init(&synced);
	snapshot.to = watchers_add(&s->watchers, call);
	if (!snapshot.to)
		return;
	snapshot.n_watchers = s->watchers.n;
	keeper_each(s->keeper, snapshot_container, &snapshot);
	children_each(&s->children, snapshot_child, &snapshot);
	synced.synced = true;
	snapshot_tell(&snapshot, &synced);
}

/* ---- containers ---- */

static void server_started(void *userdata, const struct container_view *view)
{
	Nacre__Instance__V1__StartResponse response;
	Nacre__Instance__V1__ContainerStatus status;

	nacre__instance__v1__start_response__init(&response);
	convert_status(&status, view);
	response.container = &status;
	rpc_call_reply(userdata, &response.base);
}

static int server_take_token(struct keeper_server *s, const char *field, uint64_t token,
			     struct error *err)
{
	int fd;

	if (!token)
		return -1;
	fd = tokens_take(&s->tokens, token);
	if (fd < 0)
		return error_field(err, ERROR_INVALID, field, "no descriptor came for it");
	return fd;
}

/* All of them, also where one is missing: so each is closed. */
static int server_take_mounts(struct keeper_server *s, struct container_fds *fds,
			      const Nacre__Instance__V1__StartRequest *request, struct error *err)
{
	int r = 0;

	if (request->n_mounts > CONTAINER_MOUNTS_MAX)
		return error_field(err, ERROR_INVALID, "mounts",
				   "%zu are more than the limit of %d", request->n_mounts,
				   CONTAINER_MOUNTS_MAX);
	for (size_t i = 0; i < request->n_mounts; i++) {
		fds->mounts[i] = server_take_token(s, "mounts", request->mounts[i]->token, err);
		fds->n_mounts = i + 1;
		if (fds->mounts[i] < -1)
			r = fds->mounts[i];
	}
	return r;
}

static int server_begin_start(struct keeper_server *s, struct rpc_call *call,
			      const Nacre__Instance__V1__StartRequest *request, struct error *err)
{
	_cleanup_(container_fds_close) struct container_fds fds = CONTAINER_FDS_NONE;
	struct container_spec spec;
	struct cell_spec cell;
	int r;

	/* Taken first, so that those of a request that is refused are closed. */
	if (!request->late_fds) {
		fds.rootfs = server_take_token(s, "rootfs_token", request->rootfs_token, err);
		fds.log = server_take_token(s, "log_token", request->log_token, err);
		fds.log_dir = server_take_token(s, "log_dir_token", request->log_dir_token, err);
	}
	fds.network = server_take_token(s, "network_token", request->network_token, err);
	r = MIN(fds.rootfs, fds.log);
	r = MIN(r, fds.log_dir);
	r = MIN(r, fds.network);
	r = MIN(r, server_take_mounts(s, &fds, request, err) - 1);
	if (r >= -1)
		r = server_check_open(s, err);
	if (r < 0)
		return r;
	r = convert_start(&cell, &spec, request, rpc_call_arena(call), err);
	if (r < 0)
		return r;
	if (disks_wants(&spec))
		return disks_start(&s->disks, call, &cell, &spec, &fds, err);
	if (spec.late)
		return lates_start(&s->lates, call, &cell, &spec, &fds, err);
	return keeper_start(s->keeper, &cell, &spec, &fds, server_started, call, err);
}

/* What is on its way for a start that is refused is not kept. */
static void server_refuse_tokens(struct keeper_server *s,
				 const Nacre__Instance__V1__StartRequest *request)
{
	tokens_refuse(&s->tokens, request->rootfs_token);
	tokens_refuse(&s->tokens, request->log_token);
	tokens_refuse(&s->tokens, request->log_dir_token);
}

static void server_start(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	const Nacre__Instance__V1__StartRequest *request = (const void *)message;
	struct error err = ERROR_INIT;

	if (server_begin_start(userdata, call, request, &err) == 0)
		return;
	if (request->late_fds)
		server_refuse_tokens(userdata, request);
	rpc_call_fail(call, &err);
}

static void server_signal(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	const Nacre__Instance__V1__SignalRequest *request = (const void *)message;
	struct keeper_server *s = userdata;
	struct error err = ERROR_INIT;
	int sig, r;

	r = convert_signal(request, &sig, &err);
	if (r == 0)
		r = keeper_signal(s->keeper, request->id, sig, request->all, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
	else
		server_reply_empty(call, &nacre__instance__v1__signal_response__descriptor);
}

static void server_change_log(struct rpc_call *call, const ProtobufCMessage *message,
			      void *userdata)
{
	const Nacre__Instance__V1__ChangeLogRequest *request = (const void *)message;
	struct keeper_server *s = userdata;
	struct error err = ERROR_INIT;
	int fd = server_take_token(s, "log_token", request->log_token, &err);

	if (fd < -1)
		rpc_call_fail(call, &err);
	else
		logs_change(s->keeper, call, request->id, fd);
}

static void server_removed(void *userdata, const struct error *err)
{
	if (err)
		rpc_call_fail(userdata, err);
	else
		server_reply_empty(userdata, &nacre__instance__v1__remove_response__descriptor);
}

static void server_remove(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	const Nacre__Instance__V1__RemoveRequest *request = (const void *)message;
	struct keeper_server *s = userdata;
	struct error err = ERROR_INIT;

	if (keeper_remove(s->keeper, request->id, &err) < 0)
		rpc_call_fail(call, &err);
	else
		disks_release(&s->disks, request->id, NULL, server_removed, call);
}

/* A cell on its way out, in the arena of the call. */
struct server_removal {
	struct keeper_server *server;
	struct rpc_call *call;
	const char *cell;
};

static void server_cell_released(void *userdata, const struct error *err)
{
	if (err)
		rpc_call_fail(userdata, err);
	else
		server_reply_empty(userdata,
				   &nacre__instance__v1__remove_cell_response__descriptor);
}

static void server_cell_removed(void *userdata)
{
	struct server_removal *m = userdata;

	disks_release(&m->server->disks, NULL, m->cell, server_cell_released, m->call);
}

static void server_remove_cell(struct rpc_call *call, const ProtobufCMessage *message,
			       void *userdata)
{
	const Nacre__Instance__V1__RemoveCellRequest *request = (const void *)message;
	struct server_removal *m = arena_zalloc(rpc_call_arena(call), 1, sizeof(*m));
	struct keeper_server *s = userdata;
	struct error err = ERROR_INIT;

	if (!m) {
		(void)error_set(&err, -ENOMEM, "remove a cell");
		rpc_call_fail(call, &err);
		return;
	}
	*m = (struct server_removal){ .server = s, .call = call, .cell = request->cell };
	keeper_remove_cell(s->keeper, request->cell, server_cell_removed, m);
}

static void server_limit(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	struct keeper_server *s = userdata;

	groups_limit(&s->groups, call, (const void *)message);
}

static void server_usage(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	struct keeper_server *s = userdata;

	groups_usage(&s->groups, call);
}

static void server_processes(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	struct keeper_server *s = userdata;

	groups_processes(&s->groups, call);
}

static void server_exec(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	struct keeper_server *s = userdata;

	exec_handle(s->keeper, call, (const void *)message);
}

static void server_attach(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	struct keeper_server *s = userdata;

	attach_handle(s->keeper, call, (const void *)message);
}

static void server_logs(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	struct keeper_server *s = userdata;

	logs_handle(s->keeper, call, (const void *)message);
}

/* Calls that a part of the server takes over. */
#define SERVER_GIVES(name, part, fn)                                                               \
	static void server_##name(struct rpc_call *call, const ProtobufCMessage *m, void *s)       \
	{                                                                                          \
		fn(&((struct keeper_server *)s)->part, call, (const void *)m);                     \
	}
SERVER_GIVES(put_files, files, files_put)
SERVER_GIVES(put_hosts, hosts, hosts_put)
SERVER_GIVES(put_link, links, links_put)
SERVER_GIVES(put_disk, given, given_put)
SERVER_GIVES(copy_from, copying, copying_from)
SERVER_GIVES(copy_to, copying, copying_to)
SERVER_GIVES(dial, dialing, dialing_dial)

static void server_write_stdin(struct rpc_call *call, const ProtobufCMessage *message,
			       void *userdata)
{
	struct keeper_server *s = userdata;

	exec_write_stdin(s->keeper, call, (const void *)message);
}

/* ---- nested instances ---- */

static bool server_is_open(const struct keeper_server *s, struct rpc_call *call)
{
	struct error err = ERROR_INIT;

	if (server_check_open(s, &err) == 0)
		return true;
	rpc_call_fail(call, &err);
	return false;
}

static void server_spawn(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	struct keeper_server *s = userdata;

	if (server_is_open(s, call))
		spawning_cell(&s->children, call, message);
}

static void server_spawn_machine(struct rpc_call *call, const ProtobufCMessage *message,
				 void *userdata)
{
	struct keeper_server *s = userdata;

	if (server_is_open(s, call))
		spawning_machine(&s->children, call, message);
}

static void server_ended(void *userdata)
{
	server_reply_empty(userdata, &nacre__instance__v1__end_response__descriptor);
}

static void server_end(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	const Nacre__Instance__V1__EndRequest *request = (const void *)message;
	struct keeper_server *s = userdata;
	struct error err = ERROR_INIT;
	int r;

	r = children_end(&s->children, request->name, server_ended, call);
	if (r < 0) {
		(void)error_set(&err, r, "end instance %s", request->name);
		rpc_call_fail(call, &err);
	}
}

/* ---- the next program ---- */

static void server_upgrade(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	const Nacre__Instance__V1__UpgradeRequest *request = (const void *)message;
	struct keeper_server *s = userdata;
	struct error err = ERROR_INIT;
	_cleanup_fd_ int exe_fd = -1;
	int r = 0;

	exe_fd = server_take_token(s, "exe_token", request->exe_token, &err);
	if (exe_fd < 0)
		r = exe_fd < -1 ? exe_fd
				: error_field(&err, ERROR_INVALID, "exe_token", "required");
	if (r == 0 && !s->config.execute)
		r = error_refuse(&err, ERROR_UNSUPPORTED, "this keeper stays the program it is");
	if (r == 0)
		r = server_check_open(s, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
	else
		upgrade_begin(&s->upgrade, call, TAKE_FD(exe_fd));
}

int keeper_server_resume(struct keeper_server *s, int state_fd, struct error *err)
{
	return upgrade_resume(s->keeper, &s->children, state_fd, err);
}

static int server_execute(void *userdata, int exe_fd, int state_fd, const struct handover_writer *w,
			  struct error *err)
{
	struct keeper_server *s = userdata;

	return s->config.execute(s->config.userdata, exe_fd, state_fd, w, err);
}

/* ---- the end of all ---- */

static void server_drained(void *userdata)
{
	struct keeper_server *s = userdata;

	s->config.on_shut(s->config.userdata);
}

static void server_one_ended(void *userdata)
{
	struct keeper_server *s = userdata;

	if (--s->n_to_end)
		return;
	watchers_finish(&s->watchers);
	rpc_server_drain(s->rpc, SERVER_DRAIN_GRACE, server_drained, s);
}

void keeper_server_shutdown(struct keeper_server *s)
{
	if (s->shutting)
		return;
	s->shutting = true;
	upgrade_done(&s->upgrade);
	s->n_to_end = 2;
	children_shutdown(&s->children, server_one_ended);
	keeper_shutdown(s->keeper, server_one_ended, s);
}

static void server_shutdown(struct rpc_call *call, const ProtobufCMessage *message, void *userdata)
{
	server_reply_empty(call, &nacre__instance__v1__shutdown_response__descriptor);
	keeper_server_shutdown(userdata);
}

/* ---- the service ---- */

#define METHOD(n, lower, streaming, fn)                                                            \
	{                                                                                          \
		.name = (n), .input = &nacre__instance__v1__##lower##_request__descriptor,         \
		.output = &nacre__instance__v1__##lower##_response__descriptor,                    \
		.server_streaming = (streaming), .handle = (fn),                                   \
	}

/* `input`, of Exec and Attach alike. */
#define INPUT_FIELD 12
#define ACK_FIELD 3
#define DATA_FIELD 2

#define BIDI(n, lower, later, fn)                                                                  \
	{                                                                                          \
		.name = (n), .input = &nacre__instance__v1__##lower##_request__descriptor,         \
		.output = &nacre__instance__v1__##lower##_response__descriptor,                    \
		.server_streaming = true, .client_streaming = true, .handle = (fn),                \
		.later_field = (later),                                                            \
	}

static const struct rpc_method server_methods[] = {
	METHOD("Hello", hello, false, server_hello),
	METHOD("Watch", watch, true, server_watch),
	METHOD("Start", start, false, server_start),
	METHOD("Signal", signal, false, server_signal),
	METHOD("ChangeLog", change_log, false, server_change_log),
	METHOD("Remove", remove, false, server_remove),
	METHOD("RemoveCell", remove_cell, false, server_remove_cell),
	BIDI("Exec", exec, INPUT_FIELD, server_exec),
	BIDI("Attach", attach, INPUT_FIELD, server_attach),
	BIDI("Logs", logs, ACK_FIELD, server_logs),
	BIDI("Dial", dial, DATA_FIELD, server_dial),
	{ .name = "CopyFrom",
	  .input = &nacre__v1__copy_from_request__descriptor,
	  .output = &nacre__v1__copy_from_response__descriptor,
	  .server_streaming = true,
	  .handle = server_copy_from },
	{ .name = "CopyTo",
	  .input = &nacre__v1__copy_to_request__descriptor,
	  .output = &nacre__v1__copy_to_response__descriptor,
	  .client_streaming = true,
	  .handle = server_copy_to },
	METHOD("PutFiles", put_files, false, server_put_files),
	METHOD("PutHosts", put_hosts, false, server_put_hosts),
	METHOD("PutLink", put_link, false, server_put_link),
	METHOD("PutDisk", put_disk, false, server_put_disk),
	METHOD("WriteStdin", write_stdin, false, server_write_stdin),
	METHOD("Limit", limit, false, server_limit),
	METHOD("Usage", usage, false, server_usage),
	METHOD("Processes", processes, false, server_processes),
	METHOD("Spawn", spawn, false, server_spawn),
	METHOD("SpawnMachine", spawn_machine, false, server_spawn_machine),
	METHOD("End", end, false, server_end),
	METHOD("Upgrade", upgrade, false, server_upgrade),
	METHOD("Shutdown", shutdown, false, server_shutdown),
};

static const struct rpc_service server_service = {
	.name = "nacre.instance.v1.InstanceService",
	.methods = server_methods,
	.n_methods = ARRAY_SIZE(server_methods),
};

static int server_new_rpc(struct keeper_server *s, int rpc_listen_fd)
{
	_cleanup_fd_ int fd = rpc_listen_fd;
	int r;

	r = rpc_server_new(&s->rpc, &(struct rpc_server_config){
					    .loop = s->config.loop,
					    .route = server_route,
					    .userdata = s,
					    .undivided = true,
					    /* Its parent may be stopped for as long as it likes. */
					    .ping_after = NSEC_NEVER,
				    });
	if (r < 0)
		return r;
	r = rpc_server_add(s->rpc, &server_service, s);
	if (r < 0)
		return r;
	return rpc_server_listen(s->rpc, TAKE_FD(fd));
}

static void keeper_server_freep(struct keeper_server **s)
{
	*s = keeper_server_free(*s);
}

int keeper_server_new(struct keeper_server **ret, const struct keeper_server_config *config,
		      struct error *err)
{
	_cleanup_fd_ int rpc_fd = config->rpc_listen_fd, channel_fd = config->channel_listen_fd;
	_cleanup_(keeper_server_freep) struct keeper_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_set(err, -ENOMEM, "make the keeper");
	s->config = *config;
	watchers_init(&s->watchers);
	s->watchers.with_users = config->in_guest;
	children_init(&s->children, &(struct children_config){
					    .child = {
						    .loop = config->loop,
						    .run_fd = config->run_fd,
						    .cgroup_fd = config->keeper.cgroup_fd,
						    .exe_fd = config->exe_fd,
						    .disks = config->disks,
						    .in_guest = config->in_guest,
						    .path = config->path,
					    },
					    .on_end = server_on_child_end,
					    .userdata = s,
				    });
	tokens_init(&s->tokens, config->loop, TAKE_FD(channel_fd), server_on_packet, s);
	s->config.keeper.loop = config->loop;
	s->config.keeper.on_container = server_on_container;
	s->config.keeper.is_other_child = server_is_other_child;
	s->config.keeper.userdata = s;
	r = keeper_new(&s->keeper, &s->config.keeper);
	if (r < 0)
		return error_set(err, r, "make the keeper");
	s->copying = (struct copying){ .loop = config->loop, .keeper = s->keeper };
	s->dialing.loop = config->loop;
	lates_init(&s->lates, config->loop, &s->tokens, s->keeper, server_started);
	disks_init(&s->disks, config->loop, s->keeper, config->keeper.shm_parent_fd, config->disks,
		   server_started);
	groups_init(&s->groups, config->loop, s->keeper, config->keeper.cgroup_fd);
	files_init(&s->files, config->loop, config->keeper.shm_parent_fd);
	hosts_init(&s->hosts, config->loop, s->keeper);
	links_init(&s->links, config->loop, config->put_link);
	given_init(&s->given);
	s->tokens.arrived = server_on_token;
	r = server_new_rpc(s, TAKE_FD(rpc_fd));
	if (r < 0)
		return error_set(err, r, "serve the keeper's socket");
	upgrade_init(&s->upgrade, &(struct upgrade_config){ .loop = config->loop,
							    .keeper = s->keeper,
							    .children = &s->children,
							    .rpc = s->rpc,
							    .execute = server_execute,
							    .userdata = s });
	*ret = TAKE_PTR(s);
	return 0;
}

struct keeper_server *keeper_server_free(struct keeper_server *s)
{
	if (!s)
		return NULL;
	upgrade_done(&s->upgrade);
	if (s->lates.loop)
		lates_done(&s->lates);
	s->tokens.arrived = NULL;
	files_done(&s->files);
	hosts_done(&s->hosts);
	links_done(&s->links);
	given_done(&s->given);
	/* The calls go first: those that are cancelled let go of what they hold in the keeper. */
	if (s->rpc)
		s->rpc = rpc_server_free(s->rpc);
	disks_done(&s->disks);
	copying_done(&s->copying);
	groups_done(&s->groups);
	if (s->keeper)
		s->keeper = keeper_free(s->keeper);
	children_done(&s->children);
	tokens_done(&s->tokens);
	free(s);
	return NULL;
}

struct keeper *keeper_server_keeper(struct keeper_server *s)
{
	return s->keeper;
}
