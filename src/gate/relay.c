/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/time/clock.h"
#include "gate/drop.h"
#include "loop/loop.h"
#include "wire/message/agent.h"
#include "wire/message/relay.h"

/*
 * The ring is numbered by all that ever came: a client has the number of its next byte. Nobody is
 * waited for: the machine writes as fast as it likes, and a client that lags is moved on. What
 * clients type is bounded by the console's own pace: while that takes nothing, nobody is read.
 */

#define RELAY_CLIENTS_MAX 8
#define RELAY_TYPED_MAX 4096
/* From the question to an agent, and from the word that ends its guest, to the answer. */
#define RELAY_AGENT_PATIENCE (2 * NSEC_PER_SEC)
#define RELAY_REFUSAL_PATIENCE (500 * NSEC_PER_MSEC)

struct relay;

struct relay_client {
	struct loop_fd source;
	struct relay *relay;
	int fd;      /* -1: a free place */
	bool served; /* it has said what it wants */
	uint64_t at;
};

struct relay {
	struct loop *loop;
	struct loop_fd console, agent, console_sock, agent_sock;
	struct relay_client clients[RELAY_CLIENTS_MAX];
	uint8_t ring[RELAY_RING_MAX];
	uint64_t total;
	bool ended; /* the console has */
	uint8_t typed[RELAY_TYPED_MAX];
	size_t n_typed;

	struct loop_timer patience;
	int asker_fd; /* who waits for the agent; -1: nobody */
	bool asked;   /* it has answered, and was asked to power off */
	uint64_t number;
	uint8_t line[AGENT_LINE_MAX];
	size_t n_line;
};

/* ---- the console ---- */

static void relay_client_close(struct relay_client *c)
{
	loop_fd_done(&c->source);
	c->fd = fd_close(c->fd);
	loop_fd_set(&c->relay->console_sock, LOOP_READ);
}

static void relay_client_wait(struct relay_client *c)
{
	const struct relay *r = c->relay;
	unsigned events = 0;

	if (r->n_typed == 0)
		events |= LOOP_READ;
	if (c->served && c->at < r->total)
		events |= LOOP_WRITE;
	loop_fd_set(&c->source, events);
}

static void relay_client_write(struct relay_client *c)
{
	struct relay *r = c->relay;

	if (r->total > RELAY_RING_MAX)
		c->at = MAX(c->at, r->total - RELAY_RING_MAX);
	while (c->at < r->total) {
		size_t at = c->at % RELAY_RING_MAX;
		size_t n = MIN((size_t)(r->total - c->at), RELAY_RING_MAX - at);
		ssize_t sent = send(c->fd, r->ring + at, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN)
			break;
		if (sent < 0) {
			relay_client_close(c);
			return;
		}
		c->at += (uint64_t)sent;
	}
	if (r->ended && c->at == r->total)
		relay_client_close(c);
	else
		relay_client_wait(c);
}

static void relay_wait_all(struct relay *r)
{
	for (size_t i = 0; i < RELAY_CLIENTS_MAX; i++)
		if (r->clients[i].fd >= 0)
			relay_client_wait(&r->clients[i]);
	if (!r->ended)
		loop_fd_set(&r->console, LOOP_READ | (r->n_typed ? LOOP_WRITE : 0));
}

static void relay_type(struct relay *r)
{
	ssize_t n = send(RELAY_FD_CONSOLE, r->typed, r->n_typed, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN)
		n = (ssize_t)r->n_typed;
	if (n > 0) {
		r->n_typed -= (size_t)n;
		memmove(r->typed, r->typed + n, r->n_typed);
	}
	relay_wait_all(r);
}

/* The first byte says what is wanted, the others are typed. */
static void relay_client_take(struct relay_client *c, const uint8_t *data, size_t n)
{
	struct relay *r = c->relay;

	if (!c->served) {
		c->served = true;
		c->at = *data == RELAY_REPLAY ? 0 : r->total;
		data++;
		n--;
	}
	memcpy(r->typed, data, n);
	r->n_typed = r->ended ? 0 : n;
	if (r->n_typed)
		relay_type(r);
	relay_client_write(c);
}

static void relay_client_event(struct loop_fd *source, unsigned events)
{
	struct relay_client *c = container_of(source, struct relay_client, source);
	uint8_t data[RELAY_TYPED_MAX];
	ssize_t n = -1;

	if (c->relay->n_typed == 0 && events & LOOP_READ) {
		n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT);
		if (n > 0) {
			relay_client_take(c, data, (size_t)n);
			return;
		}
		/* Nobody closes one direction only: it has gone, and its place is free. */
		if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			relay_client_close(c);
			return;
		}
	}
	relay_client_write(c);
}

