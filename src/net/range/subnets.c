/* SPDX-License-Identifier: Apache-2.0 */
#include "net/range/subnets.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "net/netlink/address.h"
#include "net/netlink/link.h"
#include "net/netlink/netlink.h"

#define SUBNETS_MTU 1500
/* The least that IPv6 takes. */
#define SUBNETS_MTU_MIN UINT32_C(1280)
/* Marks routes as ours (rtm_protocol); a number that no routing daemon has. */
#define SUBNETS_PROTOCOL 0x6e
#define SUBNETS_METRIC (UINT32_MAX - 16384)

/* Where subnets are taken from, in this order. */
static const struct prefix subnets_bases[] = {
	{ .family = AF_INET, .length = 16, .bytes = { 10, 171 } },
	{ .family = AF_INET, .length = 16, .bytes = { 172, 29 } },
	{ .family = AF_INET, .length = 17, .bytes = { 192, 168, 128 } },
	{ .family = AF_INET, .length = 10, .bytes = { 100, 64 } },
};

static bool subnets_overlap(const struct prefix *a, const struct prefix *b)
{
	return a->family == b->family &&
	       (a->length <= b->length ? prefix_has(a, b) : prefix_has(b, a));
}

/* Routes of the host that count; the caller frees *ret. */
static int subnets_routes(struct route **ret, size_t *ret_n, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct route *routes = NULL;
	size_t n = 0;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = route_list(&nl, &routes, &n, err);
	if (r < 0)
		return r;
	*ret = routes;
	*ret_n = 0;
	for (size_t i = 0; i < n; i++)
		if (routes[i].to.length > 0)
			routes[(*ret_n)++] = routes[i];
	return 0;
}

/* What that subnet overlaps; NULL: nothing. */
static const struct prefix *subnets_other(const struct prefix *subnet, const struct prefix *used,
					  size_t n_used, const struct route *routes,
					  size_t n_routes, bool *ret_is_route)
{
	for (size_t i = 0; i < n_used; i++)
		if (subnets_overlap(subnet, &used[i]))
			return &used[i];
	*ret_is_route = true;
	for (size_t i = 0; i < n_routes; i++)
		if (subnets_overlap(subnet, &routes[i].to))
			return &routes[i].to;
	return NULL;
}

static void subnets_add(struct prefix *p, uint32_t n)
{
	uint32_t number;

	memcpy(&number, p->bytes, sizeof(number));
	number = htobe32(be32toh(number) + n);
	memcpy(p->bytes, &number, sizeof(number));
}

int subnets_choose(unsigned length, const struct prefix *used, size_t n_used, struct prefix *ret,
		   struct error *err)
{
	struct route *routes = NULL;
	size_t n_routes = 0;
	bool is_route;
	int r;

	r = subnets_routes(&routes, &n_routes, err);
	if (r < 0)
		return r;
	for (size_t base = 0; base < ARRAY_SIZE(subnets_bases); base++) {
		struct prefix p = subnets_bases[base];
		uint32_t n;

		if (length < p.length || length > 32)
			continue;
		n = UINT32_C(1) << (length - p.length);
		p.length = (uint8_t)length;
		for (uint32_t i = 0; i < n; i++, subnets_add(&p, UINT32_C(1) << (32 - length))) {
			if (subnets_other(&p, used, n_used, routes, n_routes, &is_route))
				continue;
			*ret = p;
			free(routes);
			return 0;
		}
	}
	free(routes);
	return error_refuse(err, ERROR_EXHAUSTED,
			    "no private subnet is left that no route of this host overlaps; name "
			    "one (nacre network create --subnet)");
}

static int subnets_blame(const struct prefix *subnet, const struct prefix *other, bool is_route,
			 struct error *err)
{
	char text[PREFIX_TEXT_MAX], of[PREFIX_TEXT_MAX];

	if (!other)
		return 0;
	prefix_print(subnet, text);
	prefix_print(other, of);
	return error_field(err, ERROR_PRECONDITION, "subnets",
			   "%s overlaps %s, %s; name another subnet, or none", text, of,
			   is_route ? "to which this host has a route"
				    : "the subnet of another network");
}

int subnets_check_others(const struct prefix *subnet, const struct prefix *used, size_t n_used,
			 struct error *err)
{
	bool is_route = false;

	return subnets_blame(subnet, subnets_other(subnet, used, n_used, NULL, 0, &is_route), false,
			     err);
}

int subnets_check(const struct prefix *subnet, const struct prefix *used, size_t n_used,
		  struct error *err)
{
	const struct prefix *other;
	struct route *routes = NULL;
	size_t n_routes = 0;
	bool is_route = false;
	int r;

