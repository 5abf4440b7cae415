/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/setup.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "net/netlink/address.h"
#include "net/port/port_parts.h"
#include "net/port/sysctl.h"

#define SETUP_WORDS_MAX 12
#define SETUP_LINE_MAX 320
#define SETUP_KEY_MAX 64

/* ---- from the kernel ---- */

static bool setup_is_own(const struct prefix *p)
{
	return p->family == AF_INET6 && p->bytes[0] == 0xfe && (p->bytes[1] & 0xc0) == 0x80;
}

static int setup_too_many(const char *what, struct error *err)
{
	return error_set(err, -E2BIG, "copy the configuration of a device: too many %s", what);
}

static int setup_read_addresses(struct netlink *nl, uint32_t link, struct setup *s,
				struct error *err)
{
	struct address *list = NULL;
	size_t n = 0;
	int r = address_list(nl, &list, &n, err);

	for (size_t i = 0; i < n && r == 0; i++) {
		if (list[i].link != link || setup_is_own(&list[i].prefix))
			continue;
		if (s->n_addresses == SETUP_ADDRESSES_MAX)
			r = setup_too_many("addresses", err);
		else
			s->addresses[s->n_addresses++] = list[i].prefix;
	}
	free(list);
	return r;
}

struct setup_seen_route {
	uint32_t link;
	struct setup_route route;
};

static int setup_take_bytes(const struct netattr *a, struct prefix *ret, uint8_t family,
			    uint8_t length)
{
	struct prefix p = { .family = family, .length = length };

	if (length > prefix_size(&p) * 8 || netattr_bytes(a, p.bytes, prefix_size(&p)) < 0)
		return -EBADMSG;
	*ret = p;
	return 0;
}

static int setup_read_metrics(const struct netattr *a, uint32_t *mtu)
{
	struct netmsg_bytes rest = a->value;
	struct netattr m;
	int r;

	do {
		r = netattr_next(&rest, &m);
		if (r > 0 && m.type == RTAX_MTU && netattr_u32(&m, mtu) < 0)
			r = -EBADMSG;
	} while (r > 0);
	return r;
}

static int setup_read_attr(struct setup_seen_route *s, uint32_t *table, const struct netattr *a)
{
	const uint8_t family = s->route.to.family, all = family == AF_INET ? 32 : 128;

	switch (a->type) {
	case RTA_TABLE:
		return netattr_u32(a, table);
	case RTA_DST:
		return setup_take_bytes(a, &s->route.to, family, s->route.to.length);
	case RTA_GATEWAY:
		return setup_take_bytes(a, &s->route.via, family, all);
	case RTA_PREFSRC:
		return setup_take_bytes(a, &s->route.from, family, all);
	case RTA_OIF:
		return netattr_u32(a, &s->link);
	case RTA_PRIORITY:
		return netattr_u32(a, &s->route.metric);
	case RTA_METRICS:
		return setup_read_metrics(a, &s->route.mtu);
	default:
		return 0;
	}
}

static int setup_read_route(const struct netmsg_head *answer, void *ret)
{
	struct netmsg_bytes rest = answer->body;
	struct setup_seen_route s = { .link = 0 };
	struct rtmsg info;
	struct netattr a;
	uint32_t table;
	int r;

	if (answer->type != RTM_NEWROUTE || netmsg_take(&rest, &info, sizeof(info)) < 0)
		return -EBADMSG;
	if ((info.rtm_family != AF_INET && info.rtm_family != AF_INET6) ||
	    info.rtm_type != RTN_UNICAST || info.rtm_flags & RTM_F_CLONED)
		return 0;
	s.route.to = (struct prefix){ .family = info.rtm_family, .length = info.rtm_dst_len };
	table = info.rtm_table;
	do {
		r = netattr_next(&rest, &a);
		if (r > 0 && setup_read_attr(&s, &table, &a) < 0)
			r = -EBADMSG;
	} while (r > 0);
	if (r < 0)
		return r;
	if (table != RT_TABLE_MAIN || setup_is_own(&s.route.to))
		return 0;
	/* Without more words the kernel gives it that of IPv6. */
	if (info.rtm_family == AF_INET6 && s.route.metric == 1024)
		s.route.metric = 0;
	memcpy(ret, &s, sizeof(s));
	return 1;
}

static int setup_read_routes(struct netlink *nl, uint32_t link, struct setup *ret,
			     struct error *err)
{
	const struct rtmsg info = { .rtm_family = AF_UNSPEC };
	struct setup_seen_route *seen;
	struct netmsg m;
	void *list = NULL;
	size_t n = 0;
	int r;

