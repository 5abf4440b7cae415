/* SPDX-License-Identifier: Apache-2.0 */
#include "net/filter/forward.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <poll.h>

#include "net/netlink/address.h"
#include "net/netlink/bed_test.h"
#include "net/port/inside.h"
#include "net/port/port.h"
#include "net/port/sysctl.h"

#define MANY (FORWARD_LINKS_MAX + 6)

static int sysctl_fd = -1;
static uint32_t uplink, other;

static struct prefix of(const char *text)
{
	struct prefix p = { .family = 0 };

	CHECK_INT(prefix_parse(text, &p), 0);
	return p;
}

static long setting(const char *name)
{
	long value = -1;

	return sysctl_read(sysctl_fd, name, &value, NULL) < 0 ? -1 : value;
}

static void set(const char *name, const char *value)
{
	struct error err = ERROR_INIT;

	CHECK_INT(sysctl_write(sysctl_fd, name, value, &err), 0);
}

static uint32_t add_link(const char *name)
{
	const struct link_change up = { .power = LINK_UP };
	struct error err = ERROR_INIT;
	uint32_t index = 0;

	CHECK_INT(link_add_bridge(&bed_nl, name, NULL, &index, &err), 0);
	CHECK_INT(link_set(&bed_nl, index, &up, &err), 0);
	return index;
}

static void own_namespace(void)
{
	const struct prefix own4 = of("192.0.2.2/24"), own6 = of("2001:db8::2/64");
	const struct prefix via4 = of("192.0.2.1"), via6 = of("2001:db8::1");
	struct error err = ERROR_INIT;

	bed_enter();
	sysctl_fd = sysctl_open(&err);
	CHECK(sysctl_fd >= 0);
	uplink = add_link("up0");
	other = add_link("other0");
	CHECK_INT(address_add(&bed_nl, uplink, &own4, &err), 0);
	CHECK_INT(address_add(&bed_nl, uplink, &own6, &err), 0);
	CHECK_INT(route_add_default(&bed_nl, &via4, &err), 0);
	CHECK_INT(route_add_default(&bed_nl, &via6, &err), 0);
}

static bool has(const struct forward *f, uint32_t link)
{
	for (size_t i = 0; i < f->n_links; i++)
		if (f->links[i] == link)
			return true;
	return false;
}

static bool forwards_each6(void)
{
	return setting("ipv6/conf/all/force_forwarding") >= 0;
}

static void settled(void)
{
	struct error err = ERROR_INIT;
	struct forward f = { .n_links = 0 };

	for (int i = 0; i < 2; i++) {
		CHECK_INT(forward_settle(&f, &err), 0);
		CHECK(has(&f, uplink));
		CHECK(f.drop_transit4 && f.drop_transit6);
		CHECK_INT(setting("ipv4/conf/up0/forwarding"), 1);
		CHECK_INT(setting("ipv4/conf/all/forwarding"), 0);
		CHECK_INT(setting("ipv4/conf/default/forwarding"), 0);
		CHECK_INT(setting("ipv4/conf/lo/forwarding"), 0);
		CHECK_INT(setting("ipv6/conf/default/forwarding"), 0);
		if (forwards_each6()) {
			CHECK_INT(setting("ipv6/conf/up0/force_forwarding"), 1);
			CHECK_INT(setting("ipv6/conf/all/forwarding"), 0);
		}
	}
}

/* One switch for all links: the host still takes router advertisements, and links to come do not
 * forward, by which our switch is known. */
static void one_switch(void)
{
	struct error err = ERROR_INIT;
	struct forward f = { .is_old6 = true };

	set("ipv6/conf/all/forwarding", "0");
	set("ipv6/conf/up0/accept_ra", "1");
	set("ipv6/conf/other0/accept_ra", "0");
	for (int i = 0; i < 3; i++) {
		CHECK_INT(forward_settle(&f, &err), 0);
		CHECK(f.drop_transit4 && f.drop_transit6);
		CHECK_INT(setting("ipv6/conf/all/forwarding"), 1);
		CHECK_INT(setting("ipv6/conf/default/forwarding"), 0);
		CHECK_INT(setting("ipv6/conf/up0/accept_ra"), 2);
		CHECK_INT(setting("ipv6/conf/other0/accept_ra"), 0);
		/* Somebody turns it off, and it is put right. */
		if (i == 1)
			set("ipv6/conf/all/forwarding", "0");
	}
	set("ipv6/conf/all/forwarding", "1");
	set("ipv6/conf/default/forwarding", "1");
	CHECK_INT(forward_settle(&f, &err), 0);
	CHECK(!f.drop_transit6);
	set("ipv6/conf/all/forwarding", "0");
	set("ipv6/conf/up0/accept_ra", "1");
}

/* A host without IPv6. */
static void without_ipv6(void)
{
	struct error err = ERROR_INIT;
	struct forward f = { .n_links = 0 };

	set("ipv4/conf/up0/forwarding", "0");
	set("ipv6/conf/all/disable_ipv6", "1");
	CHECK_INT(forward_settle(&f, &err), 0);
	CHECK(has(&f, uplink));
	CHECK_INT(setting("ipv4/conf/up0/forwarding"), 1);
	set("ipv6/conf/all/disable_ipv6", "0");
}

