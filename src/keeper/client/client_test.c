/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A peer, its connection that is made again, and calls that are passed on: above a keeper that is a
 * server of this file, which hears what is asked and answers when it is told to.
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
#include "keeper/server/passing.h"
#include "loop/loop.h"
#include "loop/wait_test.h"
#include "rpc/exchange/client.h"
#include "rpc/server/server.h"
#include "scratch.h"
#include "unit.h"

#define HELD_MAX 8

static struct loop *l;
static char dir[64];
static int dir_fd = -1, exe_fd = -1;

/* ---- the keeper ---- */

static struct {
	struct rpc_server *server;
	int rpc_fd, channel_fd; /* it listens there */
	const char *build;
	enum error_kind hello_error; /* ERROR_KIND_COUNT: none */
	unsigned n_hellos, n_watches, n_signals, n_fed;
	struct rpc_call *held[HELD_MAX]; /* not answered, the watch aside */
	bool holds_signals;
} k;

static void held_end(struct rpc_call *call, void *data)
{
	struct rpc_call **held = data;
	struct error err = ERROR_INIT;

	if (held)
		*held = NULL;
	(void)error_refuse(&err, ERROR_CANCELLED, "nobody is there");
	rpc_call_fail(call, &err);
}

static void hold(struct rpc_call *call)
{
	for (size_t i = 0; i < HELD_MAX; i++) {
		if (k.held[i])
			continue;
		k.held[i] = call;
		rpc_call_on_cancel(call, held_end, &k.held[i]);
		return;
	}
	abort();
}

/* Ends the oldest that is held; kind ERROR_KIND_COUNT: with this answer. */
static void answer(enum error_kind kind, const ProtobufCMessage *message)
{
	struct rpc_call *call = TAKE_PTR(k.held[0]);
	struct error err = ERROR_INIT;

	CHECK(call != NULL);
	rpc_call_on_cancel(call, NULL, NULL);
	if (kind == ERROR_KIND_COUNT) {
		rpc_call_reply(call, message);
		return;
	}
	(void)error_refuse(&err, kind, "the keeper refuses");
	rpc_call_fail(call, &err);
}

static void serve_hello(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	static char upgrade[] = "upgrade";
	char *features[] = { upgrade };
	Nacre__Instance__V1__HelloResponse m = NACRE__INSTANCE__V1__HELLO_RESPONSE__INIT;
	struct error err = ERROR_INIT;

	k.n_hellos++;
	if (k.hello_error != ERROR_KIND_COUNT) {
		(void)error_refuse(&err, k.hello_error, "no hello");
		rpc_call_fail(call, &err);
		return;
	}
	m.protocol = KEEPER_PROTOCOL;
	m.build = convert_str(k.build);
	m.features = features;
	m.n_features = ARRAY_SIZE(features);
	rpc_call_reply(call, &m.base);
}

static void serve_watch(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Nacre__Instance__V1__WatchResponse m = NACRE__INSTANCE__V1__WATCH_RESPONSE__INIT;

	k.n_watches++;
	m.synced = true;
	rpc_call_on_cancel(call, held_end, NULL);
	CHECK_INT(rpc_call_send(call, &m.base), 0);
}

static void serve_signal(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Nacre__Instance__V1__SignalResponse m = NACRE__INSTANCE__V1__SIGNAL_RESPONSE__INIT;

	k.n_signals++;
	if (k.holds_signals)
		hold(call);
	else
		rpc_call_reply(call, &m.base);
}

static void serve_write_stdin(struct rpc_call *call, const ProtobufCMessage *request,
			      void *userdata)
{
	const Nacre__Instance__V1__WriteStdinRequest *q = (const void *)request;
	Nacre__Instance__V1__WriteStdinResponse m = NACRE__INSTANCE__V1__WRITE_STDIN_RESPONSE__INIT;

	k.n_fed++;
	CHECK_STR(q->id, "0000000000000001");
	CHECK(q->data.len == 5 && memcmp(q->data.data, "input", 5) == 0);
	rpc_call_reply(call, &m.base);
}

static void serve_upgrade(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__Instance__V1__UpgradeRequest *q = (const void *)request;

	CHECK(q->exe_token != 0);
	hold(call);
}

