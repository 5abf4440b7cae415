/* SPDX-License-Identifier: Apache-2.0 */
#include "net/netlink/address.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text/str.h"

/* Room for "remove the address PREFIX of link INDEX". */
#define ADDRESS_WHAT 128
/* The index of lo, in each namespace. */
#define ADDRESS_LO 1

static void address_put(struct netmsg *m, uint16_t type, const struct prefix *p)
{
	netmsg_put(m, type, p->bytes, prefix_size(p));
}

/* ---- addresses ---- */

static int address_change(struct netlink *nl, uint16_t type, uint16_t flags, uint32_t link,
			  const struct prefix *address, const char *verb, struct error *err)
{
	const struct ifaddrmsg info = {
		.ifa_family = address->family,
		.ifa_prefixlen = address->length,
		.ifa_flags = address->family == AF_INET6 ? IFA_F_NODAD : 0,
		.ifa_index = link,
		/* What is on lo is of this host alone, and no source of what leaves it. */
		.ifa_scope = link == ADDRESS_LO ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
	};
	char what[ADDRESS_WHAT], text[PREFIX_TEXT_MAX];
	struct netmsg m;

	prefix_print(address, text);
	(void)str_printf(what, sizeof(what), "%s %s, of link %u", verb, text, link);
	if (prefix_size(address) == 0)
		return error_set(err, -EINVAL, "%s", what);
	netmsg_begin(&m, type, NLM_F_REQUEST | NLM_F_ACK | flags, &info, sizeof(info));
	address_put(&m, IFA_LOCAL, address);
	address_put(&m, IFA_ADDRESS, address);
	return netlink_ask(nl, &m, NULL, NULL, what, err);
}

int address_add(struct netlink *nl, uint32_t link, const struct prefix *address, struct error *err)
{
	return address_change(nl, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, link, address,
			      "add the address", err);
}

int address_remove(struct netlink *nl, uint32_t link, const struct prefix *address,
		   struct error *err)
{
	return address_change(nl, RTM_DELADDR, 0, link, address, "remove the address", err);
}

/* An address whose size is that of its family. */
static int address_read_prefix(const struct netattr *a, uint8_t family, uint8_t length,
			       struct prefix *ret)
{
	struct prefix p = { .family = family, .length = length };

	if (length > prefix_size(&p) * 8 || netattr_bytes(a, p.bytes, prefix_size(&p)) < 0)
		return -EBADMSG;
	*ret = p;
	return 0;
}

int address_read(const struct netmsg_head *answer, void *ret)
{
	struct netmsg_bytes rest = answer->body;
	struct prefix local = { .family = 0 }, address = { .family = 0 };
	struct address *to = ret;
	struct ifaddrmsg info;
	struct netattr a;
	int r;

	if (answer->type != RTM_NEWADDR || netmsg_take(&rest, &info, sizeof(info)) < 0)
		return -EBADMSG;
	if (info.ifa_family != AF_INET && info.ifa_family != AF_INET6)
		return 0;
	do {
		r = netattr_next(&rest, &a);
		if (r > 0 && (a.type == IFA_LOCAL || a.type == IFA_ADDRESS) &&
		    address_read_prefix(&a, info.ifa_family, info.ifa_prefixlen,
					a.type == IFA_LOCAL ? &local : &address) < 0)
			r = -EBADMSG;
	} while (r > 0);
	if (r < 0)
		return r;
	/* Where there are both, the first is the own one, and the second the other end's. */
	if (local.family == 0)
		local = address;
	if (local.family == 0 || info.ifa_index == 0)
		return -EBADMSG;
	*to = (struct address){ .link = info.ifa_index, .prefix = local };
	return 1;
}

int address_list(struct netlink *nl, struct address **ret, size_t *ret_n, struct error *err)
{
	const struct ifaddrmsg info = { .ifa_family = AF_UNSPEC };
	struct netmsg m;
	void *list;
	int r;

	netmsg_begin(&m, RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, &info, sizeof(info));
	r = netlink_list(nl, &m, address_read, sizeof(**ret), &list, ret_n, "list the addresses",
			 err);
	if (r < 0)
		return r;
	*ret = list;
	return 0;
}

/* ---- routes ---- */