/* Where the host is a router without us, transit is not ours to drop. */
static void router(void)
{
	struct error err = ERROR_INIT;
	struct forward f = { .n_links = 0 };

	set("ipv4/conf/all/forwarding", "1");
	set("ipv6/conf/all/forwarding", "1");
	CHECK_INT(forward_settle(&f, &err), 0);
	CHECK(!f.drop_transit4 && !f.drop_transit6);
	set("ipv4/conf/all/forwarding", "0");
	set("ipv6/conf/all/forwarding", "0");
}

static int stand(void *arg, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	int r = netlink_open(&nl, err);

	(void)arg;
	return r < 0 ? r : inside_of_socket(nl.fd, err);
}

/* The port of a pod with that number, and the pod's namespace. */
static int new_port(unsigned n)
{
	struct port_plan plan = { .pod_name = "eth0",
				  .group = PORT_GROUP + 1,
				  .ip4 = of("10.99.0.0"),
				  .ip6 = of("fd99::"),
				  .gateway4 = of("10.99.0.1"),
				  .is_default = true,
				  .pool4 = of("10.99.0.0/24"),
				  .pool6 = of("fd99::/64") };
	struct error err = ERROR_INIT;
	uint32_t index;
	int fd;

	plan.ip4.bytes[3] = plan.ip6.bytes[15] = (uint8_t)(n + 2);
	port_name(&plan.ip4, plan.name);
	port_mac(&plan.ip4, plan.mac);
	fd = inside_run(INSIDE_NEW, stand, NULL, &err);
	CHECK(fd >= 0);
	CHECK_INT(port_make(&plan, fd, &index, &err), 0);
	return fd;
}

/* Somebody turns forwarding off: that is told, and repaired. */
static void watched(void)
{
	struct error err = ERROR_INIT;
	struct forward f = { .n_links = 0 };
	_cleanup_fd_ int fd = -1;
	struct pollfd p = { .events = POLLIN };
	int pod_fd;
	const struct route late = { .to = of("198.51.100.0/24"), .link = other };

	CHECK_INT(forward_settle(&f, &err), 0);
	fd = forward_watch_open(&err);
	CHECK(fd >= 0);
	CHECK(!forward_watch_read(fd, &f));
	set("ipv4/conf/all/forwarding", "1");
	set("ipv4/conf/all/forwarding", "0");
	CHECK_INT(setting("ipv4/conf/up0/forwarding"), 0);
	p.fd = fd;
	CHECK_INT(poll(&p, 1, 5000), 1);
	CHECK(forward_watch_read(fd, &f));
	CHECK_INT(forward_settle(&f, &err), 0);
	CHECK_INT(setting("ipv4/conf/up0/forwarding"), 1);
	/* That was by us, and settles: the next time nothing is to be done. */
	(void)forward_watch_read(fd, &f);
	CHECK_INT(forward_settle(&f, &err), 0);
	CHECK(!forward_watch_read(fd, &f));
	if (forwards_each6()) {
		set("ipv6/conf/up0/force_forwarding", "0");
		CHECK(forward_watch_read(fd, &f));
		CHECK_INT(forward_settle(&f, &err), 0);
		CHECK_INT(setting("ipv6/conf/up0/force_forwarding"), 1);
		(void)forward_watch_read(fd, &f);
	}
	/* A link becomes the node's own. */
	CHECK_INT(route_add(&bed_nl, &late, &err), 0);
	CHECK_INT(forward_watch_read(fd, &f), !has(&f, other));
	CHECK_INT(forward_settle(&f, &err), 0);
	CHECK(has(&f, other));
	CHECK_INT(setting("ipv4/conf/other0/forwarding"), 1);
	CHECK_INT(route_remove(&bed_nl, &late, &err), 0);
	/* A pod's port comes and goes without that. */
	CHECK_INT(forward_settle(&f, &err), 0);
	(void)forward_watch_read(fd, &f);
	pod_fd = new_port(0);
	CHECK(!forward_watch_read(fd, &f));
	(void)fd_close(pod_fd);
}

/* Each port has a route to fe80::/64; they do not stand in the way of an uplink that comes late. */
static void beside_many_ports(void)
{
	const struct prefix own = of("2001:db8:1::2/64");
	struct error err = ERROR_INIT;
	struct forward f = { .n_links = 0 };
	uint32_t late;
	int pods[MANY];

	for (unsigned i = 0; i < MANY; i++)
		pods[i] = new_port(i + 1);
	late = add_link("late0");
	CHECK_INT(address_add(&bed_nl, late, &own, &err), 0);
	CHECK_INT(forward_settle(&f, &err), 0);
	CHECK(has(&f, uplink) && has(&f, late));
	CHECK(f.n_links <= 3);
	for (unsigned i = 0; i < MANY; i++)
		(void)fd_close(pods[i]);
}

UNIT_MAIN({ "own_namespace", own_namespace, true }, { "settled", settled }, { "router", router },
	  { "one_switch", one_switch }, { "watched", watched },
	  { "beside_many_ports", beside_many_ports }, { "without_ipv6", without_ipv6 })
