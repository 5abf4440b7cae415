/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/macros.h"
#include "base/text/id.h"
#include "base/text/str.h"
#include "loop/loop.h"
#include "net/port/peer_user.h"
#include "stream/address.h"
#include "stream/session.h"

#define SERVER_PAUSE (100 * NSEC_PER_MSEC)
#define TOKEN_SIZE (2 * ID_LEN + 1)

/* A URL that nobody has used yet. */
struct offer {
	struct list link;
	struct stream_server *server;
	struct stream_command command;
	struct loop_timer timer;
	char token[TOKEN_SIZE];
};

struct stream_server {
	struct loop *loop;
	struct sockaddr_storage address;
	socklen_t address_len;
	char host[STREAM_HOST_SIZE]; /* as in a URL */
	int fd;                      /* -1: it does not listen yet */
	unsigned port;
	struct loop_fd source;
	struct loop_timer pause; /* while the host has no descriptor for one more */
	struct session_owner owner;
	struct list sessions;
	struct list strangers[2]; /* have shown no token: of other users, of our own; the oldest
				     first */
	struct list offers;
	unsigned n_sessions, n_strangers, n_offers;
};

/* ---- offers ---- */

static void offer_free(struct offer *o, bool keep_command)
{
	if (!keep_command)
		o->command.gone(o->command.userdata);
	list_remove(&o->link);
	loop_timer_done(&o->timer);
	o->server->n_offers--;
	free(o);
}

static void offer_on_timer(struct loop_timer *timer)
{
	offer_free(container_of(timer, struct offer, timer), false);
}

/* In a time that says nothing of how far they are equal. */
static bool token_is(const char *a, const char *b, size_t len)
{
	unsigned char differ = 0;

	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return differ == 0;
}

static struct offer *server_find(struct stream_server *s, const char *path)
{
	const char *token = strrchr(path, '/');
	struct offer *o;

	if (!token || strlen(token + 1) != TOKEN_SIZE - 1)
		return NULL;
	list_for_each (o, &s->offers, struct offer, link) {
		size_t n = strlen(o->command.kind);

		if (!token_is(o->token, token + 1, TOKEN_SIZE - 1))
			continue;
		if ((size_t)(token - path) != n + 1 || memcmp(path + 1, o->command.kind, n) != 0)
			return NULL;
		return o;
	}
	return NULL;
}

static int server_claim(void *userdata, struct stream_session *session, const char *path,
			struct stream_command *ret)
{
	struct stream_server *s = userdata;
	struct offer *o = server_find(s, path);

	if (!o)
		return -ENOENT;
	if (s->n_sessions >= STREAM_CONNECTIONS_MAX)
		return -EBUSY;
	*ret = o->command;
	offer_free(o, true);
	list_remove(stream_session_link(session));
	list_add_tail(&s->sessions, stream_session_link(session));
	s->n_strangers--;
	s->n_sessions++;
	return 0;
}

/* ---- connections ---- */

static void server_closed(void *userdata, struct stream_session *session)
{
	struct stream_server *s = userdata;

	if (stream_session_is_admitted(session))
		s->n_sessions--;
	else
		s->n_strangers--;
}

/* False: there is none for a connection of another user. */
static bool server_make_room(struct stream_server *s, bool is_own)
{
	bool is_last = list_empty(&s->strangers[0]);

	if (s->n_strangers < STREAM_STRANGERS_MAX)
		return true;
	if (is_last && !is_own)
		return false;
	s->n_strangers--;
	(void)stream_session_free(stream_session_of(s->strangers[is_last].next));
	return true;
}

/* Where the kernel does not tell, one user's connections are like another's. */
static bool server_is_own(int fd)
{
	struct error err = ERROR_INIT;
	uid_t user;

	return peer_user(fd, &user, &err) == 0 && user == geteuid();
}

static void server_on_pause(struct loop_timer *timer)
{
	struct stream_server *s = container_of(timer, struct stream_server, pause);

	loop_fd_set(&s->source, LOOP_READ);
}