static void relay_on_client(struct loop_fd *source, unsigned events)
{
	struct relay *r = container_of(source, struct relay, console_sock);
	struct relay_client *c = NULL;
	int fd;

	(void)events;
	for (size_t i = 0; i < RELAY_CLIENTS_MAX && !c; i++)
		if (r->clients[i].fd < 0)
			c = &r->clients[i];
	if (!c) {
		loop_fd_set(&r->console_sock, 0);
		return;
	}
	fd = accept4(RELAY_FD_CONSOLE_SOCK, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	*c = (struct relay_client){ .relay = r, .fd = fd };
	loop_fd_init(&c->source, r->loop, fd, LOOP_READ, relay_client_event);
}

static void relay_keep(struct relay *r, const uint8_t *data, size_t len)
{
	while (len > 0) {
		size_t at = r->total % RELAY_RING_MAX;
		size_t n = MIN(len, RELAY_RING_MAX - at);

		memcpy(r->ring + at, data, n);
		r->total += n;
		data += n;
		len -= n;
	}
}

static void relay_on_console(struct loop_fd *source, unsigned events)
{
	struct relay *r = container_of(source, struct relay, console);
	uint8_t data[8192];
	ssize_t n;

	if (r->n_typed && events & LOOP_WRITE)
		relay_type(r);
	n = recv(RELAY_FD_CONSOLE, data, sizeof(data), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		relay_keep(r, data, (size_t)n);
	} else {
		loop_fd_done(&r->console);
		r->ended = true;
		r->n_typed = 0;
	}
	for (size_t i = 0; i < RELAY_CLIENTS_MAX; i++)
		if (r->clients[i].fd >= 0 && r->clients[i].served)
			relay_client_write(&r->clients[i]);
}

/* ---- the agent ---- */

static void relay_answer(struct relay *r, char what, const char *words)
{
	char text[1 + AGENT_WORDS_SIZE] = { what };
	size_t n = strlen(words);

	memcpy(text + 1, words, n);
	if (r->asker_fd >= 0)
		(void)send(r->asker_fd, text, 1 + n, MSG_DONTWAIT | MSG_NOSIGNAL);
	r->asker_fd = fd_close(r->asker_fd);
	loop_timer_stop(&r->patience);
	loop_fd_set(&r->agent_sock, LOOP_READ);
}

static void relay_on_patience(struct loop_timer *t)
{
	struct relay *r = container_of(t, struct relay, patience);

	relay_answer(r, r->asked ? RELAY_ASKED : RELAY_SILENT, "");
}

/* A line goes whole, or it does not go. */
static bool relay_say(const char *line, size_t n)
{
	return send(RELAY_FD_AGENT, line, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

static void relay_take_line(struct relay *r)
{
	char text[AGENT_LINE_MAX];
	struct agent_answer a;

	if (r->asker_fd < 0 || agent_read(&a, r->line, r->n_line, NULL) < 0)
		return;
	if (r->asked) {
		if (a.kind == AGENT_REFUSAL)
			relay_answer(r, RELAY_REFUSED, a.words);
		return;
	}
	if (a.kind != AGENT_NUMBER || a.number != r->number)
		return;
	r->asked = relay_say(text, agent_shutdown(text));
	loop_timer_set(&r->patience, r->asked ? RELAY_REFUSAL_PATIENCE : 0);
}

static void relay_on_agent(struct loop_fd *source, unsigned events)
{
	struct relay *r = container_of(source, struct relay, agent);
	uint8_t data[AGENT_LINE_MAX];
	ssize_t n = recv(RELAY_FD_AGENT, data, sizeof(data), MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		loop_fd_done(&r->agent);
	for (ssize_t i = 0; i < n; i++) {
		if (data[i] == 0xff)
			r->n_line = 0;
		if (data[i] == '\n') {
			relay_take_line(r);
			r->n_line = 0;
		} else if (r->n_line < sizeof(r->line)) {
			r->line[r->n_line++] = data[i];
		}
	}
}

static void relay_on_asker(struct loop_fd *source, unsigned events)
{
	struct relay *r = container_of(source, struct relay, agent_sock);
	char text[AGENT_LINE_MAX];
	uint32_t number;

	(void)events;
	r->asker_fd = accept4(RELAY_FD_AGENT_SOCK, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (r->asker_fd < 0)
		return;
	loop_fd_set(&r->agent_sock, 0);
	r->asked = false;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
		relay_answer(r, RELAY_SILENT, "");
		return;
	}
	r->number = number;
	if (relay_say(text, agent_sync(text, r->number)))
		loop_timer_set(&r->patience, RELAY_AGENT_PATIENCE);
	else
		relay_answer(r, RELAY_SILENT, "");
}

/* ---- the process ---- */

static int relay_begin(struct relay *r, struct error *err)
{
	int n = 0;

	r->asker_fd = -1;
	for (size_t i = 0; i < RELAY_CLIENTS_MAX; i++)
		r->clients[i].fd = -1;
	for (int fd = RELAY_FD_CONSOLE_SOCK; n == 0 && fd < RELAY_FD_END; fd++)
		n = fd_set_nonblock(fd, true);
	if (n == 0)
		n = loop_new(&r->loop);
	if (n < 0)
		return error_set(err, n, "make a loop");
	loop_timer_init(&r->patience, r->loop, relay_on_patience);
	loop_fd_init(&r->console, r->loop, RELAY_FD_CONSOLE, LOOP_READ, relay_on_console);
	loop_fd_init(&r->agent, r->loop, RELAY_FD_AGENT, LOOP_READ, relay_on_agent);
	loop_fd_init(&r->console_sock, r->loop, RELAY_FD_CONSOLE_SOCK, LOOP_READ, relay_on_client);
	loop_fd_init(&r->agent_sock, r->loop, RELAY_FD_AGENT_SOCK, LOOP_READ, relay_on_asker);
	return 0;
}

int relay_run(uid_t uid, gid_t gid, struct error *err)
{
	static struct relay relay;
	int r = relay_begin(&relay, err);

	if (r == 0)
		r = drop_privilege(DROP_RELAY, uid, gid, err);
	return r < 0 ? r : loop_run(relay.loop);
}
