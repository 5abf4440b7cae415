/* SPDX-License-Identifier: Apache-2.0 */
#include "net/netlink/link.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>

#include "net/netlink/bed_test.h"
#include "net/port/inside.h"

static const uint8_t mac[LINK_MAC_LEN] = { 0x02, 0x6e, 0x61, 0x63, 0x72, 0x09 };

static void own_namespace(void)
{
	bed_enter();
}

static void names(void)
{
	static const char *const good[] = { "a", "eth0", "nacre0", "123456789012345", "..." };
	static const char *const bad[] = { "",    ".",   "..",  "a/b",      "a:1",
					   "a b", "a\t", "a%d", "\xc3\xa4", "1234567890123456" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		CHECK(link_name_is_fine(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(!link_name_is_fine(bad[i]));
}

static void macs(void)
{
	static const char *const bad[] = { "",
					   "02:6e:61:63:72",
					   "02:6e:61:63:72:0",
					   "02:6e:61:63:72:099",
					   "02-6e-61-63-72-09",
					   "02:6e:61:63:72:0g",
					   "02:6e:61:63:72:\x10\x11",
					   "02:6e:61:63:72:09:" };
	uint8_t got[LINK_MAC_LEN] = { 0 };
	char text[LINK_MAC_TEXT];

	CHECK_INT(link_parse_mac("02:6E:61:63:72:09", got), 0);
	CHECK(memcmp(got, mac, sizeof(mac)) == 0);
	link_print_mac(got, text);
	CHECK_STR(text, "02:6e:61:63:72:09");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_INT(link_parse_mac(bad[i], got), -EINVAL);
	CHECK(memcmp(got, mac, sizeof(mac)) == 0);
}

static void found(void)
{
	struct error err = ERROR_INIT;
	struct link lo = { 0 }, same = { 0 };

	CHECK_INT(link_find(&bed_nl, "lo", &lo, &err), 0);
	CHECK_INT(lo.index, bed_link_number("lo", "ifindex"));
	CHECK_INT(lo.type, ARPHRD_LOOPBACK);
	CHECK_INT(lo.mtu, bed_link_number("lo", "mtu"));
	CHECK_STR(lo.kind, "");
	CHECK(!lo.up && !lo.running);
	CHECK_INT(link_get(&bed_nl, lo.index, &same, &err), 0);
	CHECK_STR(same.name, "lo");
	CHECK_INT(link_find(&bed_nl, "nothing", &lo, &err), -ENODEV);
	CHECK_STR(error_text(&err), "find the link nothing: No such device");
	CHECK_INT(link_find(&bed_nl, "not a name", &lo, &err), -ENODEV);
	CHECK_INT(link_get(&bed_nl, 4711, &lo, &err), -ENODEV);
	CHECK_INT(lo.index, same.index);
}

static void bridges(void)
{
	struct error err = ERROR_INIT;
	struct link l = { 0 };
	uint32_t bridge = 0, port = 0;
	const struct link_veth pair = { .name = "d0", .peer = "d1", .peer_ns_fd = -1 };
	struct link_change change = { .power = LINK_UP };

	CHECK_INT(link_add_bridge(&bed_nl, "br0", mac, &bridge, &err), 0);
	CHECK_INT(bridge, bed_link_number("br0", "ifindex"));
	CHECK_INT(bed_link_number("br0", "bridge/stp_state"), 0);
	CHECK_INT(bed_link_number("br0", "bridge/forward_delay"), 0);
	CHECK_INT(bed_link_number("br0", "bridge/multicast_snooping"), 0);
	CHECK_STR(bed_link("br0", "address"), "02:6e:61:63:72:09");
	CHECK_INT(bed_link_number("br0", "flags") & IFF_UP, 0);
	CHECK_INT(link_add_bridge(&bed_nl, "br0", mac, &bridge, &err), -EEXIST);
	CHECK_STR(error_text(&err), "add the bridge br0: File exists");
	CHECK_INT(link_add_bridge(&bed_nl, "a/b", mac, &bridge, &err), -EINVAL);

	CHECK_INT(link_add_veth(&bed_nl, &pair, &port, &err), 0);
	change.master = bridge;
	CHECK_INT(link_set(&bed_nl, port, &change, &err), 0);
	CHECK_INT(bed_link_number("d0", "master/ifindex"), bridge);
	CHECK_INT(bed_link_number("d0", "flags") & IFF_UP, IFF_UP);
	CHECK_INT(link_get(&bed_nl, port, &l, &err), 0);
	CHECK(l.master == bridge && l.up && l.has_mac && l.type == ARPHRD_ETHER);
	CHECK_STR(l.kind, "veth");
	CHECK_INT(link_get(&bed_nl, bridge, &l, &err), 0);
	CHECK_STR(l.kind, "bridge");
	CHECK(memcmp(l.mac, mac, sizeof(mac)) == 0);
	/* It keeps its address, though that of the port may be lower. */
	CHECK_STR(bed_link("br0", "address"), "02:6e:61:63:72:09");

	CHECK_INT(link_set(&bed_nl, port, &(struct link_change){ .master = LINK_NO_MASTER }, &err),
		  0);
	CHECK_INT(bed_link_number("d0", "master/ifindex"), -1);
	CHECK_INT(link_delete(&bed_nl, bridge, &err), 0);
	CHECK(!bed_has_link("br0"));
	CHECK_INT(link_delete(&bed_nl, bridge, &err), -ENODEV);
	CHECK_INT(link_delete(&bed_nl, port, &err), 0);
}

static void dummies(void)
{
	struct error err = ERROR_INIT;
	struct link l = { 0 };
	uint32_t index = 0;
	int r = link_add_dummy(&bed_nl, "d0", &index, &err);

	if (r == -EOPNOTSUPP)
		SKIP("this kernel has no dummy devices");
	CHECK_INT(r, 0);
	CHECK_INT(link_get(&bed_nl, index, &l, &err), 0);
	CHECK_STR(l.kind, "dummy");
	CHECK_INT(link_delete(&bed_nl, index, &err), 0);
}

static void changed(void)
{
	struct error err = ERROR_INIT;
	uint32_t index = 0;

	CHECK_INT(link_add_bridge(&bed_nl, "d1", NULL, &index, &err), 0);
	CHECK_INT(link_set(&bed_nl, index, &(struct link_change){ .mac = mac }, &err), 0);
	CHECK_STR(bed_link("d1", "address"), "02:6e:61:63:72:09");
	CHECK_INT(link_set(&bed_nl, index, &(struct link_change){ .mtu = 1280 }, &err), 0);
	CHECK_INT(bed_link_number("d1", "mtu"), 1280);
	CHECK_INT(link_set(&bed_nl, index, &(struct link_change){ .name = "eth9" }, &err), 0);
	CHECK(bed_has_link("eth9") && !bed_has_link("d1"));
	/* What is not said stays. */
	CHECK_INT(bed_link_number("eth9", "mtu"), 1280);
	CHECK_INT(bed_link_number("eth9", "flags") & IFF_UP, 0);
	CHECK_INT(link_set(&bed_nl, index,
			   &(struct link_change){ .power = LINK_UP, .no_auto_ipv6 = true }, &err),
		  0);
	CHECK_INT(bed_link_number("eth9", "flags") & IFF_UP, IFF_UP);
	CHECK(!bed_proc_has("if_inet6", "eth9"));
	CHECK_INT(link_set(&bed_nl, index, &(struct link_change){ .power = LINK_DOWN }, &err), 0);
	CHECK_INT(bed_link_number("eth9", "flags") & IFF_UP, 0);

	/* The kernel's own words. */
	CHECK_INT(link_set(&bed_nl, index, &(struct link_change){ .mtu = 1 << 30 }, &err), -EINVAL);
	CHECK(strstr(error_text(&err), "mtu"));
	CHECK_INT(link_set(&bed_nl, 4711, &(struct link_change){ .mtu = 1280 }, &err), -ENODEV);
	CHECK_INT(link_set(&bed_nl, index, &(struct link_change){ .name = "a b" }, &err), -EINVAL);
	CHECK_INT(link_delete(&bed_nl, index, &err), 0);
}

static void pairs(void)
{
	const struct link_veth here = { .name = "v0", .peer = "v1", .mac = mac, .peer_ns_fd = -1 };
	struct error err = ERROR_INIT;
	struct link l = { 0 };
	uint32_t index = 0;

	CHECK_INT(link_add_veth(&bed_nl, &here, &index, &err), 0);
	CHECK(bed_has_link("v0") && bed_has_link("v1"));
	CHECK_STR(bed_link("v0", "address"), "02:6e:61:63:72:09");
	CHECK_INT(link_get(&bed_nl, index, &l, &err), 0);
	CHECK_STR(l.kind, "veth");
	CHECK_INT(l.peer, bed_link_number("v1", "ifindex"));
	CHECK_INT(link_add_veth(&bed_nl, &here, &index, &err), -EEXIST);
	CHECK_INT(link_delete(&bed_nl, index, &err), 0);
	CHECK(!bed_has_link("v1"));
}

static int open_namespace(void *arg, struct error *err)
{
	struct netlink *nl = arg;
	int r = netlink_open(nl, err);

	return r < 0 ? r : inside_of_socket(nl->fd, err);
}

static void elsewhere(void)
{
	_cleanup_netlink_ struct netlink other = NETLINK_NONE;
	_cleanup_fd_ int ns_fd = -1;
	struct link_veth veth = { .name = "v0", .peer = "eth0", .peer_mac = mac, .mtu = 1400 };
	struct error err = ERROR_INIT;
	struct link l = { 0 };
	uint32_t index = 0;

	ns_fd = inside_run(INSIDE_NEW, open_namespace, &other, &err);
	CHECK(ns_fd >= 0);
	if (ns_fd < 0)
		return;
	veth.peer_ns_fd = ns_fd;
	CHECK_INT(link_add_veth(&bed_nl, &veth, &index, &err), 0);
	CHECK(bed_has_link("v0") && !bed_has_link("eth0"));
	CHECK_INT(bed_link_number("v0", "mtu"), 1400);
	CHECK_INT(link_find(&other, "eth0", &l, &err), 0);
	CHECK(memcmp(l.mac, mac, sizeof(mac)) == 0 && l.mtu == 1400);
	CHECK_INT(link_delete(&bed_nl, index, &err), 0);
	CHECK_INT(link_find(&other, "eth0", &l, &err), -ENODEV);

	veth = (struct link_veth){ .name = "d2", .peer = "d3", .peer_ns_fd = -1 };
	CHECK_INT(link_add_veth(&bed_nl, &veth, &index, &err), 0);
	CHECK_INT(link_move(&bed_nl, index, ns_fd, "eth7", &err), 0);
	CHECK(!bed_has_link("d2") && !bed_has_link("eth7"));
	CHECK_INT(link_find(&other, "eth7", &l, &err), 0);
	CHECK_STR(l.kind, "veth");
	CHECK_INT(link_delete(&other, l.index, &err), 0);
	CHECK(!bed_has_link("d3"));
}

/* More than one datagram holds. */
static void listed(void)
{
	enum { N = 16 };
	struct error err = ERROR_INIT;
	struct link *list = NULL;
	size_t n = 0, seen = 0;
	char name[IF_NAMESIZE];
	int r;

	for (unsigned i = 0; i < N; i++) {
		(void)snprintf(name, sizeof(name), "many%u", i);
		CHECK_INT(link_add_bridge(&bed_nl, name, NULL, NULL, &err), 0);
	}
	r = link_list(&bed_nl, &list, &n, &err);
	CHECK(r == 0 || r == -ENOMEM);
	for (size_t i = 0; r == 0 && i < n; i++) {
		CHECK_INT(list[i].index, bed_link_number(list[i].name, "ifindex"));
		CHECK_INT(list[i].counters.tx_packets,
			  bed_link_number(list[i].name, "statistics/tx_packets"));
		seen += str_has_prefix(list[i].name, "many");
	}
	CHECK(r < 0 || (seen == N && str_eq(list[0].name, "lo")));
	free(list);
	for (unsigned i = 0; i < N; i++) {
		struct link l;

		(void)snprintf(name, sizeof(name), "many%u", i);
		CHECK_INT(link_find(&bed_nl, name, &l, &err), 0);
		CHECK_INT(link_delete(&bed_nl, l.index, &err), 0);
	}
}

/* What a kernel would never say. */
static void nonsense(void)
{
	struct ifinfomsg info = { .ifi_index = 3, .ifi_type = ARPHRD_ETHER };
	struct netmsg_head head = { 0 };
	struct netmsg_bytes rest;
	struct netmsg m;
	struct link l;

	for (int broken = 0; broken < 6; broken++) {
		info.ifi_index = broken == 1 ? 0 : 3;
		netmsg_begin(&m, broken == 2 ? RTM_NEWADDR : RTM_NEWLINK, 0, &info,
			     broken == 3 ? 8 : sizeof(info));
		if (broken == 4)
			netmsg_put(&m, IFLA_IFNAME, "0123456789abcdef", 17);
		else if (broken != 3 && broken != 5)
			netmsg_put_str(&m, IFLA_IFNAME, "eth0");
		rest = (struct netmsg_bytes){ m.data, m.len };
		CHECK_INT(netmsg_next(&rest, &head), 1);
		CHECK_INT(link_read(&head, &l), broken == 0 ? 1 : -EBADMSG);
	}
}

UNIT_MAIN({ "own_namespace", own_namespace, true }, { "names", names }, { "macs", macs },
	  { "found", found }, { "bridges", bridges }, { "dummies", dummies },
	  { "changed", changed }, { "pairs", pairs }, { "elsewhere", elsewhere },
	  { "listed", listed }, { "nonsense", nonsense })
