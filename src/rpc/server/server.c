/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/list.h"
#include "base/memory/map.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "loop/loop.h"
#include "rpc/exchange/conn.h"
#include "rpc/exchange/forward.h"
#include "rpc/server/call.h"
#include "rpc/server/handler.h"
#include "rpc/server/health.h"
#include "rpc/server/listener.h"
#include "rpc/server/measure.h"
#include "rpc/server/own_descriptors.h"
#include "rpc/server/reflect.h"
#include "rpc/server/share.h"
#include "rpc/server/trim.h"

struct server_method {
	struct list member;
	char *path; /* "/package.Service/Method" */
	const struct call_input *input;
	const void *method;
	void *userdata;
};

struct server_service {
	struct list member;
	const char *name;
};

struct server_connection {
	struct list member;
	struct rpc_server *server;
	struct conn *conn;
	struct rpc_peer peer;
	struct share *share; /* NULL: it is parting, and its calls are refused */
	nsec_t part_at;      /* while it is parting: when it is closed at the latest */
};

struct rpc_server {
	struct rpc_server_config config;
	struct call_host host;
	struct call_host refusing; /* of calls past their share */
	struct share_pool pool;
	struct health health;
	struct reflect reflect;
	struct list services;
	struct list methods;
	struct map methods_by_path;
	struct listener *listeners[RPC_LISTENERS_MAX];
	size_t n_listeners;
	struct list connections;
	struct list parting;             /* connections too, the oldest first */
	size_t n_connections, n_parting; /* in both lists; in the second one */
	struct loop_timer part;
	struct loop_timer grace;
	struct loop_defer emptied;
	struct trim trim;
	struct measures *measures;       /* NULL: nothing is measured */
	void (*drained)(void *userdata); /* NULL: not draining, or told */
	void *drained_data;
};

/* ---- methods ---- */

static int server_add_method(struct rpc_server *s, const char *service, const char *name,
			     const struct server_method *as)
{
	struct server_method *m = malloc(sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	*m = *as;
	list_init(&m->member);
	m->path = str_format("/%s/%s", service, name);
	r = m->path ? map_add(&s->methods_by_path, m->path, m) : -ENOMEM;
	if (r < 0) {
		free(m->path);
		free(m);
		return r;
	}
	list_add_tail(&s->methods, &m->member);
	return 0;
}

static int server_add_service(struct rpc_server *s, const char *name)
{
	struct server_service *v = malloc(sizeof(*v));

	if (!v)
		return -ENOMEM;
	v->name = name;
	list_init(&v->member);
	list_add_tail(&s->services, &v->member);
	return 0;
}

int rpc_server_add(struct rpc_server *s, const struct rpc_service *service, void *userdata)
{
	struct server_method m = { .userdata = userdata };
	int r;

	for (size_t i = 0; i < service->n_methods; i++) {
		m.method = &service->methods[i];
		m.input = handler_input(&service->methods[i]);
		r = server_add_method(s, service->name, service->methods[i].name, &m);
		if (r < 0)
			return r;
	}
	return server_add_service(s, service->name);
}

static int server_add_own(struct rpc_server *s)
{
	const struct {
		const char *service;
		const char *name;
		struct server_method as;
	} own[] = {
		{ HEALTH_SERVICE, "Check", { .input = &health_check, .userdata = &s->health } },
		{ HEALTH_SERVICE, "Watch", { .input = &health_watch, .userdata = &s->health } },
		{ REFLECT_SERVICE,
		  "ServerReflectionInfo",
		  { .input = &reflect_info, .userdata = &s->reflect } },
		{ REFLECT_SERVICE_ALPHA,
		  "ServerReflectionInfo",
		  { .input = &reflect_info, .userdata = &s->reflect } },
	};
	static const char *const services[] = { HEALTH_SERVICE, REFLECT_SERVICE,
						REFLECT_SERVICE_ALPHA };
	bool reflects = s->config.descriptors != NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(own); i++)
		if (reflects || own[i].as.input != &reflect_info)
			r = server_add_method(s, own[i].service, own[i].name, &own[i].as);
	for (size_t i = 0; r == 0 && i < (reflects ? ARRAY_SIZE(services) : 1); i++)
		r = server_add_service(s, services[i]);
	return r;
}

