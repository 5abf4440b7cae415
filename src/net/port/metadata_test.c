/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/metadata.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "net/netlink/address.h"
#include "net/netlink/bed_test.h"
#include "net/netlink/link.h"
#include "net/port/inside.h"

#define POD "192.0.2.2"
#define NEIGHBOUR "192.0.2.1"

/* The namespaces at both ends of a cable: the pod's, and that of whoever is beside it. */
static int pod_fd = -1, beside_fd = -1;
static uint32_t device;

static void end_up(struct netlink *nl, const char *name, const char *address, bool leads)
{
	const struct link_change up = { .power = LINK_UP };
	struct route route = { .forbidden = false };
	struct error err = ERROR_INIT;
	struct link l = { 0 };
	struct prefix p;

	CHECK_INT(link_find(nl, name, &l, &err), 0);
	CHECK_INT(link_set(nl, l.index, &up, &err), 0);
	CHECK_INT(prefix_parse(address, &p), 0);
	CHECK_INT(address_add(nl, l.index, &p, &err), 0);
	if (!leads)
		return;
	/* Whatever the neighbour does: its packets for that address come to the pod. */
	CHECK_INT(prefix_parse(METADATA_ADDRESS4 "/32", &route.to), 0);
	CHECK_INT(prefix_parse(POD, &route.via), 0);
	CHECK_INT(route_add(nl, &route, &err), 0);
}

static int beside_end(void *arg, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;

	(void)arg;
	if (netlink_open(&nl, err) == 0)
		end_up(&nl, "eth0", NEIGHBOUR "/24", true);
	return 0;
}

static int stand(void *arg, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	int r = netlink_open(&nl, err);

	(void)arg;
	return r < 0 ? r : inside_of_socket(nl.fd, err);
}

static void cable(void)
{
	struct link_veth veth = { .name = "eth0", .peer = "eth0" };
	struct error err = ERROR_INIT;

	bed_enter();
	pod_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	beside_fd = inside_run(INSIDE_NEW, stand, NULL, &err);
	CHECK(pod_fd >= 0 && beside_fd >= 0);
	veth.peer_ns_fd = beside_fd;
	CHECK_INT(link_add_veth(&bed_nl, &veth, &device, &err), 0);
	end_up(&bed_nl, "eth0", POD "/24", false);
	CHECK_INT(inside_run(beside_fd, beside_end, NULL, &err), 0);
}

struct attempt {
	const char *address;
	uint16_t port;
};

/* 0 or why it did not connect, within a second. */
static int attempt(void *arg, struct error *err)
{
	const struct attempt *a = arg;
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(a->port),
				  .sin_addr = { inet_addr(a->address) } };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int r = 0;
	socklen_t len = sizeof(r);

	(void)err;
	if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	if (poll(&p, 1, 1000) == 0)
		return -ETIMEDOUT;
	(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &r, &len);
	return -r;
}

static int attempt_from(int ns_fd, const char *address, uint16_t port)
{
	struct attempt a = { address, port };
	struct error err = ERROR_INIT;

	return inside_run(ns_fd, attempt, &a, &err);
}

static void service_of_a_pod(void)
{
	struct metadata_sockets s = METADATA_SOCKETS_NONE, again = METADATA_SOCKETS_NONE;
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(METADATA_PORT) };
	_cleanup_fd_ int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), taken = -1;
	struct error err = ERROR_INIT;
	int hops = 0;
	socklen_t len = sizeof(hops);

	CHECK_INT(metadata_listen(pod_fd, &s, &err), 0);
	CHECK(s.fd4 >= 0 && s.fd6 >= 0);
	CHECK_INT(attempt_from(pod_fd, METADATA_ADDRESS4, METADATA_PORT), 0);
	taken = accept4(s.fd4, NULL, NULL, SOCK_CLOEXEC);
	CHECK(taken >= 0);
	/* Its answers go no further than a hop. */
	CHECK_INT(getsockopt(taken, IPPROTO_IP, IP_TTL, &hops, &len), 0);
	CHECK_INT(hops, 1);
	/* Nobody beside the pod comes to it, by whatever way. */
	CHECK(attempt_from(beside_fd, METADATA_ADDRESS4, METADATA_PORT) < 0);
	len = sizeof(at);
	CHECK_INT(getsockname(s.fd4, (struct sockaddr *)&at, &len), 0);
	CHECK(attempt_from(beside_fd, METADATA_ADDRESS4, ntohs(at.sin_port)) < 0);
	CHECK(attempt_from(beside_fd, POD, ntohs(at.sin_port)) < 0);
	CHECK(accept4(s.fd4, NULL, NULL, SOCK_CLOEXEC) < 0 && errno == EAGAIN);
	/* The pod's own server has port 80 of all addresses, for itself and for others. */
	at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(METADATA_PORT) };
	CHECK_INT(bind(server, (const struct sockaddr *)&at, sizeof(at)), 0);
	CHECK_INT(listen(server, 8), 0);
	CHECK_INT(attempt_from(beside_fd, POD, METADATA_PORT), 0);
	CHECK_INT(attempt_from(pod_fd, "127.0.0.1", METADATA_PORT), 0);
	/* Once more, as by the next daemon: the new ones are meant. */
	CHECK_INT(metadata_listen(pod_fd, &again, &err), 0);
	CHECK_INT(attempt_from(pod_fd, METADATA_ADDRESS4, METADATA_PORT), 0);
	taken = fd_close(taken);
	taken = accept4(again.fd4, NULL, NULL, SOCK_CLOEXEC);
	CHECK(taken >= 0);
	metadata_sockets_close(&s);
	metadata_sockets_close(&again);
}

UNIT_MAIN({ "cable", cable, true }, { "service_of_a_pod", service_of_a_pod })
