/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/session.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/str.h"
#include "loop/loop.h"
#include "stream/forward.h"
#include "stream/head.h"
#include "stream/resize.h"
#include "stream/spdy.h"

#define SESSION_READ ((size_t)65536)
#define SESSION_LINGER (5 * NSEC_PER_SEC)
#define SESSION_VERSION_RESIZE 3
#define SESSION_VERSION_STATUS 4

/*
 * HEAD     the head of the request is awaited.
 * STREAMS  SPDY is spoken; the streams of the command are awaited.
 * RUNNING  the command has begun.
 * ENDING   nothing more is said but what waits; then the client is waited for, to close.
 */
enum session_state { SESSION_HEAD, SESSION_STREAMS, SESSION_RUNNING, SESSION_ENDING };

/* What a client opens, as the header streamType has it. */
enum session_stream {
	STREAM_ERROR,
	STREAM_STDIN,
	STREAM_STDOUT,
	STREAM_STDERR,
	STREAM_RESIZE,
	STREAM_COUNT
};

static const char *const stream_types[] = {
	[STREAM_ERROR] = "error",   [STREAM_STDIN] = "stdin",   [STREAM_STDOUT] = "stdout",
	[STREAM_STDERR] = "stderr", [STREAM_RESIZE] = "resize",
};

struct stream_session {
	struct list link; /* the owner's */
	const struct session_owner *owner;
	int fd;
	struct loop_fd source;
	struct loop_timer timer;
	struct loop_defer defer; /* to read on, or to go */
	enum session_state state;
	struct buf in, out;
	struct spdy *spdy;
	struct forward *forward;       /* of a command with dial() */
	struct stream_command command; /* gone NULL: there is none (any more) */
	unsigned version;
	uint32_t ids[STREAM_COUNT]; /* 0: not opened */
	uint32_t last_id;
	struct resize resize;
	bool held, was_full, input_over, client_over, broken, shut;
};

/* From the newest version on. */
static const char *const session_protocols[] = {
	NULL, "channel.k8s.io", "v2.channel.k8s.io", "v3.channel.k8s.io", "v4.channel.k8s.io",
};
static const char session_forwards[] = "portforward.k8s.io";

struct list *stream_session_link(struct stream_session *s)
{
	return &s->link;
}

struct stream_session *stream_session_of(struct list *link)
{
	return list_entry(link, struct stream_session, link);
}

static void session_drop_command(struct stream_session *s)
{
	void (*gone)(void *userdata) = s->command.gone;

	s->command.gone = NULL;
	s->forward = forward_free(s->forward);
	if (gone)
		gone(s->command.userdata);
}

struct stream_session *stream_session_free(struct stream_session *s)
{
	if (!s)
		return NULL;
	session_drop_command(s);
	list_remove(&s->link);
	loop_fd_done(&s->source);
	loop_timer_done(&s->timer);
	loop_defer_done(&s->defer);
	s->spdy = spdy_free(s->spdy);
	buf_done(&s->in);
	buf_done(&s->out);
	(void)fd_close(s->fd);
	free(s);
	return NULL;
}

/* ---- what it waits for ---- */

static bool session_reads(const struct stream_session *s)
{
	if (s->client_over)
		return false;
	return s->state == SESSION_ENDING || (!s->held && s->in.len < SESSION_READ);
}

static void session_watch(struct stream_session *s)
{
	loop_fd_set(&s->source, (session_reads(s) ? LOOP_READ : 0) |
					(s->out.len > 0 && !s->broken ? LOOP_WRITE : 0));
}

static void session_break(struct stream_session *s)
{
	s->broken = true;
	loop_defer_schedule(&s->defer);
}

/* Nothing is said any more but what waits. */
static void session_end(struct stream_session *s)
{
	s->state = SESSION_ENDING;
	loop_timer_set(&s->timer, SESSION_LINGER);
	loop_defer_schedule(&s->defer);
}

