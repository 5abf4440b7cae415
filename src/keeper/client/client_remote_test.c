/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A peer that is reached over a stream of bytes alone: what it cannot, what its starts carry in
 * place of descriptors, and the logs that its keeper keeps. The keeper is a server of this file.
 */

#include "keeper/client/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/instance.pb-c.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "io/unix.h"
#include "keeper/message/convert.h"
#include "loop/loop.h"
#include "loop/wait_test.h"
#include "rpc/server/server.h"
#include "scratch.h"
#include "unit.h"

#define ID "0000000000000001"
#define LINE "2026-11-22T13:00:00.000000000Z stdout F line\n"

static struct loop *l;
static char dir[64];
static int dir_fd = -1;

/* ---- the keeper ---- */

static struct {
	struct rpc_server *server;
	int rpc_fd;
	const char *feature; /* that it has; NULL: all */
	struct rpc_call *log;
	uint64_t from, ack;
	unsigned n_starts, n_logs;
	size_t n_told;  /* groups, or processes */
	char seen[128]; /* of the last start */
} k;

static void serve_hello(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	static const char *const all[] = {
		"disks", "logs", "shares", "mounts", "late-fds", "groups"
	};
	Nacre__Instance__V1__HelloResponse m = NACRE__INSTANCE__V1__HELLO_RESPONSE__INIT;
	char *one[1];

	m.protocol = KEEPER_PROTOCOL;
	m.features = (char **)(uintptr_t)all;
	m.n_features = ARRAY_SIZE(all);
	if (k.feature) {
		one[0] = convert_str(k.feature);
		m.features = one;
		m.n_features = 1;
	}
	rpc_call_reply(call, &m.base);
}

static void on_cancel(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	if (k.log == call)
		k.log = NULL;
	(void)error_refuse(&err, ERROR_CANCELLED, "nobody is there");
	rpc_call_fail(call, &err);
}

static void serve_watch(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Nacre__Instance__V1__WatchResponse m = NACRE__INSTANCE__V1__WATCH_RESPONSE__INIT;

	m.synced = true;
	rpc_call_on_cancel(call, on_cancel, NULL);
	CHECK_INT(rpc_call_send(call, &m.base), 0);
}

static void serve_start(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__Instance__V1__StartRequest *q = (const void *)request;
	Nacre__Instance__V1__StartResponse m = NACRE__INSTANCE__V1__START_RESPONSE__INIT;
	Nacre__Instance__V1__ContainerStatus status = NACRE__INSTANCE__V1__CONTAINER_STATUS__INIT;

	k.n_starts++;
	CHECK(q->root_disk && q->n_files == 1 && q->n_mounts == 1);
	CHECK(q->rootfs_token == 0 && q->log_token == 0 && q->mounts[0]->token == 0);
	(void)str_printf(k.seen, sizeof(k.seen), "%s %s %llu %s=%.*s %s %d %d",
			 q->root_disk->serial, q->root_disk->fs,
			 (unsigned long long)q->root_disk->upper_bytes, q->files[0]->path,
			 (int)q->files[0]->data.len, (const char *)q->files[0]->data.data,
			 q->mounts[0]->share, q->mounts[0]->read_only, q->keep_log);
	m.container = &status;
	rpc_call_reply(call, &m.base);
}

static void on_ack(struct rpc_call *call, const ProtobufCMessage *message, void *data)
{
	const Nacre__Instance__V1__LogsRequest *q = (const void *)message;

	if (q)
		k.ack = q->ack;
}

static void serve_logs(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__Instance__V1__LogsRequest *q = (const void *)request;

	CHECK_STR(q->id, ID);
	k.n_logs++;
	k.from = q->from;
	k.log = call;
	rpc_call_on_cancel(call, on_cancel, NULL);
	rpc_call_on_message(call, on_ack, NULL);
}

