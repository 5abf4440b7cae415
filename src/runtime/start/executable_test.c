/* SPDX-License-Identifier: Apache-2.0 */

/*
 * RunExecutable above a workload, a log and a keeper that do what the test says: this file defines
 * what it calls of pod/, keeper/ and rpc/.
 */

#include "runtime/start/executable.h"

#include <errno.h>

#include "api/instance.pb-c.h"
#include "base/text/str.h"
#include "keeper/client/client.h"
#include "keeper/server/passing.h"
#include "pod/log/log_reader.h"
#include "pod/workload/workload.h"
#include "rpc/exchange/client.h"
#include "runtime/core/labels.h"
#include "runtime/core/request.h"
#include "runtime/start/cell_place.h"
#include "runtime/start/settings.h"
#include "scratch.h"
#include "unit.h"

#define MIB ((size_t)1024 * 1024)

struct log_reader {
	const struct log_reader_ops *ops;
	void *userdata;
};

static struct {
	struct loop *loop;
	struct runtime_service service;
	/* The workload. */
	struct workload w;
	struct pod_container c, *containers[1];
	struct instance instance;
	struct peer peer;
	bool known, removing;
	workload_fn started, ended, removed;
	void *userdata;
	unsigned n_kills;
	struct log_reader reader;
	unsigned n_readers;
	bool has_log;
	/* The keeper. */
	unsigned n_pieces;
	size_t fed, piece_max;
	bool closed;
	const struct rpc_stream_ops *feed;
	void *feed_data;
	unsigned n_cancelled_feeds;
	int asked; /* what passing_queue() says */
	struct passing_turn *turn;
	/* The call. */
	void (*on_cancel)(struct rpc_call *c, void *data);
	void *cancel_data;
	unsigned n_replies;
	enum error_kind failed;
	char said[ERROR_TEXT_MAX];
	size_t out[2];
	bool truncated[2];
	int exit_code;
} t;

/* ---- rpc ---- */

struct arena *rpc_call_arena(struct rpc_call *c)
{
	(void)c;
	return NULL;
}

int cell_place_find(struct arena *a, struct instances *all, const char *field, const char *path,
		    struct cell_place *ret, struct error *err)
{
	(void)a;
	(void)all;
	(void)field;
	(void)path;
	(void)err;
	*ret = (struct cell_place){ .instance = NULL };
	return 0;
}

void rpc_call_reply(struct rpc_call *c, const ProtobufCMessage *message)
{
	const Aurae__Runtime__V0__RunExecutableResponse *m = (const void *)message;

	t.n_replies++;
	t.out[0] = m->stdout.len;
	t.out[1] = m->stderr.len;
	t.truncated[0] = m->stdout_truncated;
	t.truncated[1] = m->stderr_truncated;
	t.exit_code = m->exit_code;
	(void)str_copy(t.said, sizeof(t.said), m->reason);
	CHECK_STR(m->name, "exe");
}

void rpc_call_fail(struct rpc_call *c, const struct error *err)
{
	t.n_replies++;
	t.failed = err->kind;
	(void)str_copy(t.said, sizeof(t.said), err->text);
}

void rpc_call_on_cancel(struct rpc_call *c, void (*fn)(struct rpc_call *c, void *data), void *data)
{
	t.on_cancel = fn;
	t.cancel_data = data;
}

int rpc_client_call(struct rpc_client *c, const struct rpc_request *request,
		    const struct rpc_stream_ops *ops, void *userdata, struct rpc_stream **ret)
{
	const Nacre__Instance__V1__WriteStdinRequest *m = (const void *)request->message;

	t.n_pieces++;
	t.fed += m->data.len;
	t.piece_max = MAX(t.piece_max, m->data.len);
	t.closed = m->close;
	t.feed = ops;
	t.feed_data = userdata;
	*ret = (struct rpc_stream *)&t;
	return 0;
}

void rpc_stream_cancel(struct rpc_stream *s)
{
	t.n_cancelled_feeds++;
}

struct rpc_client *keeper_client_rpc(struct peer *p)
{
	return NULL;
}

const char *keeper_client_target(struct peer *p)
{
	return "";
}

void passing_turn_init(struct passing_turn *turn, void (*fn)(struct passing_turn *t))
{
	turn->fn = fn;
}

int passing_queue(struct peer *p, struct passing_turn *turn, struct error *err)
{
	if (t.asked < 0)
		return error_refuse(err, ERROR_PRECONDITION, "this keeper is too old");
	t.turn = t.asked ? NULL : turn;
	return t.asked;
}