/* What is put is put whole, or the connection is of no use any more. */
static void session_put(struct stream_session *s, int r)
{
	if (r < 0)
		session_break(s);
	else
		loop_defer_schedule(&s->defer);
}

static void session_answer(struct stream_session *s, const char *status, const char *words)
{
	session_put(s, buf_addf(&s->out,
				"HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
				"Content-Length: %zu\r\nConnection: close\r\n\r\n%s\n",
				status, strlen(words) + 1, words));
	session_end(s);
}

/* ---- ports ---- */

static void client_reply(void *userdata, uint32_t stream)
{
	struct stream_session *s = userdata;

	session_put(s, spdy_put_reply(s->spdy, &s->out, stream));
}

static void client_data(void *userdata, uint32_t stream, const void *data, size_t len, bool fin)
{
	struct stream_session *s = userdata;

	session_put(s, spdy_put_data(&s->out, stream, data, len, fin));
	s->was_full = s->was_full || stream_session_is_full(s);
}

static void client_reset(void *userdata, uint32_t stream, uint32_t status)
{
	struct stream_session *s = userdata;

	session_put(s, spdy_put_reset(&s->out, stream, status));
}

static bool client_is_full(void *userdata)
{
	return stream_session_is_full(userdata);
}

static void client_hold(void *userdata, bool held)
{
	stream_session_hold_input(userdata, held);
}

static int session_forward(struct stream_session *s)
{
	const struct forward_config config = {
		.loop = s->owner->loop,
		.client = { client_reply, client_data, client_reset, client_is_full, client_hold,
			    s },
		.dial = s->command.dial,
		.userdata = s->command.userdata,
	};

	s->forward = forward_new(&config);
	return s->forward ? 0 : -ENOMEM;
}

/* ---- the request ---- */

/* The first of the client's that is known here; 0: none. */
static unsigned session_choose(const struct head *h)
{
	for (size_t i = 0; i < h->n_protocols; i++)
		for (unsigned v = 1; v < ARRAY_SIZE(session_protocols); v++)
			if (str_eq(h->protocols[i], session_protocols[v]))
				return v;
	return 0;
}

static bool session_knows(const struct head *h, const char *protocol)
{
	for (size_t i = 0; i < h->n_protocols; i++)
		if (str_eq(h->protocols[i], protocol))
			return true;
	return false;
}

static void session_upgrade(struct stream_session *s, const struct head *h)
{
	const char *protocol = NULL;

	s->version = s->command.dial ? 0 : session_choose(h);
	if (s->version)
		protocol = session_protocols[s->version];
	else if (s->command.dial && session_knows(h, session_forwards))
		protocol = session_forwards;
	if (!protocol) {
		session_answer(
			s, h->n_protocols ? "403 Forbidden" : "400 Bad Request",
			s->command.dial
				? "X-Stream-Protocol-Version does not name portforward.k8s.io"
				: "X-Stream-Protocol-Version names none of "
				  "v4.channel.k8s.io, v3.channel.k8s.io, v2.channel.k8s.io, "
				  "channel.k8s.io");
		return;
	}
	s->spdy = spdy_new();
	session_put(s, s->spdy ? buf_addf(&s->out,
					  "HTTP/1.1 101 Switching Protocols\r\nConnection: "
					  "Upgrade\r\nUpgrade: SPDY/3.1\r\n"
					  "X-Stream-Protocol-Version: %s\r\n\r\n",
					  protocol)
			       : -ENOMEM);
	s->state = s->command.dial ? SESSION_RUNNING : SESSION_STREAMS;
	loop_timer_set(&s->timer, s->command.dial ? STREAM_IDLE_MAX : STREAM_PATIENCE);
	if (s->command.dial)
		session_put(s, session_forward(s));
}