/* As many as the test says; each with what no terminal should see. */
static void serve_usage(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Nacre__Instance__V1__UsageResponse m = NACRE__INSTANCE__V1__USAGE_RESPONSE__INIT;
	static Nacre__Instance__V1__GroupUsage *groups[PEER_GROUPS_MAX + 1];
	static Nacre__Instance__V1__GroupUsage group;

	nacre__instance__v1__group_usage__init(&group);
	group.memory_current = UINT64_MAX;
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		groups[i] = &group;
	m.groups = groups;
	m.n_groups = k.n_told;
	rpc_call_reply(call, &m.base);
}

static void serve_processes(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Nacre__Instance__V1__ProcessesResponse m = NACRE__INSTANCE__V1__PROCESSES_RESPONSE__INIT;
	static Nacre__Instance__V1__GroupProcess *processes[PEER_PROCESSES_MAX + 1];
	static Nacre__Instance__V1__GroupProcess process;
	static char command[] = "\033[2Jx";

	nacre__instance__v1__group_process__init(&process);
	process.command = command;
	for (size_t i = 0; i < ARRAY_SIZE(processes); i++)
		processes[i] = &process;
	m.processes = processes;
	m.n_processes = k.n_told;
	rpc_call_reply(call, &m.base);
}

#define METHOD(n, lower, fn, ...)                                                                  \
	{                                                                                          \
		.name = (n), .input = &nacre__instance__v1__##lower##_request__descriptor,         \
		.output = &nacre__instance__v1__##lower##_response__descriptor, .handle = (fn),    \
		__VA_ARGS__                                                                        \
	}

static const struct rpc_method keeper_methods[] = {
	METHOD("Hello", hello, serve_hello, .server_streaming = false),
	METHOD("Watch", watch, serve_watch, .server_streaming = true),
	METHOD("Start", start, serve_start, .server_streaming = false),
	METHOD("Usage", usage, serve_usage, .server_streaming = false),
	METHOD("Processes", processes, serve_processes, .server_streaming = false),
	METHOD("Logs", logs, serve_logs, .server_streaming = true, .client_streaming = true),
};

static const struct rpc_service keeper_service = {
	.name = "nacre.instance.v1.InstanceService",
	.methods = keeper_methods,
	.n_methods = ARRAY_SIZE(keeper_methods),
};

static void keeper_begin(void)
{
	CHECK_INT(rpc_server_new(&k.server, &(struct rpc_server_config){ .loop = l }), 0);
	CHECK_INT(rpc_server_add(k.server, &keeper_service, NULL), 0);
	CHECK_INT(rpc_server_listen(k.server, fd_copy(k.rpc_fd)), 0);
}

static void say(uint64_t offset, const char *lines, bool eof)
{
	Nacre__Instance__V1__LogsResponse m = NACRE__INSTANCE__V1__LOGS_RESPONSE__INIT;

	CHECK(k.log != NULL);
	if (!k.log)
		return;
	m.offset = offset;
	m.data.data = (uint8_t *)(uintptr_t)lines;
	m.data.len = lines ? strlen(lines) : 0;
	m.eof = eof;
	CHECK_INT(rpc_call_send(k.log, &m.base), 0);
}

/* ---- its peer ---- */

static struct peer *peer;
static struct peer_log *logged;

static struct {
	int n_opened, n_synced, n_started, n_lines, n_eofs, n_ends, n_back;
	uint64_t at, eof;
	bool close; /* by itself, at the next lines */
	struct error err;
} told;

static void take_error(const struct error *err)
{
	told.err = err ? *err : (struct error)ERROR_INIT;
}

static void on_opened(void *userdata, const struct error *err)
{
	told.n_opened++;
	take_error(err);
}

static void on_started(void *userdata, const struct container_view *view, const struct error *err)
{
	told.n_started++;
	take_error(err);
}

static void on_lines(void *userdata, uint64_t at, const uint8_t *lines, size_t len)
{
	told.n_lines++;
	told.at = at;
	CHECK(len == strlen(LINE) && memcmp(lines, LINE, len) == 0);
	if (told.close) {
		peer->ops->log_close(logged);
		logged = NULL;
	}
}

static void on_eof(void *userdata, uint64_t at)
{
	told.n_eofs++;
	told.eof = at;
}

static void on_end(void *userdata, const struct error *err)
{
	told.n_ends++;
	logged = NULL;
	take_error(err);
}

