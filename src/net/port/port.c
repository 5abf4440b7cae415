/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/port.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "net/netlink/address.h"
#include "net/netlink/netlink.h"
#include "net/port/inside.h"
#include "net/port/join.h"
#include "net/port/port_parts.h"
#include "net/port/sysctl.h"

#define PORT_WHAT 96
#define PORT_ALIAS_MAX 255
#define PORT_LOCAL_METRIC 2048
/* What a token bucket may let through at once, at least, and how long it holds a packet back. */
#define PORT_BURST_MIN 65536
#define PORT_BURST_HZ 250
#define PORT_LATENCY_MS 50

const uint8_t port_node_mac[LINK_MAC_LEN] = { 0x02, 0x6e, 0, 0, 0, 0x01 };
const struct prefix port_gateway6 = { .family = AF_INET6,
				      .length = 64,
				      .bytes = { 0xfe, 0x80, [15] = 1 } };
static const struct prefix port_loopback6 = { .family = AF_INET6,
					      .length = 128,
					      .bytes = { [15] = 1 } };

void port_name(const struct prefix *ip4, char ret[IF_NAMESIZE])
{
	const uint8_t *b = ip4->bytes;

	(void)str_printf(ret, IF_NAMESIZE, PORT_PREFIX "%010x",
			 (unsigned)b[0] << 24 | (unsigned)b[1] << 16 | (unsigned)b[2] << 8 | b[3]);
}

void port_mac(const struct prefix *ip4, uint8_t ret[LINK_MAC_LEN])
{
	ret[0] = 0x02;
	ret[1] = 0x6e;
	memcpy(ret + 2, ip4->bytes, 4);
}

struct prefix port_host(const struct prefix *p)
{
	struct prefix host = *p;

	host.length = (uint8_t)(prefix_size(p) * 8);
	return host;
}

/* ---- what both ends need ---- */

/* A request about one link; what is said of it goes in behind. */
void port_begin_set(struct netmsg *m, uint32_t link, unsigned flags, unsigned change)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC,
					.ifi_index = (int)link,
					.ifi_flags = flags,
					.ifi_change = change };

	netmsg_begin(m, RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, &info, sizeof(info));
}