#define METHOD(n, lower, streaming, fn)                                                            \
	{                                                                                          \
		.name = (n), .input = &nacre__instance__v1__##lower##_request__descriptor,         \
		.output = &nacre__instance__v1__##lower##_response__descriptor,                    \
		.server_streaming = (streaming), .handle = (fn),                                   \
	}

static const struct rpc_method keeper_methods[] = {
	METHOD("Hello", hello, false, serve_hello),
	METHOD("Watch", watch, true, serve_watch),
	METHOD("Signal", signal, false, serve_signal),
	METHOD("WriteStdin", write_stdin, false, serve_write_stdin),
	METHOD("Upgrade", upgrade, false, serve_upgrade),
};

static const struct rpc_service keeper_service = {
	.name = "nacre.instance.v1.InstanceService",
	.methods = keeper_methods,
	.n_methods = ARRAY_SIZE(keeper_methods),
};

/* Below it is, by every name, itself again: over a connection that can be lost. */
static struct rpc_client *below;

static int route(void *userdata, const char *target, struct rpc_client **ret_client,
		 const char **ret_rest, struct error *err)
{
	if (!below)
		return error_refuse(err, ERROR_UNAVAILABLE, "%s is not there", target);
	*ret_client = below;
	*ret_rest = target + strlen(target);
	return 0;
}

static void below_begin(void)
{
	struct error err = ERROR_INIT;
	int fd = unix_connect(dir_fd, "rpc.sock", SOCK_STREAM, &err);

	CHECK_INT(rpc_client_new(&below, l, fd), 0);
}

static void keeper_begin(const char *build)
{
	k.build = build;
	CHECK_INT(
		rpc_server_new(&k.server, &(struct rpc_server_config){ .loop = l, .route = route }),
		0);
	CHECK_INT(rpc_server_add(k.server, &keeper_service, NULL), 0);
	CHECK_INT(rpc_server_listen(k.server, fd_copy(k.rpc_fd)), 0);
}

static void keeper_end(void)
{
	k.server = rpc_server_free(k.server);
}

/* In place: whoever connects meanwhile waits in the queue of the socket. */
static void keeper_go_on(const char *build)
{
	keeper_end();
	keeper_begin(build);
}

/* ---- its peer ---- */

static struct peer *peer;

static struct {
	int n_synced, n_lost, n_gaps, n_back;
	enum error_kind lost;
	bool no_sockets;
} told;

struct done {
	int n;
	struct error err;
};

static void on_done(void *userdata, const struct error *err)
{
	struct done *d = userdata;

	d->n++;
	d->err = err ? *err : (struct error)ERROR_INIT;
}

static void on_synced(void *userdata)
{
	told.n_synced++;
}

static void on_lost(void *userdata, const struct error *err)
{
	told.n_lost++;
	told.lost = err->kind;
}

static void on_gap(void *userdata, const struct error *err)
{
	CHECK(err->code != 0);
	told.n_gaps++;
}

static void on_back(void *userdata)
{
	told.n_back++;
}

static int connect_both(void *userdata, int *ret_rpc_fd, int *ret_fd_fd, struct error *err)
{
	_cleanup_fd_ int rpc_fd = -1;
	int fd_fd;

	if (told.no_sockets)
		return error_refuse(err, ERROR_UNAVAILABLE, "nobody listens");
	rpc_fd = unix_connect(dir_fd, "rpc.sock", SOCK_STREAM, err);
	if (rpc_fd < 0)
		return rpc_fd;
	fd_fd = unix_connect(dir_fd, "fd.sock", SOCK_SEQPACKET, err);
	if (fd_fd < 0)
		return fd_fd;
	*ret_rpc_fd = TAKE_FD(rpc_fd);
	*ret_fd_fd = fd_fd;
	return 0;
}

static const struct peer_events events = {
	.on_synced = on_synced,
	.on_lost = on_lost,
	.on_gap = on_gap,
	.on_back = on_back,
	.connect = connect_both,
};

/* ---- the world ---- */

#define WAIT_FOR(cond) LOOP_WAIT(l, cond)

/* What can be done without waiting. */
static void turns(void)
{
	for (int i = 0; i < 20; i++)
		loop_turn(l, false);
}

