/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/lan.h"

#include <errno.h>
#include <pthread.h>

#include "net/netlink/address.h"
#include "net/netlink/bed_test.h"
#include "net/port/bridge.h"
#include "net/port/inside.h"

/* Devices of pods on a bridge, of a parent's children, and of the node's own; judged by what the
 * kernel has afterwards. */

#define GROUP (PORT_GROUP + 3)

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

static size_t addresses(struct netlink *nl, uint32_t link, const char *wanted)
{
	const struct prefix p = of(wanted);
	struct address *list = NULL;
	size_t n = 0, found = 0;

	CHECK_INT(address_list(nl, &list, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		found += list[i].link == link && prefix_eq(&list[i].prefix, &p);
	free(list);
	return found;
}

static void own_namespace(void)
{
	const struct link_veth veth = { .name = "up0", .peer = "far", .peer_ns_fd = -1 };
	const struct link_change up = { .power = LINK_UP };
	struct error err = ERROR_INIT;
	uint32_t index = 0;

	bed_enter();
	CHECK_INT(link_add_veth(&bed_nl, &veth, &index, &err), 0);
	CHECK_INT(link_set(&bed_nl, index, &up, &err), 0);
}

static struct bridge_plan a_bridge(void)
{
	struct bridge_plan plan = {
		.group = GROUP, .mtu = 1400, .gateway4 = of("10.99.0.1/24"), .has_ip6 = true
	};

	bridge_name(3, plan.name);
	return plan;
}

static struct port_plan a_port(void)
{
	struct port_plan plan = {
		.pod_name = "eth0",
		.alias = "a pod",
		.group = GROUP,
		.mtu = 1400,
		.ip4 = of("10.99.0.7/24"),
		.ip6 = of("fd99::7/64"),
		.gateway4 = of("10.99.0.1/24"),
		.is_default = true,
		.pool4 = of("10.99.0.0/24"),
		.pool6 = of("fd99::/64"),
	};

	port_name(&plan.ip4, plan.name);
	port_mac(&plan.ip4, plan.mac);
	return plan;
}

static void check_bridged(const struct port_plan *plan, uint32_t bridge, uint32_t port, int pod_fd)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct error err = ERROR_INIT;
	struct link l = { 0 };

	CHECK_INT(link_get(&bed_nl, port, &l, &err), 0);
	CHECK(l.master == bridge && l.group == GROUP && l.up && l.running);
	CHECK_INT(bed_link_number(plan->name, "brport/learning"), 0);
	CHECK_INT(bed_link_number(plan->name, "brport/unicast_flood"), 0);
	CHECK_INT(bed_link_number(plan->name, "brport/hairpin_mode"), 1);
	CHECK(has_route(&bed_nl, bridge, "10.99.0.7/32", NULL));
	CHECK(has_route(&bed_nl, bridge, "fd99::7/128", NULL));
	CHECK_INT(inside_netlink(&nl, pod_fd, &err), 0);
	CHECK_INT(link_find(&nl, "eth0", &l, &err), 0);
	CHECK(l.up && l.mtu == 1400 && memcmp(l.mac, plan->mac, LINK_MAC_LEN) == 0);
	CHECK_INT(addresses(&nl, l.index, "10.99.0.7/24"), 1);
	CHECK_INT(addresses(&nl, l.index, "fd99::7/64"), 1);
	CHECK(has_route(&nl, l.index, "0.0.0.0/0", "10.99.0.1"));
	CHECK(has_route(&nl, l.index, "::/0", "fe80::1"));
}

static void bridged(void)
{
	_cleanup_fd_ int pod_fd = new_pod();
	const struct bridge_plan plan = a_bridge();
	const struct port_plan port = a_port();
	struct error err = ERROR_INIT;
	uint32_t bridge = 0, again = 0, index = 0;

	CHECK_INT(bridge_find(plan.name, &bridge, NULL), -ENODEV);
	CHECK_INT(bridge_make(&plan, &bridge, &err), 0);
	/* What is there stays. */
	CHECK_INT(bridge_make(&plan, &again, &err), 0);
	CHECK_INT(again, bridge);
	CHECK_INT(bridge_find(plan.name, &again, NULL), 0);
	CHECK_INT(addresses(&bed_nl, bridge, "10.99.0.1/32"), 1);
	CHECK_INT(addresses(&bed_nl, bridge, "fe80::1/64"), 1);
	CHECK_INT(bridge_make_port(&port, bridge, true, pod_fd, &index, &err), 0);
	CHECK_INT(err.code, 0);
	check_bridged(&port, bridge, index, pod_fd);
	CHECK_INT(bridge_forget_others(bridge, &port.ip4, 1, &err), 0);
	CHECK(has_route(&bed_nl, bridge, "10.99.0.7/32", NULL));
	CHECK(!has_route(&bed_nl, bridge, "fd99::7/128", NULL));
	CHECK_INT(bridge_forget(bridge, &port.ip4, &port.ip6, &err), 0);
	CHECK(!has_route(&bed_nl, bridge, "10.99.0.7/32", NULL));
	CHECK_INT(port_remove(port.name, &err), 0);
	CHECK_INT(port_remove(plan.name, &err), 0);
	CHECK_INT(err.code, 0);
}

static struct lan_plan a_child(void)
{
	return (struct lan_plan){ .pod_name = "eth0",
				  .ip4 = of("192.0.2.7/24"),
				  .gateway4 = of("192.0.2.1"),
				  .is_default = true };
}

static void children(void)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	_cleanup_fd_ int pod_fd = new_pod();
	const struct lan_plan plan = a_child();
	struct error err = ERROR_INIT;
	struct link l = { 0 };

	CHECK_INT(lan_make_child(&plan, LAN_MACVLAN_BRIDGE, "none0", pod_fd, NULL), -ENODEV);
	CHECK_INT(inside_netlink(&nl, pod_fd, &err), 0);
	for (enum lan_kind kind = LAN_MACVLAN_BRIDGE; kind <= LAN_MACVLAN_PRIVATE; kind++) {
		CHECK_INT(lan_make_child(&plan, kind, "up0", pod_fd, &err), 0);
		CHECK_INT(link_find(&nl, "eth0", &l, &err), 0);
		CHECK_STR(l.kind, "macvlan");
		CHECK_INT(addresses(&nl, l.index, "192.0.2.7/24"), 1);
		CHECK(has_route(&nl, l.index, "0.0.0.0/0", "192.0.2.1"));
		CHECK_INT(lan_make_child(&plan, kind, "up0", pod_fd, NULL), -EEXIST);
		CHECK_INT(lan_remove_child("eth0", pod_fd, &err), 0);
		CHECK_INT(lan_remove_child("eth0", pod_fd, &err), 0);
		CHECK_INT(link_find(&nl, "eth0", &l, NULL), -ENODEV);
	}
	CHECK_INT(err.code, 0);
}