static void session_take_head(struct stream_session *s)
{
	struct head h;
	size_t used;
	int r = head_take(buf_data(&s->in), s->in.len, &used, &h);

	if (r == 0)
		return;
	if (r < 0) {
		session_answer(s,
			       r == -ENOBUFS ? "431 Request Header Fields Too Large"
					     : "400 Bad Request",
			       "this is no request that can be answered here");
		return;
	}
	buf_consume(&s->in, used);
	if (!str_eq(h.method, "GET") && !str_eq(h.method, "POST"))
		session_answer(s, "405 Method Not Allowed", "GET or POST");
	else if (!h.is_upgrade || strcasecmp(h.upgrade, "SPDY/3.1") != 0)
		session_answer(s, "400 Bad Request",
			       "the request does not ask for an upgrade to SPDY/3.1");
	else if (s->owner->claim(s->owner->userdata, h.path, &s->command) < 0)
		session_answer(
			s, "404 Not Found",
			"there is no such URL; it is good for one connection within a minute");
	else
		session_upgrade(s, &h);
}

/* ---- streams ---- */

static bool session_wants(const struct stream_session *s, enum session_stream which)
{
	const struct stream_command *c = &s->command;

	switch (which) {
	case STREAM_ERROR:
		return true;
	case STREAM_STDIN:
		return c->in;
	case STREAM_STDOUT:
		return c->out;
	case STREAM_STDERR:
		return c->err && !c->tty;
	case STREAM_RESIZE:
		return c->tty && s->version >= SESSION_VERSION_RESIZE;
	case STREAM_COUNT:
		break;
	}
	return false;
}

static void session_begin(struct stream_session *s)
{
	struct error err = ERROR_INIT;

	for (unsigned i = 0; i < STREAM_COUNT; i++)
		if (session_wants(s, (enum session_stream)i) && !s->ids[i])
			return;
	s->state = SESSION_RUNNING;
	loop_timer_set(&s->timer, STREAM_IDLE_MAX);
	if (s->command.begin(s->command.userdata, s, &err) < 0)
		stream_session_fail(s, &err);
}

static void session_open(struct stream_session *s, const struct spdy_event *e)
{
	unsigned which = 0;

	while (which < STREAM_COUNT && !str_eq(e->stream_type, stream_types[which]))
		which++;
	if (s->state != SESSION_STREAMS || which == STREAM_COUNT ||
	    !session_wants(s, (enum session_stream)which) || s->ids[which]) {
		session_put(s, spdy_put_reset(&s->out, e->stream, SPDY_REFUSED));
		return;
	}
	s->ids[which] = e->stream;
	session_put(s, spdy_put_reply(s->spdy, &s->out, e->stream));
	session_begin(s);
}

static void session_input_over(struct stream_session *s)
{
	if (s->input_over || s->state != SESSION_RUNNING)
		return;
	s->input_over = true;
	s->command.on_input_end(s->command.userdata);
}

static void session_data(struct stream_session *s, const struct spdy_event *e)
{
	uint16_t width, height;
	size_t used = 0;

	if (s->state != SESSION_RUNNING || !e->stream)
		return;
	if (e->stream == s->ids[STREAM_STDIN] && !s->input_over) {
		if (e->len > 0)
			s->command.on_input(s->command.userdata, e->data, e->len);
		if (e->fin)
			session_input_over(s);
		return;
	}
	if (e->stream != s->ids[STREAM_RESIZE])
		return;
	while (resize_take(&s->resize, e->data, e->len, &used, &width, &height))
		s->command.on_resize(s->command.userdata, width, height);
}

