/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/lan.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "net/netlink/address.h"
#include "net/netlink/netlink.h"
#include "net/port/inside.h"
#include "net/port/port_parts.h"

#define LAN_WHAT 96

/* ---- in the pod's namespace ---- */

static int lan_route_out(struct netlink *nl, const struct lan_plan *plan, uint32_t link,
			 struct error *err)
{
	const struct prefix *gateways[] = { &plan->gateway4, &plan->gateway6 };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(gateways) && r == 0; i++) {
		const struct prefix all = { .family = gateways[i]->family };

		if (all.family)
			r = port_add_route(nl, &all, gateways[i], link, err);
	}
	return r;
}

static int lan_set_gateways(struct netlink *nl, const struct lan_plan *plan, uint32_t link,
			    struct error *err)
{
	int r = 0;

	if (!plan->gateway_mac)
		return 0;
	if (plan->gateway4.family)
		r = neighbour_set(nl, link, &plan->gateway4, plan->gateway_mac, err);
	if (r == 0 && plan->gateway6.family)
		r = neighbour_set(nl, link, &plan->gateway6, plan->gateway_mac, err);
	return r;
}

static int lan_open_link(struct netlink *nl, const struct lan_plan *plan, uint32_t link,
			 struct error *err)
{
	int r = port_power_pod(nl, link, plan->pod_name, plan->ip6.family != 0, err);

	if (r == 0)
		r = address_add(nl, link, &plan->ip4, err);
	if (r == 0 && plan->ip6.family)
		r = address_add(nl, link, &plan->ip6, err);
	if (r == 0)
		r = lan_set_gateways(nl, plan, link, err);
	if (r == 0 && plan->is_default)
		r = lan_route_out(nl, plan, link, err);
	return r == 0 ? port_set_rate(nl, link, plan->rate_from_pod, err) : r;
}

static int lan_find_and(const struct lan_plan *plan,
			int (*fn)(struct netlink *nl, const struct lan_plan *plan, uint32_t link,
				  struct error *err),
			struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link l;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = link_find(&nl, plan->pod_name, &l, err);
	return r == 0 ? fn(&nl, plan, l.index, err) : r;
}

static int lan_open_pod(void *arg, struct error *err)
{
	int r = lan_find_and(arg, lan_open_link, err);

	if (r == 0)
		port_set_pod_files();
	return r;
}

int lan_open(const struct lan_plan *plan, int pod_ns_fd, struct error *err)
{
	struct lan_plan copy = *plan;

	return inside_run(pod_ns_fd, lan_open_pod, &copy, err);
}

static int lan_lead_out_pod(void *arg, struct error *err)
{
	return lan_find_and(arg, lan_route_out, err);
}

int lan_lead_out(const struct lan_plan *plan, int pod_ns_fd, struct error *err)
{
	struct lan_plan copy = *plan;

	return inside_run(pod_ns_fd, lan_lead_out_pod, &copy, err);
}

/* ---- children ---- */

static const struct {
	const char *kind;
	uint16_t attribute; /* of IFLA_INFO_DATA */
	uint32_t mode;
	size_t mode_size;
} lan_kinds[] = {
	[LAN_MACVLAN_BRIDGE] = { "macvlan", IFLA_MACVLAN_MODE, MACVLAN_MODE_BRIDGE, 4 },
	[LAN_MACVLAN_PRIVATE] = { "macvlan", IFLA_MACVLAN_MODE, MACVLAN_MODE_PRIVATE, 4 },
	[LAN_IPVLAN_L2] = { "ipvlan", IFLA_IPVLAN_MODE, IPVLAN_MODE_L2, 2 },
	[LAN_IPVLAN_L3] = { "ipvlan", IFLA_IPVLAN_MODE, IPVLAN_MODE_L3, 2 },
};
static_assert(ARRAY_SIZE(lan_kinds) == LAN_KIND_COUNT, "a row for each kind");

