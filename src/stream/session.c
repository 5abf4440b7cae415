/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/session.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "loop/loop.h"
#include "stream/forward.h"
#include "stream/head.h"
#include "stream/resize.h"
#include "stream/spdy.h"
#include "stream/status.h"
#include "stream/talk.h"
#include "stream/upgrade.h"

#define SESSION_READ ((size_t)65536)
#define SESSION_LINGER (5 * NSEC_PER_SEC)
#define SESSION_PULSE (10 * NSEC_PER_SEC)
/* Past it nothing more is read: a client that makes us answer (pings, streams that are refused) has
 * to read the answers. Output of a command stops at STREAM_WAITING_MAX. */
#define SESSION_ANSWERS_MAX (4 * STREAM_WAITING_MAX)
#define SESSION_VERSION_RESIZE 3
#define SESSION_VERSION_STATUS 4

/*
 * Whatever a client speaks (stream/talk.h), it is streams with numbers here: of a command ids[]
 * says which are there, and of ports of a pod stream/forward.h knows them. Channels are not opened:
 * those of a command are all there at once, and those of ports open their pairs by themselves.
 */

/*
 * HEAD     the head of the request is awaited.
 * STREAMS  SPDY is spoken; the streams of the command are awaited. (Channels are there at once.)
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

static const unsigned stream_channels[] = {
	[STREAM_ERROR] = 3,  [STREAM_STDIN] = 0,  [STREAM_STDOUT] = 1,
	[STREAM_STDERR] = 2, [STREAM_RESIZE] = 4,
};
static_assert(ARRAY_SIZE(stream_channels) == STREAM_COUNT, "each stream has its channel");

static const char *const stream_types[] = {
	[STREAM_ERROR] = "error",   [STREAM_STDIN] = "stdin",   [STREAM_STDOUT] = "stdout",
	[STREAM_STDERR] = "stderr", [STREAM_RESIZE] = "resize",
};

struct stream_session {
	struct list link; /* the owner's */
	const struct session_owner *owner;
	int fd;
	struct loop_fd source;
	struct loop_timer timer, pulse;
	struct loop_defer defer; /* to read on, or to go */
	enum session_state state;
	struct buf in, out;
	struct upgrade upgrade;
	struct talk *talk;
	size_t n_channels;             /* of ports, that have not ended */
	struct forward *forward;       /* of a command with dial() */
	struct stream_command command; /* gone NULL: there is none (any more) */
	uint32_t ids[STREAM_COUNT];    /* 0: not opened */
	uint32_t last_id;
	struct resize resize;
	bool admitted, held, was_full, input_over, client_over, broken, shut;
};

struct list *stream_session_link(struct stream_session *s)
{
	return &s->link;
}

struct stream_session *stream_session_of(struct list *link)
{
	return list_entry(link, struct stream_session, link);
}

bool stream_session_is_admitted(const struct stream_session *s)
{
	return s->admitted;
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
	loop_timer_done(&s->pulse);
	loop_defer_done(&s->defer);
	s->talk = talk_free(s->talk);
	buf_done(&s->in);
	buf_done(&s->out);
	(void)fd_close(s->fd);
	free(s);
	return NULL;
}

/* ---- what it waits for ---- */

/* What was received is looked at. */
static bool session_takes(const struct stream_session *s)
{
	return s->state != SESSION_ENDING && !s->broken && !s->held &&
	       s->out.len < SESSION_ANSWERS_MAX;
}

