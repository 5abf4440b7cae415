/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/peer_user.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

#include "net/netlink/netlink.h"

/* Address and port as sock_diag has them: 0 or -EAFNOSUPPORT. */
static int diag_address(const struct sockaddr_storage *a, __be32 address[4], __be16 *port)
{
	const struct sockaddr_in6 *ip6 = (const void *)a;
	const struct sockaddr_in *ip4 = (const void *)a;

	if (a->ss_family == AF_INET) {
		address[0] = ip4->sin_addr.s_addr;
		*port = ip4->sin_port;
		return 0;
	}
	if (a->ss_family != AF_INET6)
		return -EAFNOSUPPORT;
	memcpy(address, &ip6->sin6_addr, sizeof(ip6->sin6_addr));
	*port = ip6->sin6_port;
	return 0;
}

/* The socket at the other end: what is remote here is local there. */
static int diag_request(int fd, struct inet_diag_req_v2 *ret)
{
	struct sockaddr_storage here, there;
	socklen_t here_len = sizeof(here), there_len = sizeof(there);
	int r;

	if (getsockname(fd, (struct sockaddr *)&here, &here_len) < 0 ||
	    getpeername(fd, (struct sockaddr *)&there, &there_len) < 0)
		return -errno;
	*ret = (struct inet_diag_req_v2){
		.sdiag_family = (uint8_t)there.ss_family,
		.sdiag_protocol = IPPROTO_TCP,
		.id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
	};
	r = diag_address(&there, ret->id.idiag_src, &ret->id.idiag_sport);
	return r < 0 ? r : diag_address(&here, ret->id.idiag_dst, &ret->id.idiag_dport);
}

static int diag_read(const struct netmsg_head *answer, void *arg)
{
	struct netmsg_bytes rest = answer->body;
	struct inet_diag_msg m;
	uid_t *ret = arg;
	int r = netmsg_take(&rest, &m, sizeof(m));

	/* A socket that nobody has open any more is nobody's: the kernel tells 0 as its user. */
	if (r == 0 && m.idiag_inode != 0)
		*ret = m.idiag_uid;
	return r;
}

int peer_user(int fd, uid_t *ret, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	static const char what[] = "find the user of a connection";
	struct inet_diag_req_v2 request;
	uid_t user = (uid_t)-1;
	struct netmsg m;
	int r = diag_request(fd, &request);

	if (r < 0)
		return error_set(err, r, "%s", what);
	netmsg_begin(&m, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_ACK, &request, sizeof(request));
	r = netlink_open_for(&nl, NETLINK_SOCK_DIAG, err);
	if (r == 0)
		r = netlink_ask(&nl, &m, diag_read, &user, what, err);
	if (r == 0 && user == (uid_t)-1)
		r = error_set(err, -ENOENT, "%s", what);
	if (r == 0)
		*ret = user;
	return r;
}