static const char *server_service_name(struct reflect *reflect, size_t i)
{
	const struct rpc_server *s = container_of(reflect, struct rpc_server, reflect);
	struct server_service *v;

	list_for_each (v, &s->services, struct server_service, member)
		if (i-- == 0)
			return v->name;
	return NULL;
}

static bool server_knows_service(struct health *health, const char *service)
{
	const struct rpc_server *s = container_of(health, struct rpc_server, health);
	struct server_service *v;

	list_for_each (v, &s->services, struct server_service, member)
		if (str_eq(v->name, service))
			return true;
	return *service == '\0';
}

static void server_open_below(struct rpc_server *s, struct rpc_call *c)
{
	struct error err = ERROR_INIT;
	struct rpc_client *client;
	const char *rest;

	if (!name_is_path(c->head.target))
		return call_end(c, RPC_INVALID_ARGUMENT,
				RPC_TARGET_HEADER ": not a path of at most 8 names");
	if (!s->config.route)
		return call_end(c, RPC_NOT_FOUND,
				RPC_TARGET_HEADER ": there are no instances here");
	if (s->config.route(s->config.userdata, c->head.target, &client, &rest, &err) < 0)
		return call_fail(c, &err);
	forward_open(c, client, c->head.path, rest);
}

/* A method of ours alone says whether its calls are short. */
static void server_measure_call(struct rpc_server *s, struct rpc_call *c)
{
	const struct server_method *m =
		c->head.path ? map_get(&s->methods_by_path, c->head.path) : NULL;
	const struct rpc_method *method = m ? m->method : NULL;

	c->began = clock_mono();
	measures_begin(s->measures, m ? m->path : "",
		       method && !method->server_streaming && !method->client_streaming);
}

static void server_open_call(struct call_host *h, struct rpc_call *c)
{
	struct rpc_server *s = container_of(h, struct rpc_server, host);
	const struct server_method *m;
	struct error err = ERROR_INIT;

	if (s->measures)
		server_measure_call(s, c);
	if (s->config.authorize &&
	    s->config.authorize(s->config.userdata, &c->peer, c->head.path ?: "", &err) < 0)
		return call_fail(c, &err);
	if (!str_empty(c->head.target))
		return server_open_below(s, c);
	m = c->head.path ? map_get(&s->methods_by_path, c->head.path) : NULL;
	if (!m)
		return call_fail_unknown(c);
	c->input = m->input;
	c->method = m->method;
	c->userdata = m->userdata;
}

/* ---- the end of everything ---- */

static void server_tell_drained(struct rpc_server *s)
{
	void (*fn)(void *userdata) = s->drained;

	s->drained = NULL;
	loop_timer_stop(&s->grace);
	if (fn)
		fn(s->drained_data);
}

static void server_grace_over(struct loop_timer *t)
{
	server_tell_drained(container_of(t, struct rpc_server, grace));
}

static void server_emptied(struct loop_defer *d)
{
	struct rpc_server *s = container_of(d, struct rpc_server, emptied);

	/* A connection stays until what its last call said is written. */
	if (s->host.n_calls == 0 && s->n_connections == 0)
		server_tell_drained(s);
}

static void server_call_ended(struct call_host *h, const struct rpc_call *c)
{
	struct rpc_server *s = container_of(h, struct rpc_server, host);

	if (c->began)
		measures_end(s->measures,
			     c->head.path && map_get(&s->methods_by_path, c->head.path)
				     ? c->head.path
				     : "",
			     c->code, clock_mono() - c->began);
	if (s->config.done && c->asked)
		s->config.done(s->config.userdata, &c->peer, c->head.path ?: "", c->code);
	trim_ended(&s->trim);
	if (s->drained)
		loop_defer_schedule(&s->emptied);
}