void passing_turn_done(struct passing_turn *turn)
{
	if (t.turn == turn)
		t.turn = NULL;
}

/* ---- pod ---- */

struct workload *workloads_find(struct workloads *all, const char *target)
{
	return t.known && str_eq(target, t.w.id) ? &t.w : NULL;
}

int workload_run(struct workloads *all, const struct workload_spec *spec, workload_fn done,
		 void *userdata, struct workload **ret, struct error *err)
{
	t.known = true;
	t.started = done;
	t.userdata = userdata;
	*ret = &t.w;
	return 0;
}

void workload_stop(struct workload *w, nsec_t grace, workload_fn done, void *userdata)
{
	CHECK_INT(grace, 0);
	t.n_kills++;
}

void workload_wait(struct workload *w, struct pod_container *container, workload_fn done,
		   void *userdata)
{
	t.ended = done;
}

void workload_wait_started(struct workload *w, workload_fn done, void *userdata)
{
	t.started = done;
}

bool workload_is_leaving(const struct workload *w)
{
	return false;
}

int request_find(const struct runtime_service *s, const ProtobufCMessage *request, const char *id,
		 char ret_key[REQUEST_KEY_SIZE], struct target *ret, struct error *err)
{
	ret_key[0] = '\0';
	return 0;
}

int labels_check(const Aurae__Runtime__V0__Meta *meta, struct error *err)
{
	return 0;
}

int settings_add_labels(struct arena *a, const char **settings,
			const Aurae__Runtime__V0__Meta *meta, struct error *err)
{
	return 0;
}

int workload_remove(struct workload *w, bool force, workload_fn done, void *userdata,
		    struct error *err)
{
	t.removing = true;
	t.removed = done;
	return 0;
}

int log_reader_new(struct log_reader **ret, struct log_readers *all, const char *id,
		   const char *name, const struct log_wish *wish, const struct log_reader_ops *ops,
		   void *userdata)
{
	CHECK_STR(name, "main");
	CHECK(!wish->follow);
	t.reader = (struct log_reader){ .ops = ops, .userdata = userdata };
	t.n_readers++;
	*ret = &t.reader;
	return 0;
}

struct log_reader *log_reader_free(struct log_reader *r)
{
	t.n_readers -= r != NULL;
	return NULL;
}

/* ---- the course of a test ---- */

static Aurae__Runtime__V0__Executable executable;
static Aurae__Runtime__V0__RunExecutableRequest request;
static char command[] = "true";

static void begin(size_t input)
{
	memset(&t, 0, sizeof(t));
	t.failed = ERROR_KIND_COUNT;
	t.asked = 1;
	CHECK_INT(loop_new(&t.loop), 0);
	t.service.loop = t.loop;
	list_init(&t.service.executables);
	(void)str_copy(t.w.id, sizeof(t.w.id), "0123456789abcdef");
	(void)str_copy(t.w.path, sizeof(t.w.path), "exe");
	t.w.kind = WORKLOAD_EXECUTABLE;
	t.w.state = WORKLOAD_STARTING;
	t.containers[0] = &t.c;
	t.w.containers = t.containers;
	t.w.n_containers = 1;
	t.w.instance = &t.instance;
	t.instance.peer = &t.peer;

	aurae__runtime__v0__executable__init(&executable);
	aurae__runtime__v0__run_executable_request__init(&request);
	executable.command = command;
	executable.stdin.len = input;
	executable.stdin.data = input ? calloc(1, input) : NULL;
	request.executable = &executable;
	executable_run(NULL, &request, &t.service);
	t.w.state = WORKLOAD_RUNNING;
	t.started(t.userdata, &t.w, NULL);
}

static void log_exists(void)
{
	t.has_log = true;
}

static void end(int exit_code)
{
	struct error err = ERROR_INIT;

	t.w.state = WORKLOAD_EXITED;
	t.c.status.state = CONTAINER_EXITED;
	t.c.status.exit_code = exit_code;
	t.ended(t.userdata, &t.w, NULL);
	if (t.n_readers == 0 || t.has_log)
		return;
	(void)error_set(&err, -ENOENT, "read a log");
	t.reader.ops->on_end(t.reader.userdata, &err);
}

static void finish(void)
{
	CHECK_INT(t.n_replies, 1);
	CHECK_INT(t.n_readers, 0);
	CHECK(t.on_cancel == NULL);
	free(executable.stdin.data);
	t.loop = loop_free(t.loop);
}

/* ---- tests ---- */

