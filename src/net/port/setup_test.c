/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/setup.h"

#include <errno.h>

#include "net/netlink/bed_test.h"
#include "net/port/inside.h"
#include "net/port/lan.h"

/* What one device has, as text, and on another one. */

static const uint8_t gateway_mac[LINK_MAC_LEN] = { 2, 0x6e, 0, 0, 0, 1 };

static struct prefix of(const char *text)
{
	struct prefix p = { .family = 0 };

	CHECK_INT(prefix_parse(text, &p), 0);
	return p;
}

static void text_of(const struct setup *s, char *ret, size_t size)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	*ret = '\0';
	if (setup_print(s, &b) == 0 && buf_add(&b, "", 1) == 0)
		(void)str_copy(ret, size, (const char *)buf_data(&b));
}

#define LINES                                                                                      \
	"address 192.0.2.5/24\naddress 2001:db8::5/64\n"                                           \
	"neighbour 192.0.2.1 02:6e:00:00:00:01\nneighbour fe80::1 02:6e:00:00:00:01\n"             \
	"route 0.0.0.0/0 via 192.0.2.1\n"                                                          \
	"route 198.51.100.0/24 via 192.0.2.1 from 192.0.2.5 metric 7 mtu 1400\n"                   \
	"route ::/0 via fe80::1\n"

static void lines_are_read_and_printed(void)
{
	struct setup s = { .mtu = 0 };
	struct error err = ERROR_INIT;
	char text[4096];

	CHECK_INT(setup_parse(LINES, &s, &err), 0);
	CHECK_INT(s.n_addresses, 2);
	CHECK_INT(s.n_neighbours, 2);
	CHECK_INT(s.n_routes, 3);
	CHECK_INT(s.routes[1].metric, 7);
	text_of(&s, text, sizeof(text));
	CHECK(!*text || strcmp(text, LINES) == 0);
}

static void other_lines_are_refused(void)
{
	static const char *const lines[] = {
		"",
		"address",
		"address 192.0.2.5/24 x",
		"address 192.0.2.500/24",
		"neighbour 192.0.2.1",
		"neighbour 192.0.2.1 02:6e",
		"route 0.0.0.0/0 via",
		"route 0.0.0.0/0 via fe80::1",
		"route 0.0.0.0/0 metric 4294967296",
		"route 0.0.0.0/0 table 5",
		"route 0.0.0.0/0 mtu 1 mtu 1 mtu 1 mtu 1 mtu 1 mtu 1",
		"rule from 192.0.2.5",
	};
	char line[64];

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct setup s = { .mtu = 0 };
		struct error err = ERROR_INIT;

		(void)str_printf(line, sizeof(line), "%s\n", lines[i]);
		CHECK(setup_parse(line, &s, &err) < 0);
		CHECK_INT(err.kind, ERROR_INVALID);
	}
}

static void there_are_limits(void)
{
	struct setup s = { .mtu = 0 };
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < SETUP_ADDRESSES_MAX; i++)
		CHECK_INT(setup_parse("address 192.0.2.5/24", &s, &err), 0);
	CHECK(setup_parse("address 192.0.2.5/24", &s, &err) < 0);
	for (size_t i = 0; i < SETUP_ROUTES_MAX; i++)
		CHECK_INT(setup_parse("route 192.0.2.0/24", &s, &err), 0);
	CHECK(setup_parse("route 192.0.2.0/24", &s, &err) < 0);
	for (size_t i = 0; i < SETUP_NEIGHBOURS_MAX; i++)
		CHECK_INT(setup_parse("neighbour ::1 02:6e:00:00:00:01", &s, &err), 0);
	CHECK(setup_parse("neighbour ::1 02:6e:00:00:00:01", &s, &err) < 0);
}

