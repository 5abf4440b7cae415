/* SPDX-License-Identifier: Apache-2.0 */
#include "net/filter/filter.h"

/* Before the kernel's headers, which leave out what libc has said. */
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>

#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <poll.h>
#include <sys/socket.h>

#include "net/netlink/address.h"
#include "net/netlink/bed_test.h"
#include "net/netlink/conntrack.h"
#include "net/netlink/link.h"
#include "net/port/inside.h"
#include "net/port/port.h"
#include "net/port/sysctl.h"

/*
 * The packet filter judged by what arrives. The program stands in the node's namespace; the world
 * is behind the link up0, and pods are behind ports.
 */
#define NODE4 "192.0.2.1"
#define NODE6 "fd01::1"
#define WORLD4 "192.0.2.2"
#define WORLD6 "fd01::2"
/* What the world has behind the node, too. */
#define FAR4 "198.51.100.2"
#define METADATA4 "169.254.169.254"
#define METADATA6 "fd00:ec2::254"
#define HOST_PORT 8080
#define POD_PORT 80
#define HOST_UDP 5353
#define POD_UDP 53

static struct filter *filter;
static int node_ns = -1, world_ns = -1, far_ns = -1;

enum pod { ONE, TWO, OTHER, INTERNAL, OPEN, POD_COUNT };
static struct {
	uint32_t network;
	const char *ip4, *ip6;
	int ns;
	struct filter_port port;
} pods[POD_COUNT] = {
	[ONE] = { 1, "10.171.0.2", "fd02:0:0:1::2", -1, { 0 } },
	[TWO] = { 1, "10.171.0.3", "fd02:0:0:1::3", -1, { 0 } },
	[OTHER] = { 2, "10.171.1.2", "fd02:0:0:2::2", -1, { 0 } },
	[INTERNAL] = { 3, "10.171.2.2", "fd02:0:0:3::2", -1, { 0 } },
	[OPEN] = { 4, "10.171.3.2", "fd02:0:0:4::2", -1, { 0 } },
};
static struct filter_network networks[] = {
	{ .number = 1 },
	{ .number = 2 },
	{ .number = 3, .internal = true },
	{ .number = 4, .node_open = true },
};
static const struct filter_publish published[] = {
	{ .protocol = IPPROTO_TCP, .host_port = HOST_PORT, .pod_port = POD_PORT },
	{ .protocol = IPPROTO_UDP, .host_port = HOST_UDP, .pod_port = POD_UDP },
};

static struct prefix of(const char *text)
{
	struct prefix p = { .family = 0 };

	CHECK_INT(prefix_parse(text, &p), 0);
	return p;
}

/* ---- the namespaces ---- */

static int stand(void *arg, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	int r = netlink_open(&nl, err);

	(void)arg;
	return r < 0 ? r : inside_of_socket(nl.fd, err);
}

struct end {
	const char *name;
	const char *addresses[6];
	const char *via4, *via6; /* default routes */
};

static int end_up(void *arg, struct error *err)
{
	const struct end *e = arg;
	const struct link_change up = { .power = LINK_UP, .no_auto_ipv6 = true };
	const struct link_change lo_up = { .power = LINK_UP };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link l = { 0 };
	struct prefix p;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = link_set(&nl, 1, &lo_up, err);
	if (r == 0)
		r = link_find(&nl, e->name, &l, err);
	if (r == 0)
		r = link_set(&nl, l.index, &up, err);
	for (size_t i = 0; r == 0 && e->addresses[i]; i++) {
		p = of(e->addresses[i]);
		r = address_add(&nl, l.index, &p, err);
	}
	if (r == 0 && e->via4) {
		p = of(e->via4);
		r = route_add_default(&nl, &p, err);
	}
	if (r == 0 && e->via6) {
		p = of(e->via6);
		r = route_add_default(&nl, &p, err);
	}
	return r;
}