static void begin(void)
{
	struct error err = ERROR_INIT;
	struct done opened = { .n = 0 };
	int rpc_fd, fd_fd;

	memset(&told, 0, sizeof(told));
	memset(&k, 0, sizeof(k));
	k.hello_error = ERROR_KIND_COUNT;
	(void)str_copy(dir, sizeof(dir), "/tmp/keeper-client-test-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	exe_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CHECK_INT(loop_new(&l), 0);
	k.rpc_fd = unix_listen(dir_fd, "rpc.sock", SOCK_STREAM, &err);
	k.channel_fd = unix_listen(dir_fd, "fd.sock", SOCK_SEQPACKET, &err);
	keeper_begin("old");
	CHECK_INT(connect_both(NULL, &rpc_fd, &fd_fd, &err), 0);
	CHECK_INT(keeper_client_new(&peer, l, rpc_fd, fd_fd), 0);
	peer->ops->open(peer, &events, &opened, on_done);
	WAIT_FOR(opened.n == 1 && told.n_synced == 1);
	CHECK_INT(opened.err.code, 0);
}

static void end(void)
{
	peer = peer ? peer->ops->free(peer) : NULL;
	keeper_end();
	turns();
	k.rpc_fd = fd_close(k.rpc_fd);
	k.channel_fd = fd_close(k.channel_fd);
	exe_fd = fd_close(exe_fd);
	l = loop_free(l);
	dir_fd = fd_close(dir_fd);
	CHECK_INT(scratch_remove(dir), 0);
}

static void send_signal(struct done *d)
{
	peer->ops->signal(peer, "0000000000000001", 15, false, on_done, d);
}

static int upgrade(struct done *d, struct error *err)
{
	return peer->ops->upgrade(peer, &(struct peer_upgrade){ .exe_fd = exe_fd, .build = "new" },
				  on_done, d, err);
}

static void begin_upgrade(struct done *d)
{
	struct error err = ERROR_INIT;

	CHECK_INT(upgrade(d, &err), 0);
	WAIT_FOR(k.held[0] != NULL);
}

/* ---- whoever calls by himself ---- */

static unsigned n_turns;

static void on_turn(struct passing_turn *t)
{
	struct error err = ERROR_INIT;

	n_turns++;
	CHECK_INT(passing_queue(peer, t, &err), 1);
}

/* ---- calls that are passed on, by a server in front ---- */

static struct {
	struct rpc_server *server;
	struct rpc_client *client;
	struct rpc_stream *stream;
	unsigned n_handled, n_messages, n_ends;
	enum rpc_code code;
} front;

static void front_handle(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	front.n_handled++;
	passing_begin(peer, call, "/nacre.instance.v1.InstanceService/WriteStdin", request);
}

static const struct rpc_method front_methods[] = {
	METHOD("WriteStdin", write_stdin, false, front_handle),
};

static const struct rpc_service front_service = { "front.Service", front_methods, 1 };

static void front_on_message(struct rpc_stream *s, const uint8_t *data, size_t len, void *userdata)
{
	front.n_messages++;
}

static void front_on_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
			 void *userdata)
{
	front.n_ends++;
	front.code = code;
	front.stream = NULL;
}

static const struct rpc_stream_ops front_ops = {
	.on_message = front_on_message,
	.on_end = front_on_end,
};

static void front_begin(void)
{
	struct error err = ERROR_INIT;
	int fd;

	memset(&front, 0, sizeof(front));
	CHECK_INT(rpc_server_new(&front.server, &(struct rpc_server_config){ .loop = l }), 0);
	CHECK_INT(rpc_server_add(front.server, &front_service, NULL), 0);
	CHECK_INT(rpc_server_listen(front.server,
				    unix_listen(dir_fd, "front.sock", SOCK_STREAM, &err)),
		  0);
	fd = unix_connect(dir_fd, "front.sock", SOCK_STREAM, &err);
	CHECK(fd >= 0);
	CHECK_INT(rpc_client_new(&front.client, l, fd), 0);
}