/* A pair, "a" as a pod has it; "b" is to become the same. */
static void a_device_is_as_another_one(void)
{
	const struct link_veth pair = { .name = "a", .peer = "b", .peer_ns_fd = -1 };
	struct lan_plan plan = { .pod_name = "a",
				 .ip4 = of("192.0.2.5/24"),
				 .ip6 = of("2001:db8::5/64"),
				 .gateway4 = of("192.0.2.1"),
				 .gateway6 = of("fe80::1"),
				 .gateway_mac = gateway_mac,
				 .is_default = true };
	_cleanup_fd_ int ns_fd = inside_of_socket(bed_nl.fd, NULL);
	static struct setup first, again, second;
	static char before[4096], after[4096];
	struct error err = ERROR_INIT;
	struct link a, b;
	uint32_t index;

	CHECK_INT(link_add_veth(&bed_nl, &pair, &index, &err), 0);
	CHECK_INT(link_find(&bed_nl, "a", &a, &err), 0);
	CHECK_INT(link_find(&bed_nl, "b", &b, &err), 0);
	CHECK_INT(lan_open(&plan, ns_fd, &err), 0);
	CHECK_INT(setup_read(&bed_nl, a.index, &first, &err), 0);
	text_of(&first, before, sizeof(before));
	printf("# %s", before);
	CHECK(strstr(before, "address 192.0.2.5/24\n") && strstr(before, "route 192.0.2.0/24"));
	CHECK(strstr(before, "address 2001:db8::5/64\n") &&
	      strstr(before, "route ::/0 via fe80::1\n"));
	CHECK(!strstr(before, "fe80::/64"));
	CHECK_INT(setup_parse(before, &again, &err), 0);
	CHECK_INT(setup_clear(&bed_nl, a.index, &err), 0);
	CHECK_INT(setup_read(&bed_nl, a.index, &second, &err), 0);
	CHECK_INT(second.n_addresses + second.n_routes, 0);
	CHECK_INT(setup_apply(&bed_nl, &b, &again, &err), 0);
	CHECK_INT(setup_apply(&bed_nl, &b, &again, &err), 0);
	CHECK_INT(setup_read(&bed_nl, b.index, &second, &err), 0);
	text_of(&second, after, sizeof(after));
	CHECK_STR(after, before);
	CHECK_INT(link_delete(&bed_nl, index, &err), 0);
}

/* One device for one network after the other, as the guest of a machine has it. */
static void a_device_serves_again(void)
{
	static const char *const each[] = {
		"address 192.0.2.5/24\nroute 192.0.2.0/24\n",
		"address 192.0.2.5/24\naddress 2001:db8::5/64\nroute 2001:db8::/64\n",
		/* The kernel takes the second one away with the first. */
		"address 192.0.2.5/24\naddress 192.0.2.6/24\n",
		"address 2001:db8::5/64\n",
	};
	const struct link_veth pair = { .name = "a", .peer = "b", .peer_ns_fd = -1 };
	static struct setup setup, seen;
	struct error err = ERROR_INIT;
	struct link a;
	uint32_t index;

	CHECK_INT(link_add_veth(&bed_nl, &pair, &index, &err), 0);
	CHECK_INT(link_find(&bed_nl, "a", &a, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		setup = (struct setup){ .mtu = 0 };
		CHECK_INT(setup_parse(each[i], &setup, &err), 0);
		CHECK_INT(setup_apply(&bed_nl, &a, &setup, &err), 0);
		CHECK_INT(setup_read(&bed_nl, a.index, &seen, &err), 0);
		CHECK_INT(seen.n_addresses, setup.n_addresses);
		CHECK_INT(setup_clear(&bed_nl, a.index, &err), 0);
		CHECK_INT(setup_read(&bed_nl, a.index, &seen, &err), 0);
		CHECK_INT(seen.n_addresses + seen.n_routes, 0);
	}
	CHECK_INT(link_delete(&bed_nl, index, &err), 0);
}

static void end(void)
{
	netlink_done(&bed_nl);
}

UNIT_MAIN({ "own_namespace", bed_enter, true },
	  { "lines_are_read_and_printed", lines_are_read_and_printed },
	  { "other_lines_are_refused", other_lines_are_refused },
	  { "there_are_limits", there_are_limits },
	  { "a_device_is_as_another_one", a_device_is_as_another_one, true },
	  { "a_device_serves_again", a_device_serves_again, true }, { "end", end, true })