static int lan_add_child(struct netlink *nl, const struct lan_plan *plan, enum lan_kind kind,
			 uint32_t parent, int pod_ns_fd, struct error *err)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC };
	const uint16_t mode16 = (uint16_t)lan_kinds[kind].mode;
	char what[LAN_WHAT];
	struct netmsg m;
	size_t link, data;

	netmsg_begin(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &info,
		     sizeof(info));
	netmsg_put_str(&m, IFLA_IFNAME, plan->pod_name);
	netmsg_put_u32(&m, IFLA_LINK, parent);
	if (plan->mac)
		netmsg_put(&m, IFLA_ADDRESS, plan->mac, LINK_MAC_LEN);
	if (plan->mtu)
		netmsg_put_u32(&m, IFLA_MTU, plan->mtu);
	netmsg_put_u32(&m, IFLA_NET_NS_FD, (uint32_t)pod_ns_fd);
	link = netmsg_open(&m, IFLA_LINKINFO);
	netmsg_put_str(&m, IFLA_INFO_KIND, lan_kinds[kind].kind);
	data = netmsg_open(&m, IFLA_INFO_DATA);
	if (lan_kinds[kind].mode_size == sizeof(mode16))
		netmsg_put(&m, lan_kinds[kind].attribute, &mode16, sizeof(mode16));
	else
		netmsg_put_u32(&m, lan_kinds[kind].attribute, lan_kinds[kind].mode);
	netmsg_close(&m, data);
	netmsg_close(&m, link);
	(void)str_printf(what, sizeof(what), "make the %s device %s of a pod", lan_kinds[kind].kind,
			 plan->pod_name);
	return netlink_ask(nl, &m, NULL, NULL, what, err);
}

int lan_make_child(const struct lan_plan *plan, enum lan_kind kind, const char *parent,
		   int pod_ns_fd, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link l;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = link_find(&nl, parent, &l, err);
	if (r == 0)
		r = lan_add_child(&nl, plan, kind, l.index, pod_ns_fd, err);
	if (r < 0)
		return r;
	r = lan_open(plan, pod_ns_fd, err);
	if (r < 0)
		(void)lan_remove_child(plan->pod_name, pod_ns_fd, NULL);
	return r;
}

static int lan_remove_pod(void *arg, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct error none = ERROR_INIT;
	struct link l;
	int r;

	r = netlink_open(&nl, err);
	if (r < 0)
		return r;
	r = link_find(&nl, arg, &l, &none);
	if (r == 0)
		r = link_delete(&nl, l.index, &none);
	return r < 0 && r != -ENODEV ? error_copy(err, &none) : 0;
}

int lan_remove_child(const char *pod_name, int pod_ns_fd, struct error *err)
{
	char name[IF_NAMESIZE];

	(void)str_copy(name, sizeof(name), pod_name);
	return inside_run(pod_ns_fd, lan_remove_pod, name, err);
}

/* ---- devices of the node ---- */

int lan_look_home(const char *name, struct lan_home *ret, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link l;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = link_find(&nl, name, &l, err);
	if (r < 0)
		return r;
	*ret = (struct lan_home){ .mtu = l.mtu, .up = l.up };
	memcpy(ret->name, l.name, sizeof(ret->name));
	memcpy(ret->kind, l.kind, sizeof(ret->kind));
	memcpy(ret->mac, l.mac, sizeof(ret->mac));
	return 0;
}

/* As it was, in the namespace of the calling thread, to which it has come back. */
static int lan_restore(const struct lan_home *home, struct error *err)
{
	const struct link_change change = { .mac = home->mac, .mtu = home->mtu },
				 up = { .power = LINK_UP };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link l = { .index = 0 };
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = link_find(&nl, home->name, &l, err);
	if (r == 0 && (memcmp(l.mac, home->mac, sizeof(l.mac)) != 0 || l.mtu != home->mtu))
		r = link_set(&nl, l.index, &change, err);
	return r == 0 && home->up ? link_set(&nl, l.index, &up, err) : r;
}

int lan_lend(const struct lan_plan *plan, const struct lan_home *home, int pod_ns_fd,
	     struct error *err)
{
	const struct link_change down = { .power = LINK_DOWN }, mtu = { .mtu = plan->mtu };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link l = { .index = 0 };
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = link_find(&nl, home->name, &l, err);
	/* A name changes only while the device is down, before Linux 6.2. */
	if (r == 0)
		r = link_set(&nl, l.index, &down, err);
	if (r == 0 && plan->mtu)
		r = link_set(&nl, l.index, &mtu, err);
	if (r == 0)
		r = link_move(&nl, l.index, pod_ns_fd, plan->pod_name, err);
	if (r < 0) {
		(void)lan_restore(home, NULL);
		return r;
	}
	r = lan_open(plan, pod_ns_fd, err);
	if (r < 0)
		(void)lan_take_back(plan->pod_name, home, pod_ns_fd, NULL);
	return r;
}

struct lan_return {
	const char *pod_name;
	const struct lan_home *home;
	int node_ns_fd;
};

/* Its MAC is looked for where the pod has given it another name. A pod with CAP_NET_ADMIN may have
 * made a device in its place, such as one end of a pair: that of another kind is not it. */
static int lan_find_lent(struct netlink *nl, const struct lan_return *back, struct link *ret,
			 struct error *err)
{
	struct link *links;
	size_t n;
	int r = link_find(nl, back->pod_name, ret, NULL);

