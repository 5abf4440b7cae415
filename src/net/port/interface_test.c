/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/interface.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>

#include "net/netlink/bed_test.h"
#include "net/port/inside.h"

static const uint8_t mac[LINK_MAC_LEN] = { 0x02, 0x6e, 0x61, 0x63, 0x72, 0x02 };
static const uint8_t node_mac[LINK_MAC_LEN] = { 0x02, 0x6e, 0x61, 0x63, 0x72, 0x01 };
static const uint8_t other[LINK_MAC_LEN] = { 0x02, 0x6e, 0x61, 0x63, 0x72, 0x07 };

/* As a guest is born: lo, and what the test puts there. The test is in its own namespace again
 * afterwards. */
static int guest(void (*test)(struct interface_plan *plan))
{
	struct interface_plan plan = { .mtu = 1400, .gateway_mac = node_mac };
	_cleanup_fd_ int back_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	CHECK_INT(prefix_parse("169.254.74.2/30", &plan.address), 0);
	CHECK_INT(prefix_parse("169.254.74.1", &plan.gateway), 0);
	memcpy(plan.mac, mac, sizeof(mac));
	bed_enter();
	test(&plan);
	netlink_done(&bed_nl);
	bed_sys_fd = fd_close(bed_sys_fd);
	return setns(back_fd, CLONE_NEWNET);
}

/* A device of Ethernet, the other end of which is out of sight; a device needs that to be up. */
static int stand(void *arg, struct error *err)
{
	struct netlink *nl = arg;
	int r = netlink_open(nl, err);

	return r < 0 ? r : inside_of_socket(nl->fd, err);
}

static bool device(const char *name, const uint8_t *its_mac, int *ret_ns_fd)
{
	const struct link_change up = { .power = LINK_UP };
	struct link_veth veth = { .name = name, .peer = "far", .mac = its_mac };
	struct netlink far = NETLINK_NONE;
	struct error err = ERROR_INIT;
	struct link l = { 0 };

	*ret_ns_fd = inside_run(INSIDE_NEW, stand, &far, &err);
	CHECK(*ret_ns_fd >= 0 || (failmalloc_has_failed && failmalloc_has_failed()));
	if (*ret_ns_fd < 0)
		return false;
	veth.peer_ns_fd = *ret_ns_fd;
	CHECK_INT(link_add_veth(&bed_nl, &veth, NULL, &err), 0);
	CHECK_INT(link_find(&far, "far", &l, &err), 0);
	CHECK_INT(link_set(&far, l.index, &up, &err), 0);
	netlink_done(&far);
	return true;
}

/* 0, or what else may be without memory. */
static bool came_up(const struct interface_plan *plan)
{
	struct error err = ERROR_INIT;
	int r = interface_up(plan, &err);

	CHECK(r > 0 || r == -ENOMEM);
	if (r < 0)
		printf("# %s\n", error_text(&err));
	return r > 0;
}

static void in_guest(struct interface_plan *plan)
{
	_cleanup_fd_ int ns_fd = -1;

	if (!device("eth0", mac, &ns_fd))
		return;
	for (int again = 0; again < 2; again++) {
		if (!came_up(plan))
			continue;
		CHECK_INT(bed_link_number("lo", "flags") & IFF_UP, IFF_UP);
		CHECK_INT(bed_link_number("eth0", "carrier"), 1);
		CHECK_INT(bed_link_number("eth0", "mtu"), 1400);
		CHECK(bed_proc_has("fib_trie", "169.254.74.2"));
		CHECK(bed_proc_has("route", "eth0\t00000000\t014AFEA9\t0003\t"));
		CHECK(bed_proc_has("arp", "169.254.74.1     0x1         0x6         "
					  "02:6e:61:63:72:01"));
		CHECK(!bed_proc_has("if_inet6", "eth0"));
	}
}

/* Its device has the MAC of the template still. */
static void in_copy(struct interface_plan *plan)
{
	_cleanup_fd_ int ns_fd = -1;

	plan->gateway_mac = NULL;
	if (!device("eth0", other, &ns_fd) || !came_up(plan))
		return;
	CHECK_STR(bed_link("eth0", "address"), "02:6e:61:63:72:02");
	CHECK_INT(bed_link_number("eth0", "flags") & IFF_UP, IFF_UP);
	CHECK(!bed_proc_has("arp", "169.254.74.1 "));
}

