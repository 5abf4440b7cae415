/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/probe.h"

/*
 * Theory of operation. A command is an Exec of the container's keeper, which kills it when its time
 * is over. For the other kinds sockets are made in the pod's network on a thread, and tried with
 * one address after the other; what is said over them, and as much of the answer as decides
 * (wire/message/probe.h), is an affair of the loop. One timer ends either. Nothing is allocated by
 * what a pod answers, but for the first bytes of the output of a command.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/instance.pb-c.h"
#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "instance/instance.h"
#include "keeper/client/client.h"
#include "keeper/server/passing.h"
#include "net/port/sockets.h"
#include "network/attachment.h"
#include "pod/networks/netns.h"
#include "rpc/exchange/client.h"
#include "wire/message/probe.h"

/* Over the time of a command: its keeper does not answer. */
#define PROBE_PATIENCE (5 * NSEC_PER_SEC)
#define PROBE_PIECE ((size_t)4096)
/* Addresses that a port is looked for at: loopback, and those of its first networks. */
#define PROBE_TARGETS_MAX (SOCKETS_COUNT + 2 * 4)

/* Outlives the probe that it is for. */
struct probe_sockets {
	struct sockets sockets;
	struct health_probe *probe; /* NULL: nobody wants them */
};

struct health_probe {
	struct pod_container *container;
	const struct health_rule *rule;
	struct loop *loop;
	struct loop_timer timer;
	struct loop_defer end; /* `over` says how */
	struct error over;     /* it could not be made; code 0: exit_code and out */
	int exit_code;
	struct buf out;
	/* A command. */
	struct passing_turn turn;
	struct rpc_stream *stream; /* NULL: not asked yet, or ended */
	bool has_ended;
	/* The others. */
	struct probe_sockets *opening; /* NULL: they are there */
	int fds[SOCKETS_COUNT];
	struct prefix targets[PROBE_TARGETS_MAX]; /* in this order */
	size_t n_targets, at;
	struct loop_fd source;
	loop_fd_fn on_fd; /* of the source */
	bool has_source, connected;
	uint8_t request[PROBE_REQUEST_MAX];
	size_t n_request, n_sent;
	struct probe_http http;
	struct probe_grpc grpc;
};

static void probe_stop_source(struct health_probe *p)
{
	if (p->has_source)
		loop_fd_done(&p->source);
	p->has_source = false;
}

static void probe_free(struct health_probe *p)
{
	passing_turn_done(&p->turn);
	if (p->stream)
		rpc_stream_cancel(p->stream);
	if (p->opening)
		p->opening->probe = NULL;
	probe_stop_source(p);
	for (int i = 0; i < SOCKETS_COUNT; i++)
		(void)fd_close(p->fds[i]);
	loop_timer_done(&p->timer);
	loop_defer_done(&p->end);
	buf_done(&p->out);
	free(p);
}

void probe_cancel(struct health_probe *p)
{
	probe_free(p);
}

/* ---- its end ---- */

static void probe_on_end(struct loop_defer *d)
{
	struct health_probe *p = container_of(d, struct health_probe, end);
	struct pod_container *c = p->container;

	health_tell(c, p->exit_code, buf_data(&p->out), p->out.len, p->over.code ? &p->over : NULL);
	probe_free(p);
}

/* From here on nothing but that happens to it. */
static void probe_end(struct health_probe *p)
{
	probe_stop_source(p);
	if (p->stream)
		rpc_stream_cancel(TAKE_PTR(p->stream));
	loop_timer_stop(&p->timer);
	loop_defer_schedule(&p->end);
}

static void probe_keep(struct health_probe *p, const void *bytes, size_t len)
{
	size_t n = MIN(len, HEALTH_OUTPUT_MAX - p->out.len);

	if (n > 0 && buf_add(&p->out, bytes, n) < 0 && !p->over.code)
		(void)error_set(&p->over, -ENOMEM, "keep the output of a health check");
}

/* With a sentence in place of what a command writes. */
static void _printf_(3, 4) probe_say(struct health_probe *p, int exit_code, const char *fmt, ...)
{
	char words[HEALTH_OUTPUT_MAX / 8];
	va_list list;
	int n;

	va_start(list, fmt);
	n = vsnprintf(words, sizeof(words), fmt, list);
	va_end(list);
	p->exit_code = exit_code;
	buf_clear(&p->out);
	if (n > 0)
		probe_keep(p, words, MIN((size_t)n, sizeof(words) - 1));
	probe_end(p);
}

static void probe_time_over(struct health_probe *p)
{
	probe_say(p, HEALTH_TIME_OVER, "no result within %llu ms: the time of a probe",
		  (unsigned long long)(p->rule->timeout / NSEC_PER_MSEC));
}

static void probe_on_timer(struct loop_timer *t)
{
	probe_time_over(container_of(t, struct health_probe, timer));
}

/* ---- a command ---- */

