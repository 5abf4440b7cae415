/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Server and client in one loop, over real sockets, above a keeper that does what the test says:
 * fake_keeper_test.h defines the functions of cell/layer/keeper.h.
 */

#include "keeper/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/instance.pb-c.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "instance/spawn.h"
#include "io/unix.h"
#include "keeper/client/client.h"
#include "keeper/client/fake_keeper_test.h"
#include "keeper/message/convert.h"
#include "keeper/server/watch.h"
#include "loop/loop.h"
#include "loop/wait_test.h"
#include "rpc/exchange/client.h"
#include "scratch.h"
#include "unit.h"

/* ---- the world ---- */

static struct loop *l;
static bool shut;
static char dir[64];
static int dir_fd;
static struct keeper_server *server;
static struct peer *peer;

static struct {
	int n_done, n_lost, n_views, n_synced;
	struct error err;
	struct container_view last;
} told;

#define WAIT_FOR(cond) LOOP_WAIT(l, cond)

static void on_shut(void *userdata)
{
	shut = true;
}

static void on_container(void *userdata, const struct container_view *v)
{
	told.n_views++;
	told.last = *v;
}

static void on_child_end(void *userdata, const char *name, const char *reason)
{
}

static void on_synced(void *userdata)
{
	told.n_synced++;
}

static void on_lost(void *userdata, const struct error *err)
{
	told.n_lost++;
	told.err = *err;
}

static const struct peer_events events = { .on_container = on_container,
					   .on_child_end = on_child_end,
					   .on_synced = on_synced,
					   .on_lost = on_lost };

static void on_done(void *userdata, const struct error *err)
{
	told.n_done++;
	told.err = err ? *err : (struct error)ERROR_INIT;
}

static void on_started(void *userdata, const struct container_view *v, const struct error *err)
{
	if (v)
		told.last = *v;
	on_done(userdata, err);
}

static void begin(void)
{
	struct error err = ERROR_INIT;
	int rpc_fd, fd_fd;

	memset(&told, 0, sizeof(told));
	memset(&asked, 0, sizeof(asked));
	exists = false;
	shut = false;
	(void)str_copy(dir, sizeof(dir), "/tmp/keeper-server-test-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(loop_new(&l) == 0);
	CHECK_INT(keeper_server_new(&server,
				    &(struct keeper_server_config){
					    .loop = l,
					    .keeper = { .cgroup_fd = -1 },
					    .rpc_listen_fd = unix_listen(dir_fd, "rpc.sock",
									 SOCK_STREAM, &err),
					    .channel_listen_fd = unix_listen(dir_fd, "fd.sock",
									     SOCK_SEQPACKET, &err),
					    .run_fd = dir_fd,
					    .exe_fd = -1,
					    .path = "",
					    .on_shut = on_shut,
				    },
				    &err),
		  0);
	CHECK_INT(instance_connect(dir_fd, &rpc_fd, &fd_fd, &err), 0);
	CHECK_INT(keeper_client_new(&peer, l, rpc_fd, fd_fd), 0);
}

static void begin_open(void)
{
	begin();
	peer->ops->open(peer, &events, NULL, on_done);
	WAIT_FOR(told.n_done == 1 && told.n_synced == 1);
	CHECK_INT(told.err.code, 0);
}

static void end(void)
{
	peer = peer ? peer->ops->free(peer) : NULL;
	server = keeper_server_free(server);
	l = loop_free(l);
	dir_fd = fd_close(dir_fd);
	CHECK_INT(scratch_remove(dir), 0);
}

/* ---- raw streams ---- */

struct raw {
	struct rpc_stream *stream;
	int n_messages, n_ends;
	enum rpc_code code;
	char text[ERROR_TEXT_MAX];
};

static void raw_on_message(struct rpc_stream *s, const uint8_t *data, size_t len, void *userdata)
{
	struct raw *raw = userdata;

	raw->n_messages++;
}

static void raw_on_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
		       void *userdata)
{
	struct raw *raw = userdata;

	raw->n_ends++;
	raw->code = code;
	(void)str_copy(raw->text, sizeof(raw->text), err ? err->text : "");
}

static const struct rpc_stream_ops raw_ops = { raw_on_message, raw_on_end };