	r = subnets_routes(&routes, &n_routes, err);
	if (r < 0)
		return r;
	other = subnets_other(subnet, used, n_used, routes, n_routes, &is_route);
	r = subnets_blame(subnet, other, is_route, err);
	free(routes);
	return r;
}

int subnets_draw_site(struct prefix *ret, struct error *err)
{
	struct prefix site = { .family = AF_INET6, .length = 48, .bytes = { 0xfd } };

	if (getrandom(site.bytes + 1, 5, 0) != 5)
		return error_set(err, -errno, "draw the subnet of IPv6");
	*ret = site;
	return 0;
}

struct prefix subnets_of_site(const struct prefix *site, uint16_t number)
{
	struct prefix p = *site;

	p.length = 64;
	p.bytes[6] = (uint8_t)(number >> 8);
	p.bytes[7] = (uint8_t)number;
	return p;
}

uint32_t subnets_default_mtu(void)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	uint32_t mtu = SUBNETS_MTU;
	struct route *routes = NULL;
	size_t n = 0;
	struct link l;

	if (netlink_open(&nl, NULL) < 0 || route_list(&nl, &routes, &n, NULL) < 0)
		return mtu;
	for (size_t i = 0; i < n; i++) {
		if (routes[i].to.length > 0 || link_get(&nl, routes[i].link, &l, NULL) < 0)
			continue;
		mtu = MAX(l.mtu, SUBNETS_MTU_MIN);
		break;
	}
	free(routes);
	return mtu;
}

/* ---- where nobody is ---- */

static int subnets_ask(struct netlink *nl, uint16_t type, uint16_t flags,
		       const struct prefix *subnet, const char *what, struct error *err)
{
	const struct rtmsg info = {
		.rtm_family = subnet->family,
		.rtm_dst_len = subnet->length,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = SUBNETS_PROTOCOL,
		.rtm_type = RTN_UNREACHABLE,
		.rtm_scope = type == RTM_NEWROUTE ? RT_SCOPE_UNIVERSE : RT_SCOPE_NOWHERE,
	};
	struct netmsg m;

	netmsg_begin(&m, type, NLM_F_REQUEST | NLM_F_ACK | flags, &info, sizeof(info));
	netmsg_put(&m, RTA_DST, subnet->bytes, prefix_size(subnet));
	netmsg_put_u32(&m, RTA_PRIORITY, SUBNETS_METRIC);
	return netlink_ask(nl, &m, NULL, NULL, what, err);
}

static int subnets_read_route(const struct netmsg_head *answer, void *ret)
{
	struct netmsg_bytes rest = answer->body;
	struct prefix *to = ret, p = { .family = 0 };
	struct rtmsg info;
	struct netattr a;

	if (answer->type != RTM_NEWROUTE || netmsg_take(&rest, &info, sizeof(info)) < 0)
		return -EBADMSG;
	if (info.rtm_protocol != SUBNETS_PROTOCOL || info.rtm_type != RTN_UNREACHABLE)
		return 0;
	p.family = info.rtm_family;
	p.length = info.rtm_dst_len;
	if (prefix_size(&p) == 0 || p.length > prefix_size(&p) * 8)
		return 0;
	while (netattr_next(&rest, &a) > 0)
		if (a.type == RTA_DST && netattr_bytes(&a, p.bytes, prefix_size(&p)) < 0)
			return -EBADMSG;
	*to = p;
	return 1;
}

static bool subnets_has(const struct prefix *list, size_t n, const struct prefix *p)
{
	for (size_t i = 0; i < n; i++)
		if (prefix_eq(&list[i], p))
			return true;
	return false;
}

int subnets_settle_routes(const struct prefix *subnets, size_t n, struct error *err)
{
	const struct rtmsg all = { .rtm_family = AF_UNSPEC };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct prefix *there;
	struct netmsg m;
	size_t n_there;
	void *list;
	int r;

	r = netlink_open(&nl, err);
	if (r < 0)
		return r;
	netmsg_begin(&m, RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP, &all, sizeof(all));
	r = netlink_list(&nl, &m, subnets_read_route, sizeof(*there), &list, &n_there,
			 "list the routes", err);
	if (r < 0)
		return r;
	there = list;
	for (size_t i = 0; i < n && r == 0; i++)
		if (!subnets_has(there, n_there, &subnets[i]))
			r = subnets_ask(&nl, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &subnets[i],
					"say that a subnet's unused addresses are nowhere", err);
	for (size_t i = 0; i < n_there && r == 0; i++)
		if (!subnets_has(subnets, n, &there[i]))
			r = subnets_ask(&nl, RTM_DELROUTE, 0, &there[i],
					"remove the route of a subnet that is gone", err);
	free(there);
	return r;
}