static void exec_on_message(struct rpc_stream *s, const uint8_t *data, size_t len, void *userdata)
{
	struct health_probe *p = userdata;
	ProtobufCMessage *decoded = rpc_decode(&nacre__instance__v1__exec_response__descriptor,
					       data, len, NULL, &p->over);
	const Nacre__Instance__V1__ExecResponse *m = (const void *)decoded;

	(void)s;
	if (!m)
		return;
	probe_keep(p, m->stdout.data, m->stdout.len);
	probe_keep(p, m->stderr.data, m->stderr.len);
	if (m->exit) {
		p->has_ended = true;
		p->exit_code = m->exit->exit_code;
		if (str_eq(m->exit->reason, KEEPER_EXEC_TIME_OVER))
			p->exit_code = HEALTH_TIME_OVER;
		/* Where it could not be executed that is all there is. */
		if (!str_empty(m->exit->reason) && p->out.len == 0)
			probe_keep(p, m->exit->reason, strlen(m->exit->reason));
	}
	protobuf_c_message_free_unpacked(decoded, NULL);
}

static void exec_on_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
			void *userdata)
{
	struct health_probe *p = userdata;

	(void)s;
	(void)code;
	p->stream = NULL;
	if (!p->over.code && err && err->code)
		p->over = *err;
	if (!p->over.code && !p->has_ended)
		(void)error_refuse(&p->over, ERROR_UNAVAILABLE,
				   "how the health check ended is not known");
	if (!p->over.code && p->exit_code == HEALTH_TIME_OVER)
		probe_time_over(p);
	else
		probe_end(p);
}

static const struct rpc_stream_ops exec_ops = {
	.on_message = exec_on_message,
	.on_end = exec_on_end,
};

static int exec_ask(struct health_probe *p, struct error *err)
{
	static char shell[] = "/bin/sh", option[] = "-c";
	char *line[] = { shell, option, p->rule->kind == HEALTH_SHELL ? p->rule->words[0] : NULL };
	Nacre__Instance__V1__ExecRequest m = NACRE__INSTANCE__V1__EXEC_REQUEST__INIT;
	struct rpc_request request = {
		.method = "/nacre.instance.v1.InstanceService/Exec",
		.message = &m.base,
		.timeout = NSEC_NEVER,
	};
	struct peer *peer = workload_peer(p->container->workload);
	int r;

	if (!peer)
		return error_refuse(err, ERROR_UNAVAILABLE, "its keeper is gone");
	r = passing_queue(peer, &p->turn, err);
	if (r <= 0)
		return r;
	m.id = p->container->id;
	m.argv = p->rule->kind == HEALTH_SHELL ? line : p->rule->words;
	m.n_argv = p->rule->kind == HEALTH_SHELL ? ARRAY_SIZE(line) : strv_len(p->rule->words);
	m.timeout_ms = p->rule->timeout / NSEC_PER_MSEC;
	request.target = keeper_client_target(peer);
	r = rpc_client_call(keeper_client_rpc(peer), &request, &exec_ops, p, &p->stream);
	return r < 0 ? error_set(err, r, "call its keeper") : 0;
}

static void exec_on_turn(struct passing_turn *t)
{
	struct health_probe *p = container_of(t, struct health_probe, turn);

	if (exec_ask(p, &p->over) < 0)
		probe_end(p);
}

/* ---- a port ---- */

static void port_fail(struct health_probe *p, int why)
{
	probe_say(p, 1, "port %u: %s", p->rule->port, strerror(why));
}

static void port_answered(struct health_probe *p, enum probe_verdict verdict)
{
	static const char *const statuses[] = { "UNKNOWN", "SERVING", "NOT_SERVING",
						"SERVICE_UNKNOWN" };
	int code = verdict != PROBE_GOOD;

	if (p->rule->kind == HEALTH_HTTP && p->http.status)
		probe_say(p, code, "HTTP status %u", p->http.status);
	else if (p->rule->kind == HEALTH_HTTP)
		probe_say(p, code, "port %u: no answer of HTTP/1", p->rule->port);
	else if (!p->grpc.answered)
		probe_say(p, code, "port %u: no answer of grpc.health.v1", p->rule->port);
	else if (p->grpc.status < ARRAY_SIZE(statuses))
		probe_say(p, code, "%s", statuses[p->grpc.status]);
	else
		probe_say(p, code, "gRPC health status %llu", (unsigned long long)p->grpc.status);
}

static int port_fd(const struct health_probe *p)
{
	return p->fds[p->targets[p->at].family == AF_INET ? SOCKETS_IP4 : SOCKETS_IP6];
}

