/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/peer_port.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"

/*
 * Theory of operation. A comparison behind accept() comes too late: the connection is made, and
 * takes a place in the queue. SO_BINDTODEVICE is no wall: what a process sends to an address of its
 * own host is delivered through lo, but counts as a packet of the device that has the address
 * (inet_iif() takes the device of the route). A filter sees the device that the packet came from.
 * It is asked for each segment to the listening socket, SYNs among them, and the sockets that are
 * accepted inherit it.
 */

/* Of struct iphdr. */
#define PEER_PORT_SOURCE 12

static int peer_port_filter(int fd, const struct peer_port_plan *plan)
{
	uint32_t peer;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, plan->device, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_NET_OFF + PEER_PORT_SOURCE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

	memcpy(&peer, plan->peer, sizeof(peer));
	code[3].k = ntohl(peer);
	if (!peer)
		code[3].jf = 0;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno
											   : 0;
}

int peer_port_listen(const struct peer_port_plan *plan, struct error *err)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(plan->port) };
	_cleanup_fd_ int fd = -1;
	int r;

	memcpy(&sin.sin_addr, plan->address, sizeof(sin.sin_addr));
	fd = sysio_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(err, -errno, "make a socket");
	/* Before it listens: nothing comes in between. */
	r = peer_port_filter(fd, plan);
	if (r < 0)
		return error_set(err, r, "set the filter of port %u", plan->port);
	if (bind(fd, (const struct sockaddr *)&sin, sizeof(sin)) < 0 ||
	    listen(fd, plan->backlog) < 0)
		return error_set(err, -errno, "listen on port %u", plan->port);
	return TAKE_FD(fd);
}