static void raw_call(struct raw *raw, const char *method, const ProtobufCMessage *message)
{
	*raw = (struct raw){ .stream = NULL };
	CHECK_INT(rpc_client_call(keeper_client_rpc(peer),
				  &(struct rpc_request){ .method = method,
							 .message = message,
							 .timeout = NSEC_NEVER },
				  &raw_ops, raw, &raw->stream),
		  0);
}

/* ---- tests ---- */

static void another_protocol_is_refused(void)
{
	Nacre__Instance__V1__HelloRequest request;
	struct raw raw;

	begin();
	nacre__instance__v1__hello_request__init(&request);
	request.protocol = 2;
	raw_call(&raw, KEEPER_METHOD("Hello"), &request.base);
	WAIT_FOR(raw.n_ends);
	CHECK_INT(raw.code, RPC_FAILED_PRECONDITION);
	CHECK(strstr(raw.text, "protocol: 2") != NULL);
	end();
}

static void a_watcher_gets_all(void)
{
	begin();
	exists = true;
	peer->ops->open(peer, &events, NULL, on_done);
	WAIT_FOR(told.n_synced == 1);
	CHECK_INT(told.n_views, 1);
	CHECK_INT(told.last.status.pid, 5);
	view.status.pid = 6;
	k.config.on_container(k.config.userdata, &view, false);
	k.config.on_container(k.config.userdata, &view, true);
	WAIT_FOR(told.n_views == 2);
	CHECK_INT(told.last.status.pid, 6);
	CHECK_INT(told.n_lost, 0);
	/* But that a start begins, which who asked for it knows. */
	view.status.state = CONTAINER_STARTING;
	k.config.on_container(k.config.userdata, &view, false);
	view.status.state = CONTAINER_RUNNING;
	view.status.pid = 7;
	k.config.on_container(k.config.userdata, &view, false);
	WAIT_FOR(told.last.status.pid == 7);
	CHECK_INT(told.n_views, 3);
	end();
}

static void a_slow_watcher_is_ended(void)
{
	static char reason[] =
		"a text that takes room in every message until nothing fits any more";
	Nacre__Instance__V1__WatchRequest request;
	struct raw raw;

	begin_open();
	(void)str_copy(view.status.reason, sizeof(view.status.reason), reason);
	nacre__instance__v1__watch_request__init(&request);
	raw_call(&raw, KEEPER_METHOD("Watch"), &request.base);
	WAIT_FOR(raw.n_messages == 1);
	rpc_stream_pause(raw.stream, true);
	/* The peer takes each; the other takes none. */
	for (int i = 0; i < 50000 && !raw.n_ends; i++) {
		k.config.on_container(k.config.userdata, &view, false);
		if (i % 16 == 0)
			loop_turn(l, false);
		if (i == 40000)
			rpc_stream_pause(raw.stream, false);
	}
	WAIT_FOR(raw.n_ends);
	CHECK_INT(raw.code, RPC_RESOURCE_EXHAUSTED);
	CHECK(strstr(raw.text, "watch:") != NULL);
	CHECK_INT(told.n_lost, 0);
	end();
}

static void descriptors_arrive_with_a_start(void)
{
	char *argv[] = { (char[]){ "/bin/true" }, (char[]){ "x" }, NULL };
	struct container_spec spec = {
		.id = "0000000000000001",
		.name = "main",
		.argv = argv,
		.cwd = "",
		.user = "",
		.log = { .max_bytes = LOG_BYTES_MIN, .max_files = 3, .block_for = NSEC_PER_SEC },
	};
	struct cell_spec cell = { .name = "cell" };
	struct container_fds fds;
	struct stat sent, got;

	begin_open();
	fds = (struct container_fds){ .rootfs = fd_copy(dir_fd),
				      .log = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600),
				      .log_dir = fd_copy(dir_fd),
				      .network = -1 };
	CHECK(fstat(fds.log, &sent) == 0);
	peer->ops->start(peer, &cell, &spec, &fds, on_started, NULL);
	CHECK(fds.rootfs == -1 && fds.log == -1 && fds.log_dir == -1);
	WAIT_FOR(asked.done);
	CHECK_STR(asked.argv1, "x");
	CHECK(fstat(asked.fds.log, &got) == 0 && got.st_ino == sent.st_ino);
	CHECK(fstat(asked.fds.rootfs, &got) == 0 && S_ISDIR(got.st_mode));
	CHECK(fstat(asked.fds.log_dir, &got) == 0 && S_ISDIR(got.st_mode));
	CHECK_INT(asked.log.max_bytes, LOG_BYTES_MIN);
	CHECK_INT(asked.log.max_files, 3);
	CHECK(!asked.log.drop);
	CHECK_INT(asked.log.block_for, NSEC_PER_SEC);
	CHECK_INT(told.n_done, 1);
	view.status.pid = 77;
	asked.done(asked.userdata, &view);
	WAIT_FOR(told.n_done == 2);
	CHECK_INT(told.err.code, 0);
	CHECK_INT(told.last.status.pid, 77);
	container_fds_close(&asked.fds);
	end();
}

