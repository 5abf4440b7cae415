/* SPDX-License-Identifier: Apache-2.0 */
#include "net/range/subnets.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "net/netlink/address.h"
#include "net/netlink/bed_test.h"

static uint32_t uplink;

static struct prefix of(const char *text)
{
	struct prefix p = { .family = 0 };

	CHECK_INT(prefix_parse(text, &p), 0);
	return p;
}

static const char *text_of(const struct prefix *p)
{
	static char text[PREFIX_TEXT_MAX];

	prefix_print(p, text);
	return text;
}

static void add_route(const char *to)
{
	const struct route route = { .to = of(to), .link = uplink };
	struct error err = ERROR_INIT;

	CHECK_INT(route_add(&bed_nl, &route, &err), 0);
}

static void remove_route(const char *to)
{
	const struct route route = { .to = of(to), .link = uplink };
	struct error err = ERROR_INIT;

	CHECK_INT(route_remove(&bed_nl, &route, &err), 0);
}

static void own_namespace(void)
{
	const struct link_change up = { .power = LINK_UP, .mtu = 1460 };
	const struct prefix own = of("192.0.2.2/24"), via = of("192.0.2.1");
	struct error err = ERROR_INIT;

	bed_enter();
	CHECK_INT(subnets_default_mtu(), 1500);
	CHECK_INT(link_add_bridge(&bed_nl, "up0", NULL, &uplink, &err), 0);
	CHECK_INT(link_set(&bed_nl, uplink, &up, &err), 0);
	CHECK_INT(address_add(&bed_nl, uplink, &own, &err), 0);
	CHECK_INT(route_add_default(&bed_nl, &via, &err), 0);
}

static void mtu(void)
{
	const struct link_change small = { .mtu = 600 }, usual = { .mtu = 1500 };
	struct error err = ERROR_INIT;

	CHECK_INT(subnets_default_mtu(), 1460);
	/* IPv6 takes no smaller one. */
	CHECK_INT(link_set(&bed_nl, uplink, &small, &err), 0);
	CHECK_INT(subnets_default_mtu(), 1280);
	CHECK_INT(link_set(&bed_nl, uplink, &usual, &err), 0);
}

static const char *chosen(unsigned length, const struct prefix *used, size_t n_used)
{
	struct prefix p = { .family = 0 };
	struct error err = ERROR_INIT;

	CHECK_INT(subnets_choose(length, used, n_used, &p, &err), 0);
	return text_of(&p);
}

static void choosing(void)
{
	const struct prefix used[] = { of("10.171.0.0/24"), of("10.171.1.128/25") };

	/* The default route does not count. */
	CHECK_STR(chosen(24, NULL, 0), "10.171.0.0/24");
	CHECK_STR(chosen(24, used, 2), "10.171.2.0/24");
	CHECK_STR(chosen(20, used, 2), "10.171.16.0/20");
	add_route("10.171.2.0/23");
	CHECK_STR(chosen(24, used, 2), "10.171.4.0/24");
	remove_route("10.171.2.0/23");
	/* A VPN that takes all of 10. */
	add_route("10.0.0.0/8");
	CHECK_STR(chosen(24, NULL, 0), "172.29.0.0/24");
	/* Larger than a base: that of the next which holds it. */
	CHECK_STR(chosen(12, NULL, 0), "100.64.0.0/12");
	remove_route("10.0.0.0/8");
}

static void none_left(void)
{
	static const char *const all[] = { "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
					   "100.64.0.0/10" };
	struct error err = ERROR_INIT;
	struct prefix p;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		add_route(all[i]);
	CHECK(subnets_choose(24, NULL, 0, &p, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		remove_route(all[i]);
	err = (struct error)ERROR_INIT;
	CHECK(subnets_choose(8, NULL, 0, &p, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
}

static void overlapping(void)
{
	const struct prefix used[] = { of("10.171.0.0/24"), of("fd00:1::/64") };
	static const struct {
		const char *subnet;
		const char *what; /* NULL: it is free */
	} cases[] = {
		{ "10.171.1.0/24", NULL },
		{ "fd00:1:0:1::/64", NULL },
		{ "10.171.0.0/16", "10.171.0.0/16 overlaps 10.171.0.0/24, the subnet of another" },
		{ "10.171.0.128/25", "10.171.0.128/25 overlaps 10.171.0.0/24" },
		{ "fd00:1::/48", "fd00:1::/48 overlaps fd00:1::/64" },
		{ "192.0.2.0/28", "overlaps 192.0.2.0/24, to which this host has a route" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct prefix p = of(cases[i].subnet);
		struct error err = ERROR_INIT;
		int r = subnets_check(&p, used, ARRAY_SIZE(used), &err);

		if (!cases[i].what) {
			CHECK_INT(r, 0);
			continue;
		}
		CHECK(r < 0 && err.kind == ERROR_PRECONDITION);
		CHECK(strstr(error_text(&err), cases[i].what));
	}
}

static void sites(void)
{
	struct error err = ERROR_INIT;
	struct prefix first, second, sub;

	CHECK_INT(subnets_draw_site(&first, &err), 0);
	CHECK_INT(subnets_draw_site(&second, &err), 0);
	CHECK(first.length == 48 && first.bytes[0] == 0xfd && !prefix_eq(&first, &second));
	sub = subnets_of_site(&first, 0x0102);
	CHECK(sub.length == 64 && sub.bytes[6] == 1 && sub.bytes[7] == 2 && sub.bytes[8] == 0);
	CHECK(prefix_has(&first, &sub));
}

static int reach(const char *address)
{
	const struct prefix p = of(address);
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(&to.sin_addr, p.bytes, 4);
	return connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
}

/* An unused address of a subnet is nowhere; a used one is where its route leads. */
static void nowhere(void)
{
	const struct prefix subnets[] = { of("10.171.0.0/24"), of("10.171.1.0/24"),
					  of("fd00:1::/64") };
	struct error err = ERROR_INIT;

	CHECK_INT(reach("10.171.0.7"), 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(subnets_settle_routes(subnets, 3, &err), 0);
	CHECK_INT(reach("10.171.0.7"), -EHOSTUNREACH);
	CHECK_INT(reach("10.171.1.7"), -EHOSTUNREACH);
	CHECK(bed_proc_has("ipv6_route", "fd000001000000000000000000000000 40"));
	/* Its own route does not make a subnet overlap. */
	CHECK_INT(subnets_check(&subnets[0], NULL, 0, &err), 0);
	add_route("10.171.0.7/32");
	CHECK_INT(reach("10.171.0.7"), 0);
	remove_route("10.171.0.7/32");
	CHECK_INT(subnets_settle_routes(subnets + 1, 1, &err), 0);
	CHECK_INT(reach("10.171.0.7"), 0);
	CHECK_INT(reach("10.171.1.7"), -EHOSTUNREACH);
	CHECK(!bed_proc_has("ipv6_route", "fd000001000000000000000000000000 40"));
	CHECK_INT(subnets_settle_routes(NULL, 0, &err), 0);
	CHECK_INT(reach("10.171.1.7"), 0);
}

UNIT_MAIN({ "own_namespace", own_namespace, true }, { "mtu", mtu }, { "choosing", choosing },
	  { "none_left", none_left }, { "overlapping", overlapping }, { "sites", sites },
	  { "nowhere", nowhere })
