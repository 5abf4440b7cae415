/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/client/client_reopen.h"

#include <errno.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "keeper/client/client_fd.h"
#include "keeper/client/client_watch.h"
#include "keeper/message/convert.h"
#include "rpc/exchange/client.h"

/*
 * Theory of operation. A keeper that goes on as another program closes its connections and says
 * nothing: what was asked of it at that moment would be lost. So nothing may be under way when it
 * is asked, and what comes afterwards waits here until the new program has said hello.
 *
 * Of a direct child the connection is lost, and a new one is made. Of a deeper one the connection
 * stands, and the keeper above it connects again; until it has, hello is UNAVAILABLE and is tried
 * again. Both end the watches of the peers at and below the target, which are marked as stale and
 * opened one after the other, from the top down; one that does not answer yet holds up nobody but
 * those below it.
 *
 * A watch may also end when nobody here has asked for it: another daemon has exchanged the keeper,
 * or the connection broke. Its workloads are none the worse for that, so everything is opened again
 * in the same way; what was under way has failed, and those who had lost their watch are told. A
 * keeper that has ended is known by its process before the bound is reached.
 */

#define REOPEN_UPGRADE_TIMEOUT (60 * NSEC_PER_SEC)
/* A keeper that reads a long state on a busy machine takes its time; its process tells if it dies.
 */
#define REOPEN_LIMIT (60 * NSEC_PER_SEC)
/* For what nobody has asked for, which is no more than a connection. */
#define REOPEN_LOST_LIMIT (20 * NSEC_PER_SEC)
/* A keeper that drops each connection anew is lost when this many follow upon another. */
#define REOPEN_LOST_MAX 5
#define REOPEN_CALM (10 * NSEC_PER_SEC)
#define REOPEN_DELAY_MIN (5 * NSEC_PER_MSEC)
#define REOPEN_DELAY_MAX (200 * NSEC_PER_MSEC)

/* Whether a target is that other one, or below it. */
static bool reopen_covers(const char *target, const char *other)
{
	size_t len = strlen(target);

	return !len || (str_has_prefix(other, target) && (!other[len] || other[len] == '/'));
}

bool reopen_holds(const struct keeper_client *client)
{
	struct connection *c = client->connection;
	const struct reopen *ro = &c->reopen;
	const struct keeper_client *other;

	if (!ro->active)
		return false;
	if (ro->asking ? reopen_covers(ro->target, client->target) : !ro->connected)
		return true;
	list_for_each (other, &c->clients, struct keeper_client, link)
		if (other->stale && reopen_covers(other->target, client->target))
			return true;
	return false;
}

static void reopen_finish(struct connection *c, const struct error *err)
{
	struct reopen *ro = &c->reopen;
	struct keeper_client *asked = ro->asked;
	struct error other = ERROR_INIT;

	ro->active = false;
	ro->asking = false;
	ro->all = false;
	ro->tried = NULL;
	loop_timer_stop(&ro->timer);
	c->go_on(c);
	if (!asked)
		return;
	if (!err && !str_eq(asked->hello.build, ro->how.build)) {
		(void)error_refuse(&other, ERROR_FAULT, "it went on as the program that it was");
		err = &other;
	}
	ro->done(ro->userdata, err);
}

/* ---- opening again ---- */

static struct keeper_client *reopen_first_stale(struct connection *c)
{
	struct keeper_client *client;

	list_for_each (client, &c->clients, struct keeper_client, link)
		if (client->stale)
			return client;
	return NULL;
}

/* The next one behind the one that was tried last; first again behind the last. */
static struct keeper_client *reopen_next_stale(struct connection *c)
{
	struct keeper_client *client;
	bool behind = false;

	list_for_each (client, &c->clients, struct keeper_client, link) {
		if (behind && client->stale)
			return client;
		behind = behind || client == c->reopen.tried;
	}
	c->reopen.tried = NULL;
	return reopen_first_stale(c);
}

static void reopen_lose(struct keeper_client *client, const struct error *err)
{
	client->stale = false;
	client->told = false;
	if (client->opened)
		client->events->on_lost(client->events_userdata, err);
}

static void reopen_back(struct keeper_client *client)
{
	bool told = client->told;

	client->stale = false;
	client->told = false;
	if (told && client->events->on_back)
		client->events->on_back(client->events_userdata);
}

static void reopen_again(struct connection *c, nsec_t delay)
{
	c->reopen.delay = delay;
	loop_timer_set(&c->reopen.timer, delay);
}

static void reopen_wait(struct connection *c)
{
	struct reopen *ro = &c->reopen;
	nsec_t next = ro->delay ? ro->delay * 2 : REOPEN_DELAY_MIN;

	reopen_again(c, MIN(next, REOPEN_DELAY_MAX));
}