void port_put_gen_mode(struct netmsg *m)
{
	const size_t inet6 = netmsg_open(m, AF_INET6);

	netmsg_put_u8(m, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
	netmsg_close(m, inet6);
}

/* A link without an address of IPv6 is to have none of the kernel's making. Where IPv6 is off there
 * is no such file. */
int port_close6(const char *name, struct error *err)
{
	_cleanup_fd_ int proc_fd = sysctl_open(err);
	struct error none = ERROR_INIT;
	char key[64];
	int r;

	if (proc_fd < 0)
		return proc_fd;
	(void)str_printf(key, sizeof(key), "ipv6/conf/%s/disable_ipv6", name);
	r = sysctl_write(proc_fd, key, "1", &none);
	return r < 0 && r != -ENOENT ? error_copy(err, &none) : 0;
}

/* To a pod (no gateway) only where nobody else leads elsewhere; a pod's own may be led anew. */
int port_add_route(struct netlink *nl, const struct prefix *to, const struct prefix *via,
		   uint32_t link, struct error *err)
{
	const uint16_t flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
	const struct rtmsg info = {
		.rtm_family = to->family,
		.rtm_dst_len = to->length,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_type = RTN_UNICAST,
		.rtm_scope = via ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
		.rtm_flags = via ? RTNH_F_ONLINK : 0,
	};
	char what[PORT_WHAT], text[PREFIX_TEXT_MAX];
	struct netmsg m;

	prefix_print(to, text);
	(void)str_printf(what, sizeof(what), "add the route to %s, for a pod", text);
	netmsg_begin(&m, RTM_NEWROUTE, flags | (via ? NLM_F_REPLACE : NLM_F_EXCL), &info,
		     sizeof(info));
	if (to->length > 0)
		netmsg_put(&m, RTA_DST, to->bytes, prefix_size(to));
	if (via)
		netmsg_put(&m, RTA_GATEWAY, via->bytes, prefix_size(via));
	netmsg_put_u32(&m, RTA_OIF, link);
	return netlink_ask(nl, &m, NULL, NULL, what, err);
}

/* A token bucket for all that leaves by the link. */
int port_set_rate(struct netlink *nl, uint32_t link, uint64_t bits, struct error *err)
{
	const struct tcmsg info = { .tcm_family = AF_UNSPEC,
				    .tcm_ifindex = (int)link,
				    .tcm_parent = TC_H_ROOT,
				    .tcm_handle = 0x10000 };
	const uint64_t bytes = bits / 8;
	const uint32_t burst = (uint32_t)MIN(MAX(bytes / PORT_BURST_HZ, (uint64_t)PORT_BURST_MIN),
					     (uint64_t)UINT32_MAX / 2);
	const uint64_t queue = bytes * PORT_LATENCY_MS / 1000 + burst;
	struct tc_tbf_qopt opt = {
		.rate = { .rate = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
			  .linklayer = TC_LINKLAYER_ETHERNET },
		.limit = queue < UINT32_MAX / 2 ? (uint32_t)queue : UINT32_MAX / 2,
	};
	struct netmsg m;
	size_t options;

	if (bits == 0)
		return 0;
	netmsg_begin(&m, RTM_NEWQDISC, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE,
		     &info, sizeof(info));
	netmsg_put_str(&m, TCA_KIND, "tbf");
	options = netmsg_open(&m, TCA_OPTIONS);
	netmsg_put(&m, TCA_TBF_PARMS, &opt, sizeof(opt));
	netmsg_put_u32(&m, TCA_TBF_BURST, burst);
	if (bytes > UINT32_MAX)
		netmsg_put(&m, TCA_TBF_RATE64, &bytes, sizeof(bytes));
	netmsg_close(&m, options);
	return netlink_ask(nl, &m, NULL, NULL, "limit the rate of a port (sch_tbf)", err);
}

/* ---- the pair ---- */

static int port_make_pair(struct netlink *nl, const struct port_plan *plan, int pod_ns_fd,
			  struct error *err)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC };
	char what[PORT_WHAT];
	struct netmsg m;
	size_t link, data, peer;

	netmsg_begin(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &info,
		     sizeof(info));
	netmsg_put_str(&m, IFLA_IFNAME, plan->name);
	netmsg_put(&m, IFLA_ADDRESS, port_node_mac, LINK_MAC_LEN);
	netmsg_put_u32(&m, IFLA_GROUP, plan->group);
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

/* ---- the node's end ---- */

/* All settings of IPv4 of a link go in one message. */
void port_put_settings4(struct netmsg *m, bool loopback)
{
	static const uint16_t zeroes[] = { IPV4_DEVCONF_ACCEPT_REDIRECTS,
					   IPV4_DEVCONF_SEND_REDIRECTS };
	static const uint16_t ones[] = { IPV4_DEVCONF_FORWARDING, IPV4_DEVCONF_RP_FILTER };
	const size_t inet = netmsg_open(m, AF_INET), conf = netmsg_open(m, IFLA_INET_CONF);

	for (size_t i = 0; i < ARRAY_SIZE(ones); i++)
		netmsg_put_u32(m, ones[i], 1);
	for (size_t i = 0; i < ARRAY_SIZE(zeroes); i++)
		netmsg_put_u32(m, zeroes[i], 0);
	if (loopback)
		netmsg_put_u32(m, IPV4_DEVCONF_ROUTE_LOCALNET, 1);
	netmsg_close(m, conf);
	netmsg_close(m, inet);
}

/* Flags in the same message: what changes IFF_NOARP later would flush the link's neighbours. */
static int port_set_node(struct netlink *nl, const struct port_plan *plan, uint32_t link,
			 struct error *err)
{
	char alias[PORT_ALIAS_MAX + 1];
	char what[PORT_WHAT];
	struct netmsg m;
	size_t spec;