static void ask_late(void)
{
	char *argv[] = { (char[]){ "/bin/true" }, (char[]){ "x" }, NULL };
	struct container_spec spec = {
		.id = "0000000000000001",
		.name = "main",
		.argv = argv,
		.cwd = "",
		.user = "",
		.log = { .block_for = NSEC_PER_SEC },
		.late = true,
	};
	struct cell_spec cell = { .name = "cell" };
	struct container_fds none = CONTAINER_FDS_NONE;

	begin_open();
	CHECK(peer->ops->late(peer));
	peer->ops->start(peer, &cell, &spec, &none, on_started, NULL);
	WAIT_FOR(asked.done);
	CHECK(asked.late);
	CHECK_INT(asked.fds.rootfs, -1);
	CHECK_INT(told.n_done, 1);
}

static void give_late(void)
{
	struct container_fds fds = { .rootfs = fd_copy(dir_fd),
				     .log = fd_copy(dir_fd),
				     .log_dir = fd_copy(dir_fd),
				     .network = -1 };

	peer->ops->give(peer, "0000000000000001", &fds);
	CHECK(fds.rootfs == -1 && fds.log == -1 && fds.log_dir == -1);
}

static void answer_late(void)
{
	asked.done(asked.userdata, &view);
	WAIT_FOR(told.n_done == 2);
	CHECK_INT(told.err.code, 0);
}

static void descriptors_may_follow(void)
{
	ask_late();
	give_late();
	WAIT_FOR(asked.n_supplied);
	CHECK(asked.fds.rootfs >= 0 && asked.fds.log >= 0 && asked.fds.log_dir >= 0);
	CHECK_INT(asked.n_withdrawn, 0);
	/* Only once; what comes for nobody is closed. */
	give_late();
	answer_late();
	CHECK_INT(asked.n_supplied, 1);
	give_late();
	container_fds_close(&asked.fds);
	end();
}

static void a_late_start_can_be_taken_back(void)
{
	ask_late();
	peer->ops->withdraw(peer, "0000000000000001");
	WAIT_FOR(asked.n_withdrawn);
	CHECK_INT(asked.withdrawn.kind, ERROR_CANCELLED);
	asked.done(asked.userdata, &view);
	give_late();
	peer->ops->withdraw(peer, "0000000000000001");
	CHECK_INT(asked.n_supplied, 0);
	CHECK_INT(told.n_done, 1);
	end();
}

/* It was killed before they came: they are not kept. */
static void descriptors_of_one_that_has_failed_are_closed(void)
{
	ask_late();
	asked.done(asked.userdata, &view);
	give_late();
	WAIT_FOR(told.n_done == 2);
	peer->ops->signal(peer, view.id, 9, false, on_done, NULL);
	WAIT_FOR(asked.sig == 9);
	CHECK_INT(asked.n_supplied, 0);
	end();
}

static void an_unknown_token_is_refused(void)
{
	char *argv[] = { (char[]){ "/bin/true" } };
	Nacre__Instance__V1__StartRequest request;
	struct raw raw;

	begin_open();
	nacre__instance__v1__start_request__init(&request);
	request.id = convert_str("0000000000000001");
	request.cell = convert_str("cell");
	request.name = convert_str("main");
	request.argv = argv;
	request.n_argv = 1;
	request.rootfs_token = 99;
	raw_call(&raw, KEEPER_METHOD("Start"), &request.base);
	WAIT_FOR(raw.n_ends);
	CHECK_INT(raw.code, RPC_INVALID_ARGUMENT);
	CHECK(strstr(raw.text, "rootfs_token") != NULL);
	end();
}