	if (r == 0 && str_eq(ret->kind, back->home->kind))
		return 0;
	r = link_list(nl, &links, &n, err);
	if (r < 0)
		return r;
	r = -ENODEV;
	for (size_t i = 0; i < n && r < 0; i++) {
		if (!links[i].has_mac || !str_eq(links[i].kind, back->home->kind) ||
		    memcmp(links[i].mac, back->home->mac, LINK_MAC_LEN) != 0)
			continue;
		*ret = links[i];
		r = 0;
	}
	free(links);
	return r < 0 ? error_set(err, r, "find the device %s in the pod that has it",
				 back->home->name)
		     : 0;
}

static int lan_send_back(void *arg, struct error *err)
{
	const struct link_change home = { .power = LINK_DOWN, .no_group = true };
	const struct lan_return *back = arg;
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link l = { .index = 0 };
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = lan_find_lent(&nl, back, &l, err);
	if (r == 0)
		r = link_set(&nl, l.index, &home, err);
	return r == 0 ? link_move(&nl, l.index, back->node_ns_fd, back->home->name, err) : r;
}

int lan_take_back(const char *pod_name, const struct lan_home *home, int pod_ns_fd,
		  struct error *err)
{
	_cleanup_fd_ int node_ns_fd =
		sysio_openat(AT_FDCWD, "/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC, 0);
	struct lan_return back = { pod_name, home, node_ns_fd };
	int r;

	if (node_ns_fd < 0)
		return error_set(err, -errno, "open the network namespace of the node");
	r = inside_run(pod_ns_fd, lan_send_back, &back, err);
	return r == 0 ? lan_restore(home, err) : r;
}

/* ---- brought back by the kernel ---- */

/* What is upon it, as a VLAN or a bond, may have its MAC, but is of another kind; and what is in a
 * bond may have another one's. */
static bool lan_is_home(const struct link *l, const struct lan_home *home)
{
	return l->has_mac && l->master == 0 && str_eq(l->kind, home->kind) &&
	       (memcmp(l->mac, home->mac, sizeof(l->mac)) == 0 ||
		memcmp(l->own_mac, home->mac, sizeof(l->own_mac)) == 0);
}

static int lan_find_returned(struct netlink *nl, const struct lan_home *home, struct link *ret,
			     struct error *err)
{
	struct link *links;
	size_t n;
	int r = link_list(nl, &links, &n, err);

	if (r < 0)
		return r;
	r = -ENODEV;
	for (size_t i = 0; i < n && r < 0; i++) {
		if (!lan_is_home(&links[i], home))
			continue;
		*ret = links[i];
		r = 0;
	}
	free(links);
	return r;
}

static int lan_watch_links(struct error *err)
{
	const struct sockaddr_nl at = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	_cleanup_fd_ int fd =
		sysio_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return error_set(err, -errno, "watch the devices of the node");
	return TAKE_FD(fd);
}

/* Whether something has changed by then. */
static bool lan_await_change(int fd, nsec_t until)
{
	const nsec_t now = clock_mono();
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char data[4096];

	if (now >= until || poll(&p, 1, (int)((until - now) / NSEC_PER_MSEC) + 1) == 0)
		return false;
	/* The list is what counts. ENOBUFS: some were lost, and the next is read. */
	while (recv(fd, data, sizeof(data), MSG_DONTWAIT) >= 0 || errno == ENOBUFS)
		;
	return true;
}

static int lan_name(struct netlink *nl, const struct link *l, const char *name, struct error *err)
{
	const struct link_change down = { .power = LINK_DOWN }, named = { .name = name };
	int r;

	if (str_eq(l->name, name))
		return 0;
	/* A name changes only while the device is down, before Linux 6.2. */
	r = link_set(nl, l->index, &down, err);
	if (r == 0)
		r = link_set(nl, l->index, &named, err);
	return r < 0 ? error_wrap(err, r, "name %s, which comes from a pod, %s again", l->name,
				  name)
		     : 0;
}

int lan_receive_back(const struct lan_home *home, int wait_ms, struct error *err)
{
	const nsec_t until = clock_mono() + (nsec_t)wait_ms * NSEC_PER_MSEC;
	_cleanup_fd_ int watch_fd = lan_watch_links(err);
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link l = { .index = 0 };
	int r;

	if (watch_fd < 0)
		return watch_fd;
	r = netlink_open(&nl, err);
	if (r < 0)
		return r;
	do
		r = lan_find_returned(&nl, home, &l, err);
	while (r == -ENODEV && lan_await_change(watch_fd, until));
	if (r == -ENODEV)
		return error_set(err, r, "find the device %s, which was a pod's that is gone",
				 home->name);
	if (r == 0)
		r = lan_name(&nl, &l, home->name, err);
	return r == 0 ? lan_restore(home, err) : r;
}