static void server_refused(struct call_host *h, const struct rpc_call *c)
{
	(void)h;
	(void)c;
}

static void server_stop_listening(struct rpc_server *s)
{
	while (s->n_listeners > 0)
		listener_free(s->listeners[--s->n_listeners]);
}

void rpc_server_each_call(struct rpc_server *s,
			  void (*fn)(void *userdata, const struct rpc_call *c, const char *method),
			  void *userdata)
{
	struct rpc_call *c;

	list_for_each (c, &s->host.calls, struct rpc_call, member)
		if (!rpc_call_cancelled(c))
			fn(userdata, c, c->head.path ?: "");
}

int rpc_server_measure(struct rpc_server *s)
{
	s->measures = malloc(sizeof(*s->measures));
	if (!s->measures)
		return -ENOMEM;
	measures_init(s->measures);
	return 0;
}

void rpc_server_each_measure(const struct rpc_server *s,
			     void (*fn)(void *userdata, const struct rpc_measure *m),
			     void *userdata)
{
	const struct rpc_measure *m;

	if (s->measures)
		list_for_each (m, &s->measures->all, struct rpc_measure, member)
			fn(userdata, m);
}

struct rpc_server_load rpc_server_load(const struct rpc_server *s)
{
	return (struct rpc_server_load){ s->n_connections, s->host.n_calls,
					 s->pool.used[SHARE_BYTES] };
}

bool rpc_server_is_written(const struct rpc_server *s)
{
	const struct server_connection *sc;

	list_for_each (sc, (struct list *)(uintptr_t)&s->connections, struct server_connection,
		       member)
		if (!conn_is_written(sc->conn))
			return false;
	return true;
}

/* ---- connections ---- */

static void server_connection_give_back(struct server_connection *sc)
{
	if (sc->share)
		share_give(sc->share, SHARE_CONNECTIONS, 1);
	else
		sc->server->n_parting--;
	sc->share = share_unref(sc->share);
}

static void server_connection_free(struct server_connection *sc)
{
	struct rpc_server *s = sc->server;

	conn_free(sc->conn);
	server_connection_give_back(sc);
	list_remove(&sc->member);
	if (s->config.closed && sc->peer.remote)
		s->config.closed(s->config.userdata, sc->peer.remote);
	(void)rpc_remote_unref(sc->peer.remote);
	free(sc);
	s->n_connections--;
	trim_ended(&s->trim);
	if (s->drained)
		loop_defer_schedule(&s->emptied);
}

/* Whether a call of this connection is not allowed any more. */
static bool server_connection_is_denied(const struct rpc_server *s,
					const struct server_connection *sc)
{
	struct error ignored = ERROR_INIT;
	const struct rpc_call *c;

	list_for_each (c, (struct list *)(uintptr_t)&s->host.calls, struct rpc_call, member)
		if (c->asked && c->x.conn == sc->conn &&
		    s->config.authorize(s->config.userdata, &c->peer, c->head.path ?: "",
					&ignored) < 0)
			return true;
	return false;
}

void rpc_server_recheck(struct rpc_server *s)
{
	struct server_connection *sc;

	list_for_each (sc, &s->connections, struct server_connection, member)
		if (s->config.authorize && sc->peer.remote && server_connection_is_denied(s, sc))
			server_connection_free(sc);
}

static void server_connection_lost(struct conn *conn, void *owner)
{
	server_connection_free(owner);
}

static int server_begin(struct http_session *h, struct http_stream *stream)
{
	struct conn *conn = http_session_userdata(h);
	struct server_connection *sc = conn_owner(conn);

	int r;

	if (!sc->share || !share_take(sc->share, SHARE_CALLS, 1))
		return call_new(&sc->server->refusing, conn, stream, &sc->peer, NULL);
	r = call_new(&sc->server->host, conn, stream, &sc->peer, sc->share);
	if (r < 0)
		share_give(sc->share, SHARE_CALLS, 1);
	return r;
}