static void front_call(void)
{
	static uint8_t bytes[] = "input";
	static char id[] = "0000000000000001";
	Nacre__Instance__V1__WriteStdinRequest m = NACRE__INSTANCE__V1__WRITE_STDIN_REQUEST__INIT;
	struct rpc_request request = {
		.method = "/front.Service/WriteStdin",
		.message = &m.base,
		.timeout = NSEC_NEVER,
	};
	unsigned n = front.n_handled;

	m.id = id;
	m.data = (ProtobufCBinaryData){ .len = 5, .data = bytes };
	CHECK_INT(rpc_client_call(front.client, &request, &front_ops, NULL, &front.stream), 0);
	WAIT_FOR(front.n_handled == n + 1);
}

static void front_end(void)
{
	front.client = rpc_client_free(front.client);
	front.server = rpc_server_free(front.server);
}

/* ---- an upgrade ---- */

static void what_is_asked_meanwhile_waits(void)
{
	struct done done = { .n = 0 }, sent = { .n = 0 };
	struct error err = ERROR_INIT;
	struct passing_turn turn, left;

	begin();
	front_begin();
	n_turns = 0;
	passing_turn_init(&turn, on_turn);
	passing_turn_init(&left, on_turn);
	CHECK_INT(passing_queue(peer, &turn, &err), 1);
	begin_upgrade(&done);
	send_signal(&sent);
	front_call();
	CHECK_INT(passing_queue(peer, &turn, &err), 0);
	/* Asking twice is no second turn. */
	CHECK_INT(passing_queue(peer, &turn, &err), 0);
	CHECK_INT(passing_queue(peer, &left, &err), 0);
	passing_turn_done(&left);
	turns();
	CHECK_INT(k.n_signals + k.n_fed + n_turns, 0);
	keeper_go_on("new");
	WAIT_FOR(done.n == 1 && sent.n == 1 && front.n_ends == 1);
	CHECK_STR(error_text(&done.err), error_text(&(struct error)ERROR_INIT));
	CHECK_INT(sent.err.code, 0);
	CHECK_INT(k.n_signals, 1);
	CHECK_INT(k.n_fed, 1);
	CHECK_INT(n_turns, 1);
	CHECK_INT(front.code, RPC_OK);
	CHECK_INT(front.n_messages, 1);
	WAIT_FOR(told.n_synced == 2);
	CHECK_INT(k.n_hellos, 2);
	CHECK_STR(peer->ops->hello(peer)->build, "new");
	/* Who asked for it is told by his completion only. */
	CHECK_INT(told.n_gaps + told.n_back + told.n_lost, 0);
	front_end();
	end();
}

static void a_refusal_changes_nothing(void)
{
	struct done done = { .n = 0 }, sent = { .n = 0 };

	begin();
	begin_upgrade(&done);
	send_signal(&sent);
	answer(ERROR_ABORTED, NULL);
	WAIT_FOR(done.n == 1 && sent.n == 1);
	CHECK_INT(done.err.kind, ERROR_ABORTED);
	CHECK_INT(sent.err.code, 0);
	CHECK_INT(k.n_hellos, 1);
	CHECK_INT(told.n_gaps + told.n_lost, 0);
	end();
}

/* An answer, or the program that it was, is none that was asked for. */
static void it_must_be_another_program(void)
{
	Nacre__Instance__V1__UpgradeResponse m = NACRE__INSTANCE__V1__UPGRADE_RESPONSE__INIT;
	struct done done = { .n = 0 };

	begin();
	begin_upgrade(&done);
	answer(ERROR_KIND_COUNT, &m.base);
	WAIT_FOR(done.n == 1);
	CHECK_STR(error_text(&done.err), "it has answered, but goes on as it was");
	begin_upgrade(&done);
	keeper_go_on("old");
	WAIT_FOR(done.n == 2);
	CHECK_STR(error_text(&done.err), "it went on as the program that it was");
	CHECK_INT(told.n_lost, 0);
	end();
}

static void is_not_begun_while_calls_are_under_way(void)
{
	struct done done = { .n = 0 }, sent = { .n = 0 };
	struct error err = ERROR_INIT;
	Nacre__Instance__V1__SignalResponse m = NACRE__INSTANCE__V1__SIGNAL_RESPONSE__INIT;

	begin();
	k.holds_signals = true;
	send_signal(&sent);
	CHECK(upgrade(&done, &err) < 0);
	CHECK_INT(err.kind, ERROR_ABORTED);
	WAIT_FOR(k.held[0] != NULL);
	answer(ERROR_KIND_COUNT, &m.base);
	WAIT_FOR(sent.n == 1);
	begin_upgrade(&done);
	err = (struct error)ERROR_INIT;
	CHECK(upgrade(&done, &err) < 0);
	CHECK_INT(err.kind, ERROR_ABORTED);
	keeper_go_on("new");
	WAIT_FOR(done.n == 1);
	CHECK_INT(done.err.code, 0);
	end();
}