	netmsg_begin(&m, RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP, &info, sizeof(info));
	r = netlink_list(nl, &m, setup_read_route, sizeof(*seen), &list, &n, "list the routes",
			 err);
	seen = list;
	for (size_t i = 0; i < n && r == 0; i++) {
		if (seen[i].link != link)
			continue;
		if (ret->n_routes == SETUP_ROUTES_MAX)
			r = setup_too_many("routes", err);
		else
			ret->routes[ret->n_routes++] = seen[i].route;
	}
	free(list);
	return r;
}

struct setup_seen_neighbour {
	uint32_t link;
	struct setup_neighbour neighbour;
};

static int setup_read_neighbour(const struct netmsg_head *answer, void *ret)
{
	struct netmsg_bytes rest = answer->body;
	struct setup_seen_neighbour s = { .link = 0 };
	bool has_mac = false;
	struct ndmsg info;
	struct netattr a;
	int r;

	if (answer->type != RTM_NEWNEIGH || netmsg_take(&rest, &info, sizeof(info)) < 0)
		return -EBADMSG;
	if ((info.ndm_family != AF_INET && info.ndm_family != AF_INET6) ||
	    !(info.ndm_state & NUD_PERMANENT))
		return 0;
	s.link = (uint32_t)info.ndm_ifindex;
	do {
		r = netattr_next(&rest, &a);
		if (r > 0 && a.type == NDA_DST &&
		    setup_take_bytes(&a, &s.neighbour.address, info.ndm_family,
				     info.ndm_family == AF_INET ? 32 : 128) < 0)
			r = -EBADMSG;
		if (r > 0 && a.type == NDA_LLADDR)
			has_mac = netattr_bytes(&a, s.neighbour.mac, LINK_MAC_LEN) == 0;
	} while (r > 0);
	if (r < 0)
		return r;
	memcpy(ret, &s, sizeof(s));
	return has_mac && s.neighbour.address.family ? 1 : 0;
}

static int setup_read_neighbours(struct netlink *nl, uint32_t link, struct setup *ret,
				 struct error *err)
{
	const struct ndmsg info = { .ndm_family = AF_UNSPEC };
	struct setup_seen_neighbour *seen;
	struct netmsg m;
	void *list = NULL;
	size_t n = 0;
	int r;

	netmsg_begin(&m, RTM_GETNEIGH, NLM_F_REQUEST | NLM_F_DUMP, &info, sizeof(info));
	r = netlink_list(nl, &m, setup_read_neighbour, sizeof(*seen), &list, &n,
			 "list the neighbours", err);
	seen = list;
	for (size_t i = 0; i < n && r == 0; i++) {
		if (seen[i].link != link)
			continue;
		if (ret->n_neighbours == SETUP_NEIGHBOURS_MAX)
			r = setup_too_many("neighbours", err);
		else
			ret->neighbours[ret->n_neighbours++] = seen[i].neighbour;
	}
	free(list);
	return r;
}

int setup_read(struct netlink *nl, uint32_t link, struct setup *ret, struct error *err)
{
	struct link l;
	int r = link_get(nl, link, &l, err);

	*ret = (struct setup){ .mtu = r == 0 ? l.mtu : 0 };
	if (r == 0)
		memcpy(ret->mac, l.mac, sizeof(ret->mac));
	if (r == 0)
		r = setup_read_addresses(nl, link, ret, err);
	if (r == 0)
		r = setup_read_neighbours(nl, link, ret, err);
	return r == 0 ? setup_read_routes(nl, link, ret, err) : r;
}

/* ---- into it ---- */

static int setup_add_address(struct netlink *nl, uint32_t link, const struct prefix *p,
			     struct error *err)
{
	const uint32_t flags = IFA_F_NOPREFIXROUTE | (p->family == AF_INET6 ? IFA_F_NODAD : 0);
	const struct ifaddrmsg info = { .ifa_family = p->family,
					.ifa_prefixlen = p->length,
					.ifa_index = link };
	struct netmsg m;

	netmsg_begin(&m, RTM_NEWADDR, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE,
		     &info, sizeof(info));
	netmsg_put(&m, IFA_LOCAL, p->bytes, prefix_size(p));
	netmsg_put(&m, IFA_ADDRESS, p->bytes, prefix_size(p));
	netmsg_put_u32(&m, IFA_FLAGS, flags);
	return netlink_ask(nl, &m, NULL, NULL, "add an address of a pod", err);
}

