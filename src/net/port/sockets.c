/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "net/port/inside.h"

static int sockets_open(void *arg, struct error *err)
{
	static const int families[SOCKETS_COUNT] = { AF_INET, AF_INET6 };
	struct sockets *s = arg;

	for (int i = 0; i < SOCKETS_COUNT; i++)
		s->fds[i] = socket(families[i], SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return s->fds[SOCKETS_IP4] < 0 && s->fds[SOCKETS_IP6] < 0
		       ? error_set(err, -errno, "make a socket in the network of a pod")
		       : 0;
}

static void sockets_run(struct pool_work *work)
{
	struct sockets *s = container_of(work, struct sockets, work);

	if (inside_run(s->netns_fd, sockets_open, s, &s->err) < 0 && !s->err.code)
		(void)error_set(&s->err, -EIO, "enter the network of a pod");
}

static void sockets_done(struct pool_work *work)
{
	struct sockets *s = container_of(work, struct sockets, work);

	s->netns_fd = fd_close(s->netns_fd);
	s->done(s);
}

void sockets_make(struct sockets *s, struct pool *pool, int netns_fd,
		  void (*done)(struct sockets *s))
{
	*s = (struct sockets){ .work = { .run = sockets_run, .done = sockets_done },
			       .netns_fd = netns_fd,
			       .fds = { -1, -1 },
			       .done = done };
	pool_submit(pool, &s->work);
}

const struct prefix *sockets_loopback(int which)
{
	static const struct prefix loopback[SOCKETS_COUNT] = {
		[SOCKETS_IP4] = { .family = AF_INET, .length = 32, .bytes = { 127, 0, 0, 1 } },
		[SOCKETS_IP6] = { .family = AF_INET6, .length = 128, .bytes = { [15] = 1 } },
	};

	return &loopback[which];
}

int sockets_connect(int fd, int which, uint16_t port)
{
	return sockets_connect_to(fd, sockets_loopback(which), port);
}

int sockets_connect_to(int fd, const struct prefix *address, uint16_t port)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_in ip4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 ip6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int r;

	/* A connection that failed in the background is still the socket's until this. */
	(void)connect(fd, &none, sizeof(none));
	memcpy(&ip4.sin_addr, address->bytes, sizeof(ip4.sin_addr));
	memcpy(&ip6.sin6_addr, address->bytes, sizeof(ip6.sin6_addr));
	if (address->family == AF_INET)
		r = connect(fd, (const struct sockaddr *)&ip4, sizeof(ip4));
	else
		r = connect(fd, (const struct sockaddr *)&ip6, sizeof(ip6));
	return r < 0 && errno != EINPROGRESS ? -errno : 0;
}