	port_begin_set(&m, link, IFF_UP | IFF_NOARP, IFF_UP | IFF_NOARP);
	spec = netmsg_open(&m, IFLA_AF_SPEC);
	port_put_settings4(&m, plan->loopback);
	if (plan->ip6.family)
		port_put_gen_mode(&m);
	netmsg_close(&m, spec);
	if (plan->alias) {
		(void)str_copy(alias, sizeof(alias), plan->alias);
		netmsg_put(&m, IFLA_IFALIAS, alias, strlen(alias));
	}
	(void)str_printf(what, sizeof(what), "set the port %s of a pod", plan->name);
	return netlink_ask(nl, &m, NULL, NULL, what, err);
}

/* What leaves for ::1 by way of the port comes back here; the kernel still drops what a pod sends
 * to it. */
static int port_add_loopback6(struct netlink *nl, uint32_t link, struct error *err)
{
	const struct rtmsg info = {
		.rtm_family = AF_INET6,
		.rtm_dst_len = 128,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_type = RTN_LOCAL,
		.rtm_scope = RT_SCOPE_UNIVERSE,
	};
	struct netmsg m;

	netmsg_begin(&m, RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, &info,
		     sizeof(info));
	netmsg_put(&m, RTA_DST, port_loopback6.bytes, 16);
	netmsg_put_u32(&m, RTA_OIF, link);
	netmsg_put_u32(&m, RTA_PRIORITY, PORT_LOCAL_METRIC);
	return netlink_ask(nl, &m, NULL, NULL, "lead ::1 to the port of a pod", err);
}

/* What the kernel takes from a file alone. force_forwarding is of Linux 6.17; before, all links
 * forward or none does (net/filter/forward.h). */
int port_set_files6(const char *port, struct error *err)
{
	_cleanup_fd_ int proc_fd = sysctl_open(err);
	struct error none = ERROR_INIT;
	char name[64];
	int r;

	if (proc_fd < 0)
		return proc_fd;
	(void)str_printf(name, sizeof(name), "ipv6/conf/%s/accept_ra", port);
	r = sysctl_write(proc_fd, name, "0", err);
	if (r < 0)
		return r;
	(void)str_printf(name, sizeof(name), "ipv6/conf/%s/force_forwarding", port);
	r = sysctl_write(proc_fd, name, "1", &none);
	return r < 0 && r != -ENOENT ? error_copy(err, &none) : 0;
}

static int port_address_node6(struct netlink *nl, const struct port_plan *plan, uint32_t link,
			      struct error *err)
{
	const struct prefix host = port_host(&plan->ip6);
	int r;

	r = port_set_files6(plan->name, err);
	if (r == 0)
		r = address_add(nl, link, &port_gateway6, err);
	if (r == 0)
		r = port_add_route(nl, &host, NULL, link, err);
	if (r == 0)
		r = neighbour_set(nl, link, &host, plan->mac, err);
	if (r == 0 && plan->loopback)
		r = port_add_loopback6(nl, link, err);
	return r;
}

static int port_open_node(struct netlink *nl, const struct port_plan *plan, uint32_t link,
			  struct error *err)
{
	const struct prefix host = port_host(&plan->ip4), gateway = port_host(&plan->gateway4);
	int r;

	r = plan->ip6.family ? 0 : port_close6(plan->name, err);
	if (r == 0)
		r = port_set_node(nl, plan, link, err);
	if (r == 0)
		r = address_add(nl, link, &gateway, err);
	if (r == 0)
		r = port_add_route(nl, &host, NULL, link, err);
	if (r == 0)
		r = neighbour_set(nl, link, &host, plan->mac, err);
	if (r == 0 && plan->ip6.family)
		r = port_address_node6(nl, plan, link, err);
	return r == 0 ? port_set_rate(nl, link, plan->rate_to_pod, err) : r;
}

/* ---- the pod's end, on a thread that stands there ---- */

struct port_pod {
	const struct port_plan *plan;
	uint32_t link;
};