static void session_event(struct stream_session *s, const struct spdy_event *e)
{
	/* Numbers of a client are odd and grow. */
	if (e->kind == SPDY_OPEN && (e->stream % 2 == 0 || e->stream <= s->last_id)) {
		session_break(s);
		return;
	}
	if (e->kind == SPDY_OPEN)
		s->last_id = e->stream;
	if (s->forward && e->kind != SPDY_PING) {
		forward_event(s->forward, e);
		return;
	}
	switch (e->kind) {
	case SPDY_OPEN:
		session_open(s, e);
		break;
	case SPDY_DATA:
		session_data(s, e);
		break;
	case SPDY_RESET:
		if (e->stream == s->ids[STREAM_STDIN])
			session_input_over(s);
		break;
	case SPDY_PING:
		session_put(s, spdy_put_ping(&s->out, e->stream));
		break;
	case SPDY_GOAWAY:
	case SPDY_OTHER:
		break;
	}
}

static void session_take_frames(struct stream_session *s)
{
	while (s->state != SESSION_ENDING && !s->broken && !s->held) {
		struct spdy_event e;
		size_t used;
		int r = spdy_take(s->spdy, buf_data(&s->in), s->in.len, &used, &e);

		if (r < 0)
			session_break(s);
		if (r <= 0)
			return;
		session_event(s, &e);
		/* What the event points to was in there. */
		buf_consume(&s->in, used);
	}
}

static void session_take(struct stream_session *s)
{
	if (s->state == SESSION_HEAD)
		session_take_head(s);
	if (s->state == SESSION_STREAMS || s->state == SESSION_RUNNING)
		session_take_frames(s);
	if (s->state == SESSION_ENDING)
		buf_clear(&s->in);
}

/* ---- the connection ---- */

static void session_read(struct stream_session *s)
{
	uint8_t *room;
	ssize_t n;

	if (buf_reserve(&s->in, SESSION_READ, &room) < 0) {
		session_break(s);
		return;
	}
	n = recv(s->fd, room, SESSION_READ, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		s->client_over = true;
		loop_defer_schedule(&s->defer);
		return;
	}
	buf_added(&s->in, (size_t)n);
	if (s->state == SESSION_RUNNING)
		loop_timer_set(&s->timer, STREAM_IDLE_MAX);
	session_take(s);
}

static void session_write(struct stream_session *s)
{
	ssize_t n = send(s->fd, buf_data(&s->out), s->out.len, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		session_break(s);
		return;
	}
	buf_consume(&s->out, (size_t)n);
	if (s->state == SESSION_RUNNING)
		loop_timer_set(&s->timer, STREAM_IDLE_MAX);
	if (!s->was_full || s->out.len > STREAM_WAITING_MAX / 2)
		return;
	s->was_full = false;
	if (s->forward)
		forward_room(s->forward);
	else if (s->state == SESSION_RUNNING)
		s->command.on_room(s->command.userdata);
}

static void session_on_fd(struct loop_fd *source, unsigned events)
{
	struct stream_session *s = container_of(source, struct stream_session, source);

	if (events & LOOP_READ && session_reads(s))
		session_read(s);
	if (events & LOOP_WRITE && s->out.len > 0 && !s->broken)
		session_write(s);
	loop_defer_schedule(&s->defer);
}

static bool session_is_over(const struct stream_session *s)
{
	if (s->broken)
		return true;
	/* A client that ends takes its command along; one that is told the end closes. */
	return s->client_over && (s->state != SESSION_ENDING || s->out.len == 0);
}

static void session_on_defer(struct loop_defer *defer)
{
	struct stream_session *s = container_of(defer, struct stream_session, defer);

	if (!session_is_over(s))
		session_take(s);
	if (!session_is_over(s) && s->out.len > 0)
		session_write(s);
	if (session_is_over(s)) {
		s->owner->closed(s->owner->userdata, s);
		(void)stream_session_free(s);
		return;
	}
	if (s->state == SESSION_ENDING)
		session_drop_command(s);
	if (s->state == SESSION_ENDING && s->out.len == 0 && !s->shut) {
		s->shut = true;
		(void)shutdown(s->fd, SHUT_WR);
	}
	session_watch(s);
}

/* Too slow, or idle. */
static void session_on_timer(struct loop_timer *timer)
{
	session_break(container_of(timer, struct stream_session, timer));
}