/* A namespace at the other end of a link of the node's, which forwards. */
static int stranger(const char *name, struct end node, struct end far)
{
	struct link_veth veth = { .name = name, .peer = "eth0" };
	struct error err = ERROR_INIT;
	_cleanup_fd_ int proc_fd = sysctl_open(&err);
	char setting[64];
	int ns_fd = inside_run(INSIDE_NEW, stand, NULL, &err);

	CHECK(proc_fd >= 0 && ns_fd >= 0);
	veth.peer_ns_fd = ns_fd;
	CHECK_INT(link_add_veth(&bed_nl, &veth, NULL, &err), 0);
	node.name = name;
	far.name = "eth0";
	CHECK_INT(end_up(&node, &err), 0);
	CHECK_INT(inside_run(ns_fd, end_up, &far, &err), 0);
	(void)snprintf(setting, sizeof(setting), "ipv4/conf/%s/forwarding", name);
	CHECK_INT(sysctl_write(proc_fd, setting, "1", &err), 0);
	(void)snprintf(setting, sizeof(setting), "ipv6/conf/%s/force_forwarding", name);
	if (sysctl_write(proc_fd, setting, "1", NULL) == -ENOENT)
		CHECK_INT(sysctl_write(proc_fd, "ipv6/conf/all/forwarding", "1", &err), 0);
	return ns_fd;
}

static void pod_up(enum pod which)
{
	struct port_plan plan = { .pod_name = "eth0", .is_default = true, .loopback = true };
	struct filter_port *p = &pods[which].port;
	struct error err = ERROR_INIT;

	pods[which].ns = inside_run(INSIDE_NEW, stand, NULL, &err);
	CHECK(pods[which].ns >= 0);
	plan.ip4 = p->ip4 = of(pods[which].ip4);
	plan.ip6 = p->ip6 = of(pods[which].ip6);
	plan.gateway4 = of("10.171.0.1");
	plan.group = PORT_GROUP + pods[which].network;
	plan.pool4 = networks[pods[which].network - 1].pool4;
	plan.pool6 = networks[pods[which].network - 1].pool6;
	port_name(&plan.ip4, plan.name);
	port_mac(&plan.ip4, plan.mac);
	p->network = pods[which].network;
	CHECK_INT(port_make(&plan, pods[which].ns, &p->link, &err), 0);
	CHECK_INT(err.code, 0);
}

static struct filter_state state(void)
{
	static struct filter_port ports[POD_COUNT];

	for (size_t i = 0; i < POD_COUNT; i++)
		ports[i] = pods[i].port;
	return (struct filter_state){ .networks = networks,
				      .n_networks = sizeof(networks) / sizeof(networks[0]),
				      .ports = ports,
				      .n_ports = POD_COUNT };
}

static void own_namespaces(void)
{
	const struct end node = { .addresses = { NODE4 "/24", NODE6 "/64" } },
			 world = { .addresses = { WORLD4 "/24", WORLD6 "/64", METADATA4 "/32",
						  METADATA6 "/128" },
				   .via4 = NODE4,
				   .via6 = NODE6 },
			 node_far = { .addresses = { "198.51.100.1/24" } },
			 far = { .addresses = { FAR4 "/24" }, .via4 = "198.51.100.1" };
	const struct route metadata4 = { .to = of(METADATA4), .via = of(WORLD4) },
			   metadata6 = { .to = of(METADATA6), .via = of(WORLD6) };
	struct filter_state s;
	struct error err = ERROR_INIT;
	char text[64];

	bed_enter();
	node_ns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	CHECK(node_ns >= 0);
	world_ns = stranger("up0", node, world);
	CHECK_INT(route_add(&bed_nl, &metadata4, &err), 0);
	CHECK_INT(route_add(&bed_nl, &metadata6, &err), 0);
	far_ns = stranger("up1", node_far, far);
	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
		(void)snprintf(text, sizeof(text), "10.171.%zu.0/24", i);
		networks[i].pool4 = of(text);
		(void)snprintf(text, sizeof(text), "fd02:0:0:%zu::/64", i + 1);
		networks[i].pool6 = of(text);
	}
	for (size_t i = 0; i < POD_COUNT; i++)
		pod_up((enum pod)i);
	pods[ONE].port.publish = published;
	pods[ONE].port.n_publish = sizeof(published) / sizeof(published[0]);
	CHECK_INT(filter_new(&filter, &err), 0);
	s = state();
	if (filter)
		CHECK_INT(filter_sync(filter, &s, &err), 0);
	CHECK_INT(err.code, 0);
}

