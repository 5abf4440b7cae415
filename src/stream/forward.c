/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/forward.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "loop/loop.h"
#include "net/port/sockets.h"

#define FORWARD_PIECE ((size_t)8192)
/* Bytes for a pod that does not read, before the client is held up. */
#define FORWARD_WAITING_MAX ((size_t)131072)

/*
 * OPENING     one of the two streams is there.
 * DIALLING    its sockets are being made.
 * CONNECTING  to the one of `at`.
 * OPEN        bytes go both ways.
 */
enum pair_state { PAIR_OPENING, PAIR_DIALLING, PAIR_CONNECTING, PAIR_OPEN };

struct pair {
	struct list link;
	struct forward *forward;
	enum pair_state state;
	uint32_t data_id, error_id; /* 0: not there */
	char request_id[SPDY_VALUE_MAX];
	uint16_t port;
	struct dial *dial; /* in DIALLING */
	int fds[DIAL_COUNT], at;
	struct loop_fd source;
	loop_fd_fn on_fd; /* of the source */
	struct buf to_pod;
	bool client_over; /* it sends nothing more */
	bool shut;        /* and the pod was told so */
};

struct forward {
	struct forward_config config;
	struct list pairs;
	size_t n_pairs;
	bool holds;
};

/* ---- pairs ---- */

static void forward_account(struct forward *f)
{
	const struct forward_client *client = &f->config.client;
	bool hold = false;
	struct pair *p;

	list_for_each (p, &f->pairs, struct pair, link)
		hold = hold || p->to_pod.len >= FORWARD_WAITING_MAX;
	if (hold == f->holds)
		return;
	f->holds = hold;
	client->hold(client->userdata, hold);
}

static void pair_free(struct pair *p)
{
	struct forward *f = p->forward;

	if (p->dial)
		p->dial->done = NULL;
	if (p->state >= PAIR_CONNECTING)
		loop_fd_done(&p->source);
	for (int i = 0; i < DIAL_COUNT; i++)
		(void)fd_close(p->fds[i]);
	buf_done(&p->to_pod);
	list_remove(&p->link);
	f->n_pairs--;
	free(p);
}

/* Both streams end, and the pair. */
static void pair_end(struct pair *p)
{
	const struct forward_client *client = &p->forward->config.client;
	struct forward *f = p->forward;

	if (p->data_id)
		client->data(client->userdata, p->data_id, "", 0, true);
	if (p->error_id)
		client->data(client->userdata, p->error_id, "", 0, true);
	pair_free(p);
	forward_account(f);
}

static void pair_fail(struct pair *p, const char *words)
{
	const struct forward_client *client = &p->forward->config.client;

	if (p->error_id)
		client->data(client->userdata, p->error_id, words, strlen(words), false);
	pair_end(p);
}

static void pair_refuse(struct pair *p, const char *why)
{
	char words[320];

	(void)str_printf(words, sizeof(words), "the port %u of the pod: %.250s", p->port, why);
	pair_fail(p, words);
}

/* ---- connecting ---- */

/* The next of its sockets that can be tried; `why` is how the one before failed. */
static void pair_connect(struct pair *p, int why)
{
	for (; p->at < DIAL_COUNT; p->at++) {
		if (p->fds[p->at] < 0)
			continue;
		why = sockets_connect(p->fds[p->at], p->at, p->port);
		if (why < 0)
			continue;
		p->state = PAIR_CONNECTING;
		loop_fd_init(&p->source, p->forward->config.loop, p->fds[p->at], LOOP_WRITE,
			     p->on_fd);
		return;
	}
	p->state = PAIR_DIALLING;
	pair_refuse(p, why < 0 ? strerror(-why) : "nothing can be connected to");
}

/* Of a socket that is connected. What has come from the client goes out when it can be written. */
static void pair_begin(struct pair *p)
{
	p->state = PAIR_OPEN;
	loop_fd_init(&p->source, p->forward->config.loop, p->fds[p->at], LOOP_WRITE, p->on_fd);
}

static void pair_dialled(void *userdata, struct dial *d)
{
	struct pair *p = userdata;

	p->dial = NULL;
	if (d->err.code) {
		pair_refuse(p, error_text(&d->err));
		return;
	}
	for (int i = 0; i < DIAL_COUNT; i++)
		p->fds[i] = TAKE_FD(d->fds[i]);
	if (d->connected)
		pair_begin(p);
	else
		pair_connect(p, 0);
}

static void pair_dial(struct pair *p)
{
	p->state = PAIR_DIALLING;
	p->dial = dial_new(pair_dialled, p);
	if (!p->dial) {
		pair_refuse(p, strerror(ENOMEM));
		return;
	}
	p->dial->loop = p->forward->config.loop;
	p->dial->port = p->port;
	p->forward->config.dial(p->forward->config.userdata, p->dial);
}

static void pair_connected(struct pair *p)
{
	socklen_t len = sizeof(int);
	int why = 0;

	if (getsockopt(p->fds[p->at], SOL_SOCKET, SO_ERROR, &why, &len) < 0)
		why = errno;
	if (why) {
		loop_fd_done(&p->source);
		p->state = PAIR_DIALLING;
		p->at++;
		pair_connect(p, -why);
		return;
	}
	p->state = PAIR_OPEN;
}

/* ---- bytes ---- */