static bool session_reads(const struct stream_session *s)
{
	if (s->client_over)
		return false;
	return s->state == SESSION_ENDING || (session_takes(s) && s->in.len < SESSION_READ);
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

/* What is put is put whole, or the connection is of no use any more. */
static void session_put(struct stream_session *s, int r)
{
	if (r < 0)
		session_break(s);
	else
		loop_defer_schedule(&s->defer);
}

static bool session_has_channels(const struct stream_session *s)
{
	return s->upgrade.kind == UPGRADE_CHANNELS;
}

/* Nothing is said any more but what waits. */
static void session_end(struct stream_session *s, int why)
{
	if (s->talk)
		session_put(s, talk_close(s->talk, why));
	s->state = SESSION_ENDING;
	loop_timer_set(&s->timer, SESSION_LINGER);
	loop_defer_schedule(&s->defer);
}

static void session_refuse(struct stream_session *s, const struct refusal *r)
{
	session_put(s, refusal_put(r, &s->out));
	session_end(s, 0);
}

/* ---- ports ---- */

static void client_reply(void *userdata, uint32_t stream)
{
	struct stream_session *s = userdata;
	uint8_t port[2];
	int r = talk_accept(s->talk, stream);

	/* A channel begins with the number of its port, the lower byte first. */
	if (r == 0 && session_has_channels(s)) {
		port[0] = (uint8_t)s->command.ports[(stream - 1) / 2];
		port[1] = (uint8_t)(s->command.ports[(stream - 1) / 2] >> 8);
		r = talk_data(s->talk, stream, port, sizeof(port), false);
	}
	session_put(s, r);
}

static void client_data(void *userdata, uint32_t stream, const void *data, size_t len, bool fin)
{
	struct stream_session *s = userdata;

	/* Behind the last word nothing is said. */
	if (s->state != SESSION_RUNNING)
		return;
	session_put(s, talk_data(s->talk, stream, data, len, fin));
	s->was_full = s->was_full || stream_session_is_full(s);
	/* A channel has no end of its own: the last one ends the connection. */
	if (fin && session_has_channels(s) && --s->n_channels == 0)
		session_end(s, 0);
}

static void client_reset(void *userdata, uint32_t stream, uint32_t status)
{
	struct stream_session *s = userdata;

	session_put(s, talk_reset(s->talk, stream, status));
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

static void session_open_channels(struct stream_session *s)
{
	s->n_channels = 2 * s->command.n_ports;
	for (unsigned i = 0; i < 2 * s->command.n_ports && !s->broken; i++) {
		struct spdy_event e = { .kind = SPDY_OPEN, .stream = i + 1 };

		(void)str_copy(e.stream_type, sizeof(e.stream_type), i % 2 ? "error" : "data");
		(void)str_printf(e.port, sizeof(e.port), "%u", s->command.ports[i / 2]);
		(void)str_printf(e.request_id, sizeof(e.request_id), "%u", i / 2);
		forward_event(s->forward, &e);
	}
}

/* ---- streams of a command ---- */

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
		return c->tty &&
		       (session_has_channels(s) || s->upgrade.version >= SESSION_VERSION_RESIZE);
	case STREAM_COUNT:
		break;
	}
	return false;
}

static void session_input_over(struct stream_session *s)
{
	if (s->input_over || s->state != SESSION_RUNNING)
		return;
	s->input_over = true;
	s->command.on_input_end(s->command.userdata);
}