void port_set_pod_files(void)
{
	static const struct {
		const char *name, *value;
		long made; /* the first number in it, in a namespace that was just made */
	} settings[] = {
		{ "ipv4/ip_unprivileged_port_start", "0", 1024 },
		{ "ipv4/ping_group_range", "0 2147483647", 1 },
	};
	_cleanup_fd_ int proc_fd = sysctl_open(NULL);
	long now;

	for (size_t i = 0; proc_fd >= 0 && i < ARRAY_SIZE(settings); i++)
		if (sysctl_read(proc_fd, settings[i].name, &now, NULL) < 0 ||
		    now != settings[i].made)
			return;
	for (size_t i = 0; proc_fd >= 0 && i < ARRAY_SIZE(settings); i++)
		if (sysctl_write(proc_fd, settings[i].name, settings[i].value, NULL) < 0)
			return;
}

int port_power_pod(struct netlink *nl, uint32_t link, const char *name, bool has_ip6,
		   struct error *err)
{
	struct netmsg m;
	size_t spec;
	int r;

	if (!has_ip6) {
		r = port_close6(name, err);
		if (r < 0)
			return r;
	} else { /* By itself, since the kernel sets flags before it looks at this one. */
		port_begin_set(&m, link, 0, 0);
		spec = netmsg_open(&m, IFLA_AF_SPEC);
		port_put_gen_mode(&m);
		netmsg_close(&m, spec);
		r = netlink_ask(nl, &m, NULL, NULL, "keep other addresses off a pod's device", err);
		if (r < 0)
			return r;
	}
	port_begin_set(&m, link, IFF_UP, IFF_UP);
	r = netlink_ask(nl, &m, NULL, NULL, "start a pod's device", err);
	if (r < 0)
		return r;
	port_begin_set(&m, 1, IFF_UP, IFF_UP);
	return netlink_ask(nl, &m, NULL, NULL, "start a pod's loopback device", err);
}

static int port_route_pod(struct netlink *nl, const struct port_pod *pod, const struct prefix *pool,
			  const struct prefix *gateway, struct error *err)
{
	const struct prefix all = { .family = pool->family };
	const struct prefix to = pod->plan->is_default ? all : prefix_network(pool);
	int r;

	r = neighbour_set(nl, pod->link, gateway, port_node_mac, err);
	if (r < 0)
		return r;
	return port_add_route(nl, &to, gateway, pod->link, err);
}

static int port_address_pod(const struct port_pod *pod, struct error *err)
{
	const struct port_plan *plan = pod->plan;
	const struct prefix ip4 = port_host(&plan->ip4), ip6 = port_host(&plan->ip6);
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = port_power_pod(&nl, pod->link, plan->pod_name, plan->ip6.family != 0, err);
	if (r == 0)
		r = address_add(&nl, pod->link, &ip4, err);
	if (r == 0)
		r = port_route_pod(&nl, pod, &plan->pool4, &plan->gateway4, err);
	if (r == 0 && plan->ip6.family)
		r = address_add(&nl, pod->link, &ip6, err);
	if (r == 0 && plan->ip6.family)
		r = port_route_pod(&nl, pod, &plan->pool6, &port_gateway6, err);
	if (r == 0)
		r = port_set_rate(&nl, pod->link, plan->rate_from_pod, err);
	if (r == 0)
		port_set_pod_files();
	return r;
}

int port_open_inside(const struct port_plan *plan, uint32_t link, struct error *err)
{
	const struct port_pod pod = { .plan = plan, .link = link };

	return port_address_pod(&pod, err);
}

/* A wire to the guest of a machine, which has the addresses. */
static int port_open_machine(const struct port_pod *pod, struct error *err)
{
	const struct link_change up = { .power = LINK_UP }, as_long = { .mtu = pod->plan->mtu };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link tap;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = port_close6(pod->plan->pod_name, err);
	if (r == 0)
		r = link_find(&nl, pod->plan->tap, &tap, err);
	if (r == 0)
		r = link_set(&nl, tap.index, &as_long, err);
	if (r == 0)
		r = join_links(&nl, tap.index, pod->link, err);
	if (r == 0)
		r = port_set_rate(&nl, pod->link, pod->plan->rate_from_pod, err);
	return r == 0 ? link_set(&nl, pod->link, &up, err) : r;
}