/* ---- what nobody has asked for ---- */

static void a_lost_connection_is_made_again(void)
{
	struct done before = { .n = 0 }, after = { .n = 0 };

	begin();
	k.holds_signals = true;
	send_signal(&before);
	WAIT_FOR(k.held[0] != NULL);
	k.holds_signals = false;
	/* Nobody is there for a while. */
	told.no_sockets = true;
	keeper_end();
	WAIT_FOR(told.n_gaps == 1 && before.n == 1);
	CHECK_INT(before.err.kind, ERROR_UNAVAILABLE);
	send_signal(&after);
	turns();
	CHECK_INT(after.n, 0);
	keeper_begin("new");
	told.no_sockets = false;
	WAIT_FOR(told.n_back == 1 && after.n == 1 && told.n_synced == 2);
	CHECK_INT(after.err.code, 0);
	CHECK_INT(told.n_lost, 0);
	CHECK_STR(peer->ops->hello(peer)->build, "new");
	end();
}

static struct peer *open_below(const char *name)
{
	struct done opened = { .n = 0 };
	struct peer *deep = NULL;

	CHECK_INT(peer->ops->child(peer, name, &deep), 0);
	deep->ops->open(deep, &events, &opened, on_done);
	WAIT_FOR(opened.n == 1);
	CHECK_INT(opened.err.code, 0);
	return deep;
}

/* One that is away, and what is below it, are waited for; nobody else is. */
static void only_who_asks_it_waits(void)
{
	struct done above = { .n = 0 }, waits = { .n = 0 }, opened = { .n = 0 };
	struct peer *deep, *deeper;
	struct rpc_client *lost;

	begin();
	below_begin();
	deep = open_below("b");
	WAIT_FOR(told.n_synced == 2);
	lost = TAKE_PTR(below);
	(void)rpc_client_free(lost);
	WAIT_FOR(told.n_gaps == 1);
	deep->ops->signal(deep, "0000000000000001", 15, false, on_done, &waits);
	CHECK_INT(deep->ops->child(deep, "c", &deeper), 0);
	deeper->ops->open(deeper, &events, &opened, on_done);
	send_signal(&above);
	WAIT_FOR(above.n == 1);
	CHECK_INT(above.err.code, 0);
	CHECK_INT(waits.n + opened.n, 0);
	CHECK_INT(told.n_back, 0);
	below_begin();
	WAIT_FOR(told.n_back == 1 && waits.n == 1 && opened.n == 1);
	CHECK_INT(waits.err.code, 0);
	CHECK_INT(opened.err.code, 0);
	CHECK_INT(told.n_lost, 0);
	(void)deeper->ops->free(deeper);
	(void)deep->ops->free(deep);
	lost = TAKE_PTR(below);
	(void)rpc_client_free(lost);
	end();
}

/* While one is asked to go on as another program those beside it are asked other things. */
static void others_are_asked_while_one_is_exchanged(void)
{
	struct done done = { .n = 0 }, beside = { .n = 0 }, waits = { .n = 0 };
	struct error err = ERROR_INIT;
	struct peer *deep, *other;
	struct rpc_client *lost;

	begin();
	below_begin();
	deep = open_below("b");
	other = open_below("x");
	WAIT_FOR(told.n_synced == 3);
	CHECK_INT(deep->ops->upgrade(deep,
				     &(struct peer_upgrade){ .exe_fd = exe_fd, .build = "new" },
				     on_done, &done, &err),
		  0);
	WAIT_FOR(k.held[0] != NULL);
	other->ops->signal(other, "0000000000000001", 15, false, on_done, &beside);
	deep->ops->signal(deep, "0000000000000001", 15, false, on_done, &waits);
	WAIT_FOR(beside.n == 1);
	CHECK_INT(beside.err.code, 0);
	CHECK_INT(waits.n + done.n, 0);
	k.build = "new";
	answer(ERROR_UNAVAILABLE, NULL);
	WAIT_FOR(done.n == 1 && waits.n == 1);
	CHECK_INT(done.err.code, 0);
	CHECK_INT(waits.err.code, 0);
	(void)other->ops->free(other);
	(void)deep->ops->free(deep);
	lost = TAKE_PTR(below);
	(void)rpc_client_free(lost);
	end();
}