/* The right one of two; and neither, where none is it. */
static void among_two(struct interface_plan *plan)
{
	_cleanup_fd_ int ns_fd = -1;
	_cleanup_fd_ int second_fd = -1;
	struct error err = ERROR_INIT;
	int r;

	r = interface_up(plan, &err);
	CHECK(r == -ENODEV || r == -ENOMEM);
	CHECK(r == -ENOMEM || str_eq(error_text(&err), "find the network device 02:6e:61:63:72:02: "
						       "No such device"));
	CHECK_INT(bed_link_number("lo", "flags") & IFF_UP, IFF_UP);
	if (!device("eth0", other, &ns_fd) || !device("eth1", mac, &second_fd) || !came_up(plan))
		return;
	CHECK_INT(bed_link_number("eth1", "flags") & IFF_UP, IFF_UP);
	CHECK_INT(bed_link_number("eth0", "flags") & IFF_UP, 0);
	memcpy(plan->mac, node_mac, sizeof(node_mac));
	r = interface_up(plan, &err);
	CHECK(r == -ENODEV || r == -ENOMEM);
}

/* The right one of two gets the name of the other, which gets its. */
static void named(struct interface_plan *plan)
{
	_cleanup_fd_ int ns_fd = -1;
	_cleanup_fd_ int second_fd = -1;

	plan->name = "eth1";
	if (!device("eth0", mac, &ns_fd) || !device("eth1", other, &second_fd))
		return;
	for (int again = 0; again < 2; again++) {
		if (!came_up(plan))
			return;
		CHECK_STR(bed_link("eth1", "address"), "02:6e:61:63:72:02");
		CHECK_STR(bed_link("eth0", "address"), "02:6e:61:63:72:07");
		CHECK_INT(bed_link_number("eth1", "flags") & IFF_UP, IFF_UP);
	}
}

/* It has the MAC of a template, and another one has the name. */
static void taken(struct interface_plan *plan)
{
	_cleanup_fd_ int ns_fd = -1;
	_cleanup_fd_ int second_fd = -1;
	struct error err = ERROR_INIT;
	int r;

	plan->name = "eth0";
	if (!device("eth0", node_mac, &ns_fd))
		return;
	/* The only one that there is will not do. */
	r = interface_take(other, plan, &err);
	CHECK(r == -ENODEV || r == -ENOMEM);
	if (!device("eth1", other, &second_fd))
		return;
	r = interface_take(other, plan, &err);
	CHECK(r > 0 || r == -ENOMEM);
	if (r < 0)
		return;
	CHECK_INT(bed_link_number("eth0", "ifindex"), r);
	CHECK_STR(bed_link("eth0", "address"), "02:6e:61:63:72:02");
	CHECK_INT(bed_link_number("eth0", "mtu"), 1400);
	CHECK_INT(bed_link_number("eth0", "flags") & IFF_UP, 0);
	CHECK(!bed_proc_has("fib_trie", "169.254.74.2"));
	CHECK_STR(bed_link("eth1", "address"), "02:6e:61:63:72:01");
}

static void by_its_mac(void)
{
	CHECK_INT(guest(taken), 0);
}

static void with_a_name(void)
{
	CHECK_INT(guest(named), 0);
}

/* A gateway that no address leads to. */
static void refused(struct interface_plan *plan)
{
	_cleanup_fd_ int ns_fd = -1;
	struct error err = ERROR_INIT;
	int r;

	CHECK_INT(prefix_parse("10.0.0.1", &plan->gateway), 0);
	plan->gateway_mac = NULL;
	if (!device("eth0", mac, &ns_fd))
		return;
	r = interface_up(plan, &err);
	CHECK(r == -ENETUNREACH || r == -ENOMEM);
	plan->gateway.family = 0;
	(void)came_up(plan);
}

/* An address without neighbours, as Compute Engine gives it. */
static void alone(struct interface_plan *plan)
{
	_cleanup_fd_ int ns_fd = -1;

	CHECK_INT(prefix_parse("10.132.0.7/32", &plan->address), 0);
	CHECK_INT(prefix_parse("10.132.0.1", &plan->gateway), 0);
	plan->gateway_mac = NULL;
	if (!device("eth0", mac, &ns_fd))
		return;
	for (int again = 0; again < 2; again++)
		if (came_up(plan))
			CHECK(bed_proc_has("route", "eth0\t00000000\t0100840A\t0003\t"));
}

static void an_address_alone(void)
{
	CHECK_INT(guest(alone), 0);
}

static void a_guest(void)
{
	CHECK_INT(guest(in_guest), 0);
}

static void a_copy(void)
{
	CHECK_INT(guest(in_copy), 0);
}

static void two_devices(void)
{
	CHECK_INT(guest(among_two), 0);
}

static void no_way_out(void)
{
	CHECK_INT(guest(refused), 0);
}

UNIT_MAIN({ "a_guest", a_guest }, { "a_copy", a_copy }, { "two_devices", two_devices },
	  { "with_a_name", with_a_name }, { "by_its_mac", by_its_mac },
	  { "no_way_out", no_way_out }, { "an_address_alone", an_address_alone })