static const struct peer_log_ops log_ops = {
	.on_lines = on_lines,
	.on_eof = on_eof,
	.on_end = on_end,
};

static void on_synced(void *userdata)
{
	told.n_synced++;
}

static void on_lost(void *userdata, const struct error *err)
{
}

static void on_back(void *userdata)
{
	told.n_back++;
}

static int reach(void *userdata, int *ret_rpc_fd, int *ret_fd_fd, struct error *err)
{
	int fd = unix_connect(dir_fd, "rpc.sock", SOCK_STREAM, err);

	if (fd < 0)
		return fd;
	*ret_rpc_fd = fd;
	*ret_fd_fd = -1;
	return 0;
}

static const struct peer_events events = {
	.on_synced = on_synced,
	.on_lost = on_lost,
	.on_back = on_back,
	.connect = reach,
};

/* ---- the world ---- */

#define WAIT_FOR(cond) LOOP_WAIT(l, cond)

static void turns(void)
{
	for (int i = 0; i < 20; i++)
		loop_turn(l, false);
}

static bool begin(const char *feature)
{
	struct error err = ERROR_INIT;
	int rpc_fd, fd_fd;

	memset(&told, 0, sizeof(told));
	memset(&k, 0, sizeof(k));
	k.feature = feature;
	(void)str_copy(dir, sizeof(dir), "/tmp/keeper-remote-test-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(loop_new(&l), 0);
	k.rpc_fd = unix_listen(dir_fd, "rpc.sock", SOCK_STREAM, &err);
	keeper_begin();
	CHECK_INT(reach(NULL, &rpc_fd, &fd_fd, &err), 0);
	CHECK_INT(keeper_client_new(&peer, l, rpc_fd, fd_fd), 0);
	peer->ops->open(peer, &events, NULL, on_opened);
	WAIT_FOR(told.n_opened == 1 && told.n_synced == 1);
	return told.err.code == 0 && told.n_synced == 1;
}

static void end(void)
{
	peer = peer ? peer->ops->free(peer) : NULL;
	logged = NULL;
	k.server = rpc_server_free(k.server);
	turns();
	k.rpc_fd = fd_close(k.rpc_fd);
	l = loop_free(l);
	dir_fd = fd_close(dir_fd);
	CHECK_INT(scratch_remove(dir), 0);
}

/* ---- starts ---- */

static void start_with(struct container_fds *fds, const struct container_spec *more)
{
	char *argv[] = { (char[]){ "/bin/true" }, NULL };
	struct cell_spec cell = { .name = "web" };
	struct container_spec spec = *more;

	(void)str_copy(spec.id, sizeof(spec.id), ID);
	spec.name = "main";
	spec.argv = argv;
	told.n_started = 0;
	peer->ops->start(peer, &cell, &spec, fds, on_started, NULL);
	WAIT_FOR(told.n_started == 1);
}

static void takes_no_descriptors(void)
{
	struct container_fds fds = CONTAINER_FDS_NONE;
	struct container_spec spec = { .kind = CONTAINER_IMAGE };
	struct error err = ERROR_INIT;

	if (!begin(NULL)) {
		end();
		return;
	}
	CHECK(!peer->ops->has_channel(peer) && !peer->ops->late(peer));
	fds.rootfs = fd_copy(dir_fd);
	start_with(&fds, &spec);
	CHECK_INT(told.err.kind, ERROR_PRECONDITION);
	CHECK(strstr(told.err.text, "a root file system cannot be passed") != NULL);
	fds.log_dir = fd_copy(dir_fd);
	fds.log = fd_copy(dir_fd);
	start_with(&fds, &spec);
	CHECK(strstr(told.err.text, "a log cannot be passed") != NULL);
	fds.mounts[0] = fd_copy(dir_fd);
	fds.n_mounts = 1;
	spec.mounts = &(struct container_mount){ .target = "/x" };
	spec.n_mounts = 1;
	start_with(&fds, &spec);
	CHECK(strstr(told.err.text, "a mount cannot be passed") != NULL);
	CHECK_INT(k.n_starts, 0);
	CHECK(peer->ops->upgrade(peer, &(struct peer_upgrade){ .exe_fd = dir_fd, .build = "new" },
				 on_opened, NULL, &err) < 0);
	CHECK_INT(err.kind, ERROR_UNSUPPORTED);
	end();
}

static void carries_what_it_has_instead(void)
{
	static const struct container_disk disk = { .serial = "slot3",
						    .fs = CONTAINER_DISK_FS,
						    .upper_bytes = 1 << 20 };
	static const struct container_file file = {
		.path = "/etc/hosts", .mode = 0644, .data = "hosts", .len = 5
	};
	static const struct container_mount mount = { .target = "/data",
						      .share = "vol0",
						      .read_only = true };
	struct container_fds fds = CONTAINER_FDS_NONE;
	struct container_spec spec = {
		.root_disk = &disk,
		.files = &file,
		.n_files = 1,
		.mounts = &mount,
		.n_mounts = 1,
		.keep_log = true,
	};

	if (begin(NULL)) {
		fds.mounts[0] = -1;
		fds.n_mounts = 1;
		start_with(&fds, &spec);
		CHECK_INT(told.err.code, 0);
		CHECK_STR(k.seen, "slot3 erofs 1048576 /etc/hosts=hosts vol0 1 1");
	}
	end();
}

static void asks_for_nothing_unknown(void)
{
	static const struct container_disk disk = { .serial = "slot3", .fs = CONTAINER_DISK_FS };
	static const struct container_mount mount = { .target = "/data", .share = "vol0" };
	struct container_fds fds = CONTAINER_FDS_NONE;

	if (begin("mounts")) {
		start_with(&fds, &(struct container_spec){ .root_disk = &disk });
		CHECK(strstr(told.err.text, "knows nothing of disks") != NULL);
		start_with(&fds, &(struct container_spec){ .keep_log = true });
		CHECK(strstr(told.err.text, "knows nothing of logs that are kept") != NULL);
		start_with(&fds, &(struct container_spec){ .mounts = &mount, .n_mounts = 1 });
		CHECK(strstr(told.err.text, "knows nothing of shares") != NULL);
		CHECK_INT(peer->ops->log_open(peer, ID, 0, &log_ops, NULL, &logged), 0);
		WAIT_FOR(told.n_ends == 1);
		CHECK_INT(told.err.kind, ERROR_PRECONDITION);
		CHECK_INT(k.n_starts + k.n_logs, 0);
	}
	end();
}

/* ---- groups ---- */

static struct {
	unsigned n;
	size_t n_entries;
	uint64_t memory;
	char command[16];
	struct error err;
} heard;

static void hear(size_t n, const struct error *err)
{
	heard.n++;
	heard.n_entries = n;
	heard.err = err ? *err : (struct error)ERROR_INIT;
}

static void on_usage(void *userdata, const struct peer_group *groups, size_t n,
		     const struct error *err)
{
	hear(n, err);
	heard.memory = n > 0 ? groups[0].usage.memory_current : 0;
}

static void on_processes(void *userdata, const struct peer_process *processes, size_t n,
			 bool truncated, const struct error *err)
{
	hear(n, err);
	(void)str_copy(heard.command, sizeof(heard.command),
		       n > 0 ? processes[0].process.command : "");
}

static void ask_groups(bool processes, size_t n_told)
{
	unsigned n = heard.n;

	k.n_told = n_told;
	if (processes)
		peer->ops->processes(peer, on_processes, NULL);
	else
		peer->ops->usage(peer, on_usage, NULL);
	WAIT_FOR(heard.n == n + 1);
}

static void what_a_stranger_tells_has_bounds(void)
{
	if (begin(NULL)) {
		ask_groups(false, 2);
		if (heard.err.code == 0)
			CHECK(heard.n_entries == 2 && heard.memory == UINT64_MAX);
		ask_groups(false, PEER_GROUPS_MAX + 1);
		CHECK(heard.err.code != 0 && heard.n_entries == 0);
		ask_groups(true, 2);
		if (heard.err.code == 0)
			CHECK_STR(heard.command, "?[2Jx");
		ask_groups(true, PEER_PROCESSES_MAX + 1);
		CHECK(heard.err.code != 0 && heard.n_entries == 0);
	}
	end();
}

static void one_of_an_earlier_release_is_not_asked(void)
{
	if (begin("logs")) {
		ask_groups(false, 1);
		CHECK_INT(heard.n_entries, 0);
		CHECK(heard.err.kind == ERROR_PRECONDITION || heard.err.code == -ENOMEM);
		ask_groups(true, 1);
		CHECK(heard.err.kind == ERROR_PRECONDITION || heard.err.code == -ENOMEM);
	}
	end();
}

/* ---- logs ---- */

static bool begin_log(uint64_t from)
{
	if (!begin(NULL) || peer->ops->log_open(peer, ID, from, &log_ops, NULL, &logged) < 0)
		return false;
	WAIT_FOR(k.n_logs == 1);
	return k.n_logs == 1;
}

static void lines_are_told_and_taken(void)
{
	if (begin_log(7)) {
		CHECK_INT(k.from, 7);
		say(7, LINE, false);
		WAIT_FOR(told.n_lines == 1);
		CHECK_INT(told.at, 7);
		CHECK_INT(peer->ops->log_take(logged, 12), 0);
		WAIT_FOR(k.ack == 12);
		say(12, NULL, true);
		WAIT_FOR(told.n_eofs == 1);
		CHECK_INT(told.eof, 12);
		rpc_call_on_cancel(k.log, NULL, NULL);
		rpc_call_finish(TAKE_PTR(k.log));
		WAIT_FOR(told.n_ends == 1);
		CHECK_INT(told.err.code, 0);
	}
	end();
}

static void a_paused_log_is_not_told(void)
{
	if (begin_log(0)) {
		peer->ops->log_pause(logged, true);
		say(0, LINE, false);
		turns();
		CHECK_INT(told.n_lines, 0);
		peer->ops->log_pause(logged, false);
		WAIT_FOR(told.n_lines == 1);
	}
	end();
}

static void a_log_may_be_closed_by_its_own_lines(void)
{
	if (begin_log(0)) {
		told.close = true;
		say(0, LINE, false);
		say(5, LINE, false);
		WAIT_FOR(k.log == NULL);
		CHECK_INT(told.n_lines, 1);
		CHECK_INT(told.n_ends, 0);
	}
	end();
}

static void a_lost_log_is_opened_again(void)
{
	if (begin_log(0)) {
		k.server = rpc_server_free(k.server);
		WAIT_FOR(told.n_ends == 1);
		CHECK_INT(told.err.kind, ERROR_UNAVAILABLE);
		/* It cannot be asked yet. */
		told.n_ends = 0;
		CHECK_INT(peer->ops->log_open(peer, ID, 5, &log_ops, NULL, &logged), 0);
		WAIT_FOR(told.n_ends == 1);
		CHECK_INT(told.err.kind, ERROR_UNAVAILABLE);
		keeper_begin();
		WAIT_FOR(told.n_back == 1);
		CHECK_INT(peer->ops->log_open(peer, ID, 5, &log_ops, NULL, &logged), 0);
		WAIT_FOR(k.n_logs == 2);
		CHECK_INT(k.from, 5);
	}
	end();
}

UNIT_MAIN({ "takes_no_descriptors", takes_no_descriptors },
	  { "carries_what_it_has_instead", carries_what_it_has_instead },
	  { "asks_for_nothing_unknown", asks_for_nothing_unknown },
	  { "what_a_stranger_tells_has_bounds", what_a_stranger_tells_has_bounds },
	  { "one_of_an_earlier_release_is_not_asked", one_of_an_earlier_release_is_not_asked },
	  { "lines_are_told_and_taken", lines_are_told_and_taken },
	  { "a_paused_log_is_not_told", a_paused_log_is_not_told },
	  { "a_log_may_be_closed_by_its_own_lines", a_log_may_be_closed_by_its_own_lines },
	  { "a_lost_log_is_opened_again", a_lost_log_is_opened_again })