static void lent(void)
{
	const struct link_change renamed = { .name = "mine0", .power = LINK_DOWN };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	_cleanup_fd_ int pod_fd = new_pod();
	const struct lan_plan plan = a_child();
	struct error err = ERROR_INIT;
	struct lan_home home, now;
	struct link l = { 0 };

	CHECK_INT(lan_look_home("none0", &home, NULL), -ENODEV);
	CHECK_INT(lan_look_home("up0", &home, &err), 0);
	CHECK(home.up && home.mtu == 1500);
	CHECK_INT(inside_netlink(&nl, pod_fd, &err), 0);
	CHECK_INT(lan_lend(&plan, &home, pod_fd, &err), 0);
	CHECK_INT(lan_look_home("up0", &now, NULL), -ENODEV);
	CHECK_INT(link_find(&nl, "eth0", &l, &err), 0);
	CHECK(l.up && addresses(&nl, l.index, "192.0.2.7/24") == 1);
	/* Whatever the pod calls it. */
	CHECK_INT(link_set(&nl, l.index, &renamed, &err), 0);
	CHECK_INT(lan_take_back("eth0", &home, pod_fd, &err), 0);
	CHECK_INT(lan_look_home("up0", &now, &err), 0);
	CHECK(memcmp(&now, &home, sizeof(now)) == 0);
	CHECK_INT(lan_take_back("eth0", &home, pod_fd, NULL), -ENODEV);
	CHECK_INT(err.code, 0);
}

/* A thread brings it back, as the kernel does when a namespace ends. */
static void *bring_back(void *arg)
{
	const struct link_veth veth = {
		.name = "dev0", .peer = "far1", .mac = arg, .mtu = 1300, .peer_ns_fd = -1
	};
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;

	if (netlink_open(&nl, NULL) < 0 || link_add_veth(&nl, &veth, NULL, NULL) < 0)
		return arg;
	return NULL;
}

static void brought_back(void)
{
	struct lan_home home = { .name = "nic0", .kind = "veth", .mtu = 1400, .up = true }, now;
	struct error err = ERROR_INIT;
	pthread_t thread;
	void *failed = NULL;

	memcpy(home.mac, (const uint8_t[]){ 2, 0, 0, 0, 0, 0x77 }, sizeof(home.mac));
	CHECK_INT(lan_receive_back(&home, 0, NULL), -ENODEV);
	CHECK_INT(lan_receive_back(&home, 1, NULL), -ENODEV);
	CHECK_INT(pthread_create(&thread, NULL, bring_back, home.mac), 0);
	CHECK_INT(lan_receive_back(&home, 60000, &err), 0);
	CHECK_INT(pthread_join(thread, &failed), 0);
	CHECK(!failed);
	CHECK_INT(lan_look_home("nic0", &now, &err), 0);
	CHECK(memcmp(&now, &home, sizeof(now)) == 0);
	/* Once more, as it is now; and where another one has its name. */
	CHECK_INT(lan_receive_back(&home, 0, &err), 0);
	CHECK_INT(err.code, 0);
	(void)str_copy(home.name, sizeof(home.name), "up0");
	CHECK_INT(lan_receive_back(&home, 0, &err), -EEXIST);
	CHECK(strstr(error_text(&err), "nic0"));
}

static void end(void)
{
	netlink_done(&bed_nl);
}

UNIT_MAIN({ "own_namespace", own_namespace, true }, { "bridged", bridged },
	  { "children", children }, { "lent", lent }, { "brought_back", brought_back },
	  { "end", end, true })