static bool reopen_is_direct(const struct reopen *ro)
{
	return !ro->target[0];
}

/* The client that knows the sockets, or NULL. */
static struct keeper_client *reopen_direct(const struct connection *c)
{
	struct keeper_client *client = list_first(&c->clients, struct keeper_client, link);

	return client && !client->target[0] && client->opened && client->events->connect ? client
											 : NULL;
}

static int reopen_connect(struct connection *c)
{
	struct keeper_client *direct = reopen_direct(c);
	struct reopen *ro = &c->reopen;
	_cleanup_fd_ int rpc_fd = -1, channel_fd = -1;
	struct rpc_client *rpc;
	int r;

	if (!direct)
		return error_refuse(&ro->err, ERROR_UNAVAILABLE, "nobody knows its sockets");
	r = direct->events->connect(direct->events_userdata, &rpc_fd, &channel_fd, &ro->err);
	if (r < 0)
		return r;
	r = rpc_client_new(&rpc, c->loop, TAKE_FD(rpc_fd));
	if (r < 0)
		return error_set(&ro->err, r, "connect to the keeper");
	(void)rpc_client_retire(c->rpc);
	c->rpc = rpc;
	(void)fd_close(c->channel_fd);
	c->channel_fd = TAKE_FD(channel_fd);
	ro->connected = true;
	return 0;
}

static void reopen_on_hello(struct unary *u, const ProtobufCMessage *response,
			    const struct error *answer)
{
	struct connection *c = container_of(u, struct connection, reopen.unary);
	struct reopen *ro = &c->reopen;
	struct keeper_client *client = TAKE_PTR(ro->hello);
	struct error err = ERROR_INIT;
	int r;

	connection_enter(c);
	r = client_take_hello(client, response, answer, &err);
	if (r < 0 && (err.kind == ERROR_UNAVAILABLE || err.kind == ERROR_DEADLINE)) {
		ro->err = err;
		ro->connected = rpc_client_connected(c->rpc);
		ro->tried = client;
		reopen_wait(c);
		connection_leave(c);
		return;
	}
	if (r == 0) {
		r = client_watch(client);
		if (r < 0)
			(void)error_set(&err, r, "watch the keeper");
	}
	if (r < 0)
		reopen_lose(client, &err);
	else
		reopen_back(client);
	reopen_again(c, 0);
	connection_leave(c);
}

static void reopen_say_hello(struct connection *c, struct keeper_client *client)
{
	Nacre__Instance__V1__HelloRequest request;

	client_make_hello(client, &request);
	c->reopen.hello = client;
	unary_start(&c->reopen.unary, c->loop, c->rpc,
		    &(struct unary_request){
			    .method = KEEPER_METHOD("Hello"),
			    .target = client->target,
			    .message = &request.base,
			    .output = &nacre__instance__v1__hello_response__descriptor,
			    .timeout = HELLO_TIMEOUT,
		    },
		    reopen_on_hello);
}

static void reopen_give_up(struct connection *c)
{
	struct keeper_client *client;
	struct error err = c->reopen.err;

	for (client = reopen_first_stale(c); client; client = reopen_first_stale(c))
		reopen_lose(client, &err);
	reopen_finish(c, &err);
}

static void reopen_on_timer(struct loop_timer *t)
{
	struct connection *c = container_of(t, struct connection, reopen.timer);
	struct keeper_client *client;

	connection_enter(c);
	if (!c->reopen.asked && !c->reopen.connected)
		c->reopen.connected = rpc_client_connected(c->rpc);
	c->go_on(c);
	client = reopen_next_stale(c);
	if (!client)
		reopen_finish(c, NULL);
	else if (clock_mono() > c->reopen.deadline)
		reopen_give_up(c);
	else if (!c->reopen.connected && reopen_connect(c) < 0)
		reopen_wait(c);
	else
		reopen_say_hello(c, client);
	connection_leave(c);
}

/* ---- what is lost ---- */

/* Whether the end of its watch was asked for. */
static bool reopen_takes(const struct keeper_client *client)
{
	const struct reopen *ro = &client->connection->reopen;

	return ro->active && (ro->asked || !ro->all) && reopen_covers(ro->target, client->target);
}

static bool reopen_is_calm(struct reopen *ro)
{
	nsec_t now = clock_mono();

	if (now - ro->lost_at > REOPEN_CALM)
		ro->n_lost = 0;
	ro->lost_at = now;
	return ++ro->n_lost <= REOPEN_LOST_MAX;
}

