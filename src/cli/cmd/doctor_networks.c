/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "cli/cmd/doctor_check.h"
#include "cli/output/alloc.h"
#include "cli/table/command.h"
#include "net/filter/filter.h"
#include "net/filter/policy.h"
#include "net/netlink/link.h"
#include "net/port/inside.h"
#include "net/port/lan.h"
#include "net/port/port.h"
#include "net/port/tap.h"

/* In a network namespace of its own, which is gone afterwards. */
static bool doctor_inside(inside_fn fn, char **ret_detail)
{
	struct error err = ERROR_INIT;
	int r = inside_run(INSIDE_NEW, fn, NULL, &err);

	*ret_detail = xstrdup(r < 0 ? error_text(&err) : "can be made");
	return r >= 0;
}

static int doctor_make_tap(void *arg, struct error *err)
{
	int fd = tap_open("tap0", err);

	(void)fd_close(fd);
	return fd < 0 ? fd : 0;
}

static bool tap_devices(const struct cli *cli, char **ret_detail)
{
	return doctor_inside(doctor_make_tap, ret_detail);
}

static int doctor_make_bridge(void *arg, struct error *err)
{
	const struct link_veth veth = { .name = "veth0", .peer = "veth1", .peer_ns_fd = -1 };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = link_add_bridge(&nl, "bridge0", NULL, NULL, err);
	return r < 0 ? r : link_add_veth(&nl, &veth, NULL, err);
}

static bool bridges(const struct cli *cli, char **ret_detail)
{
	return doctor_inside(doctor_make_bridge, ret_detail);
}

static int doctor_make_filter(void *arg, struct error *err)
{
	const struct filter_state none = { .networks = NULL };
	struct filter *f = NULL;
	int r = filter_new(&f, err);

	if (r == 0)
		r = filter_sync(f, &none, err);
	(void)filter_free(f);
	return r;
}

static bool packet_filter(const struct cli *cli, char **ret_detail)
{
	return doctor_inside(doctor_make_filter, ret_detail);
}

/* Here, and not in a namespace of its own: it is about the rules of others. */
static bool forwarding(const struct cli *cli, char **ret_detail)
{
	struct policy_chain *list = NULL;
	struct error err = ERROR_INIT;
	size_t n = 0;
	int r = policy_list(&list, &n, &err);

	if (r < 0)
		*ret_detail = xstrdup(error_text(&err));
	else if (n > 0)
		*ret_detail =
			xformat("the chain %s of the table %s %s drops what none of its rules "
				"accepts",
				list[0].chain, list[0].family, list[0].table);
	else
		*ret_detail = xstrdup("no chain of others drops it");
	free(list);
	return r == 0 && n == 0;
}

static int doctor_filter_bridges(void *arg, struct error *err)
{
	return filter_has_bridges(err);
}

static bool bridge_filter(const struct cli *cli, char **ret_detail)
{
	return doctor_inside(doctor_filter_bridges, ret_detail);
}

/* ---- networks with a parent ---- */

static int doctor_make_child(enum lan_kind kind, struct error *err)
{
	const struct link_veth veth = { .name = "veth0", .peer = "veth1", .peer_ns_fd = -1 };
	const struct lan_plan plan = {
		.pod_name = "eth0",
		.ip4 = { .family = AF_INET, .bytes = { 192, 0, 2, 7 }, .length = 24 },
	};
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	_cleanup_fd_ int fd = -1;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = link_add_veth(&nl, &veth, NULL, err);
	if (r < 0)
		return r;
	fd = inside_of_socket(nl.fd, err);
	return fd < 0 ? fd : lan_make_child(&plan, kind, "veth0", fd, err);
}

static int doctor_make_macvlan(void *arg, struct error *err)
{
	return doctor_make_child(LAN_MACVLAN_BRIDGE, err);
}

static int doctor_make_ipvlan(void *arg, struct error *err)
{
	return doctor_make_child(LAN_IPVLAN_L2, err);
}

static bool macvlan(const struct cli *cli, char **ret_detail)
{
	return doctor_inside(doctor_make_macvlan, ret_detail);
}

static bool ipvlan(const struct cli *cli, char **ret_detail)
{
	return doctor_inside(doctor_make_ipvlan, ret_detail);
}

/* ---- IPv6 ---- */

static bool ipv6(const struct cli *cli, char **ret_detail)
{
	bool is_on = port_has_ipv6();

	*ret_detail = xstrdup(is_on ? "on for new devices" : "switched off, or not in this kernel");
	return is_on;
}

const struct check doctor_networks[] = {
	{ "TAP devices", false, tap_devices,
	  "no virtual machine can have a network, so none can start",
	  "run as root; modprobe tun, or run a kernel with CONFIG_TUN; give /dev/net/tun to nacre "
	  "where it stands in a container" },
	{ "bridge and veth", false, bridges,
	  "no virtual machine can start; no instance can have a network device of another one",
	  "run as root; modprobe bridge veth, or run a kernel with CONFIG_BRIDGE and CONFIG_VETH" },
	{ "packet filter", false, packet_filter, "no pod can be on a network",
	  "run as root; modprobe nf_tables nft_ct nft_chain_nat nft_nat nft_masq nft_fib_inet "
	  "nft_reject_inet nft_connlimit; or run pods with --network none or host" },
	{ "forwarding", false, forwarding,
	  "pods may reach neither each other nor the world, unless that chain accepts the links "
	  "nacre+",
	  "iptables -I FORWARD -i nacre+ -j ACCEPT; iptables -I FORWARD -o nacre+ -j ACCEPT (with "
	  "Docker in the chain DOCKER-USER, with ip6tables likewise)" },
	{ "bridge filter", false, bridge_filter, "no network can be of driver bridge",
	  "modprobe nf_tables_bridge, or run a kernel with CONFIG_NF_TABLES_BRIDGE; or use "
	  "--driver routed" },
	{ "macvlan", false, macvlan, "no network can be of driver macvlan",
	  "modprobe macvlan, or run a kernel with CONFIG_MACVLAN" },
	{ "ipvlan", false, ipvlan, "no network can be of driver ipvlan",
	  "modprobe ipvlan, or run a kernel with CONFIG_IPVLAN; or use --driver macvlan" },
	{ "IPv6", false, ipv6, "pods get addresses of IPv4 alone",
	  "sysctl -w net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0, boot "
	  "without ipv6.disable=1, and restart the daemon" },
};
const size_t doctor_n_networks = ARRAY_SIZE(doctor_networks);