static void server_on_connection(struct loop_fd *source, unsigned events)
{
	struct stream_server *s = container_of(source, struct stream_server, source);
	struct stream_session *session;
	bool is_own;
	int fd, one = 1;

	(void)events;
	fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		loop_fd_set(&s->source, 0);
		loop_timer_set(&s->pause, SERVER_PAUSE);
	}
	if (fd < 0)
		return;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	is_own = server_is_own(fd);
	if (!server_make_room(s, is_own)) {
		(void)fd_close(fd);
		return;
	}
	if (stream_session_new(&session, &s->owner, fd) < 0)
		return;
	list_add_tail(&s->strangers[is_own], stream_session_link(session));
	s->n_strangers++;
}

static unsigned server_port(const struct sockaddr_storage *a)
{
	return ntohs(a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
					      : ((const struct sockaddr_in *)a)->sin_port);
}

static int server_listen(struct stream_server *s, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	struct sockaddr_storage bound = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(bound);
	int one = 1;

	if (s->fd >= 0)
		return 0;
	fd = socket(s->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, (const struct sockaddr *)&s->address, s->address_len) < 0 ||
	    listen(fd, SOMAXCONN) < 0 || getsockname(fd, (struct sockaddr *)&bound, &len) < 0)
		return error_set(err, -errno, "listen on %s for streams", s->host);
	s->port = server_port(&bound);
	s->fd = TAKE_FD(fd);
	loop_fd_init(&s->source, s->loop, s->fd, LOOP_READ, server_on_connection);
	loop_timer_init(&s->pause, s->loop, server_on_pause);
	return 0;
}

/* ---- the server ---- */

int stream_server_new(struct stream_server **ret, struct loop *l, const char *address)
{
	struct stream_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->loop = l;
	s->fd = -1;
	list_init(&s->sessions);
	list_init(&s->strangers[0]);
	list_init(&s->strangers[1]);
	list_init(&s->offers);
	s->owner = (struct session_owner){
		.loop = l, .claim = server_claim, .closed = server_closed, .userdata = s
	};
	r = stream_address_read(address, &s->address, &s->address_len, s->host);
	if (r < 0) {
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct stream_server *stream_server_free(struct stream_server *s)
{
	if (!s)
		return NULL;
	while (!list_empty(&s->offers))
		offer_free(list_entry(s->offers.next, struct offer, link), false);
	while (!list_empty(&s->sessions))
		(void)stream_session_free(stream_session_of(s->sessions.next));
	for (unsigned i = 0; i < ARRAY_SIZE(s->strangers); i++)
		while (!list_empty(&s->strangers[i]))
			(void)stream_session_free(stream_session_of(s->strangers[i].next));
	if (s->fd >= 0) {
		loop_fd_done(&s->source);
		loop_timer_done(&s->pause);
	}
	s->fd = fd_close(s->fd);
	free(s);
	return NULL;
}

int stream_server_offer(struct stream_server *s, const struct stream_command *command, char *ret,
			size_t size, struct error *err)
{
	char halves[2][ID_SIZE];
	struct offer *o;
	int r = server_listen(s, err);

	if (r < 0)
		return r;
	if (s->n_offers >= STREAM_TOKENS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "%d URLs of streams wait to be used, the limit; each is good "
				    "for a minute",
				    STREAM_TOKENS_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(halves); i++)
		if (id_new(halves[i]) < 0)
			return error_set(err, -EIO, "draw a token");
	o = calloc(1, sizeof(*o));
	if (!o)
		return error_set(err, -ENOMEM, "offer a stream");
	o->server = s;
	(void)str_printf(o->token, sizeof(o->token), "%s%s", halves[0], halves[1]);
	r = str_printf(ret, size, "http://%s:%u/%s/%s", s->host, s->port, command->kind, o->token);
	if (r < 0) {
		free(o);
		return error_set(err, r, "offer a stream");
	}
	o->command = *command;
	list_init(&o->link);
	list_add_tail(&s->offers, &o->link);
	s->n_offers++;
	loop_timer_init(&o->timer, s->loop, offer_on_timer);
	loop_timer_set(&o->timer, STREAM_TOKEN_LIFE);
	return 0;
}
