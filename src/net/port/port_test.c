/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>

#include "net/netlink/address.h"
#include "net/netlink/bed_test.h"
#include "net/port/inside.h"
#include "net/port/sysctl.h"
#include "net/port/tap.h"

#define MANY 100
#define GROUP (PORT_GROUP + 3)

static int sysctl_fd = -1;

static struct prefix of(const char *text)
{
	struct prefix p = { .family = 0 };

	CHECK_INT(prefix_parse(text, &p), 0);
	return p;
}

static int stand(void *arg, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	int r = netlink_open(&nl, err);

	(void)arg;
	return r < 0 ? r : inside_of_socket(nl.fd, err);
}

static int new_pod(void)
{
	struct error err = ERROR_INIT;
	int fd = inside_run(INSIDE_NEW, stand, NULL, &err);

	CHECK(fd >= 0);
	return fd;
}

/* The plan of the pod with that number: 10.99.0.N and fd99::N. */
static struct port_plan plan_of(unsigned n)
{
	struct port_plan plan = {
		.pod_name = "eth0",
		.alias = "a pod",
		.group = GROUP,
		.mtu = 1400,
		.ip4 = of("10.99.0.0/24"),
		.ip6 = of("fd99::/64"),
		.gateway4 = of("10.99.0.1"),
		.is_default = true,
		.pool4 = of("10.99.0.0/24"),
		.pool6 = of("fd99::/64"),
	};

	plan.ip4.bytes[3] = (uint8_t)n;
	plan.ip6.bytes[15] = (uint8_t)n;
	port_name(&plan.ip4, plan.name);
	port_mac(&plan.ip4, plan.mac);
	return plan;
}

static long setting(const char *family, const char *link, const char *key)
{
	char name[96];
	long value = -1;

	(void)snprintf(name, sizeof(name), "%s/conf/%s/%s", family, link, key);
	return sysctl_read(sysctl_fd, name, &value, NULL) < 0 ? -1 : value;
}

/* ---- what the kernel has ---- */

struct counts {
	size_t n_links, n_addresses, n_routes, n_neighbours, n_qdiscs;
};

struct neighbour {
	struct prefix address;
	uint32_t link;
	uint16_t state;
	uint8_t mac[LINK_MAC_LEN];
};

static int read_neighbour(const struct netmsg_head *answer, void *ret)
{
	struct netmsg_bytes rest = answer->body;
	struct neighbour *to = ret;
	struct ndmsg info;
	struct netattr a;

	if (netmsg_take(&rest, &info, sizeof(info)) < 0)
		return -EBADMSG;
	*to = (struct neighbour){ .address.family = info.ndm_family,
				  .link = (uint32_t)info.ndm_ifindex,
				  .state = info.ndm_state };
	while (netattr_next(&rest, &a) > 0) {
		if (a.type == NDA_DST)
			CHECK_INT(netattr_bytes(&a, to->address.bytes, prefix_size(&to->address)),
				  0);
		else if (a.type == NDA_LLADDR)
			memcpy(to->mac, a.value.at, MIN(a.value.len, sizeof(to->mac)));
	}
	return info.ndm_state & NUD_PERMANENT ? 1 : 0;
}

static size_t neighbours(struct netlink *nl, struct neighbour **ret)
{
	const struct ndmsg info = { .ndm_family = AF_UNSPEC };
	struct netmsg m;
	void *list = NULL;
	size_t n = 0;

	netmsg_begin(&m, RTM_GETNEIGH, NLM_F_REQUEST | NLM_F_DUMP, &info, sizeof(info));
	CHECK_INT(netlink_list(nl, &m, read_neighbour, sizeof(**ret), &list, &n, "look", NULL), 0);
	*ret = list;
	return n;
}

static bool has_neighbour(struct netlink *nl, uint32_t link, const char *address,
			  const uint8_t mac[LINK_MAC_LEN])
{
	const struct prefix p = of(address);
	struct neighbour *list = NULL;
	size_t n = neighbours(nl, &list);
	bool found = false;

	for (size_t i = 0; i < n; i++)
		found = found || (list[i].link == link && list[i].address.family == p.family &&
				  memcmp(list[i].address.bytes, p.bytes, prefix_size(&p)) == 0 &&
				  memcmp(list[i].mac, mac, LINK_MAC_LEN) == 0);
	free(list);
	return found;
}