static void an_exec_goes_no_faster_than_it_is_taken(void)
{
	static char data[32768];
	char *argv[] = { (char[]){ "/bin/yes" } };
	Nacre__Instance__V1__ExecRequest request;
	struct raw raw;
	int n = 0;

	begin_open();
	nacre__instance__v1__exec_request__init(&request);
	request.argv = argv;
	request.n_argv = 1;
	raw_call(&raw, KEEPER_METHOD("Exec"), &request.base);
	x.ops = NULL;
	WAIT_FOR(x.ops);
	rpc_stream_pause(raw.stream, true);
	for (; n < 2000 && !x.paused; n++) {
		x.ops->on_output(x.userdata, 1, data, sizeof(data));
		loop_turn(l, false);
	}
	CHECK(x.paused);
	rpc_stream_pause(raw.stream, false);
	WAIT_FOR(!x.paused);
	x.ops->on_exit(x.userdata, 3, 0, "");
	WAIT_FOR(raw.n_ends);
	CHECK_INT(raw.code, RPC_OK);
	CHECK_INT(raw.n_messages, n + 1);
	CHECK(!x.cancelled);

	raw_call(&raw, KEEPER_METHOD("Exec"), &request.base);
	x.ops = NULL;
	WAIT_FOR(x.ops);
	rpc_stream_cancel(raw.stream);
	WAIT_FOR(x.cancelled);
	end();
}

static void raw_open(struct raw *raw, const char *method, const ProtobufCMessage *message)
{
	*raw = (struct raw){ .stream = NULL };
	CHECK_INT(rpc_client_call(keeper_client_rpc(peer),
				  &(struct rpc_request){ .method = method,
							 .message = message,
							 .more = true,
							 .timeout = NSEC_NEVER },
				  &raw_ops, raw, &raw->stream),
		  0);
}

static void raw_send(struct raw *raw, const ProtobufCMessage *message)
{
	uint8_t data[256];
	size_t len = protobuf_c_message_pack(message, data);

	CHECK_INT(rpc_stream_send(raw->stream, data, len), 0);
}

static void exec_open(struct raw *raw)
{
	char *argv[] = { (char[]){ "/bin/cat" } };
	Nacre__Instance__V1__ExecRequest request;

	nacre__instance__v1__exec_request__init(&request);
	request.argv = argv;
	request.n_argv = 1;
	request.stdin = true;
	x.ops = NULL;
	raw_open(raw, KEEPER_METHOD("Exec"), &request.base);
	WAIT_FOR(x.ops);
}

static void exec_type(struct raw *raw, const char *text, unsigned width, unsigned sig)
{
	Nacre__Instance__V1__StreamInput input;
	Nacre__Instance__V1__TerminalSize size;
	Nacre__Instance__V1__ExecRequest request;

	nacre__instance__v1__exec_request__init(&request);
	nacre__instance__v1__stream_input__init(&input);
	nacre__instance__v1__terminal_size__init(&size);
	request.input = &input;
	input.data.data = (uint8_t *)(uintptr_t)text;
	input.data.len = strlen(text);
	input.signal = sig;
	size.width = width;
	input.terminal = width ? &size : NULL;
	raw_send(raw, &request.base);
}

static void exec_take(const struct error *err)
{
	void (*done)(void *userdata, const struct error *err) = TAKE_PTR(x.done);

	done(x.userdata, err);
}

