/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/peer_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "net/netlink/address.h"
#include "net/netlink/bed_test.h"
#include "net/netlink/link.h"
#include "net/port/inside.h"

#define PORT 7474
#define HERE "169.254.74.2"
#define NODE "169.254.74.1"
#define STRANGER "169.254.74.9"

/* The namespaces at both ends of a cable: the listener's, and the node's. */
static int here_fd = -1, node_fd = -1;
static uint32_t device;

static void end_up(struct netlink *nl, const char *name, const char *const *addresses)
{
	const struct link_change up = { .power = LINK_UP };
	struct error err = ERROR_INIT;
	struct link l = { 0 };

	CHECK_INT(link_find(nl, name, &l, &err), 0);
	CHECK_INT(link_set(nl, l.index, &up, &err), 0);
	for (; *addresses; addresses++) {
		struct prefix p;

		CHECK_INT(prefix_parse(*addresses, &p), 0);
		CHECK_INT(address_add(nl, l.index, &p, &err), 0);
	}
}

static int node_end(void *arg, struct error *err)
{
	const char *const addresses[] = { NODE "/24", STRANGER "/24", NULL };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;

	(void)arg;
	if (netlink_open(&nl, err) == 0)
		end_up(&nl, "eth0", addresses);
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
	const char *const addresses[] = { HERE "/24", NULL }, *const none[] = { NULL };
	struct link_veth veth = { .name = "eth0", .peer = "eth0" };
	struct error err = ERROR_INIT;

	bed_enter();
	here_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	node_fd = inside_run(INSIDE_NEW, stand, NULL, &err);
	CHECK(here_fd >= 0 && node_fd >= 0);
	veth.peer_ns_fd = node_fd;
	CHECK_INT(link_add_veth(&bed_nl, &veth, &device, &err), 0);
	end_up(&bed_nl, "lo", none);
	end_up(&bed_nl, "eth0", addresses);
	CHECK_INT(inside_run(node_fd, node_end, NULL, &err), 0);
}

static struct sockaddr_in at(const char *address, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr = { inet_addr(address) } };
}

/* A connection that somebody begins: from where, and what they do to their socket before. */
struct attempt {
	const char *to, *from; /* from: NULL: as the kernel says */
	const char *device;    /* NULL: none */
	int fd;
	int error; /* of connect() */
};

static int begins(void *arg, struct error *err)
{
	struct attempt *a = arg;
	const struct sockaddr_in to = at(a->to, PORT), from = at(a->from ?: "0.0.0.0", 0);

	(void)err;
	a->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(a->fd >= 0);
	if (a->device)
		CHECK_INT(setsockopt(a->fd, SOL_SOCKET, SO_BINDTODEVICE, a->device,
				     (socklen_t)strlen(a->device)),
			  0);
	CHECK_INT(bind(a->fd, (const struct sockaddr *)&from, sizeof(from)), 0);
	a->error = connect(a->fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ? errno : 0;
	return 0;
}

/* The source of the next connection, or "". */
static const char *next_source(int listen_fd, int wait)
{
	static char text[INET_ADDRSTRLEN];
	struct pollfd ready = { .fd = listen_fd, .events = POLLIN };
	struct sockaddr_in from = { .sin_family = AF_UNSPEC };
	socklen_t len = sizeof(from);
	_cleanup_fd_ int fd = -1;

	if (poll(&ready, 1, wait) != 1)
		return "";
	fd = accept4(listen_fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
	CHECK(fd >= 0);
	return inet_ntop(AF_INET, &from.sin_addr, text, sizeof(text)) ?: "";
}

/* How it goes on: ECONNREFUSED, or 0: there is no answer. */
static int outcome(const struct attempt *a, int wait)
{
	struct pollfd ready = { .fd = a->fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int error = a->error;

	if (error == EINPROGRESS) {
		error = 0;
		if (poll(&ready, 1, wait) == 1)
			CHECK_INT(getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
		CHECK(error != 0 || ready.revents == 0);
	}
	return error;
}

/* What somebody begins is not there when what the node begins behind it is. */
static void is_unheard(int listen_fd, int ns_fd, struct attempt a, int error)
{
	struct attempt node = { .to = HERE, .from = NODE, .fd = -1 };
	struct error err = ERROR_INIT;

	a.fd = -1;
	if (inside_run(ns_fd, begins, &a, &err) == 0 &&
	    inside_run(node_fd, begins, &node, &err) == 0) {
		CHECK_STR(next_source(listen_fd, UNIT_PATIENCE * 1000), NODE);
		CHECK_STR(next_source(listen_fd, 0), "");
		CHECK_INT(outcome(&a, error ? UNIT_PATIENCE * 1000 : 0), error);
	}
	(void)fd_close(a.fd);
	(void)fd_close(node.fd);
}

/* V16: what the node speaks to in a guest is not reached by processes of the guest. */
static void for_the_node_alone(void)
{
	struct peer_port_plan plan = {
		.device = device,
		.address = { 169, 254, 74, 2 },
		.port = PORT,
		.peer = { 169, 254, 74, 1 },
		.backlog = 4,
	};
	struct error err = ERROR_INIT;
	_cleanup_fd_ int fd = peer_port_listen(&plan, &err);

	CHECK(fd >= 0);
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	is_unheard(fd, here_fd, (struct attempt){ .to = HERE }, 0);
	is_unheard(fd, here_fd, (struct attempt){ .to = "127.0.0.1" }, ECONNREFUSED);
	is_unheard(fd, here_fd, (struct attempt){ .to = HERE, .from = "127.0.0.1" }, 0);
	is_unheard(fd, here_fd, (struct attempt){ .to = HERE, .device = "lo" }, 0);
	is_unheard(fd, here_fd, (struct attempt){ .to = HERE, .device = "eth0" }, 0);
	/* On the device, but not the node. */
	is_unheard(fd, node_fd, (struct attempt){ .to = HERE, .from = STRANGER }, 0);
}

static void faults(void)
{
	struct peer_port_plan plan = { .device = device, .address = { 10, 9, 8, 7 }, .port = PORT };
	struct error err = ERROR_INIT;

	CHECK_INT(peer_port_listen(&plan, &err), -EADDRNOTAVAIL);
	CHECK_STR(error_text(&err), "listen on port 7474: Cannot assign requested address");
}

UNIT_MAIN({ "cable", cable, true }, { "for_the_node_alone", for_the_node_alone },
	  { "faults", faults })