static int port_open_pod(void *arg, struct error *err)
{
	const struct port_pod *pod = arg;

	return pod->plan->tap[0] ? port_open_machine(pod, err) : port_address_pod(pod, err);
}

/* ---- all of it ---- */

int port_make(const struct port_plan *plan, int pod_ns_fd, uint32_t *ret, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct port_pod pod = { .plan = plan };
	struct link l;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = port_make_pair(&nl, plan, pod_ns_fd, err);
	if (r < 0)
		return r;
	r = link_find(&nl, plan->name, &l, err);
	if (r == 0)
		r = port_open_node(&nl, plan, l.index, err);
	if (r == 0) {
		pod.link = l.peer;
		r = inside_run(pod_ns_fd, port_open_pod, &pod, err);
	}
	/* The carrier has come to this end, which the kernel acts upon in its own time: what is
	 * sent before that is dropped. A question about the link has it done at once, since
	 * Linux 6.2. */
	if (r == 0)
		r = link_get(&nl, l.index, &l, err);
	if (r < 0) {
		if (link_find(&nl, plan->name, &l, NULL) == 0)
			(void)link_delete(&nl, l.index, NULL);
		return r;
	}
	*ret = l.index;
	return 0;
}

static int port_lead_out_pod(void *arg, struct error *err)
{
	const struct port_plan *plan = arg;
	const struct prefix all4 = { .family = AF_INET }, all6 = { .family = AF_INET6 };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link l;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = link_find(&nl, plan->pod_name, &l, err);
	if (r == 0)
		r = port_add_route(&nl, &all4, &plan->gateway4, l.index, err);
	if (r == 0 && plan->ip6.family)
		r = port_add_route(&nl, &all6, &port_gateway6, l.index, err);
	return r;
}

int port_lead_out(const struct port_plan *plan, int pod_ns_fd, struct error *err)
{
	struct port_plan copy = *plan;

	return inside_run(pod_ns_fd, port_lead_out_pod, &copy, err);
}

int port_remove(const char *name, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct error none = ERROR_INIT;
	struct link l;
	int r;

	r = netlink_open(&nl, err);
	if (r < 0)
		return r;
	r = link_find(&nl, name, &l, &none);
	if (r == 0)
		r = link_delete(&nl, l.index, &none);
	return r < 0 && r != -ENODEV ? error_copy(err, &none) : 0;
}

int port_list(struct port_seen **ret, size_t *ret_n, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct port_seen *seen;
	struct link *links;
	size_t n_links;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = link_list(&nl, &links, &n_links, err);
	if (r < 0)
		return r;
	seen = calloc(n_links + 1, sizeof(*seen));
	*ret_n = 0;
	for (size_t i = 0; seen && i < n_links; i++) {
		if (links[i].group <= PORT_GROUP || links[i].group - PORT_GROUP > PORT_NETWORKS_MAX)
			continue;
		seen[*ret_n] = (struct port_seen){ .link = links[i].index,
						   .group = links[i].group,
						   .master = links[i].master };
		memcpy(seen[(*ret_n)++].name, links[i].name, IF_NAMESIZE);
	}
	free(links);
	if (!seen)
		return error_set(err, -ENOMEM, "list the ports of pods");
	*ret = seen;
	return 0;
}

bool port_has_ipv6(void)
{
	_cleanup_fd_ int proc_fd = sysctl_open(NULL);
	long all = 0, other = 0;

	return proc_fd >= 0 &&
	       sysctl_read(proc_fd, "ipv6/conf/all/disable_ipv6", &all, NULL) == 0 &&
	       sysctl_read(proc_fd, "ipv6/conf/default/disable_ipv6", &other, NULL) == 0 && !all &&
	       !other;
}