static void what_is_typed_goes_in_order(void)
{
	struct error closed = ERROR_INIT;
	struct raw raw;

	begin_open();
	exec_open(&raw);
	exec_type(&raw, "one ", 0, 0);
	exec_type(&raw, "two", 99, SIGUSR2);
	rpc_stream_close_send(raw.stream);
	WAIT_FOR(x.done);
	for (int i = 0; i < 20; i++)
		loop_turn(l, false);
	/* The second waits until the first was taken. */
	CHECK_STR(x.typed, "one ");
	CHECK_INT(x.size.width, 0);
	exec_take(NULL);
	WAIT_FOR(x.done);
	CHECK_STR(x.typed, "one two");
	CHECK_INT(x.size.width, 99);
	CHECK_INT(x.sig, SIGUSR2);
	CHECK(!x.closed);
	exec_take(NULL);
	WAIT_FOR(x.closed);
	exec_take(NULL);
	x.ops->on_exit(x.userdata, 0, 0, "");
	WAIT_FOR(raw.n_ends);
	CHECK_INT(raw.code, RPC_OK);

	/* A program that reads no more is not the client's fault. */
	exec_open(&raw);
	exec_type(&raw, "one", 0, 0);
	WAIT_FOR(x.done);
	(void)error_refuse(&closed, ERROR_PRECONDITION, "closed");
	exec_take(&closed);
	exec_type(&raw, "two", 5, 0);
	WAIT_FOR(x.size.width == 5);
	CHECK_STR(x.typed, "one");
	x.ops->on_exit(x.userdata, 7, 0, "");
	WAIT_FOR(raw.n_ends);
	CHECK_INT(raw.code, RPC_OK);
	end();
}

static void what_makes_no_sense_ends_the_call(void)
{
	Nacre__Instance__V1__AttachRequest attach;
	Nacre__Instance__V1__ExecRequest request;
	struct raw raw;

	begin_open();
	nacre__instance__v1__exec_request__init(&request);
	nacre__instance__v1__attach_request__init(&attach);
	raw_open(&raw, KEEPER_METHOD("Exec"), NULL);
	rpc_stream_close_send(raw.stream);
	WAIT_FOR(raw.n_ends);
	CHECK_INT(raw.code, RPC_INVALID_ARGUMENT);

	exec_open(&raw);
	raw_send(&raw, &request.base);
	WAIT_FOR(raw.n_ends);
	CHECK_INT(raw.code, RPC_INVALID_ARGUMENT);
	CHECK(strstr(raw.text, "input:"));
	CHECK(x.cancelled);

	exec_open(&raw);
	exec_type(&raw, "", 0, 65);
	WAIT_FOR(raw.n_ends);
	CHECK(strstr(raw.text, "input.signal:"));

	seat.ops = NULL;
	raw_open(&raw, KEEPER_METHOD("Attach"), &attach.base);
	WAIT_FOR(seat.ops);
	exec_type(&raw, "not asked for", 0, 0);
	WAIT_FOR(raw.n_ends);
	CHECK_INT(raw.code, RPC_INVALID_ARGUMENT);
	CHECK(seat.left);
	end();
}

static void copy_to(struct raw *raw, const char *id, const char *path)
{
	Nacre__V1__CopyEntry entry = NACRE__V1__COPY_ENTRY__INIT;
	Nacre__V1__CopyToRequest m = NACRE__V1__COPY_TO_REQUEST__INIT;

	entry.type = NACRE__V1__COPY_ENTRY__TYPE__TYPE_FILE;
	entry.path.data = (uint8_t *)(uintptr_t) "put";
	entry.path.len = 3;
	entry.mode = 0640;
	entry.uid = getuid();
	entry.gid = getgid();
	m.target = convert_str(id);
	m.path = convert_str(path);
	raw_open(raw, "/nacre.instance.v1.InstanceService/CopyTo", &m.base);
	if (!raw->stream)
		return;
	m.target = m.path = convert_str("");
	m.entry = &entry;
	m.data.data = (uint8_t *)(uintptr_t) "abc";
	m.data.len = 3;
	raw_send(raw, &m.base);
	rpc_stream_close_send(raw->stream);
}