/* Whether it is opened again, now that nobody has asked for its loss. */
static bool reopen_again_for(const struct keeper_client *client, const struct error *err)
{
	struct connection *c = client->connection;
	struct reopen *ro = &c->reopen;

	if (ro->active) {
		ro->all = true;
		return true;
	}
	if (!reopen_direct(c) || !reopen_is_calm(ro))
		return false;
	ro->active = true;
	ro->all = true;
	ro->connected = false;
	ro->target[0] = '\0';
	ro->err = *err;
	ro->deadline = clock_mono() + REOPEN_LOST_LIMIT;
	reopen_wait(c);
	return true;
}

static void reopen_on_lost(struct keeper_client *client, const struct error *err)
{
	bool asked = reopen_takes(client);

	/* Before hello was answered, that answer tells. */
	if (!client->opened)
		return;
	client->stale = asked || reopen_again_for(client, err);
	client->told = client->stale && !asked;
	if (!client->stale)
		client->events->on_lost(client->events_userdata, err);
	else if (client->told && client->events->on_gap)
		client->events->on_gap(client->events_userdata, err);
}

/* ---- asking ---- */

static void reopen_start(struct connection *c)
{
	struct reopen *ro = &c->reopen;
	struct keeper_client *client;

	list_for_each (client, &c->clients, struct keeper_client, link) {
		if (!client->opened || !reopen_takes(client))
			continue;
		client->stale = true;
		if (!client->watch)
			continue;
		rpc_stream_cancel(client->watch);
		client->watch = NULL;
	}
	ro->asking = false;
	ro->connected = !reopen_is_direct(ro);
	ro->deadline = clock_mono() + REOPEN_LIMIT;
	ro->delay = 0;
	/* Not from within a callback of the connection that is to be freed. */
	loop_timer_set(&ro->timer, 0);
}

static void reopen_on_answer(struct unary *u, const ProtobufCMessage *response,
			     const struct error *err)
{
	struct connection *c = container_of(u, struct connection, reopen.unary);
	struct error wrong = ERROR_INIT;
	bool gone;

	connection_enter(c);
	if (!err) {
		(void)error_refuse(&wrong, ERROR_FAULT, "it has answered, but goes on as it was");
		err = &wrong;
	}
	c->reopen.err = *err;
	gone = err->kind == ERROR_UNAVAILABLE &&
	       (!reopen_is_direct(&c->reopen) || !rpc_client_connected(c->rpc));
	if (gone || reopen_first_stale(c))
		reopen_start(c);
	else
		reopen_finish(c, err);
	connection_leave(c);
}

int reopen_begin(struct keeper_client *client, const struct peer_upgrade *how, peer_done_fn done,
		 void *userdata, struct error *err)
{
	Nacre__Instance__V1__UpgradeRequest request;
	struct connection *c = client->connection;
	struct reopen *ro = &c->reopen;
	uint64_t token;
	int r;

	if (!keeper_client_has_channel(client))
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "it has a kernel of its own: no program can be passed to it");
	if (ro->active || c->n_calls || !client->watch)
		return error_refuse(err, ERROR_ABORTED, "calls to the keeper are under way");
	r = client_send_fd(client, how->exe_fd, &token, err);
	if (r < 0)
		return r;
	ro->active = true;
	ro->asking = true;
	ro->asked = client;
	ro->how = *how;
	ro->done = done;
	ro->userdata = userdata;
	(void)str_copy(ro->target, sizeof(ro->target), client->target);
	nacre__instance__v1__upgrade_request__init(&request);
	request.exe_token = token;
	request.version = convert_str(NACRE_VERSION);
	unary_start(&ro->unary, c->loop, c->rpc,
		    &(struct unary_request){
			    .method = KEEPER_METHOD("Upgrade"),
			    .target = client->target,
			    .message = &request.base,
			    .output = &nacre__instance__v1__upgrade_response__descriptor,
			    .timeout = REOPEN_UPGRADE_TIMEOUT,
		    },
		    reopen_on_answer);
	return 0;
}

/* ---- the object ---- */

void reopen_init(struct connection *c)
{
	loop_timer_init(&c->reopen.timer, c->loop, reopen_on_timer);
	c->lost = reopen_on_lost;
}

void reopen_done(struct connection *c)
{
	unary_done(&c->reopen.unary);
	loop_timer_done(&c->reopen.timer);
}

void reopen_forget(struct keeper_client *client)
{
	struct connection *c = client->connection;
	struct reopen *ro = &c->reopen;

	if (ro->asked == client)
		ro->asked = NULL;
	if (ro->tried == client)
		ro->tried = NULL;
	if (ro->hello != client)
		return;
	ro->hello = NULL;
	unary_done(&ro->unary);
	loop_timer_set(&ro->timer, 0);
}
