/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/bridge.h"

#include <errno.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "net/netlink/address.h"
#include "net/netlink/netlink.h"
#include "net/port/port_parts.h"

#define BRIDGE_WHAT 96

void bridge_name(unsigned number, char ret[IF_NAMESIZE])
{
	(void)str_printf(ret, IF_NAMESIZE, PORT_PREFIX "br%u", number);
}

/* ---- the bridge ---- */

/* Not NOARP, as a routed port is: pods may ask for the gateway, which answers. */
static int bridge_set(struct netlink *nl, const struct bridge_plan *plan, uint32_t link,
		      struct error *err)
{
	struct netmsg m;
	size_t spec;

	port_begin_set(&m, link, IFF_UP, IFF_UP);
	netmsg_put_u32(&m, IFLA_GROUP, plan->group);
	if (plan->mtu)
		netmsg_put_u32(&m, IFLA_MTU, plan->mtu);
	spec = netmsg_open(&m, IFLA_AF_SPEC);
	port_put_settings4(&m, false);
	if (plan->has_ip6)
		port_put_gen_mode(&m);
	netmsg_close(&m, spec);
	if (plan->alias)
		netmsg_put(&m, IFLA_IFALIAS, plan->alias, strlen(plan->alias));
	return netlink_ask(nl, &m, NULL, NULL, "set the bridge of a network", err);
}

/* What is there already is what was wanted. */
static int bridge_add_address(struct netlink *nl, uint32_t link, const struct prefix *address,
			      struct error *err)
{
	struct error none = ERROR_INIT;
	int r = address_add(nl, link, address, &none);

	return r < 0 && r != -EEXIST ? error_copy(err, &none) : 0;
}

static int bridge_open(struct netlink *nl, const struct bridge_plan *plan, uint32_t link,
		       struct error *err)
{
	const struct prefix gateway = port_host(&plan->gateway4);
	int r;

	r = plan->has_ip6 ? port_set_files6(plan->name, err) : port_close6(plan->name, err);
	if (r == 0)
		r = bridge_set(nl, plan, link, err);
	if (r == 0)
		r = bridge_add_address(nl, link, &gateway, err);
	if (r == 0 && plan->has_ip6)
		r = bridge_add_address(nl, link, &port_gateway6, err);
	return r;
}

int bridge_find(const char *name, uint32_t *ret, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link l;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = link_find(&nl, name, &l, err);
	if (r < 0)
		return r;
	if (!str_eq(l.kind, "bridge"))
		return error_set(err, -ENODEV, "find the bridge %s", name);
	*ret = l.index;
	return 0;
}

int bridge_make(const struct bridge_plan *plan, uint32_t *ret, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct error none = ERROR_INIT;
	struct link l;
	int r;

	r = netlink_open(&nl, err);
	if (r < 0)
		return r;
	r = link_find(&nl, plan->name, &l, &none);
	if (r == -ENODEV) {
		r = link_add_bridge(&nl, plan->name, port_node_mac, NULL, &none);
		/* Another thread may have been as fast. */
		if (r == 0 || r == -EEXIST)
			r = link_find(&nl, plan->name, &l, &none);
	}
	if (r < 0)
		return error_copy(err, &none);
	if (!str_eq(l.kind, "bridge"))
		return error_refuse(err, ERROR_PRECONDITION,
				    "this host has a device %s that is no bridge of ours; remove "
				    "or rename it",
				    plan->name);
	r = bridge_open(&nl, plan, l.index, err);
	if (r == 0)
		*ret = l.index;
	return r;
}

/* ---- the node's end of a port ---- */

/* Down, and in the bridge from its first moment on. */
static int bridge_add_pair(struct netlink *nl, const struct port_plan *plan, uint32_t bridge,
			   int pod_ns_fd, struct error *err)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC };
	char what[BRIDGE_WHAT];
	struct netmsg m;
	size_t link, data, peer;

	netmsg_begin(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &info,
		     sizeof(info));
	netmsg_put_str(&m, IFLA_IFNAME, plan->name);
	netmsg_put_u32(&m, IFLA_GROUP, plan->group);
	netmsg_put_u32(&m, IFLA_MASTER, bridge);
	if (plan->mtu)
		netmsg_put_u32(&m, IFLA_MTU, plan->mtu);
	link = netmsg_open(&m, IFLA_LINKINFO);
	netmsg_put_str(&m, IFLA_INFO_KIND, "veth");
	data = netmsg_open(&m, IFLA_INFO_DATA);
	peer = netmsg_open(&m, VETH_INFO_PEER);
	netmsg_put_raw(&m, &info, sizeof(info));
	netmsg_put_str(&m, IFLA_IFNAME, plan->pod_name);
	netmsg_put(&m, IFLA_ADDRESS, plan->mac, LINK_MAC_LEN);
	if (plan->mtu)
		netmsg_put_u32(&m, IFLA_MTU, plan->mtu);
	netmsg_put_u32(&m, IFLA_NET_NS_FD, (uint32_t)pod_ns_fd);
	netmsg_close(&m, peer);
	netmsg_close(&m, data);
	netmsg_close(&m, link);
	(void)str_printf(what, sizeof(what), "make the port %s of a pod", plan->name);
	return netlink_ask(nl, &m, NULL, NULL, what, err);
}