static void port_read(struct health_probe *p)
{
	enum probe_verdict verdict;
	uint8_t data[PROBE_PIECE];
	ssize_t n = recv(port_fd(p), data, sizeof(data), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		port_fail(p, errno);
	else if (n == 0)
		port_answered(p, PROBE_BAD);
	if (n <= 0)
		return;
	verdict = p->rule->kind == HEALTH_HTTP ? probe_http_feed(&p->http, data, (size_t)n)
					       : probe_grpc_feed(&p->grpc, data, (size_t)n);
	if (verdict != PROBE_MORE)
		port_answered(p, verdict);
}

/* False: it is over. */
static bool port_write(struct health_probe *p)
{
	ssize_t n =
		send(port_fd(p), p->request + p->n_sent, p->n_request - p->n_sent, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		port_fail(p, errno);
		return false;
	}
	p->n_sent += n > 0 ? (size_t)n : 0;
	loop_fd_set(&p->source, LOOP_READ | (p->n_sent < p->n_request ? LOOP_WRITE : 0));
	return true;
}

static void port_target(struct health_probe *p, const struct prefix *address)
{
	if (address->family && p->n_targets < PROBE_TARGETS_MAX)
		p->targets[p->n_targets++] = *address;
}

/* A server may listen on one of the pod's own addresses alone. */
static void port_find_targets(struct health_probe *p)
{
	port_target(p, sockets_loopback(SOCKETS_IP4));
	port_target(p, sockets_loopback(SOCKETS_IP6));
	for (const struct attachment *a = p->container->workload->attachment; a; a = a->next) {
		if (a->state != ATTACHMENT_PLUGGED)
			continue;
		port_target(p, &a->ip4);
		port_target(p, &a->ip6);
	}
}

/* The next of its addresses that can be tried; `why` is how the one before failed. */
static void port_connect(struct health_probe *p, int why)
{
	for (; p->at < p->n_targets; p->at++) {
		int r;

		if (port_fd(p) < 0)
			continue;
		r = sockets_connect_to(port_fd(p), &p->targets[p->at], p->rule->port);
		if (r == 0) {
			loop_fd_init(&p->source, p->loop, port_fd(p), LOOP_WRITE, p->on_fd);
			p->has_source = true;
			return;
		}
		why = -r;
	}
	port_fail(p, why);
}

/* Whether it is connected, or how that failed. */
static void port_connected(struct health_probe *p)
{
	socklen_t len = sizeof(int);
	int why = 0;

	if (getsockopt(port_fd(p), SOL_SOCKET, SO_ERROR, &why, &len) < 0)
		why = errno;
	if (why) {
		probe_stop_source(p);
		p->at++;
		port_connect(p, why);
	} else if (p->rule->kind == HEALTH_TCP) {
		probe_say(p, 0, "port %u takes connections", p->rule->port);
	} else {
		p->connected = true;
	}
}

static void port_on_fd(struct loop_fd *source, unsigned events)
{
	struct health_probe *p = container_of(source, struct health_probe, source);

	if (!p->connected)
		port_connected(p);
	else if (p->n_sent < p->n_request && !port_write(p))
		return;
	else if (events & LOOP_READ)
		port_read(p);
}

static void port_on_sockets(struct sockets *s)
{
	struct probe_sockets *o = container_of(s, struct probe_sockets, sockets);
	struct health_probe *p = o->probe;

	if (p) {
		p->opening = NULL;
		for (int i = 0; i < SOCKETS_COUNT; i++)
			p->fds[i] = TAKE_FD(s->fds[i]);
		p->over = s->err;
	}
	if (p && p->over.code)
		probe_end(p);
	else if (p)
		port_connect(p, ECONNREFUSED);
	for (int i = 0; i < SOCKETS_COUNT; i++)
		(void)fd_close(s->fds[i]);
	free(o);
}

static int port_begin(struct health_probe *p, struct pool *pool, struct error *err)
{
	const struct instance *i = p->container->workload->instance;
	const char *word = p->rule->words ? p->rule->words[0] : "";
	int fd;

	if (!i || i->ended)
		return error_refuse(err, ERROR_UNAVAILABLE, "its keeper is gone");
	fd = netns_open(p->container->workload, err);
	if (fd < 0)
		return fd;
	p->opening = calloc(1, sizeof(*p->opening));
	if (!p->opening) {
		(void)fd_close(fd);
		return error_set(err, -ENOMEM, "check the health of a container");
	}
	p->opening->probe = p;
	port_find_targets(p);
	if (p->rule->kind == HEALTH_HTTP)
		p->n_request = probe_http_request(p->request, p->rule->port, word);
	else if (p->rule->kind == HEALTH_GRPC)
		p->n_request = probe_grpc_request(p->request, word);
	sockets_make(&p->opening->sockets, pool, fd, port_on_sockets);
	return 0;
}

/* ---- all of them ---- */

int probe_begin(struct loop *loop, struct pool *pool, struct pod_container *c,
		struct health_probe **ret, struct error *err)
{
	bool is_command = c->health->rule.kind <= HEALTH_SHELL;
	struct health_probe *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return error_set(err, -ENOMEM, "check the health of a container");
	p->container = c;
	p->rule = &c->health->rule;
	p->loop = loop;
	p->on_fd = port_on_fd;
	p->fds[SOCKETS_IP4] = p->fds[SOCKETS_IP6] = -1;
	p->out = (struct buf)BUF_INIT;
	passing_turn_init(&p->turn, exec_on_turn);
	loop_timer_init(&p->timer, loop, probe_on_timer);
	loop_defer_init(&p->end, loop, probe_on_end);
	r = is_command ? exec_ask(p, err) : port_begin(p, pool, err);
	if (r < 0) {
		probe_free(p);
		return r;
	}
	loop_timer_set(&p->timer, p->rule->timeout + (is_command ? PROBE_PATIENCE : 0));
	*ret = p;
	return 0;
}
