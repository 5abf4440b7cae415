/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/tokens.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/macros.h"
#include "io/unix.h"

struct token_connection {
	struct list link;
	struct loop_fd source;
	struct tokens *tokens;
	int fd;
};

struct token {
	struct list link;
	const struct token_connection *from;
	uint64_t number;
	int fd;
};

static void token_free(struct tokens *t, struct token *held)
{
	list_remove(&held->link);
	t->n_held--;
	(void)fd_close(held->fd);
	free(held);
}

static void token_connection_free(struct token_connection *c)
{
	struct tokens *t = c->tokens;
	struct token *held;

	list_for_each (held, &t->held, struct token, link)
		if (held->from == c)
			token_free(t, held);
	loop_fd_done(&c->source);
	list_remove(&c->link);
	t->n_connections--;
	(void)fd_close(c->fd);
	free(c);
}

static void tokens_tell(struct tokens *t, bool lost)
{
	t->n_lost += lost;
	if (t->arrived)
		t->arrived(t->userdata);
}

/* Whether it was refused before it came, which is then forgotten. */
static bool tokens_was_refused(struct tokens *t, uint64_t token)
{
	for (size_t i = 0; i < ARRAY_SIZE(t->refused); i++) {
		if (t->refused[i] != token)
			continue;
		t->refused[i] = 0;
		return true;
	}
	return false;
}

/* Takes the packet's descriptor over. */
static void tokens_hold(struct tokens *t, const struct token_connection *from,
			const struct fdchan_packet *packet)
{
	struct token *held;

	if (tokens_was_refused(t, packet->token)) {
		(void)fd_close(packet->fd);
		return;
	}
	held = malloc(sizeof(*held));
	if (!held) {
		(void)fd_close(packet->fd);
		tokens_tell(t, true);
		return;
	}
	if (t->n_held == TOKENS_HELD_MAX) {
		log_debug("a descriptor that nobody claimed is closed");
		token_free(t, list_entry(t->held.next, struct token, link));
		t->n_lost++;
	}
	*held = (struct token){ .from = from, .number = packet->token, .fd = packet->fd };
	list_init(&held->link);
	list_add_tail(&t->held, &held->link);
	t->n_held++;
	tokens_tell(t, false);
}

static void token_connection_drain(struct token_connection *c)
{
	struct tokens *t = c->tokens;
	struct fdchan_packet packet;
	int r;

	for (;;) {
		r = fdchan_receive(c->fd, &packet);
		if (r <= 0)
			break;
		if (!packet.target[0]) {
			tokens_hold(t, c, &packet);
			continue;
		}
		t->forward(t->userdata, &packet);
		(void)fd_close(packet.fd);
	}
	/* While descriptors are short the packet is lost, and the message that names it is refused.
	 */
	if (r < 0 && r != -EMFILE)
		token_connection_free(c);
	if (r < 0)
		tokens_tell(t, true);
}

static void token_connection_on_readable(struct loop_fd *source, unsigned events)
{
	token_connection_drain(container_of(source, struct token_connection, source));
}

static int token_peer_check(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	return peer.uid == 0 ? 0 : -EACCES;
}

/* Takes fd over. */
static void tokens_add_connection(struct tokens *t, int fd)
{
	struct token_connection *c;

	if (t->n_connections == TOKENS_CONNECTIONS_MAX || token_peer_check(fd) < 0) {
		log_debug("a connection for descriptors is refused");
		(void)fd_close(fd);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		(void)fd_close(fd);
		return;
	}
	c->tokens = t;
	c->fd = fd;
	list_init(&c->link);
	list_add_tail(&t->connections, &c->link);
	t->n_connections++;
	loop_fd_init(&c->source, t->loop, fd, LOOP_READ, token_connection_on_readable);
}

static void tokens_accept(struct tokens *t)
{
	for (;;) {
		int fd = accept4(t->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			return;
		tokens_add_connection(t, fd);
	}
}

void tokens_init(struct tokens *t, struct loop *l, int listen_fd,
		 void (*forward)(void *userdata, const struct fdchan_packet *packet),
		 void *userdata)
{
	*t = (struct tokens){
		.loop = l,
		.listen_fd = listen_fd,
		.forward = forward,
		.userdata = userdata,
	};
	list_init(&t->connections);
	list_init(&t->held);
}

void tokens_done(struct tokens *t)
{
	struct token_connection *c;

	if (!t->loop)
		return;
	t->listen_fd = fd_close(t->listen_fd);
	list_for_each (c, &t->connections, struct token_connection, link)
		token_connection_free(c);
	t->loop = NULL;
}

void tokens_drain(struct tokens *t)
{
	struct token_connection *c;

	tokens_accept(t);
	list_for_each (c, &t->connections, struct token_connection, link)
		token_connection_drain(c);
}

bool tokens_have(const struct tokens *t, uint64_t token)
{
	const struct token *held;

	list_for_each (held, &t->held, struct token, link)
		if (held->number == token)
			return true;
	return false;
}

void tokens_refuse(struct tokens *t, uint64_t token)
{
	int fd;

	if (!token)
		return;
	fd = tokens_take(t, token);
	if (fd >= 0)
		(void)fd_close(fd);
	else
		t->refused[t->n_refused++ % ARRAY_SIZE(t->refused)] = token;
}

int tokens_take(struct tokens *t, uint64_t token)
{
	struct token *held;

	if (!tokens_have(t, token))
		tokens_drain(t);
	list_for_each (held, &t->held, struct token, link) {
		int fd;

		if (held->number != token)
			continue;
		fd = TAKE_FD(held->fd);
		token_free(t, held);
		return fd;
	}
	return -ENOENT;
}