/* Hairpin only where it is needed: a pod hears its own broadcasts by it. Kernels before 5.18 pass
 * over IFLA_BRPORT_LOCKED; the packet filter says the same. */
static int bridge_set_flags(struct netlink *nl, uint32_t link, bool hairpin, struct error *err)
{
	static const uint16_t off[] = { IFLA_BRPORT_LEARNING, IFLA_BRPORT_UNICAST_FLOOD };
	const struct ifinfomsg info = { .ifi_family = AF_BRIDGE, .ifi_index = (int)link };
	struct netmsg m;
	size_t port;

	netmsg_begin(&m, RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, &info, sizeof(info));
	port = netmsg_open(&m, IFLA_PROTINFO | NLA_F_NESTED);
	for (size_t i = 0; i < ARRAY_SIZE(off); i++)
		netmsg_put_u8(&m, off[i], 0);
	netmsg_put_u8(&m, IFLA_BRPORT_LOCKED, 1);
	netmsg_put_u8(&m, IFLA_BRPORT_MODE, hairpin);
	netmsg_close(&m, port);
	return netlink_ask(nl, &m, NULL, NULL, "set the port of a bridge", err);
}

/* The one MAC that is behind the port. */
static int bridge_add_mac(struct netlink *nl, const struct port_plan *plan, uint32_t link,
			  struct error *err)
{
	const struct ndmsg info = { .ndm_family = AF_BRIDGE,
				    .ndm_ifindex = (int)link,
				    .ndm_flags = NTF_MASTER,
				    .ndm_state = NUD_NOARP };
	struct netmsg m;

	netmsg_begin(&m, RTM_NEWNEIGH, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE,
		     &info, sizeof(info));
	netmsg_put(&m, NDA_LLADDR, plan->mac, LINK_MAC_LEN);
	return netlink_ask(nl, &m, NULL, NULL, "tell a bridge the MAC of a pod", err);
}

static int bridge_start_port(struct netlink *nl, const struct port_plan *plan, uint32_t link,
			     struct error *err)
{
	struct netmsg m;

	port_begin_set(&m, link, IFF_UP, IFF_UP);
	if (plan->alias)
		netmsg_put(&m, IFLA_IFALIAS, plan->alias, MIN(strlen(plan->alias), (size_t)255));
	return netlink_ask(nl, &m, NULL, NULL, "start the port of a bridge", err);
}

/* ---- what the node's own stack is told ---- */

static int bridge_unroute(struct netlink *nl, uint32_t bridge, const struct prefix *address,
			  struct error *err)
{
	const struct route route = { .to = port_host(address), .link = bridge };
	const struct ndmsg info = { .ndm_family = address->family, .ndm_ifindex = (int)bridge };
	struct error none = ERROR_INIT;
	struct netmsg m;
	int r;

	if (!address->family)
		return 0;
	r = route_remove(nl, &route, &none);
	if (r < 0 && r != -ESRCH && r != -ENODEV)
		return error_copy(err, &none);
	netmsg_begin(&m, RTM_DELNEIGH, NLM_F_REQUEST | NLM_F_ACK, &info, sizeof(info));
	netmsg_put(&m, NDA_DST, address->bytes, prefix_size(address));
	r = netlink_ask(nl, &m, NULL, NULL, "remove the neighbour of a bridge", &none);
	return r < 0 && r != -ENOENT && r != -ENODEV ? error_copy(err, &none) : 0;
}

static int bridge_route(struct netlink *nl, const struct port_plan *plan, uint32_t bridge,
			const struct prefix *address, struct error *err)
{
	const struct prefix host = port_host(address);
	int r;

	if (!address->family)
		return 0;
	/* One that a port left behind, which somebody took out of its bridge. */
	r = bridge_unroute(nl, bridge, address, err);
	if (r == 0)
		r = port_add_route(nl, &host, NULL, bridge, err);
	return r == 0 ? neighbour_set(nl, bridge, &host, plan->mac, err) : r;
}

/* For all of its ports, and for as long as the bridge is there. */
static int bridge_open_loopback(struct netlink *nl, const struct port_plan *plan, uint32_t bridge,
				struct error *err)
{
	struct netmsg m;
	size_t spec;