static void session_hear(struct stream_session *s, enum session_stream which, const uint8_t *data,
			 size_t len)
{
	uint16_t width, height;
	size_t used = 0;

	if (s->state != SESSION_RUNNING || !s->ids[which])
		return;
	if (which == STREAM_STDIN && !s->input_over && len > 0)
		s->command.on_input(s->command.userdata, data, len);
	while (which == STREAM_RESIZE && resize_take(&s->resize, data, len, &used, &width, &height))
		s->command.on_resize(s->command.userdata, width, height);
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

/* ---- the request ---- */

/* All channels are there at once; an empty message on the first that is written to says so. */
static void session_begin_channels(struct stream_session *s)
{
	uint32_t first;

	for (unsigned i = 0; i < STREAM_COUNT; i++)
		if (session_wants(s, (enum session_stream)i))
			s->ids[i] = stream_channels[i] + 1;
	first = s->ids[STREAM_STDOUT] ?: s->ids[STREAM_STDERR] ?: s->ids[STREAM_ERROR];
	session_put(s, talk_data(s->talk, first, "", 0, false));
	session_begin(s);
}

static void session_upgrade(struct stream_session *s)
{
	int r = upgrade_put(&s->upgrade, &s->out);

	s->talk = talk_new(&s->upgrade, &s->out);
	if (r == 0 && !s->talk)
		r = -ENOMEM;
	if (r == 0 && s->command.dial)
		r = session_forward(s);
	session_put(s, r);
	if (r < 0)
		return;
	s->state = s->command.dial ? SESSION_RUNNING : SESSION_STREAMS;
	loop_timer_set(&s->timer, s->command.dial ? STREAM_IDLE_MAX : STREAM_PATIENCE);
	if (session_has_channels(s) && s->command.dial)
		session_open_channels(s);
	else if (session_has_channels(s))
		session_begin_channels(s);
}

static void session_take_head(struct stream_session *s)
{
	const struct refusal *why = NULL;
	struct head h;
	size_t used;
	int r = head_take(buf_data(&s->in), s->in.len, &used, &h);

	if (r == 0)
		return;
	if (r < 0)
		why = r == -ENOBUFS ? &refusal_of_size : &refusal_of_request;
	else
		buf_consume(&s->in, used);
	if (!why)
		why = upgrade_check(&h, &s->upgrade);
	if (!why) {
		r = s->owner->claim(s->owner->userdata, s, h.path, &s->command);
		s->admitted = r == 0;
		why = r == 0 ? NULL : r == -EBUSY ? &refusal_of_number : &refusal_of_path;
	}
	if (!why)
		why = upgrade_choose(&h, s->command.dial, s->command.n_ports, &s->upgrade);
	if (why)
		session_refuse(s, why);
	else
		session_upgrade(s);
}

/* ---- what the client sends ---- */

static void session_open(struct stream_session *s, const struct spdy_event *e)
{
	unsigned which = 0;

	while (which < STREAM_COUNT && !str_eq(e->stream_type, stream_types[which]))
		which++;
	if (s->state != SESSION_STREAMS || which == STREAM_COUNT ||
	    !session_wants(s, (enum session_stream)which) || s->ids[which]) {
		session_put(s, talk_reset(s->talk, e->stream, SPDY_REFUSED));
		return;
	}
	s->ids[which] = e->stream;
	session_put(s, talk_accept(s->talk, e->stream));
	session_begin(s);
}

static void session_data(struct stream_session *s, const struct spdy_event *e)
{
	for (unsigned i = 0; i < STREAM_COUNT && e->stream; i++)
		if (e->stream == s->ids[i])
			session_hear(s, (enum session_stream)i, e->data, e->len);
	if (e->fin && e->stream && e->stream == s->ids[STREAM_STDIN])
		session_input_over(s);
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
	if (s->forward) {
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
	case SPDY_GOAWAY:
	case SPDY_OTHER:
		break;
	}
}

static void session_take_events(struct stream_session *s)
{
	while (session_takes(s)) {
		struct spdy_event e;
		int r = talk_take(s->talk, &s->in, &e);

		if (r == 0)
			return;
		if (r > 0)
			session_event(s, &e);
		else if (s->upgrade.is_websocket)
			session_end(s, r);
		else
			session_break(s);
	}
}

static void session_take(struct stream_session *s)
{
	if (s->state == SESSION_HEAD)
		session_take_head(s);
	if (s->talk)
		session_take_events(s);
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

/* A client whose input is held up is not heard either when it pings, and would take the connection
 * for dead; a pong that it has not asked for says otherwise (RFC 6455, 5.5.3). */
static void session_on_pulse(struct loop_timer *timer)
{
	struct stream_session *s = container_of(timer, struct stream_session, pulse);

	if (!s->talk || s->state != SESSION_RUNNING || !s->held)
		return;
	if (!stream_session_is_full(s))
		session_put(s, talk_pulse(s->talk));
	loop_timer_set(timer, SESSION_PULSE);
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
	loop_timer_init(&s->pulse, owner->loop, session_on_pulse);
	loop_defer_init(&s->defer, owner->loop, session_on_defer);
	loop_timer_set(&s->timer, STREAM_TOKEN_PATIENCE);
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
	enum session_stream which = stream == 2 ? STREAM_STDERR : STREAM_STDOUT;

	if (s->state != SESSION_RUNNING || !s->ids[which] || len == 0)
		return;
	session_put(s, talk_data(s->talk, s->ids[which], data, len, false));
	s->was_full = s->was_full || stream_session_is_full(s);
}

void stream_session_hold_input(struct stream_session *s, bool held)
{
	if (held && !s->held)
		loop_timer_set(&s->pulse, SESSION_PULSE);
	s->held = held;
	loop_defer_schedule(&s->defer);
}

/* The last word, and the end of every stream, of STREAM_ERROR last. */
static void session_finish(struct stream_session *s, const char *words, size_t len)
{
	int r = 0;

	if (s->state != SESSION_RUNNING)
		return;
	if (len > 0)
		r = talk_data(s->talk, s->ids[STREAM_ERROR], words, len, false);
	for (unsigned i = STREAM_COUNT; i > 0 && r == 0; i--)
		if (s->ids[i - 1])
			r = talk_data(s->talk, s->ids[i - 1], "", 0, true);
	session_put(s, r);
	session_end(s, 0);
}

static void session_tell(struct stream_session *s, const char *words, const int *exit_code)
{
	_cleanup_str_ char *text = NULL;

	if (s->upgrade.version < SESSION_VERSION_STATUS) {
		session_finish(s, words, words ? strlen(words) : 0);
		return;
	}
	text = status_text(words, exit_code);
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