static void files_are_copied_in_and_out(void)
{
	Nacre__V1__CopyFromRequest from = NACRE__V1__COPY_FROM_REQUEST__INIT;
	_cleanup_fd_ int fd = -1;
	char path[128], text[8] = "";
	struct raw raw;

	begin_open();
	/* The root of the fake is /tmp. */
	copy_to(&raw, view.id, dir + strlen("/tmp"));
	WAIT_FOR(raw.n_ends == 1);
	CHECK_STR(raw.text, "");
	fd = openat(dir_fd, "put", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && read(fd, text, sizeof(text)) == 3);
	CHECK_STR(text, "abc");
	(void)str_printf(path, sizeof(path), "%s/put", dir + strlen("/tmp"));
	from.target = convert_str(view.id);
	from.path = path;
	raw_call(&raw, "/nacre.instance.v1.InstanceService/CopyFrom", &from.base);
	WAIT_FOR(raw.n_ends == 1);
	CHECK_INT(raw.code, RPC_OK);
	CHECK_INT(raw.n_messages, 2);
	(void)unlinkat(dir_fd, "put", 0);

	from.target = convert_str("0000000000000002");
	raw_call(&raw, "/nacre.instance.v1.InstanceService/CopyFrom", &from.base);
	WAIT_FOR(raw.n_ends == 1);
	CHECK_INT(raw.code, RPC_NOT_FOUND);
	from.target = convert_str(view.id);
	from.path = convert_str("here");
	raw_call(&raw, "/nacre.instance.v1.InstanceService/CopyFrom", &from.base);
	WAIT_FOR(raw.n_ends == 1);
	CHECK_INT(raw.code, RPC_INVALID_ARGUMENT);
	end();
}

/* A socket that listens on 127.0.0.1, whose "lo" is up then. */
static int dial_listen(struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	socklen_t len = sizeof(*at);

	*at = (struct sockaddr_in){ .sin_family = AF_INET };
	at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(ioctl(fd, SIOCSIFFLAGS, &lo) == 0 && bind(fd, (void *)at, len) == 0);
	CHECK(listen(fd, 8) == 0 && getsockname(fd, (void *)at, &len) == 0);
	return fd;
}

static void dial_ends(uint32_t port, const char *data, enum rpc_code code, const char *words)
{
	Nacre__Instance__V1__DialRequest request = NACRE__INSTANCE__V1__DIAL_REQUEST__INIT;
	struct raw raw;

	request.port = port;
	request.data = (ProtobufCBinaryData){ strlen(data), (uint8_t *)(uintptr_t)data };
	raw_open(&raw, KEEPER_METHOD("Dial"), &request.base);
	WAIT_FOR(raw.n_ends == 1);
	CHECK_INT(raw.code, code);
	CHECK(strstr(raw.text, words));
}

static void ports_are_connected_to(void)
{
	Nacre__Instance__V1__DialRequest request = NACRE__INSTANCE__V1__DIAL_REQUEST__INIT;
	struct sockaddr_in at;
	int listen_fd = dial_listen(&at), fd;
	struct raw raw;
	char got[8];

	begin_open();
	request.port = ntohs(at.sin_port);
	raw_open(&raw, KEEPER_METHOD("Dial"), &request.base);
	WAIT_FOR(raw.n_messages == 1);
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	request.port = 0;
	request.data = (ProtobufCBinaryData){ 2, (uint8_t *)(uintptr_t) "hi" };
	raw_send(&raw, &request.base);
	WAIT_FOR(recv(fd, got, sizeof(got), MSG_PEEK) == 2);
	CHECK_INT(recv(fd, got, sizeof(got), 0), 2);
	/* The end of one direction is none of the other. */
	rpc_stream_close_send(raw.stream);
	WAIT_FOR(recv(fd, got, sizeof(got), 0) == 0);
	CHECK_INT(send(fd, "bye", 3, 0), 3);
	WAIT_FOR(raw.n_messages == 2);
	(void)fd_close(fd);
	WAIT_FOR(raw.n_ends == 1);
	CHECK_INT(raw.code, RPC_OK);
	(void)fd_close(listen_fd);
	dial_ends(ntohs(at.sin_port), "", RPC_UNAVAILABLE, "Connection refused");
	dial_ends(65536, "", RPC_INVALID_ARGUMENT, "port: ");
	dial_ends(80, "hi", RPC_INVALID_ARGUMENT, "data: ");
	end();
}