static void pair_watch(struct pair *p)
{
	const struct forward_client *client = &p->forward->config.client;
	bool reads = !client->is_full(client->userdata);

	loop_fd_set(&p->source, (reads ? LOOP_READ : 0) | (p->to_pod.len > 0 ? LOOP_WRITE : 0));
}

/* False: the pair is gone. */
static bool pair_read(struct pair *p)
{
	const struct forward_client *client = &p->forward->config.client;
	char data[FORWARD_PIECE];
	ssize_t n = recv(p->fds[p->at], data, sizeof(data), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		/* What the client still sends goes nowhere. */
		pair_end(p);
		return false;
	}
	client->data(client->userdata, p->data_id, data, (size_t)n, false);
	return true;
}

static bool pair_write(struct pair *p)
{
	ssize_t n = 0;

	if (p->to_pod.len > 0)
		n = send(p->fds[p->at], buf_data(&p->to_pod), p->to_pod.len, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		pair_end(p);
		return false;
	}
	if (n > 0)
		buf_consume(&p->to_pod, (size_t)n);
	if (p->client_over && p->to_pod.len == 0 && !p->shut) {
		p->shut = true;
		(void)shutdown(p->fds[p->at], SHUT_WR);
	}
	forward_account(p->forward);
	return true;
}

static void pair_on_fd(struct loop_fd *source, unsigned events)
{
	struct pair *p = container_of(source, struct pair, source);
	const struct forward_client *client = &p->forward->config.client;

	if (p->state == PAIR_CONNECTING) {
		pair_connected(p);
		/* Another one is tried, or none is left. */
		return;
	}
	if (events & LOOP_READ && !client->is_full(client->userdata) && !pair_read(p))
		return;
	if (!pair_write(p))
		return;
	pair_watch(p);
}

/* ---- what the client sends ---- */

static struct pair *forward_find(struct forward *f, const struct spdy_event *e)
{
	struct pair *p, *found = NULL;

	list_for_each (p, &f->pairs, struct pair, link)
		if (e->stream == p->data_id || e->stream == p->error_id)
			found = p;
	return found;
}

/* The pair of a new stream: the one that waits for its other half, or a new one. */
static struct pair *forward_pair(struct forward *f, const struct spdy_event *e, uint16_t port)
{
	struct pair *p, *found = NULL;

	list_for_each (p, &f->pairs, struct pair, link)
		if (p->state == PAIR_OPENING && str_eq(p->request_id, e->request_id) &&
		    p->port == port)
			found = p;
	if (found || f->n_pairs >= FORWARD_PAIRS_MAX)
		return found;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->forward = f;
	p->port = port;
	p->on_fd = pair_on_fd;
	p->to_pod = (struct buf)BUF_INIT;
	for (int i = 0; i < DIAL_COUNT; i++)
		p->fds[i] = -1;
	(void)str_copy(p->request_id, sizeof(p->request_id), e->request_id);
	list_init(&p->link);
	list_add_tail(&f->pairs, &p->link);
	f->n_pairs++;
	return p;
}

static void forward_open(struct forward *f, const struct spdy_event *e)
{
	const struct forward_client *client = &f->config.client;
	bool is_data = str_eq(e->stream_type, "data");
	struct pair *p = NULL;
	uint64_t port;
	uint32_t *id;

	if ((is_data || str_eq(e->stream_type, "error")) &&
	    parse_u64(e->port, 1, UINT16_MAX, &port) == 0)
		p = forward_pair(f, e, (uint16_t)port);
	id = !p ? NULL : is_data ? &p->data_id : &p->error_id;
	if (!id || *id) {
		client->reset(client->userdata, e->stream, SPDY_REFUSED);
		return;
	}
	*id = e->stream;
	client->reply(client->userdata, e->stream);
	if (p->data_id && p->error_id)
		pair_dial(p);
}

static void forward_data(struct forward *f, struct pair *p, const struct spdy_event *e)
{
	const struct forward_client *client = &f->config.client;

	/* A client ends its error stream at once. */
	if (e->stream != p->data_id)
		return;
	if (buf_add(&p->to_pod, e->data, e->len) < 0) {
		client->reset(client->userdata, p->data_id, SPDY_CANCEL);
		pair_fail(p, strerror(ENOMEM));
		return;
	}
	p->client_over = p->client_over || e->fin;
	if (p->state == PAIR_OPEN && pair_write(p))
		pair_watch(p);
	else if (p->state < PAIR_OPEN)
		forward_account(f);
}

void forward_event(struct forward *f, const struct spdy_event *e)
{
	struct pair *p = e->stream ? forward_find(f, e) : NULL;

	if (e->kind == SPDY_OPEN && !p)
		forward_open(f, e);
	else if (e->kind == SPDY_DATA && p)
		forward_data(f, p, e);
	else if (e->kind == SPDY_RESET && p && e->stream == p->data_id)
		pair_end(p);
}

void forward_room(struct forward *f)
{
	struct pair *p;

	list_for_each (p, &f->pairs, struct pair, link)
		if (p->state == PAIR_OPEN)
			pair_watch(p);
}

struct forward *forward_new(const struct forward_config *config)
{
	struct forward *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->config = *config;
	list_init(&f->pairs);
	return f;
}

struct forward *forward_free(struct forward *f)
{
	struct pair *p;

	if (!f)
		return NULL;
	list_for_each (p, &f->pairs, struct pair, link)
		pair_free(p);
	free(f);
	return NULL;
}