static int setup_add_route(struct netlink *nl, uint32_t link, const struct setup_route *route,
			   struct error *err)
{
	const bool has_via = route->via.family != 0;
	const struct rtmsg info = {
		.rtm_family = route->to.family,
		.rtm_dst_len = route->to.length,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_type = RTN_UNICAST,
		.rtm_scope =
			has_via || route->to.family == AF_INET6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
		.rtm_flags = has_via ? RTNH_F_ONLINK : 0,
	};
	char what[SETUP_LINE_MAX], text[PREFIX_TEXT_MAX];
	struct netmsg m;
	size_t metrics;

	prefix_print(&route->to, text);
	(void)str_printf(what, sizeof(what), "add the route to %s, of a pod", text);
	netmsg_begin(&m, RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE,
		     &info, sizeof(info));
	if (route->to.length > 0)
		netmsg_put(&m, RTA_DST, route->to.bytes, prefix_size(&route->to));
	if (has_via)
		netmsg_put(&m, RTA_GATEWAY, route->via.bytes, prefix_size(&route->via));
	if (route->from.family)
		netmsg_put(&m, RTA_PREFSRC, route->from.bytes, prefix_size(&route->from));
	netmsg_put_u32(&m, RTA_OIF, link);
	if (route->metric)
		netmsg_put_u32(&m, RTA_PRIORITY, route->metric);
	if (route->mtu) {
		metrics = netmsg_open(&m, RTA_METRICS);
		netmsg_put_u32(&m, RTAX_MTU, route->mtu);
		netmsg_close(&m, metrics);
	}
	return netlink_ask(nl, &m, NULL, NULL, what, err);
}

static bool setup_has_ip6(const struct setup *s)
{
	for (size_t i = 0; i < s->n_addresses; i++)
		if (s->addresses[i].family == AF_INET6)
			return true;
	return false;
}

/* Routes of a link itself first: gateways are reached by them. */
static int setup_add_routes(struct netlink *nl, uint32_t link, const struct setup *s,
			    struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < 2 * s->n_routes && r == 0; i++) {
		const struct setup_route *route = &s->routes[i % s->n_routes];

		if ((route->via.family != 0) == (i >= s->n_routes))
			r = setup_add_route(nl, link, route, err);
	}
	return r;
}

/* An earlier configuration without such addresses has turned IPv6 off. */
static int setup_open6(const char *name, struct error *err)
{
	_cleanup_fd_ int proc_fd = sysctl_open(err);
	char key[SETUP_KEY_MAX];

	if (proc_fd < 0)
		return proc_fd;
	(void)str_printf(key, sizeof(key), "ipv6/conf/%s/disable_ipv6", name);
	return sysctl_write(proc_fd, key, "0", err);
}

int setup_apply(struct netlink *nl, const struct link *link, const struct setup *s,
		struct error *err)
{
	const bool has_ip6 = setup_has_ip6(s);
	int r = has_ip6 ? setup_open6(link->name, err) : 0;

	if (r == 0)
		r = port_power_pod(nl, link->index, link->name, has_ip6, err);
	for (size_t i = 0; i < s->n_addresses && r == 0; i++)
		r = setup_add_address(nl, link->index, &s->addresses[i], err);
	for (size_t i = 0; i < s->n_neighbours && r == 0; i++)
		r = neighbour_set(nl, link->index, &s->neighbours[i].address, s->neighbours[i].mac,
				  err);
	if (r == 0)
		r = setup_add_routes(nl, link->index, s, err);
	if (r == 0)
		port_set_pod_files();
	return r;
}

int setup_clear(struct netlink *nl, uint32_t link, struct error *err)
{
	const struct link_change down = { .power = LINK_DOWN };
	struct address *list = NULL;
	size_t n = 0;
	struct error own = ERROR_INIT;
	int r = address_list(nl, &list, &n, &own);

	for (size_t i = 0; i < n && r == 0; i++) {
		if (list[i].link != link)
			continue;
		r = address_remove(nl, link, &list[i].prefix, &own);
		/* The kernel takes others of the same network away with the first one. */
		if (r == -EADDRNOTAVAIL)
			r = 0;
	}
	free(list);
	return r == 0 ? link_set(nl, link, &down, err) : error_copy(err, &own);
}

/* ---- as text ---- */

static int setup_print_route(const struct setup_route *route, struct buf *b)
{
	char to[PREFIX_TEXT_MAX], other[PREFIX_TEXT_MAX];
	int r;

	prefix_print(&route->to, to);
	r = buf_addf(b, "route %s", to);
	if (r == 0 && route->via.family) {
		prefix_print_address(&route->via, other);
		r = buf_addf(b, " via %s", other);
	}
	if (r == 0 && route->from.family) {
		prefix_print_address(&route->from, other);
		r = buf_addf(b, " from %s", other);
	}
	if (r == 0 && route->metric)
		r = buf_addf(b, " metric %u", route->metric);
	if (r == 0 && route->mtu)
		r = buf_addf(b, " mtu %u", route->mtu);
	return r == 0 ? buf_add_str(b, "\n") : r;
}