static bool has_address(struct netlink *nl, uint32_t link, const char *address)
{
	const struct prefix p = of(address);
	struct address *list = NULL;
	size_t n = 0;
	bool found = false;

	CHECK_INT(address_list(nl, &list, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		found = found || (list[i].link == link && prefix_eq(&list[i].prefix, &p));
	free(list);
	return found;
}

static size_t addresses_of(struct netlink *nl, uint32_t link)
{
	struct address *list = NULL;
	size_t n = 0, of_link = 0;

	CHECK_INT(address_list(nl, &list, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		of_link += list[i].link == link;
	free(list);
	return of_link;
}

static bool has_route(struct netlink *nl, uint32_t link, const char *to, const char *via)
{
	const struct prefix p = of(to), gateway = via ? of(via) : (struct prefix){ .family = 0 };
	struct route *list = NULL;
	size_t n = 0;
	bool found = false;

	CHECK_INT(route_list(nl, &list, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		found = found || (list[i].link == link && prefix_eq(&list[i].to, &p) &&
				  list[i].via.family == gateway.family &&
				  memcmp(list[i].via.bytes, gateway.bytes, 16) == 0);
	free(list);
	return found;
}

/* A token bucket of a link. */
struct bucket {
	uint32_t link;
	bool is_tbf;
	struct tc_tbf_qopt opt;
};

static int read_bucket(const struct netmsg_head *answer, void *ret)
{
	struct netmsg_bytes rest = answer->body;
	struct bucket *b = ret;
	struct netattr a, in;
	struct tcmsg info;
	char kind[16] = "";

	if (netmsg_take(&rest, &info, sizeof(info)) < 0)
		return -EBADMSG;
	*b = (struct bucket){ .link = (uint32_t)info.tcm_ifindex };
	while (netattr_next(&rest, &a) > 0) {
		if (a.type == TCA_KIND && netattr_str(&a, kind, sizeof(kind)) == 0)
			b->is_tbf = strcmp(kind, "tbf") == 0;
		while (a.type == TCA_OPTIONS && b->is_tbf && netattr_next(&a.value, &in) > 0)
			if (in.type == TCA_TBF_PARMS)
				CHECK_INT(netattr_bytes(&in, &b->opt, sizeof(b->opt)), 0);
	}
	return b->is_tbf ? 1 : 0;
}

static size_t buckets(struct netlink *nl, struct bucket *first)
{
	const struct tcmsg info = { .tcm_family = AF_UNSPEC };
	struct netmsg m;
	void *list = NULL;
	size_t n = 0;

	netmsg_begin(&m, RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, &info, sizeof(info));
	CHECK_INT(netlink_list(nl, &m, read_bucket, sizeof(*first), &list, &n, "look", NULL), 0);
	if (n > 0 && first)
		*first = *(struct bucket *)list;
	free(list);
	return n;
}

static struct counts counted(void)
{
	struct neighbour *neighbour_list = NULL;
	struct address *addresses = NULL;
	struct route *routes = NULL;
	struct link *links = NULL;
	struct counts c = { 0 };

	CHECK_INT(link_list(&bed_nl, &links, &c.n_links, NULL), 0);
	CHECK_INT(address_list(&bed_nl, &addresses, &c.n_addresses, NULL), 0);
	CHECK_INT(route_list(&bed_nl, &routes, &c.n_routes, NULL), 0);
	c.n_neighbours = neighbours(&bed_nl, &neighbour_list);
	c.n_qdiscs = buckets(&bed_nl, NULL);
	free(links);
	free(addresses);
	free(routes);
	free(neighbour_list);
	return c;
}

static void check_same(const struct counts *was)
{
	const struct counts is = counted();

	CHECK_INT(is.n_links, was->n_links);
	CHECK_INT(is.n_addresses, was->n_addresses);
	CHECK_INT(is.n_routes, was->n_routes);
	CHECK_INT(is.n_neighbours, was->n_neighbours);
	CHECK_INT(is.n_qdiscs, was->n_qdiscs);
}

/* ---- tests ---- */

static void own_namespace(void)
{
	const struct link_change up = { .power = LINK_UP };
	struct error err = ERROR_INIT;
	struct link lo = { 0 };

	bed_enter();
	sysctl_fd = sysctl_open(&err);
	CHECK(sysctl_fd >= 0);
	CHECK(port_has_ipv6());
	CHECK_INT(link_find(&bed_nl, "lo", &lo, &err), 0);
	CHECK_INT(link_set(&bed_nl, lo.index, &up, &err), 0);
}

static void names(void)
{
	const struct prefix ip4 = of("10.171.0.255");
	static const uint8_t want[LINK_MAC_LEN] = { 0x02, 0x6e, 10, 171, 0, 255 };
	uint8_t mac[LINK_MAC_LEN];
	char name[IF_NAMESIZE];

	port_name(&ip4, name);
	CHECK_STR(name, "nacre000aab00ff");
	CHECK(link_name_is_fine(name));
	port_mac(&ip4, mac);
	CHECK(memcmp(mac, want, sizeof(want)) == 0);
}

static void check_node(const struct port_plan *plan, uint32_t index)
{
	const char *name = plan->name;

	CHECK_INT(bed_link_number(name, "ifindex"), index);
	CHECK_INT(bed_link_number(name, "netdev_group"), GROUP);
	CHECK_INT(bed_link_number(name, "mtu"), 1400);
	CHECK_STR(bed_link(name, "address"), "02:6e:00:00:00:01");
	CHECK_STR(bed_link(name, "ifalias"), "a pod");
	/* Not operstate, which follows later. */
	CHECK_INT(bed_link_number(name, "carrier"), 1);
	CHECK_INT(bed_link_number(name, "flags") & (IFF_UP | IFF_NOARP), IFF_UP | IFF_NOARP);
	CHECK_INT(setting("ipv4", name, "forwarding"), 1);
	CHECK_INT(setting("ipv4", name, "rp_filter"), 1);
	CHECK_INT(setting("ipv4", name, "accept_redirects"), 0);
	CHECK_INT(setting("ipv4", name, "send_redirects"), 0);
	CHECK_INT(setting("ipv4", name, "route_localnet"), plan->loopback);
	CHECK_INT(setting("ipv6", name, "accept_ra"), 0);
	if (setting("ipv6", "all", "force_forwarding") >= 0)
		CHECK_INT(setting("ipv6", name, "force_forwarding"), 1);
	/* Two addresses, and none of the kernel's making. */
	CHECK_INT(addresses_of(&bed_nl, index), 2);
	CHECK(has_address(&bed_nl, index, "10.99.0.1/32"));
	CHECK(has_address(&bed_nl, index, "fe80::1/64"));
	CHECK(has_route(&bed_nl, index, "10.99.0.7/32", NULL));
	CHECK(has_route(&bed_nl, index, "fd99::7/128", NULL));
	CHECK(has_neighbour(&bed_nl, index, "10.99.0.7", plan->mac));
	CHECK(has_neighbour(&bed_nl, index, "fd99::7", plan->mac));
}

static void check_pod(const struct port_plan *plan, int pod_fd)
{
	static const uint8_t node[LINK_MAC_LEN] = { 0x02, 0x6e, 0, 0, 0, 1 };
	const char *to4 = plan->is_default ? "0.0.0.0/0" : "10.99.0.0/24";
	const char *to6 = plan->is_default ? "::/0" : "fd99::/64";
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct error err = ERROR_INIT;
	struct link l = { 0 };

	CHECK_INT(inside_netlink(&nl, pod_fd, &err), 0);
	CHECK_INT(link_find(&nl, "lo", &l, &err), 0);
	CHECK(l.up);
	CHECK_INT(link_find(&nl, "eth0", &l, &err), 0);
	CHECK(l.up && l.mtu == 1400 && memcmp(l.mac, plan->mac, LINK_MAC_LEN) == 0);
	CHECK_INT(addresses_of(&nl, l.index), 2);
	CHECK(has_address(&nl, l.index, "10.99.0.7/32"));
	CHECK(has_address(&nl, l.index, "fd99::7/128"));
	CHECK(has_route(&nl, l.index, to4, "10.99.0.1"));
	CHECK(has_route(&nl, l.index, to6, "fe80::1"));
	CHECK(has_neighbour(&nl, l.index, "10.99.0.1", node));
	CHECK(has_neighbour(&nl, l.index, "fe80::1", node));
}

static int pod_settings(void *arg, struct error *err)
{
	long *port = arg;

	return sysctl_read(sysctl_fd, "ipv4/ip_unprivileged_port_start", port, err);
}

/* Also that the node takes no router advertisement from a port (N01). */
static void made(void)
{
	static const struct {
		bool loopback, is_default;
	} cases[] = { { false, true }, { true, false } };
	const struct counts was = counted();
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_fd_ int pod_fd = new_pod();
		struct port_plan plan = plan_of(7);
		uint32_t index = 0;
		long port = -1;

		plan.loopback = cases[i].loopback;
		plan.is_default = cases[i].is_default;
		CHECK_INT(port_make(&plan, pod_fd, &index, &err), 0);
		check_node(&plan, index);
		check_pod(&plan, pod_fd);
		CHECK_INT(inside_run(pod_fd, pod_settings, &port, &err), 0);
		CHECK_INT(port, 0);
		CHECK_INT(bed_proc_has("ipv6_route", plan.name), 1);
		CHECK_INT(port_remove(plan.name, &err), 0);
		CHECK_INT(port_remove(plan.name, &err), 0);
		check_same(&was);
	}
}

/* A port without an address of IPv6 has none of the kernel's making either (N07), whether the host
 * has IPv6 or not. */
static void without_ipv6(void)
{
	static const char *const off[] = { "0", "1" };
	const struct counts was = counted();
	struct port_plan plan = plan_of(7);
	struct error err = ERROR_INIT;
	uint32_t index = 0;

	plan.ip6 = plan.pool6 = (struct prefix){ .family = 0 };
	for (size_t i = 0; i < ARRAY_SIZE(off); i++) {
		_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
		_cleanup_fd_ int pod_fd = new_pod();
		struct link l = { 0 };

		CHECK_INT(sysctl_write(sysctl_fd, "ipv6/conf/default/disable_ipv6", off[i], &err),
			  0);
		CHECK_INT(port_has_ipv6(), i == 0);
		CHECK_INT(port_make(&plan, pod_fd, &index, &err), 0);
		CHECK_INT(addresses_of(&bed_nl, index), 1);
		CHECK_INT(setting("ipv6", plan.name, "disable_ipv6"), 1);
		CHECK(has_route(&bed_nl, index, "10.99.0.7/32", NULL));
		CHECK_INT(inside_netlink(&nl, pod_fd, &err), 0);
		CHECK_INT(link_find(&nl, "eth0", &l, &err), 0);
		CHECK_INT(addresses_of(&nl, l.index), 1);
		CHECK_INT(port_remove(plan.name, &err), 0);
	}
	CHECK_INT(sysctl_write(sysctl_fd, "ipv6/conf/default/disable_ipv6", "0", &err), 0);
	check_same(&was);
}

static void limited(void)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	_cleanup_fd_ int pod_fd = new_pod();
	struct port_plan plan = plan_of(7);
	struct error err = ERROR_INIT;
	struct bucket b = { 0 };
	uint32_t index = 0;

	plan.rate_to_pod = 100000000;
	plan.rate_from_pod = 8000000;
	CHECK_INT(port_make(&plan, pod_fd, &index, &err), 0);
	CHECK_INT(buckets(&bed_nl, &b), 1);
	CHECK_INT(b.link, index);
	CHECK_INT(b.opt.rate.rate, 12500000);
	/* 50 ms, and the burst of 64 KiB. */
	CHECK_INT(b.opt.limit, 625000 + 65536);
	CHECK_INT(inside_netlink(&nl, pod_fd, &err), 0);
	CHECK_INT(buckets(&nl, &b), 1);
	CHECK_INT(b.opt.rate.rate, 1000000);
	CHECK_INT(port_remove(plan.name, &err), 0);
}

static void failing(void)
{
	const struct counts was = counted();
	const int n_fds = bed_descriptors();
	_cleanup_fd_ int pod_fd = new_pod(), null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct port_plan plan = plan_of(7), other = plan_of(8);
	struct error err = ERROR_INIT;
	struct route foreign = { .to = of("10.99.0.7/32") };
	struct link lo = { 0 };
	uint32_t index = 4711;

	/* Its namespace is none. */
	CHECK(port_make(&plan, null_fd, &index, &err) < 0);
	check_same(&was);
	/* The pod's side fails last: it has no pool to lead to. */
	plan.is_default = false;
	plan.pool6 = (struct prefix){ .family = 0 };
	CHECK(port_make(&plan, pod_fd, &index, &err) < 0);
	check_same(&was);
	/* The node's: a gateway of no family. */
	plan = plan_of(7);
	plan.gateway4 = (struct prefix){ .family = 0 };
	CHECK(port_make(&plan, pod_fd, &index, &err) < 0);
	check_same(&was);
	CHECK_INT(index, 4711);
	/* Somebody else has a route to just that address: it stays. */
	plan = plan_of(7);
	CHECK_INT(link_find(&bed_nl, "lo", &lo, &err), 0);
	foreign.link = lo.index;
	CHECK_INT(route_add(&bed_nl, &foreign, &err), 0);
	CHECK_INT(port_make(&plan, pod_fd, &index, &err), -EEXIST);
	CHECK_STR(error_text(&err), "add the route to 10.99.0.7/32, for a pod: File exists");
	CHECK(has_route(&bed_nl, lo.index, "10.99.0.7/32", NULL));
	CHECK_INT(route_remove(&bed_nl, &foreign, &err), 0);
	check_same(&was);
	/* A name that is taken, in the node and in the pod; the first stays as it is. */
	plan = plan_of(7);
	CHECK_INT(port_make(&plan, pod_fd, &index, &err), 0);
	CHECK_INT(port_make(&plan, pod_fd, &index, &err), -EEXIST);
	CHECK_INT(port_make(&other, pod_fd, &index, &err), -EEXIST);
	check_node(&plan, index);
	CHECK_INT(port_remove(plan.name, &err), 0);
	check_same(&was);
	CHECK_INT(bed_descriptors(), n_fds + 2);
}

/* ---- packets ---- */

struct talk {
	int family, fd;
	const char *address; /* where it is bound */
};

static struct sockaddr_storage at(int family, const char *address, uint16_t port, socklen_t *len)
{
	struct sockaddr_storage s = { .ss_family = (sa_family_t)family };

	if (family == AF_INET) {
		((struct sockaddr_in *)&s)->sin_port = htons(port);
		*len = sizeof(struct sockaddr_in);
		CHECK_INT(inet_pton(family, address, &((struct sockaddr_in *)&s)->sin_addr), 1);
	} else {
		((struct sockaddr_in6 *)&s)->sin6_port = htons(port);
		*len = sizeof(struct sockaddr_in6);
		CHECK_INT(inet_pton(family, address, &((struct sockaddr_in6 *)&s)->sin6_addr), 1);
	}
	return s;
}

static int listen_there(void *arg, struct error *err)
{
	struct talk *t = arg;
	socklen_t len;
	const struct sockaddr_storage s = at(t->family, t->address, 53, &len);

	(void)err;
	t->fd = socket(t->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return t->fd >= 0 && bind(t->fd, (const struct sockaddr *)&s, len) == 0 ? 0 : -errno;
}

/* From one to the other and back. */
static void check_talk(const struct talk *from, const struct talk *to)
{
	struct sockaddr_storage who;
	socklen_t len, who_len = sizeof(who);
	const struct sockaddr_storage s = at(to->family, to->address, 53, &len);
	struct pollfd p = { .fd = to->fd, .events = POLLIN };
	char text[8] = "";

	/* A new address of IPv6 is put into force by a work queue of the kernel: the first packet
	 * to it may be too early. */
	for (int i = 0; i < (to->family == AF_INET6 ? 5 : 1) && !p.revents; i++) {
		CHECK_INT(sendto(from->fd, "ping", 4, 0, (const struct sockaddr *)&s, len), 4);
		(void)poll(&p, 1, 1000);
	}
	CHECK(p.revents);
	if (!p.revents)
		return;
	CHECK_INT(recvfrom(to->fd, text, sizeof(text), 0, (struct sockaddr *)&who, &who_len), 4);
	CHECK_STR(text, "ping");
	CHECK_INT(sendto(to->fd, "pong", 4, 0, (const struct sockaddr *)&who, who_len), 4);
	p.fd = from->fd;
	CHECK_INT(poll(&p, 1, 5000), 1);
	CHECK_INT(recv(from->fd, text, sizeof(text), 0), 4);
	CHECK_STR(text, "pong");
}

static void talking(void)
{
	static const struct {
		int family;
		const char *first, *second;
	} cases[] = { { AF_INET, "10.99.0.7", "10.99.0.8" }, { AF_INET6, "fd99::7", "fd99::8" } };
	_cleanup_fd_ int first_fd = new_pod(), second_fd = new_pod();
	const struct port_plan first = plan_of(7), second = plan_of(8);
	struct error err = ERROR_INIT;
	struct neighbour *list = NULL;
	uint32_t index = 0;

	CHECK_INT(port_make(&first, first_fd, &index, &err), 0);
	CHECK_INT(port_make(&second, second_fd, &index, &err), 0);
	/* A kernel before 6.17: all links forward, or none. */
	if (setting("ipv6", "all", "force_forwarding") < 0)
		CHECK_INT(sysctl_write(sysctl_fd, "ipv6/conf/all/forwarding", "1", &err), 0);
	CHECK_INT(setting("ipv4", "all", "forwarding"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct talk a = { .family = cases[i].family, .fd = -1, .address = cases[i].first };
		struct talk b = { .family = cases[i].family, .fd = -1, .address = cases[i].second };

		CHECK_INT(inside_run(first_fd, listen_there, &a, &err), 0);
		CHECK_INT(inside_run(second_fd, listen_there, &b, &err), 0);
		check_talk(&a, &b);
		check_talk(&b, &a);
		(void)fd_close(a.fd);
		(void)fd_close(b.fd);
	}
	/* Nobody had to ask who has an address. */
	CHECK_INT(neighbours(&bed_nl, &list), 4);
	free(list);
	CHECK_INT(port_remove(first.name, &err), 0);
	CHECK_INT(port_remove(second.name, &err), 0);
}

/* ---- of a machine ---- */

#define HEADER 10 /* of a TAP device's frames */

/* As a guest, whose end is the descriptor: what the node sends to its address, and back. */
static void check_wire(const struct port_plan *plan, int tap_fd)
{
	static const uint8_t node[LINK_MAC_LEN] = { 0x02, 0x6e, 0, 0, 0, 1 };
	static const char *const to[] = { "10.99.0.7", "fd99::7" };
	long before = bed_link_number(plan->name, "statistics/rx_packets");
	struct pollfd p = { .fd = tap_fd, .events = POLLIN };
	uint8_t frame[256] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
		_cleanup_fd_ int fd = socket(i ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		socklen_t len;
		const struct sockaddr_storage s = at(i ? AF_INET6 : AF_INET, to[i], 53, &len);

		CHECK_INT(sendto(fd, "ping", 4, 0, (const struct sockaddr *)&s, len), 4);
		/* What the node's end says to all, as for MLD, is not meant. */
		do {
			CHECK_INT(poll(&p, 1, 5000), 1);
			if (!p.revents)
				return;
			CHECK(read(tap_fd, frame, sizeof(frame)) > HEADER + 14 + 4);
		} while (frame[HEADER] & 1);
		CHECK(memcmp(frame + HEADER, plan->mac, LINK_MAC_LEN) == 0);
		CHECK(memcmp(frame + HEADER + LINK_MAC_LEN, node, LINK_MAC_LEN) == 0);
		CHECK_INT(frame[HEADER + 12] << 8 | frame[HEADER + 13], i ? 0x86dd : 0x0800);
	}
	memset(frame, 0, sizeof(frame));
	memcpy(frame + HEADER, node, LINK_MAC_LEN);
	memcpy(frame + HEADER + LINK_MAC_LEN, plan->mac, LINK_MAC_LEN);
	/* Of a kind that is for trials. */
	memcpy(frame + HEADER + 12, "\x88\xb5", 2);
	CHECK_INT(write(tap_fd, frame, HEADER + 60), HEADER + 60);
	CHECK_INT(bed_link_number(plan->name, "statistics/rx_packets"), before + 1);
}

static void of_a_machine(void)
{
	_cleanup_fd_ int machine_fd = new_pod(), tap_fd = -1;
	const struct link_change up = { .power = LINK_UP };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	const struct counts was = counted();
	struct port_plan plan = plan_of(7);
	struct error err = ERROR_INIT;
	struct bucket b = { 0 };
	struct link l = { 0 };
	uint32_t index = 0;

	(void)str_copy(plan.tap, sizeof(plan.tap), "pod0");
	/* Whose TAP device is not there. */
	CHECK_INT(port_make(&plan, machine_fd, &index, &err), -ENODEV);
	check_same(&was);
	tap_fd = tap_open_in(machine_fd, plan.tap, &err);
	CHECK(tap_fd >= 0);
	CHECK_INT(inside_netlink(&nl, machine_fd, &err), 0);
	CHECK_INT(link_find(&nl, plan.tap, &l, &err), 0);
	CHECK_INT(link_set(&nl, l.index, &up, &err), 0);
	plan.rate_from_pod = 8000000;
	CHECK_INT(port_make(&plan, machine_fd, &index, &err), 0);
	check_node(&plan, index);
	CHECK_INT(link_find(&nl, plan.tap, &l, &err), 0);
	CHECK_INT(l.mtu, 1400);
	/* The addresses are the guest's; what it sends passes the limit of its rate. */
	CHECK_INT(link_find(&nl, "eth0", &l, &err), 0);
	CHECK(!has_address(&nl, l.index, "10.99.0.7/32") &&
	      !has_address(&nl, l.index, "fd99::7/128"));
	CHECK_INT(buckets(&nl, &b), 1);
	CHECK(b.link == l.index && b.opt.rate.rate == 1000000);
	check_wire(&plan, tap_fd);
	CHECK_INT(port_remove(plan.name, &err), 0);
	check_same(&was);
}

static int opens_inside(void *arg, struct error *err)
{
	const struct link_change up = { .mtu = 1400 };
	struct port_plan *plan = arg;
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link l = { 0 };

	CHECK_INT(netlink_open(&nl, err), 0);
	CHECK_INT(link_find(&nl, "eth0", &l, err), 0);
	CHECK_INT(link_set(&nl, l.index, &up, err), 0);
	return port_open_inside(plan, l.index, err);
}

/* What a guest makes of its device is what a pod has. */
static void in_a_guest(void)
{
	_cleanup_fd_ int guest_fd = new_pod(), far_fd = new_pod();
	struct port_plan plan = plan_of(7);
	const struct link_veth veth = {
		.name = "eth0", .peer = "far", .peer_ns_fd = far_fd, .mac = plan.mac
	};
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct error err = ERROR_INIT;

	CHECK_INT(inside_netlink(&nl, guest_fd, &err), 0);
	CHECK_INT(link_add_veth(&nl, &veth, NULL, &err), 0);
	CHECK_INT(inside_run(guest_fd, opens_inside, &plan, &err), 0);
	check_pod(&plan, guest_fd);
}

/* ---- many ---- */

/* Waits until none is left. What the kernel says of links only wakes this up: some of it is lost
 * where it says more than the socket holds. */
static void await_gone(int fd)
{
	_Alignas(4) uint8_t data[8192];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct port_seen *seen = NULL;
	struct error err = ERROR_INIT;
	size_t n = 1;

	while (n > 0) {
		CHECK_INT(port_list(&seen, &n, &err), 0);
		free(seen);
		if (n == 0)
			return;
		if (poll(&p, 1, 20000) != 1) {
			CHECK_INT(n, 0);
			return;
		}
		(void)recv(fd, data, sizeof(data), 0);
	}
}

static void many(void)
{
	const struct sockaddr_nl links = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	_cleanup_fd_ int watch_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	const struct counts was = counted();
	const int n_fds = bed_descriptors();
	struct port_seen *seen = NULL;
	struct error err = ERROR_INIT;
	uint32_t index = 0;
	size_t n = 0;
	int pods[MANY];

	for (unsigned i = 0; i < MANY; i++) {
		const struct port_plan plan = plan_of(2 + i);

		pods[i] = new_pod();
		CHECK_INT(port_make(&plan, pods[i], &index, &err), 0);
	}
	CHECK_INT(port_list(&seen, &n, &err), 0);
	CHECK_INT(n, MANY);
	for (size_t i = 0; i < n; i++)
		CHECK(seen[i].group == GROUP && strncmp(seen[i].name, "nacre000a6300", 13) == 0);
	free(seen);
	CHECK_INT(bind(watch_fd, (const struct sockaddr *)&links, sizeof(links)), 0);
	/* A port goes with its pod's namespace. */
	for (unsigned i = 0; i < MANY; i++)
		(void)fd_close(pods[i]);
	await_gone(watch_fd);
	check_same(&was);
	CHECK_INT(bed_descriptors(), n_fds);
	CHECK_INT(port_list(&seen, &n, &err), 0);
	CHECK_INT(n, 0);
	free(seen);
}

UNIT_MAIN({ "own_namespace", own_namespace, true }, { "names", names }, { "made", made },
	  { "without_ipv6", without_ipv6 }, { "limited", limited }, { "failing", failing },
	  { "of_a_machine", of_a_machine }, { "in_a_guest", in_a_guest }, { "talking", talking },
	  { "many", many })