static void server_refuse_call(struct call_host *h, struct rpc_call *c)
{
	struct rpc_server *s = container_of(h, struct rpc_server, refusing);
	struct conn *conn = c->x.conn;
	const struct server_connection *sc = conn_owner(conn);
	struct error err = ERROR_INIT;

	(void)share_refuse(&s->pool, &sc->peer, sc->share ? SHARE_CALLS : SHARE_CONNECTIONS, &err);
	call_fail(c, &err);
	if (sc->share || !conn_http(conn))
		return;
	/* A client that calls again shall do so on a new connection, for which there may be room.
	 */
	http_session_goaway(conn_http(conn));
	conn_touch(conn);
}

static const struct http_ops server_http_ops = {
	.begin = server_begin,
	.field = exchange_on_field,
	.headers = exchange_on_headers,
	.data = exchange_on_data,
	.end = exchange_on_end,
	.close = exchange_on_close,
	.drain = exchange_on_drain,
};

static void server_part_first(struct rpc_server *s)
{
	struct server_connection *sc = list_first(&s->parting, struct server_connection, member);

	if (sc)
		server_connection_free(sc);
}

static void server_part_over(struct loop_timer *t)
{
	struct rpc_server *s = container_of(t, struct rpc_server, part);
	nsec_t now = clock_mono();
	const struct server_connection *sc;

	for (;;) {
		sc = list_first(&s->parting, struct server_connection, member);
		if (!sc)
			return;
		if (sc->part_at > now)
			break;
		server_part_first(s);
	}
	loop_timer_set(&s->part, sc->part_at - now);
}

/* The connection is counted no more, and stays until it has heard why. */
static void server_part(struct server_connection *sc)
{
	struct rpc_server *s = sc->server;

	if (s->n_parting >= RPC_PARTING_MAX)
		server_part_first(s);
	sc->share = share_unref(sc->share);
	sc->part_at = clock_mono() + RPC_PARTING_TIME;
	list_remove(&sc->member);
	list_add_tail(&s->parting, &sc->member);
	if (s->n_parting++ == 0)
		loop_timer_set(&s->part, RPC_PARTING_TIME);
}

/* Its clients connect again when they have something to ask. False: every connection has calls. */
static bool server_make_room(struct rpc_server *s)
{
	struct server_connection *sc;

	list_for_each (sc, &s->connections, struct server_connection, member) {
		if (!conn_http(sc->conn) || !http_session_is_idle(conn_http(sc->conn)))
			continue;
		http_session_goaway(conn_http(sc->conn));
		conn_touch(sc->conn);
		share_give(sc->share, SHARE_CONNECTIONS, 1);
		server_part(sc);
		return true;
	}
	return false;
}

static void server_seat(struct server_connection *sc)
{
	if (share_is_crowded_out(sc->share, SHARE_CONNECTIONS))
		(void)server_make_room(sc->server);
	if (!share_take(sc->share, SHARE_CONNECTIONS, 1))
		server_part(sc);
}

static bool server_admits(const struct rpc_server *s, const struct rpc_peer *peer)
{
	if (s->config.admit)
		return s->config.admit(s->config.userdata, peer);
	return peer->uid == geteuid();
}