/* A keeper that drops each connection anew is lost in the end. */
static void is_not_made_again_for_ever(void)
{
	int n;

	begin();
	for (n = 1; n <= 20 && told.n_lost == 0; n++) {
		keeper_go_on("old");
		WAIT_FOR(told.n_back == n || told.n_lost == 1);
	}
	CHECK_INT(told.n_lost, 1);
	CHECK(told.n_back > 1);
	CHECK_INT(told.n_gaps, told.n_back);
	end();
}

static void one_without_a_common_protocol_is_told(void)
{
	struct done sent = { .n = 0 };
	struct error err = ERROR_INIT;
	struct passing_turn turn;

	begin();
	front_begin();
	passing_turn_init(&turn, on_turn);
	k.hello_error = ERROR_PRECONDITION;
	keeper_go_on("newer");
	WAIT_FOR(told.n_lost == 1);
	CHECK_INT(told.lost, ERROR_PRECONDITION);
	CHECK_INT(told.n_back, 0);
	/* Nothing may be asked of it from now on. */
	send_signal(&sent);
	WAIT_FOR(sent.n == 1);
	CHECK_INT(sent.err.kind, ERROR_PRECONDITION);
	CHECK(passing_queue(peer, &turn, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	front_call();
	WAIT_FOR(front.n_ends == 1);
	CHECK_INT(front.code, RPC_FAILED_PRECONDITION);
	CHECK_INT(k.n_signals + k.n_fed, 0);
	front_end();
	end();
}

/* ---- the ends of what waits ---- */

static void what_waits_ends_with_its_peer(void)
{
	struct done done = { .n = 0 }, sent = { .n = 0 };
	struct error err = ERROR_INIT;
	struct passing_turn turn;

	begin();
	front_begin();
	n_turns = 0;
	passing_turn_init(&turn, on_turn);
	begin_upgrade(&done);
	front_call();
	send_signal(&sent);
	CHECK_INT(passing_queue(peer, &turn, &err), 0);
	peer = peer->ops->free(peer);
	WAIT_FOR(front.n_ends == 1);
	CHECK_INT(front.code, RPC_UNAVAILABLE);
	turns();
	CHECK_INT(n_turns + (unsigned)done.n + (unsigned)sent.n, 0);
	CHECK(list_empty(&turn.link));
	front_end();
	end();
}

static void a_client_may_leave_while_its_call_waits(void)
{
	struct done done = { .n = 0 };

	begin();
	front_begin();
	begin_upgrade(&done);
	front_call();
	rpc_stream_cancel(front.stream);
	turns();
	keeper_go_on("new");
	WAIT_FOR(done.n == 1);
	turns();
	CHECK_INT(k.n_fed, 0);
	front_end();
	end();
}

UNIT_MAIN({ "what_is_asked_meanwhile_waits", what_is_asked_meanwhile_waits },
	  { "a_refusal_changes_nothing", a_refusal_changes_nothing },
	  { "it_must_be_another_program", it_must_be_another_program },
	  { "is_not_begun_while_calls_are_under_way", is_not_begun_while_calls_are_under_way },
	  { "a_lost_connection_is_made_again", a_lost_connection_is_made_again },
	  { "only_who_asks_it_waits", only_who_asks_it_waits },
	  { "others_are_asked_while_one_is_exchanged", others_are_asked_while_one_is_exchanged },
	  { "is_not_made_again_for_ever", is_not_made_again_for_ever },
	  { "one_without_a_common_protocol_is_told", one_without_a_common_protocol_is_told },
	  { "what_waits_ends_with_its_peer", what_waits_ends_with_its_peer },
	  { "a_client_may_leave_while_its_call_waits", a_client_may_leave_while_its_call_waits })