/* Whoever has the answer may use the name again. */
static void answers_when_its_record_is_gone(void)
{
	begin(0);
	log_exists();
	end(3);
	CHECK_INT(t.n_readers, 1);
	t.reader.ops->on_data(t.reader.userdata, 1, 0, "out", 3);
	t.reader.ops->on_end(t.reader.userdata, NULL);
	CHECK_INT(t.n_replies, 0);
	CHECK(t.removing);
	t.known = false;
	t.removed(t.userdata, NULL, NULL);
	CHECK_INT(t.exit_code, 3);
	CHECK_INT(t.out[0], 3);
	CHECK(!t.truncated[0]);
	finish();
}

static void gives_back_the_first_4_mib_of_each_stream(void)
{
	char *piece = calloc(1, MIB);

	begin(0);
	log_exists();
	end(0);
	for (int i = 0; i < 4; i++)
		t.reader.ops->on_data(t.reader.userdata, 1, 0, piece, MIB);
	for (int i = 0; i < 5; i++)
		t.reader.ops->on_data(t.reader.userdata, 2, 0, piece, MIB - 1);
	t.reader.ops->on_end(t.reader.userdata, NULL);
	t.removed(t.userdata, NULL, NULL);
	CHECK_INT(t.out[0], 4 * MIB);
	CHECK(!t.truncated[0]);
	CHECK_INT(t.out[1], 4 * MIB);
	CHECK(t.truncated[1]);
	finish();
	free(piece);
}

static void feeds_in_pieces_that_a_keeper_takes(void)
{
	begin(2 * MIB + 5);
	CHECK_INT(t.n_pieces, 1);
	CHECK(!t.closed);
	t.feed->on_end(NULL, RPC_OK, NULL, t.feed_data);
	t.feed->on_end(NULL, RPC_OK, NULL, t.feed_data);
	CHECK_INT(t.n_pieces, 3);
	CHECK(t.closed);
	t.feed->on_end(NULL, RPC_OK, NULL, t.feed_data);
	CHECK_INT(t.n_pieces, 3);
	CHECK_INT(t.fed, 2 * MIB + 5);
	CHECK_INT(t.piece_max, CONTAINER_STDIN_MAX);
	end(0);
	t.removed(t.userdata, NULL, NULL);
	CHECK_INT(t.n_cancelled_feeds, 0);
	finish();
}

static void ends_while_it_is_fed(void)
{
	begin(2 * MIB);
	request.keep = true;
	end(0);
	CHECK(!t.removing);
	CHECK_INT(t.n_cancelled_feeds, 1);
	finish();
}

/* The keeper goes on as another program between two pieces. */
static void the_next_piece_waits_for_its_keeper(void)
{
	begin(2 * MIB);
	t.asked = 0;
	t.feed->on_end(NULL, RPC_OK, NULL, t.feed_data);
	CHECK_INT(t.n_pieces, 1);
	t.asked = 1;
	t.turn->fn(t.turn);
	CHECK_INT(t.n_pieces, 2);
	CHECK(t.closed);
	t.feed->on_end(NULL, RPC_OK, NULL, t.feed_data);
	end(0);
	t.removed(t.userdata, NULL, NULL);
	CHECK_INT(t.exit_code, 0);
	finish();
}

static void ends_while_its_turn_has_not_come(void)
{
	begin(2 * MIB);
	t.asked = 0;
	t.feed->on_end(NULL, RPC_OK, NULL, t.feed_data);
	CHECK(t.turn != NULL);
	end(0);
	t.removed(t.userdata, NULL, NULL);
	CHECK(t.turn == NULL);
	finish();
}

/* A process that is given a part of its input must not take that for the whole. */
static void is_killed_when_it_cannot_be_fed(void)
{
	struct error lost = ERROR_INIT;

	begin(2 * MIB);
	(void)error_refuse(&lost, ERROR_UNAVAILABLE, "the connection is lost");
	t.feed->on_end(NULL, RPC_UNAVAILABLE, &lost, t.feed_data);
	CHECK_INT(t.n_kills, 1);
	end(137);
	t.removed(t.userdata, NULL, NULL);
	CHECK_INT(t.failed, ERROR_UNAVAILABLE);
	CHECK_STR(t.said, "feed the executable: the connection is lost");
	finish();

	begin(2 * MIB);
	t.asked = -1;
	t.feed->on_end(NULL, RPC_OK, NULL, t.feed_data);
	CHECK_INT(t.n_kills, 1);
	end(137);
	t.removed(t.userdata, NULL, NULL);
	CHECK_INT(t.failed, ERROR_PRECONDITION);
	finish();
}