static void server_serve(struct rpc_server *s, int fd, const struct rpc_peer *peer)
{
	_cleanup_fd_ int owned = fd;
	struct server_connection *sc = malloc(sizeof(*sc));

	if (!sc)
		return;
	*sc = (struct server_connection){ .server = s, .peer = *peer };
	(void)rpc_remote_ref(sc->peer.remote);
	list_init(&sc->member);
	if (share_new(&sc->share, &s->pool, peer) < 0 ||
	    conn_new(&sc->conn, s->config.loop, TAKE_FD(owned), HTTP_SERVER, &server_http_ops,
		     server_connection_lost, sc) < 0) {
		sc->share = share_unref(sc->share);
		(void)rpc_remote_unref(sc->peer.remote);
		free(sc);
		return;
	}
	if (s->config.ping_after != NSEC_NEVER)
		conn_keep_alive(sc->conn, s->config.ping_after ?: RPC_PING_AFTER,
				s->config.ping_wait ?: RPC_PING_WAIT);
	list_add_tail(&s->connections, &sc->member);
	s->n_connections++;
	server_seat(sc);
}

static void server_accepted(struct listener *l, int fd, const struct rpc_peer *peer, void *owner)
{
	_cleanup_fd_ int owned = fd;
	struct rpc_server *s = owner;

	(void)l;
	if (server_admits(s, peer))
		server_serve(s, TAKE_FD(owned), peer);
}

void rpc_server_take(struct rpc_server *s, int fd, struct rpc_remote *remote)
{
	const struct rpc_peer peer = { .uid = geteuid(), .gid = getegid(), .remote = remote };

	server_serve(s, fd, &peer);
}

int rpc_server_listen(struct rpc_server *s, int listen_fd)
{
	_cleanup_fd_ int owned = listen_fd;
	int r;

	if (s->n_listeners == ARRAY_SIZE(s->listeners))
		return -ENOSPC;
	r = listener_new(&s->listeners[s->n_listeners], s->config.loop, TAKE_FD(owned),
			 server_accepted, s);
	if (r < 0)
		return r;
	s->n_listeners++;
	return 0;
}

void rpc_server_drain(struct rpc_server *s, nsec_t grace, void (*drained)(void *userdata),
		      void *userdata)
{
	struct server_connection *sc;

	s->drained = drained;
	s->drained_data = userdata;
	server_stop_listening(s);
	health_drain(&s->health);
	while (s->n_parting > 0)
		server_part_first(s);
	list_for_each (sc, &s->connections, struct server_connection, member) {
		if (!conn_http(sc->conn))
			continue;
		http_session_goaway(conn_http(sc->conn));
		conn_touch(sc->conn);
	}
	loop_timer_set(&s->grace, grace);
	loop_defer_schedule(&s->emptied);
}

/* ---- servers ---- */

/* The other half is for what is done for the clients. */
static size_t server_connections_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return RPC_CONNECTIONS_MAX;
	return (size_t)MIN(limit.rlim_cur / 2, (rlim_t)RPC_CONNECTIONS_MAX);
}

static void server_freep(struct rpc_server **s)
{
	*s = rpc_server_free(*s);
}