/* ---- packets ---- */

struct spot {
	union {
		struct sockaddr any;
		struct sockaddr_in in4;
		struct sockaddr_in6 in6;
	} at;
	socklen_t len;
};

static struct spot spot(const char *address, uint16_t port)
{
	struct spot s = { .at.in4 = { .sin_family = AF_INET, .sin_port = htons(port) },
			  .len = sizeof(s.at.in4) };

	if (strchr(address, ':')) {
		s = (struct spot){ .at.in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) },
				   .len = sizeof(s.at.in6) };
		CHECK_INT(inet_pton(AF_INET6, address, &s.at.in6.sin6_addr), 1);
	} else {
		CHECK_INT(inet_pton(AF_INET, address, &s.at.in4.sin_addr), 1);
	}
	return s;
}

static const char *spot_text(const struct spot *s)
{
	static char text[INET6_ADDRSTRLEN];

	if (s->at.any.sa_family == AF_INET6)
		return inet_ntop(AF_INET6, &s->at.in6.sin6_addr, text, sizeof(text)) ?: "";
	return inet_ntop(AF_INET, &s->at.in4.sin_addr, text, sizeof(text)) ?: "";
}

struct call {
	int type; /* SOCK_* */
	const char *from, *to;
	uint16_t port;
	const char *text; /* of a datagram; NULL: the socket only is made and bound */
	int fd;
	int error;
};