static void errors_keep_their_kind(void)
{
	begin_open();
	peer->ops->signal(peer, "0000000000000002", SIGTERM, false, on_done, NULL);
	WAIT_FOR(told.n_done == 2);
	CHECK_INT(told.err.kind, ERROR_NOT_FOUND);
	peer->ops->signal(peer, view.id, SIGTERM, false, on_done, NULL);
	WAIT_FOR(told.n_done == 3);
	CHECK(told.err.code == 0 && asked.sig == SIGTERM);
	peer->ops->remove(peer, view.id, on_done, NULL);
	WAIT_FOR(told.n_done == 4);
	CHECK_INT(told.err.kind, ERROR_PRECONDITION);
	peer->ops->remove_cell(peer, "cell", on_done, NULL);
	WAIT_FOR(told.n_done == 5);
	CHECK_INT(told.err.code, 0);
	peer->ops->end(peer, "nobody", on_done, NULL);
	WAIT_FOR(told.n_done == 6);
	CHECK_INT(told.err.code, 0);
	end();
}

static void on_done_free(void *userdata, const struct error *err)
{
	on_done(userdata, err);
	peer = peer->ops->free(peer);
}

static void a_callback_may_free_the_peer(void)
{
	begin_open();
	peer->ops->signal(peer, view.id, SIGTERM, false, on_done_free, NULL);
	peer->ops->signal(peer, view.id, SIGTERM, false, on_done, NULL);
	WAIT_FOR(!peer);
	for (int i = 0; i < 5; i++)
		loop_turn(l, false);
	CHECK_INT(told.n_done, 2);
	CHECK_INT(told.n_lost, 0);
	end();
}

static void a_loss_is_told_once(void)
{
	struct peer *below;

	begin_open();
	CHECK_INT(peer->ops->child(peer, "b", &below), 0);
	CHECK_STR(keeper_client_target(below), "b");
	below->ops->signal(below, view.id, SIGTERM, false, on_done, NULL);
	WAIT_FOR(told.n_done == 2);
	CHECK_INT(told.err.kind, ERROR_NOT_FOUND);
	below = below->ops->free(below);

	server = keeper_server_free(server);
	WAIT_FOR(told.n_lost == 1);
	peer->ops->signal(peer, view.id, SIGTERM, false, on_done, NULL);
	CHECK_INT(told.n_done, 2);
	WAIT_FOR(told.n_done == 3);
	CHECK_INT(told.err.kind, ERROR_UNAVAILABLE);
	CHECK_INT(told.n_lost, 1);
	end();
}

static void shutdown_is_answered_first(void)
{
	begin_open();
	peer->ops->shutdown(peer, on_done, NULL);
	WAIT_FOR(told.n_done == 2 && shut && told.n_lost == 1);
	end();
}

static void a_ping_is_answered(void)
{
	begin_open();
	peer->ops->ping(peer, 10 * NSEC_PER_SEC, on_done, NULL);
	WAIT_FOR(told.n_done == 2);
	CHECK_INT(told.err.code, 0);
	/* Nobody turns the keeper's loop but we: it cannot have answered by then. */
	peer->ops->ping(peer, 1, on_done, NULL);
	WAIT_FOR(told.n_done == 3);
	CHECK_INT(told.err.kind, ERROR_DEADLINE);
	CHECK_INT(told.n_lost, 0);
	end();
}

UNIT_MAIN({ "another protocol is refused", another_protocol_is_refused },
	  { "a watcher gets all", a_watcher_gets_all },
	  { "a slow watcher is ended", a_slow_watcher_is_ended },
	  { "descriptors arrive with a start", descriptors_arrive_with_a_start },
	  { "descriptors may follow", descriptors_may_follow },
	  { "a late start can be taken back", a_late_start_can_be_taken_back },
	  { "descriptors of one that has failed are closed",
	    descriptors_of_one_that_has_failed_are_closed },
	  { "an unknown token is refused", an_unknown_token_is_refused },
	  { "an exec goes no faster than it is taken", an_exec_goes_no_faster_than_it_is_taken },
	  { "what is typed goes in order", what_is_typed_goes_in_order },
	  { "what makes no sense ends the call", what_makes_no_sense_ends_the_call },
	  { "files are copied in and out", files_are_copied_in_and_out },
	  { "ports are connected to", ports_are_connected_to },
	  { "errors keep their kind", errors_keep_their_kind },
	  { "a callback may free the peer", a_callback_may_free_the_peer },
	  { "a loss is told once", a_loss_is_told_once },
	  { "a ping is answered", a_ping_is_answered },
	  { "shutdown is answered first", shutdown_is_answered_first })
