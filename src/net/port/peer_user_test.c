/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/peer_user.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "unit.h"

#define SOMEBODY 54321

/* A loopback address of the family, with a port of the kernel's. */
static int listen_on(int family, struct sockaddr_storage *at, socklen_t *len)
{
	_cleanup_fd_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 ip6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in ip4 = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int r;

	if (family == AF_INET6)
		r = bind(fd, (const struct sockaddr *)&ip6, sizeof(ip6));
	else
		r = bind(fd, (const struct sockaddr *)&ip4, sizeof(ip4));
	*len = sizeof(*at);
	if (r < 0 || listen(fd, 8) < 0 || getsockname(fd, (struct sockaddr *)at, len) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* The user that is seen behind a connection of `user`; (uid_t)-1: none. */
static uid_t seen(int family, uid_t user, bool hangs_up)
{
	_cleanup_fd_ int server = -1, client = -1, accepted = -1;
	struct error err = ERROR_INIT;
	struct sockaddr_storage at;
	uid_t ret = (uid_t)-1;
	socklen_t len;

	server = listen_on(family, &at, &len);
	(void)setfsuid(user);
	client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)setfsuid(geteuid());
	if (server < 0 || client < 0 || connect(client, (const struct sockaddr *)&at, len) < 0)
		return (uid_t)-1;
	accepted = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	CHECK(accepted >= 0);
	if (hangs_up) {
		const struct linger at_once = { .l_onoff = 1 };

		CHECK_INT(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
		client = fd_close(client);
	}
	if (peer_user(accepted, &ret, &err) < 0)
		CHECK(hangs_up && ret == (uid_t)-1);
	return ret;
}

static void knows_users(void)
{
	if (geteuid() != 0) {
		SKIP("needs root");
		return;
	}
	CHECK_INT(seen(AF_INET, 0, false), 0);
	CHECK_INT(seen(AF_INET, SOMEBODY, false), SOMEBODY);
	CHECK_INT(seen(AF_INET6, SOMEBODY, false), SOMEBODY);
	CHECK_INT(seen(AF_INET6, 0, false), 0);
}

static void says_where_there_is_none(void)
{
	struct error err = ERROR_INIT;
	int pair[2];
	uid_t user;

	CHECK_INT(seen(AF_INET, geteuid(), true), -1U);
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	CHECK_INT(peer_user(pair[0], &user, &err), -EAFNOSUPPORT);
	(void)fd_close(pair[0]);
	(void)fd_close(pair[1]);
}

UNIT_MAIN({ "knows_users", knows_users }, { "says_where_there_is_none", says_where_there_is_none })