int setup_print(const struct setup *s, struct buf *b)
{
	char text[PREFIX_TEXT_MAX], mac[LINK_MAC_TEXT];
	int r = 0;

	for (size_t i = 0; i < s->n_addresses && r == 0; i++) {
		prefix_print(&s->addresses[i], text);
		r = buf_addf(b, "address %s\n", text);
	}
	for (size_t i = 0; i < s->n_neighbours && r == 0; i++) {
		prefix_print_address(&s->neighbours[i].address, text);
		link_print_mac(s->neighbours[i].mac, mac);
		r = buf_addf(b, "neighbour %s %s\n", text, mac);
	}
	for (size_t i = 0; i < s->n_routes && r == 0; i++)
		r = setup_print_route(&s->routes[i], b);
	return r;
}

static int setup_parse_number(const char *word, uint32_t *ret)
{
	uint64_t n;

	if (parse_u64(word, 0, UINT32_MAX, &n) < 0)
		return -EINVAL;
	*ret = (uint32_t)n;
	return 0;
}

static int setup_parse_option(const char *key, const char *value, struct setup_route *route)
{
	struct prefix *to = str_eq(key, "via")    ? &route->via
			    : str_eq(key, "from") ? &route->from
						  : NULL;

	if (to)
		return prefix_parse(value, to) < 0 || to->family != route->to.family ? -EINVAL : 0;
	if (str_eq(key, "metric"))
		return setup_parse_number(value, &route->metric);
	return str_eq(key, "mtu") ? setup_parse_number(value, &route->mtu) : -EINVAL;
}

static int setup_parse_route(char *const *words, size_t n, struct setup *s)
{
	struct setup_route *route = &s->routes[s->n_routes];
	int r = n < 2 || n % 2 || s->n_routes == SETUP_ROUTES_MAX ? -EINVAL : 0;

	if (r < 0)
		return r;
	*route = (struct setup_route){ .metric = 0 };
	r = prefix_parse(words[1], &route->to);
	for (size_t i = 2; i < n && r == 0; i += 2)
		r = setup_parse_option(words[i], words[i + 1], route);
	s->n_routes += r == 0;
	return r;
}

static int setup_parse_neighbour(char *const *words, size_t n, struct setup *s)
{
	struct setup_neighbour *neighbour = &s->neighbours[s->n_neighbours];

	if (n != 3 || s->n_neighbours == SETUP_NEIGHBOURS_MAX ||
	    prefix_parse(words[1], &neighbour->address) < 0 ||
	    link_parse_mac(words[2], neighbour->mac) < 0)
		return -EINVAL;
	s->n_neighbours++;
	return 0;
}

static int setup_parse_address(char *const *words, size_t n, struct setup *s)
{
	if (n != 2 || s->n_addresses == SETUP_ADDRESSES_MAX ||
	    prefix_parse(words[1], &s->addresses[s->n_addresses]) < 0)
		return -EINVAL;
	s->n_addresses++;
	return 0;
}

static int setup_parse_line(char *line, struct setup *s)
{
	char *words[SETUP_WORDS_MAX];
	size_t n = 0;

	while (line && n < ARRAY_SIZE(words))
		words[n++] = strsep(&line, " ");
	if (line || n == 0)
		return -EINVAL;
	if (str_eq(words[0], "address"))
		return setup_parse_address(words, n, s);
	if (str_eq(words[0], "neighbour"))
		return setup_parse_neighbour(words, n, s);
	return str_eq(words[0], "route") ? setup_parse_route(words, n, s) : -EINVAL;
}

int setup_parse(const char *text, struct setup *ret, struct error *err)
{
	char line[SETUP_LINE_MAX], copy[SETUP_LINE_MAX];

	while (*text) {
		const size_t len = strcspn(text, "\n");

		if (len >= sizeof(line))
			return error_refuse(err, ERROR_INVALID,
					    "a line of a device's configuration is longer than %d "
					    "bytes",
					    SETUP_LINE_MAX - 1);
		memcpy(line, text, len);
		line[len] = '\0';
		(void)str_copy(copy, sizeof(copy), line);
		if (setup_parse_line(copy, ret) < 0)
			return error_refuse(err, ERROR_INVALID,
					    "\"%.100s\" is no line of a device's configuration",
					    line);
		text += len + (text[len] == '\n');
	}
	return 0;
}