static void need_not_read_its_input(void)
{
	struct error closed = ERROR_INIT;

	begin(2 * MIB);
	(void)error_refuse(&closed, ERROR_PRECONDITION, "it has closed its standard input");
	t.feed->on_end(NULL, RPC_FAILED_PRECONDITION, &closed, t.feed_data);
	CHECK_INT(t.n_kills, 0);
	end(0);
	t.removed(t.userdata, NULL, NULL);
	CHECK_INT(t.failed, ERROR_KIND_COUNT);
	finish();
}

/* How its keeper has ended is told by its status, not by what could not be fed. */
static void tells_how_its_keeper_ended(void)
{
	struct error lost = ERROR_INIT;

	begin(2 * MIB);
	(void)error_refuse(&lost, ERROR_UNAVAILABLE, "the connection is lost");
	t.feed->on_end(NULL, RPC_UNAVAILABLE, &lost, t.feed_data);
	t.w.state = WORKLOAD_FAILED;
	t.c.status.state = CONTAINER_EXITED;
	t.c.status.exit_code = 137;
	(void)str_copy(t.c.status.reason, sizeof(t.c.status.reason), "its keeper was killed");
	t.ended(t.userdata, &t.w, NULL);
	(void)error_set(&lost, -ENOENT, "read a log");
	t.reader.ops->on_end(t.reader.userdata, &lost);
	t.removed(t.userdata, NULL, NULL);
	CHECK_INT(t.failed, ERROR_KIND_COUNT);
	CHECK_STR(t.said, "its keeper was killed");
	finish();
}

/* Output of which nobody knows the stream any more. */
static void tells_what_is_missing(void)
{
	begin(0);
	log_exists();
	end(0);
	t.reader.ops->on_skipped(t.reader.userdata, 5);
	t.reader.ops->on_data(t.reader.userdata, 1, 0, "out", 3);
	t.reader.ops->on_end(t.reader.userdata, NULL);
	t.removed(t.userdata, NULL, NULL);
	CHECK(t.truncated[0] && t.truncated[1]);
	finish();
}

/* Without a log it never was: the reason is what there is to tell. */
static void tells_why_it_never_was(void)
{
	begin(0);
	(void)str_copy(t.c.status.reason, sizeof(t.c.status.reason), "no such program");
	end(127);
	t.removed(t.userdata, NULL, NULL);
	CHECK_INT(t.exit_code, 127);
	CHECK_STR(t.said, "no such program");
	finish();
}

static void a_client_that_goes_away_kills_it(void)
{
	begin(0);
	request.keep = true;
	t.on_cancel(NULL, t.cancel_data);
	CHECK_INT(t.n_kills, 1);
	end(137);
	CHECK(t.removing);
	t.removed(t.userdata, NULL, NULL);
	CHECK_INT(t.failed, ERROR_CANCELLED);
	finish();
}

static void the_end_of_the_daemon_does_not(void)
{
	struct error err = ERROR_INIT;

	begin(0);
	t.service.closing = true;
	t.on_cancel(NULL, t.cancel_data);
	CHECK_INT(t.n_kills, 0);
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "the daemon ends");
	t.ended(t.userdata, &t.w, &err);
	CHECK(!t.removing);
	CHECK_INT(t.failed, ERROR_UNAVAILABLE);
	finish();
}

UNIT_MAIN({ "answers_when_its_record_is_gone", answers_when_its_record_is_gone },
	  { "gives_back_the_first_4_mib_of_each_stream",
	    gives_back_the_first_4_mib_of_each_stream },
	  { "feeds_in_pieces_that_a_keeper_takes", feeds_in_pieces_that_a_keeper_takes },
	  { "ends_while_it_is_fed", ends_while_it_is_fed },
	  { "the_next_piece_waits_for_its_keeper", the_next_piece_waits_for_its_keeper },
	  { "ends_while_its_turn_has_not_come", ends_while_its_turn_has_not_come },
	  { "is_killed_when_it_cannot_be_fed", is_killed_when_it_cannot_be_fed },
	  { "need_not_read_its_input", need_not_read_its_input },
	  { "tells_how_its_keeper_ended", tells_how_its_keeper_ended },
	  { "tells_what_is_missing", tells_what_is_missing },
	  { "tells_why_it_never_was", tells_why_it_never_was },
	  { "a_client_that_goes_away_kills_it", a_client_that_goes_away_kills_it },
	  { "the_end_of_the_daemon_does_not", the_end_of_the_daemon_does_not })