int stream_session_new(struct stream_session **ret, const struct session_owner *owner, int fd)
{
	struct stream_session *s = calloc(1, sizeof(*s));

	if (!s) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	s->owner = owner;
	s->fd = fd;
	s->in = s->out = (struct buf)BUF_INIT;
	list_init(&s->link);
	loop_fd_init(&s->source, owner->loop, fd, LOOP_READ, session_on_fd);
	loop_timer_init(&s->timer, owner->loop, session_on_timer);
	loop_defer_init(&s->defer, owner->loop, session_on_defer);
	loop_timer_set(&s->timer, STREAM_PATIENCE);
	*ret = s;
	return 0;
}

/* ---- for the command ---- */

bool stream_session_is_full(const struct stream_session *s)
{
	return s->out.len >= STREAM_WAITING_MAX;
}

void stream_session_output(struct stream_session *s, int stream, const void *data, size_t len)
{
	uint32_t id = s->ids[stream == 2 ? STREAM_STDERR : STREAM_STDOUT];

	if (s->state != SESSION_RUNNING || !id || len == 0)
		return;
	session_put(s, spdy_put_data(&s->out, id, data, len, false));
	s->was_full = s->was_full || stream_session_is_full(s);
}

void stream_session_hold_input(struct stream_session *s, bool held)
{
	s->held = held;
	loop_defer_schedule(&s->defer);
}

/* The last word, and the end of every stream. */
static void session_finish(struct stream_session *s, const char *words, size_t len)
{
	int r = 0;

	if (s->state != SESSION_RUNNING)
		return;
	if (len > 0)
		r = spdy_put_data(&s->out, s->ids[STREAM_ERROR], words, len, false);
	for (unsigned i = 0; i < STREAM_COUNT && r == 0; i++)
		if (s->ids[i] && i != STREAM_ERROR)
			r = spdy_put_data(&s->out, s->ids[i], "", 0, true);
	if (r == 0)
		r = spdy_put_data(&s->out, s->ids[STREAM_ERROR], "", 0, true);
	session_put(s, r);
	session_end(s);
}

/* A Status of Kubernetes; exit_code NULL: there is none. */
static char *session_status(const char *words, const int *exit_code)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	struct json j = { .to = to, .compact = true };
	char number[16];

	if (!to)
		return NULL;
	json_put_object(&j, NULL);
	json_put_string(&j, "status", words ? "Failure" : "Success");
	if (words)
		json_put_string(&j, "message", words);
	if (words)
		json_put_string(&j, "reason", exit_code ? "NonZeroExitCode" : "InternalError");
	if (exit_code) {
		(void)str_printf(number, sizeof(number), "%d", *exit_code);
		json_put_object(&j, "details");
		json_put_array(&j, "causes");
		json_put_object(&j, NULL);
		json_put_string(&j, "reason", "ExitCode");
		json_put_string(&j, "message", number);
		json_put_end(&j);
		json_put_end(&j);
		json_put_end(&j);
	}
	json_put_end(&j);
	if (fclose(to) == 0)
		return text;
	free(text);
	return NULL;
}

static void session_tell(struct stream_session *s, const char *words, const int *exit_code)
{
	_cleanup_str_ char *text = NULL;

	if (s->version < SESSION_VERSION_STATUS) {
		session_finish(s, words, words ? strlen(words) : 0);
		return;
	}
	text = session_status(words, exit_code);
	if (text)
		session_finish(s, text, strlen(text));
	else
		session_break(s);
}

void stream_session_exit(struct stream_session *s, int exit_code)
{
	char words[80];

	(void)str_printf(words, sizeof(words),
			 "command terminated with non-zero exit code: exit status %d", exit_code);
	session_tell(s, exit_code ? words : NULL, exit_code ? &exit_code : NULL);
}

void stream_session_fail(struct stream_session *s, const struct error *err)
{
	session_tell(s, error_text(err), NULL);
}