	if (!plan->loopback)
		return 0;
	port_begin_set(&m, bridge, 0, 0);
	spec = netmsg_open(&m, IFLA_AF_SPEC);
	port_put_settings4(&m, true);
	netmsg_close(&m, spec);
	return netlink_ask(nl, &m, NULL, NULL, "lead 127.0.0.1 to the pods of a bridge", err);
}

static int bridge_open_port(struct netlink *nl, const struct port_plan *plan, uint32_t bridge,
			    uint32_t link, bool hairpin, struct error *err)
{
	int r;

	r = port_close6(plan->name, err);
	if (r == 0)
		r = bridge_set_flags(nl, link, hairpin, err);
	if (r == 0)
		r = bridge_add_mac(nl, plan, link, err);
	if (r == 0)
		r = bridge_start_port(nl, plan, link, err);
	if (r == 0)
		r = bridge_route(nl, plan, bridge, &plan->ip4, err);
	if (r == 0)
		r = bridge_route(nl, plan, bridge, &plan->ip6, err);
	if (r == 0)
		r = bridge_open_loopback(nl, plan, bridge, err);
	return r == 0 ? port_set_rate(nl, link, plan->rate_to_pod, err) : r;
}

void bridge_lan_plan(const struct port_plan *plan, struct lan_plan *ret)
{
	*ret = (struct lan_plan){ .ip4 = plan->ip4,
				  .ip6 = plan->ip6,
				  .gateway4 = plan->gateway4,
				  .gateway_mac = port_node_mac,
				  .is_default = plan->is_default,
				  .rate_from_pod = plan->rate_from_pod };
	memcpy(ret->pod_name, plan->pod_name, sizeof(ret->pod_name));
	ret->ip4.length = plan->pool4.length;
	if (!plan->ip6.family)
		return;
	ret->ip6.length = plan->pool6.length;
	ret->gateway6 = port_gateway6;
}

/* A carrier that has come is acted upon by the kernel in its own time, and what is sent before that
 * is dropped. Who asks has it done at once, since Linux 6.2. */
static int bridge_see_carrier(struct netlink *nl, uint32_t link, uint32_t bridge, struct error *err)
{
	struct link l;
	int r = link_get(nl, link, &l, err);

	return r == 0 ? link_get(nl, bridge, &l, err) : r;
}

static void bridge_undo_port(struct netlink *nl, const struct port_plan *plan, uint32_t bridge)
{
	struct link l;

	(void)bridge_unroute(nl, bridge, &plan->ip4, NULL);
	(void)bridge_unroute(nl, bridge, &plan->ip6, NULL);
	if (link_find(nl, plan->name, &l, NULL) == 0)
		(void)link_delete(nl, l.index, NULL);
}

int bridge_make_port(const struct port_plan *plan, uint32_t bridge, bool hairpin, int pod_ns_fd,
		     uint32_t *ret, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct lan_plan pod;
	struct link l;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = bridge_add_pair(&nl, plan, bridge, pod_ns_fd, err);
	if (r < 0)
		return r;
	bridge_lan_plan(plan, &pod);
	r = link_find(&nl, plan->name, &l, err);
	if (r == 0)
		r = bridge_open_port(&nl, plan, bridge, l.index, hairpin, err);
	if (r == 0)
		r = lan_open(&pod, pod_ns_fd, err);
	if (r == 0)
		r = bridge_see_carrier(&nl, l.index, bridge, err);
	if (r < 0)
		bridge_undo_port(&nl, plan, bridge);
	else
		*ret = l.index;
	return r;
}

int bridge_rejoin(const struct port_plan *plan, uint32_t bridge, bool hairpin, uint32_t link,
		  struct error *err)
{
	const struct link_change change = { .master = bridge };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = link_set(&nl, link, &change, err);
	return r == 0 ? bridge_open_port(&nl, plan, bridge, link, hairpin, err) : r;
}

/* ---- who is gone ---- */

int bridge_forget(uint32_t bridge, const struct prefix *ip4, const struct prefix *ip6,
		  struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = bridge_unroute(&nl, bridge, ip4, err);
	return r == 0 ? bridge_unroute(&nl, bridge, ip6, err) : r;
}

static bool bridge_knows(const struct prefix *known, size_t n, const struct prefix *address)
{
	for (size_t i = 0; i < n; i++)
		if (prefix_same_address(&known[i], address))
			return true;
	return false;
}

int bridge_forget_others(uint32_t bridge, const struct prefix *known, size_t n, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct route *routes = NULL;
	size_t n_routes = 0;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = route_list(&nl, &routes, &n_routes, err);
	for (size_t i = 0; i < n_routes && r == 0; i++) {
		const struct prefix *to = &routes[i].to;

		if (routes[i].link == bridge && to->length == prefix_size(to) * 8 &&
		    !bridge_knows(known, n, to))
			r = bridge_unroute(&nl, bridge, to, err);
	}
	free(routes);
	return r;
}