static int route_change(struct netlink *nl, uint16_t type, uint16_t flags,
			const struct route *route, const char *verb, struct error *err)
{
	const struct prefix to = prefix_network(&route->to);
	const bool adds = type == RTM_NEWROUTE, has_via = prefix_size(&route->via) > 0;
	struct rtmsg info = {
		.rtm_family = to.family,
		.rtm_dst_len = to.length,
		.rtm_table = RT_TABLE_MAIN,
		/* Whatever it has, where one is removed. */
		.rtm_scope = RT_SCOPE_NOWHERE,
	};
	char what[ADDRESS_WHAT], text[PREFIX_TEXT_MAX];
	struct netmsg m;

	prefix_print(&to, text);
	(void)str_printf(what, sizeof(what), "%s %s", verb, text);
	if (prefix_size(&to) == 0 || (has_via && route->via.family != to.family))
		return error_set(err, -EINVAL, "%s", what);
	if (adds) {
		info.rtm_protocol = RTPROT_STATIC;
		info.rtm_type = RTN_UNICAST;
		info.rtm_scope = has_via ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
	}
	if (adds && route->forbidden) {
		info.rtm_type = RTN_PROHIBIT;
		info.rtm_scope = RT_SCOPE_UNIVERSE;
	}
	netmsg_begin(&m, type, NLM_F_REQUEST | NLM_F_ACK | flags, &info, sizeof(info));
	if (to.length > 0)
		address_put(&m, RTA_DST, &to);
	if (has_via)
		address_put(&m, RTA_GATEWAY, &route->via);
	if (route->link > 0)
		netmsg_put_u32(&m, RTA_OIF, route->link);
	return netlink_ask(nl, &m, NULL, NULL, what, err);
}

int route_add(struct netlink *nl, const struct route *route, struct error *err)
{
	return route_change(nl, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, route, "add the route",
			    err);
}

int route_add_default(struct netlink *nl, const struct prefix *via, struct error *err)
{
	const struct route route = { .to = { .family = via->family }, .via = *via };

	return route_add(nl, &route, err);
}

int route_remove(struct netlink *nl, const struct route *route, struct error *err)
{
	return route_change(nl, RTM_DELROUTE, 0, route, "remove the route", err);
}

static int route_read_attr(struct route *route, uint32_t *table, const struct netattr *a)
{
	const uint8_t family = route->to.family;

	switch (a->type) {
	case RTA_TABLE:
		return netattr_u32(a, table);
	case RTA_DST:
		return address_read_prefix(a, family, route->to.length, &route->to);
	case RTA_GATEWAY:
		return address_read_prefix(a, family, (uint8_t)(family == AF_INET ? 32 : 128),
					   &route->via);
	case RTA_OIF:
		return netattr_u32(a, &route->link);
	default:
		return 0;
	}
}

int route_read(const struct netmsg_head *answer, void *ret)
{
	struct netmsg_bytes rest = answer->body;
	struct route *to = ret;
	struct route route = { .link = 0 };
	struct rtmsg info;
	struct netattr a;
	uint32_t table;
	int r;

	if (answer->type != RTM_NEWROUTE || netmsg_take(&rest, &info, sizeof(info)) < 0)
		return -EBADMSG;
	if ((info.rtm_family != AF_INET && info.rtm_family != AF_INET6) ||
	    info.rtm_type != RTN_UNICAST)
		return 0;
	route.to.family = info.rtm_family;
	route.to.length = info.rtm_dst_len;
	if (info.rtm_dst_len > prefix_size(&route.to) * 8)
		return -EBADMSG;
	table = info.rtm_table;
	do {
		r = netattr_next(&rest, &a);
		if (r > 0 && route_read_attr(&route, &table, &a) < 0)
			r = -EBADMSG;
	} while (r > 0);
	if (r < 0)
		return r;
	if (table != RT_TABLE_MAIN)
		return 0;
	*to = route;
	return 1;
}

int route_list(struct netlink *nl, struct route **ret, size_t *ret_n, struct error *err)
{
	const struct rtmsg info = { .rtm_family = AF_UNSPEC };
	struct netmsg m;
	void *list;
	int r;

	netmsg_begin(&m, RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP, &info, sizeof(info));
	r = netlink_list(nl, &m, route_read, sizeof(**ret), &list, ret_n, "list the routes", err);
	if (r < 0)
		return r;
	*ret = list;
	return 0;
}

/* ---- neighbours ---- */

int neighbour_set(struct netlink *nl, uint32_t link, const struct prefix *address,
		  const uint8_t mac[LINK_MAC_LEN], struct error *err)
{
	const struct ndmsg info = {
		.ndm_family = address->family,
		.ndm_ifindex = (int)link,
		.ndm_state = NUD_PERMANENT,
	};
	char what[ADDRESS_WHAT], text[PREFIX_TEXT_MAX];
	struct netmsg m;

	prefix_print_address(address, text);
	(void)str_printf(what, sizeof(what), "set the neighbour %s of link %u", text, link);
	if (prefix_size(address) == 0)
		return error_set(err, -EINVAL, "%s", what);
	netmsg_begin(&m, RTM_NEWNEIGH, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE,
		     &info, sizeof(info));
	address_put(&m, NDA_DST, address);
	netmsg_put(&m, NDA_LLADDR, mac, LINK_MAC_LEN);
	return netlink_ask(nl, &m, NULL, NULL, what, err);
}