static int call_socket(struct call *c, const char *address, uint16_t port)
{
	const struct spot here = spot(address, port);
	const int on = 1;

	c->fd = socket(here.at.any.sa_family, c->type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(c->fd >= 0);
	/* An address that is there a moment later, or that was just used. */
	CHECK_INT(setsockopt(c->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	return bind(c->fd, &here.at.any, here.len) < 0 ? -errno : 0;
}

static int listens(void *arg, struct error *err)
{
	struct call *c = arg;

	(void)err;
	CHECK_INT(call_socket(c, c->to, c->port), 0);
	if (c->type == SOCK_STREAM)
		CHECK_INT(listen(c->fd, 16), 0);
	return 0;
}

static int listener(int ns_fd, int type, const char *address, uint16_t port)
{
	struct call c = { .type = type, .to = address, .port = port, .fd = -1 };

	CHECK_INT(inside_run(ns_fd, listens, &c, NULL), 0);
	return c.fd;
}

static int begins(void *arg, struct error *err)
{
	struct call *c = arg;
	const struct spot there = spot(c->to, c->port);
	ssize_t n;

	(void)err;
	CHECK_INT(call_socket(c, c->from ?: strchr(c->to, ':') ? "::" : "0.0.0.0", 0), 0);
	if (c->type == SOCK_STREAM)
		n = connect(c->fd, &there.at.any, there.len);
	else
		n = sendto(c->fd, c->text, strlen(c->text), 0, &there.at.any, there.len);
	c->error = n < 0 ? errno : 0;
	return 0;
}

static bool is_ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 5000) == 1;
}

/* A connection from there: NULL, or what failed; `source` is how the listener sees it. */
static const char *connects(int ns_fd, const char *to, uint16_t port, int listen_fd,
			    const char *source)
{
	struct call c = { .type = SOCK_STREAM, .to = to, .port = port, .fd = -1 };
	struct spot seen = { .len = sizeof(seen.at) };
	socklen_t len = sizeof(c.error);
	const char *problem = NULL;
	int fd;

	CHECK_INT(inside_run(ns_fd, begins, &c, NULL), 0);
	if (c.error == EINPROGRESS && !is_ready(c.fd, POLLOUT))
		problem = "timed out";
	else if (c.error == 0 || c.error == EINPROGRESS)
		CHECK_INT(getsockopt(c.fd, SOL_SOCKET, SO_ERROR, &c.error, &len), 0);
	if (!problem && c.error)
		problem = strerror(c.error);
	if (!problem) {
		fd = is_ready(listen_fd, POLLIN)
			     ? accept4(listen_fd, &seen.at.any, &seen.len, SOCK_CLOEXEC)
			     : -1;
		if (fd < 0)
			problem = "somebody else answered";
		else if (source)
			CHECK_STR(spot_text(&seen), source);
		(void)fd_close(fd);
	}
	(void)fd_close(c.fd);
	return problem;
}

#define CONNECTS(ns, to, port, listen_fd, source)                                                  \
	CHECK_STR(connects((ns), (to), (port), (listen_fd), (source)) ?: "", "")
#define REFUSED(ns, to, port)                                                                      \
	CHECK_STR(connects((ns), (to), (port), -1, NULL), "Connection refused")

static void says(int ns_fd, const char *from, const char *to, uint16_t port, const char *text)
{
	struct call c = { .type = SOCK_DGRAM, .from = from, .to = to, .port = port, .fd = -1 };

	c.text = text;
	CHECK_INT(inside_run(ns_fd, begins, &c, NULL), 0);
	(void)fd_close(c.fd);
}

/* The next datagram that comes there, and from whom. */
static const char *hears(int fd, struct spot *from)
{
	static char text[64];
	ssize_t n = -1;

	from->len = sizeof(from->at);
	if (is_ready(fd, POLLIN))
		n = recvfrom(fd, text, sizeof(text) - 1, 0, &from->at.any, &from->len);
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

/* Whether what the node has said comes first; both are heard. */
static bool is_good(int fd)
{
	struct spot seen;
	const bool is = strcmp(hears(fd, &seen), "good") == 0;

	if (!is)
		CHECK_STR(hears(fd, &seen), "good");
	return is;
}

/* What the node says after it arrives alone. */
static bool is_dropped(int ns_fd, const char *from, const char *to, uint16_t port, int fd)
{
	struct spot at = { .len = sizeof(at.at) };
	char there[INET6_ADDRSTRLEN];

	says(ns_fd, from, to, port, "bad");
	CHECK_INT(getsockname(fd, &at.at.any, &at.len), 0);
	(void)snprintf(there, sizeof(there), "%s", spot_text(&at));
	says(node_ns, NULL, there, ntohs(at.at.in4.sin_port), "good");
	return is_good(fd);
}

/* ---- who reaches whom ---- */

static void pods_of_a_network(void)
{
	_cleanup_fd_ int two4 = listener(pods[TWO].ns, SOCK_STREAM, pods[TWO].ip4, POD_PORT),
			 two6 = listener(pods[TWO].ns, SOCK_STREAM, pods[TWO].ip6, POD_PORT);

	CONNECTS(pods[ONE].ns, pods[TWO].ip4, POD_PORT, two4, pods[ONE].ip4);
	CONNECTS(pods[ONE].ns, pods[TWO].ip6, POD_PORT, two6, pods[ONE].ip6);
	CONNECTS(node_ns, pods[TWO].ip4, POD_PORT, two4, NULL);
	CONNECTS(node_ns, pods[TWO].ip6, POD_PORT, two6, NULL);
}

static void pods_of_others(void)
{
	_cleanup_fd_ int four = listener(pods[TWO].ns, SOCK_DGRAM, pods[TWO].ip4, 7),
			 six = listener(pods[TWO].ns, SOCK_DGRAM, pods[TWO].ip6, 7);

	CHECK(is_dropped(pods[OTHER].ns, NULL, pods[TWO].ip4, 7, four));
	CHECK(is_dropped(pods[OTHER].ns, NULL, pods[TWO].ip6, 7, six));
	CHECK(is_dropped(pods[INTERNAL].ns, NULL, pods[TWO].ip4, 7, four));
	CHECK(is_dropped(pods[INTERNAL].ns, NULL, pods[TWO].ip6, 7, six));
	CHECK(is_dropped(pods[OPEN].ns, NULL, pods[TWO].ip4, 7, four));
	CHECK(is_dropped(world_ns, NULL, pods[TWO].ip4, 7, four));
	CHECK(is_dropped(world_ns, NULL, pods[TWO].ip6, 7, six));
	CHECK(!is_dropped(pods[ONE].ns, NULL, pods[TWO].ip4, 7, four));
	CHECK(!is_dropped(pods[ONE].ns, NULL, pods[TWO].ip6, 7, six));
}

static void the_world(void)
{
	_cleanup_fd_ int four = listener(world_ns, SOCK_STREAM, WORLD4, 80),
			 six = listener(world_ns, SOCK_STREAM, WORLD6, 80);

	CONNECTS(pods[ONE].ns, WORLD4, 80, four, NODE4);
	CONNECTS(pods[ONE].ns, WORLD6, 80, six, NODE6);
	REFUSED(pods[INTERNAL].ns, WORLD4, 80);
	REFUSED(pods[INTERNAL].ns, WORLD6, 80);
}

static void published_ports(void)
{
	_cleanup_fd_ int four = listener(pods[ONE].ns, SOCK_STREAM, pods[ONE].ip4, POD_PORT),
			 six = listener(pods[ONE].ns, SOCK_STREAM, pods[ONE].ip6, POD_PORT);
	struct error err = ERROR_INIT;

	CONNECTS(world_ns, NODE4, HOST_PORT, four, WORLD4);
	CONNECTS(world_ns, NODE6, HOST_PORT, six, WORLD6);
	CONNECTS(node_ns, NODE4, HOST_PORT, four, NODE4);
	CONNECTS(node_ns, NODE6, HOST_PORT, six, NODE6);
	CONNECTS(node_ns, "127.0.0.1", HOST_PORT, four, NULL);
	CONNECTS(node_ns, "::1", HOST_PORT, six, NULL);
	/* Itself, and pods of its network and of others. */
	CONNECTS(pods[ONE].ns, NODE4, HOST_PORT, four, NULL);
	CONNECTS(pods[ONE].ns, NODE6, HOST_PORT, six, NULL);
	CONNECTS(pods[TWO].ns, NODE4, HOST_PORT, four, pods[TWO].ip4);
	CONNECTS(pods[TWO].ns, NODE6, HOST_PORT, six, pods[TWO].ip6);
	CONNECTS(pods[OTHER].ns, NODE4, HOST_PORT, four, pods[OTHER].ip4);
	CONNECTS(pods[OTHER].ns, NODE6, HOST_PORT, six, pods[OTHER].ip6);

	CHECK_INT(filter_remove_port(filter, &pods[ONE].port, &err), 0);
	CHECK_STR(connects(world_ns, NODE4, HOST_PORT, four, NULL), "Connection refused");
	CHECK_STR(connects(node_ns, "::1", HOST_PORT, six, NULL), "Connection refused");
	CHECK_INT(filter_add_port(filter, &pods[ONE].port, &err), 0);
	CONNECTS(world_ns, NODE4, HOST_PORT, four, WORLD4);
	CONNECTS(node_ns, "::1", HOST_PORT, six, NULL);
	CHECK_INT(err.code, 0);
}

static void services_of_the_node(void)
{
	_cleanup_fd_ int four = listener(node_ns, SOCK_STREAM, NODE4, 22),
			 six = listener(node_ns, SOCK_STREAM, NODE6, 22);

	REFUSED(pods[ONE].ns, NODE4, 22);
	REFUSED(pods[ONE].ns, NODE6, 22);
	REFUSED(pods[ONE].ns, "10.171.0.1", 22);
	REFUSED(pods[INTERNAL].ns, NODE4, 22);
	CONNECTS(pods[OPEN].ns, NODE4, 22, four, pods[OPEN].ip4);
	CONNECTS(pods[OPEN].ns, NODE6, 22, six, pods[OPEN].ip6);
	CONNECTS(world_ns, NODE4, 22, four, WORLD4);
}

static int sees_error(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	CHECK(is_ready(fd, POLLERR));
	CHECK_INT(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return error;
}

/* What is not TCP is told by ICMP. */
static int is_told(void *arg, struct error *err)
{
	struct call *c = arg;
	const struct spot there = spot(c->to, c->port);

	(void)err;
	CHECK_INT(call_socket(c, strchr(c->to, ':') ? "::" : "0.0.0.0", 0), 0);
	CHECK_INT(connect(c->fd, &there.at.any, there.len), 0);
	CHECK_INT(send(c->fd, "x", 1, 0), 1);
	c->error = sees_error(c->fd);
	(void)fd_close(c->fd);
	return 0;
}

static int told(int ns_fd, const char *to)
{
	struct call c = { .type = SOCK_DGRAM, .to = to, .port = 7, .fd = -1 };

	CHECK_INT(inside_run(ns_fd, is_told, &c, NULL), 0);
	return c.error;
}

/* An ICMP echo, which the kernel answers. */
static int echoes(void *arg, struct error *err)
{
	const struct call *c = arg;
	const bool is_4 = !strchr(c->to, ':');
	const struct spot there = spot(c->to, 0);
	const uint8_t echo[8] = { is_4 ? 8 : 128 };
	_cleanup_fd_ int fd = socket(is_4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC,
				     is_4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);

	(void)err;
	CHECK(fd >= 0);
	CHECK_INT(sendto(fd, echo, sizeof(echo), 0, &there.at.any, there.len), sizeof(echo));
	return is_ready(fd, POLLIN) ? 0 : -ETIMEDOUT;
}

/* Not ONE, to which the kernel owes few messages for now: redirects for its hairpin, which the
 * filter drops, count too. */
static void what_is_told(void)
{
	struct call four = { .to = NODE4 }, six = { .to = NODE6 };

	CHECK_INT(told(pods[TWO].ns, NODE4), EHOSTUNREACH);
	CHECK_INT(told(pods[TWO].ns, NODE6), EACCES);
	CHECK_INT(told(pods[INTERNAL].ns, WORLD4), EHOSTUNREACH);
	CHECK_INT(inside_run(pods[TWO].ns, echoes, &four, NULL), 0);
	CHECK_INT(inside_run(pods[TWO].ns, echoes, &six, NULL), 0);
}

static void what_passes_through(void)
{
	_cleanup_fd_ int fd = listener(far_ns, SOCK_STREAM, FAR4, HOST_PORT),
			 udp = listener(far_ns, SOCK_DGRAM, FAR4, 7);
	struct filter_state s = state();
	struct error err = ERROR_INIT;

	/* Also to the port that a pod has published. */
	CONNECTS(world_ns, FAR4, HOST_PORT, fd, WORLD4);
	CONNECTS(pods[TWO].ns, FAR4, HOST_PORT, fd, "198.51.100.1");
	s.drop_transit4 = true;
	CHECK_INT(filter_sync(filter, &s, &err), 0);
	CHECK(is_dropped(world_ns, NULL, FAR4, 7, udp));
	CONNECTS(pods[TWO].ns, FAR4, HOST_PORT, fd, "198.51.100.1");
	s.drop_transit4 = false;
	CHECK_INT(filter_sync(filter, &s, &err), 0);
	CHECK(!is_dropped(world_ns, NULL, FAR4, 7, udp));
	CHECK_INT(err.code, 0);
}

static void metadata_of_a_cloud(void)
{
	_cleanup_fd_ int four = listener(world_ns, SOCK_DGRAM, METADATA4, 80),
			 six = listener(world_ns, SOCK_DGRAM, METADATA6, 80);

	CHECK(is_dropped(pods[ONE].ns, NULL, METADATA4, 80, four));
	CHECK(is_dropped(pods[ONE].ns, NULL, METADATA6, 80, six));
	CHECK(is_dropped(pods[OPEN].ns, NULL, METADATA4, 80, four));
}

/* ---- what a pod forges ---- */

static int takes_addresses(void *arg, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link l = { 0 };
	const char *const *list = arg;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = link_find(&nl, "eth0", &l, err);
	for (; r == 0 && *list; list++) {
		struct prefix p = of(*list);

		r = address_add(&nl, l.index, &p, err);
	}
	return r;
}

static void forged_sources(void)
{
	_cleanup_fd_ int four = listener(world_ns, SOCK_DGRAM, WORLD4, 7),
			 six = listener(world_ns, SOCK_DGRAM, WORLD6, 7),
			 two4 = listener(pods[TWO].ns, SOCK_DGRAM, pods[TWO].ip4, 7),
			 two6 = listener(pods[TWO].ns, SOCK_DGRAM, pods[TWO].ip6, 7);
	const char *forged[] = { "203.0.113.9", "10.171.1.2", "fd09::9", "fd02:0:0:2::2", NULL };
	struct error err = ERROR_INIT;

	CHECK_INT(inside_run(pods[ONE].ns, takes_addresses, forged, &err), 0);
	for (size_t i = 0; forged[i]; i++) {
		const bool is_4 = !strchr(forged[i], ':');

		CHECK(is_dropped(pods[ONE].ns, forged[i], is_4 ? WORLD4 : WORLD6, 7,
				 is_4 ? four : six));
		CHECK(is_dropped(pods[ONE].ns, forged[i], is_4 ? pods[TWO].ip4 : pods[TWO].ip6, 7,
				 is_4 ? two4 : two6));
	}
	CHECK(!is_dropped(pods[ONE].ns, pods[ONE].ip4, WORLD4, 7, four));
	CHECK(!is_dropped(pods[ONE].ns, pods[ONE].ip6, WORLD6, 7, six));
}

/* A datagram with any addresses, straight to the node. */
static int sends_frame(void *arg, struct error *err)
{
	static const uint8_t mac[ETH_ALEN] = { 0x02, 0x6e, 0, 0, 0, 1 };
	const struct call *c = arg;
	struct {
		struct iphdr ip;
		struct udphdr udp;
		char text[3];
	} __attribute__((packed)) frame = {
		.ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP },
		.udp = { .source = htons(1234), .dest = htons(c->port) },
	};
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_IP),
				  .sll_halen = sizeof(mac) };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	_cleanup_fd_ int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint16_t words[sizeof(frame.ip) / 2];
	struct link l = { 0 };
	uint32_t sum = 0;

	CHECK(fd >= 0 && netlink_open(&nl, err) == 0 && link_find(&nl, "eth0", &l, err) == 0);
	at.sll_ifindex = (int)l.index;
	memcpy(at.sll_addr, mac, sizeof(mac));
	memcpy(frame.text, "bad", 3);
	frame.ip.saddr = inet_addr(c->from);
	frame.ip.daddr = inet_addr(c->to);
	frame.ip.tot_len = htons(sizeof(frame));
	frame.udp.len = htons(sizeof(frame.udp) + sizeof(frame.text));
	memcpy(words, &frame.ip, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	frame.ip.check = (uint16_t) ~(sum + (sum >> 16));
	CHECK_INT(sendto(fd, &frame, sizeof(frame), 0, (const struct sockaddr *)&at, sizeof(at)),
		  sizeof(frame));
	return 0;
}

static bool is_frame_dropped(enum pod pod, const char *from, const char *to, int fd, uint16_t port)
{
	struct call c = { .from = from, .to = to, .port = port };

	CHECK_INT(inside_run(pods[pod].ns, sends_frame, &c, NULL), 0);
	says(node_ns, NULL, to, port, "good");
	return is_good(fd);
}

static void loopback_of_the_node(void)
{
	_cleanup_fd_ int lo = listener(node_ns, SOCK_DGRAM, "127.0.0.1", 7),
			 node = listener(node_ns, SOCK_DGRAM, NODE4, 7);

	CHECK(is_frame_dropped(OPEN, pods[OPEN].ip4, "127.0.0.1", lo, 7));
	CHECK(is_frame_dropped(OPEN, "127.0.0.1", NODE4, node, 7));
	CHECK(is_frame_dropped(OPEN, pods[ONE].ip4, NODE4, node, 7));
	CHECK(!is_frame_dropped(OPEN, pods[OPEN].ip4, NODE4, node, 7));
}

/* ---- what is remembered ---- */

static void stale_connection(void)
{
	_cleanup_fd_ int one = listener(pods[ONE].ns, SOCK_DGRAM, pods[ONE].ip4, POD_UDP),
			 two = listener(pods[TWO].ns, SOCK_DGRAM, pods[TWO].ip4, POD_UDP);
	struct filter_port next = pods[TWO].port;
	struct conntrack_stale stale = { .protocol = IPPROTO_UDP,
					 .host_port = HOST_UDP,
					 .pod = pods[ONE].port.ip4 };
	struct call c = { .type = SOCK_DGRAM, .to = NODE4, .port = HOST_UDP, .text = "a" };
	const struct spot there = spot(NODE4, HOST_UDP);
	struct error err = ERROR_INIT;
	struct spot seen;

	CHECK_INT(inside_run(world_ns, begins, &c, NULL), 0);
	CHECK_STR(hears(one, &seen), "a");
	CHECK_INT(filter_remove_port(filter, &pods[ONE].port, &err), 0);
	next.publish = published;
	next.n_publish = 2;
	CHECK_INT(filter_remove_port(filter, &pods[TWO].port, &err), 0);
	CHECK_INT(filter_add_port(filter, &next, &err), 0);
	/* The kernel still leads it to the pod that was there. */
	CHECK_INT(sendto(c.fd, "b", 1, 0, &there.at.any, there.len), 1);
	CHECK_STR(hears(one, &seen), "b");
	CHECK_INT(conntrack_forget(&stale, 1, &err), 0);
	CHECK_INT(sendto(c.fd, "c", 1, 0, &there.at.any, there.len), 1);
	CHECK_STR(hears(two, &seen), "c");
	CHECK_STR(spot_text(&seen), WORLD4);
	/* What is led to the present pod is none of it. */
	CHECK_INT(conntrack_forget(&stale, 1, &err), 0);
	CHECK_INT(filter_remove_port(filter, &next, &err), 0);
	CHECK_INT(filter_add_port(filter, &pods[TWO].port, &err), 0);
	CHECK_INT(filter_add_port(filter, &pods[ONE].port, &err), 0);
	CHECK_INT(sendto(c.fd, "d", 1, 0, &there.at.any, there.len), 1);
	CHECK_STR(hears(two, &seen), "d");
	CHECK_INT(err.code, 0);
	(void)fd_close(c.fd);
}

static void end(void)
{
	filter = filter_free(filter);
	CHECK(!filter);
	for (size_t i = 0; i < POD_COUNT; i++)
		pods[i].ns = fd_close(pods[i].ns);
	world_ns = fd_close(world_ns);
	far_ns = fd_close(far_ns);
	node_ns = fd_close(node_ns);
	netlink_done(&bed_nl);
}

UNIT_MAIN({ "own namespaces", own_namespaces, true }, { "pods of a network", pods_of_a_network },
	  { "pods of others", pods_of_others }, { "the world", the_world },
	  { "published ports", published_ports }, { "services of the node", services_of_the_node },
	  { "what is told", what_is_told }, { "what passes through", what_passes_through },
	  { "metadata of a cloud", metadata_of_a_cloud }, { "forged sources", forged_sources },
	  { "loopback of the node", loopback_of_the_node },
	  { "stale connection", stale_connection }, { "end", end, true })