int rpc_server_new(struct rpc_server **ret, const struct rpc_server_config *config)
{
	_cleanup_(server_freep) struct rpc_server *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	*s = (struct rpc_server){
		.config = *config,
		.host = {
			.loop = config->loop,
			.open = server_open_call,
			.ended = server_call_ended,
			.mark = config->mark,
		},
		.refusing = {
			.loop = config->loop,
			.open = server_refuse_call,
			.ended = server_refused,
		},
		.pool = {
			.limit = {
				[SHARE_CONNECTIONS] = server_connections_max(),
				[SHARE_CALLS] = RPC_CALLS_MAX,
				[SHARE_BYTES] = RPC_REQUESTS_MAX,
			},
			.undivided = config->undivided,
		},
		.reflect = {
			.sets = {
				{ config->descriptors, config->descriptors_len },
				{ own_descriptors, own_descriptors_len },
			},
			.service = server_service_name,
		},
		.methods_by_path = MAP_INIT,
	};
	list_init(&s->host.calls);
	list_init(&s->refusing.calls);
	share_pool_init(&s->pool);
	list_init(&s->services);
	list_init(&s->methods);
	list_init(&s->connections);
	list_init(&s->parting);
	loop_timer_init(&s->part, config->loop, server_part_over);
	health_init(&s->health, server_knows_service);
	loop_timer_init(&s->grace, config->loop, server_grace_over);
	loop_defer_init(&s->emptied, config->loop, server_emptied);
	trim_init(&s->trim, config->loop);
	r = server_add_own(s);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

static void server_free_tables(struct rpc_server *s)
{
	struct server_method *m;
	struct server_service *v;

	list_for_each (m, &s->methods, struct server_method, member) {
		list_remove(&m->member);
		free(m->path);
		free(m);
	}
	list_for_each (v, &s->services, struct server_service, member) {
		list_remove(&v->member);
		free(v);
	}
	map_done(&s->methods_by_path);
}

static void server_abandon(struct call_host *h)
{
	struct rpc_call *c;

	for (;;) {
		c = list_first(&h->calls, struct rpc_call, member);
		if (!c)
			return;
		call_abandon(c);
	}
}

struct rpc_server *rpc_server_free(struct rpc_server *s)
{
	struct server_connection *sc;

	if (!s)
		return NULL;
	s->drained = NULL;
	server_stop_listening(s);
	server_abandon(&s->host);
	server_abandon(&s->refusing);
	while (s->n_parting > 0)
		server_part_first(s);
	for (;;) {
		sc = list_first(&s->connections, struct server_connection, member);
		if (!sc)
			break;
		server_connection_free(sc);
	}
	loop_timer_done(&s->part);
	loop_timer_done(&s->grace);
	loop_defer_done(&s->emptied);
	trim_done(&s->trim);
	if (s->measures)
		measures_done(s->measures);
	free(s->measures);
	server_free_tables(s);
	free(s);
	return NULL;
}

/* ---- calls ---- */

struct arena *rpc_call_arena(struct rpc_call *c)
{
	return &c->arena;
}

const struct rpc_peer *rpc_call_peer(const struct rpc_call *c)
{
	return &c->peer;
}

nsec_t rpc_call_deadline(const struct rpc_call *c)
{
	return c->deadline;
}

bool rpc_call_cancelled(const struct rpc_call *c)
{
	return c->state == CALL_GONE;
}

void rpc_call_on_cancel(struct rpc_call *c, void (*fn)(struct rpc_call *c, void *data), void *data)
{
	c->on_cancel = fn;
	c->cancel_data = data;
}

void rpc_call_on_message(struct rpc_call *c,
			 void (*fn)(struct rpc_call *c, const ProtobufCMessage *message,
				    void *data),
			 void *data)
{
	handler_on_message(c, fn, data);
}

void rpc_call_pause(struct rpc_call *c, bool paused)
{
	handler_pause(c, paused);
}

void rpc_call_reply(struct rpc_call *c, const ProtobufCMessage *message)
{
	int r = call_send_message(c, message);

	if (r < 0)
		call_fail_send(c, r);
	else
		call_end(c, RPC_OK, NULL);
}

void rpc_call_fail(struct rpc_call *c, const struct error *err)
{
	call_fail(c, err);
}

int rpc_call_send(struct rpc_call *c, const ProtobufCMessage *message)
{
	return call_send_message(c, message);
}

int rpc_call_send_bytes(struct rpc_call *c, const void *data, size_t len)
{
	return call_send(c, data, len);
}

bool rpc_call_writable(const struct rpc_call *c)
{
	return call_is_live(c) && exchange_writable(&c->x);
}

void rpc_call_on_writable(struct rpc_call *c, void (*fn)(struct rpc_call *c, void *data),
			  void *data)
{
	c->on_writable = fn;
	c->writable_data = data;
}

void rpc_call_finish(struct rpc_call *c)
{
	call_end(c, RPC_OK, NULL);
}

void rpc_call_forward(struct rpc_call *c, struct rpc_client *client, const char *method,
		      const char *target, const ProtobufCMessage *message)
{
	forward_message(c, client, method, target, message);
}
