/* SPDX-License-Identifier: Apache-2.0 */
#include "net/netlink/address.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "net/netlink/bed_test.h"

static uint32_t link_index;

static struct prefix of(const char *text)
{
	struct prefix p = { .family = 0 };

	CHECK_INT(prefix_parse(text, &p), 0);
	return p;
}

static void own_namespace(void)
{
	const struct link_veth pair = { .name = "d0", .peer = "d1", .peer_ns_fd = -1 };
	const struct link_change up = { .power = LINK_UP, .no_auto_ipv6 = true };
	struct error err = ERROR_INIT;
	struct link other = { 0 };

	bed_enter();
	CHECK_INT(link_add_veth(&bed_nl, &pair, &link_index, &err), 0);
	CHECK_INT(link_find(&bed_nl, "d1", &other, &err), 0);
	CHECK_INT(link_set(&bed_nl, other.index, &up, &err), 0);
	CHECK_INT(link_set(&bed_nl, link_index, &up, &err), 0);
}

static bool has(const struct address *list, size_t n, const struct prefix *p)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].link == link_index && prefix_eq(&list[i].prefix, p))
			return true;
	return false;
}

static void addresses(void)
{
	struct prefix four = of("169.254.74.1/30"), six = of("fd00:74::1/64");
	struct error err = ERROR_INIT;
	struct address *list = NULL;
	size_t n = 0;
	int r;

	CHECK_INT(address_add(&bed_nl, link_index, &four, &err), 0);
	CHECK_INT(address_add(&bed_nl, link_index, &six, &err), 0);
	/* The kernel's tables: the network of the one, the other with its length, and not
	 * tentative. */
	CHECK(bed_proc_has("fib_trie", "169.254.74.1"));
	CHECK(bed_proc_has("route", "d0\t004AFEA9\t00000000\t0001\t0\t0\t0\tFCFFFFFF"));
	CHECK(bed_proc_has("if_inet6", "fd000074000000000000000000000001"));
	CHECK(bed_proc_has("if_inet6", " 40 00 82       d0"));
	CHECK_INT(address_add(&bed_nl, link_index, &four, &err), -EEXIST);
	CHECK(strstr(error_text(&err), "add the address 169.254.74.1/30"));
	CHECK_INT(address_add(&bed_nl, 4711, &four, &err), -ENODEV);
	CHECK_INT(address_add(&bed_nl, link_index, &(struct prefix){ .family = 0 }, &err), -EINVAL);

	r = address_list(&bed_nl, &list, &n, &err);
	CHECK(r == -ENOMEM || (r == 0 && has(list, n, &four) && has(list, n, &six) && n == 2));
	free(list);

	CHECK_INT(address_remove(&bed_nl, link_index, &four, &err), 0);
	CHECK_INT(address_remove(&bed_nl, link_index, &six, &err), 0);
	CHECK_INT(address_remove(&bed_nl, link_index, &four, &err), -EADDRNOTAVAIL);
	CHECK(!bed_proc_has("fib_trie", "169.254.74.1"));
	CHECK(!bed_proc_has("if_inet6", "d0"));
}

static void routes(void)
{
	struct prefix own = of("10.7.0.2/24"), gateway = of("10.7.0.1"), far = of("10.9.9.9"),
		      own6 = of("fd00:7::2/64"), gateway6 = of("fd00:7::1");
	struct route some = { .to = of("10.8.3.4/16"), .via = gateway };
	struct route direct = { .to = of("10.10.0.0/16"), .link = link_index };
	struct error err = ERROR_INIT;
	struct route *list = NULL;
	size_t n = 0;
	bool four = false, six = false, net = false, on_link = false;
	int r;

	CHECK_INT(address_add(&bed_nl, link_index, &own, &err), 0);
	CHECK_INT(address_add(&bed_nl, link_index, &own6, &err), 0);
	CHECK_INT(route_add_default(&bed_nl, &far, &err), -ENETUNREACH);
	CHECK_STR(error_text(&err),
		  "add the route 0.0.0.0/0: Nexthop has invalid gateway: Network is unreachable");
	CHECK_INT(route_add_default(&bed_nl, &gateway, &err), 0);
	CHECK_INT(route_add_default(&bed_nl, &gateway6, &err), 0);
	CHECK_INT(route_add_default(&bed_nl, &gateway, &err), -EEXIST);
	CHECK_INT(route_add(&bed_nl, &some, &err), 0);
	CHECK_INT(route_add(&bed_nl, &direct, &err), 0);
	CHECK_INT(route_add(&bed_nl, &(struct route){ .to = own6, .via = gateway }, &err), -EINVAL);
	CHECK(bed_proc_has("route", "d0\t00000000\t0100070A\t0003\t"));
	CHECK(bed_proc_has("route", "d0\t0000080A\t0100070A\t0003\t0\t0\t0\t0000FFFF"));
	CHECK(bed_proc_has("route", "d0\t00000A0A\t00000000\t0001\t0\t0\t0\t0000FFFF"));
	CHECK(bed_proc_has("ipv6_route", "00000000000000000000000000000000 00 "
					 "00000000000000000000000000000000 00 "
					 "fd000007000000000000000000000001"));

	r = route_list(&bed_nl, &list, &n, &err);
	CHECK(r == 0 || r == -ENOMEM);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct route *x = &list[i];
		struct prefix to = prefix_network(&some.to);

		CHECK_INT(x->link, link_index);
		four |= x->to.family == AF_INET && x->to.length == 0 &&
			prefix_same_address(&x->via, &gateway);
		six |= x->to.family == AF_INET6 && x->to.length == 0 &&
		       prefix_same_address(&x->via, &gateway6);
		net |= prefix_eq(&x->to, &to) && prefix_same_address(&x->via, &gateway);
		on_link |= prefix_eq(&x->to, &direct.to) && prefix_size(&x->via) == 0;
	}
	CHECK(r < 0 || (four && six && net && on_link));
	free(list);

	CHECK_INT(route_remove(&bed_nl, &some, &err), 0);
	CHECK_INT(route_remove(&bed_nl, &some, &err), -ESRCH);
	CHECK_INT(route_remove(&bed_nl, &direct, &err), 0);
	CHECK(!bed_proc_has("route", "d0\t0000080A"));
	CHECK_INT(address_remove(&bed_nl, link_index, &own, &err), 0);
	CHECK_INT(address_remove(&bed_nl, link_index, &own6, &err), 0);
}

static void neighbours(void)
{
	static const uint8_t mac[LINK_MAC_LEN] = { 0x02, 0x6e, 0x61, 0x63, 0x72, 0x02 };
	static const uint8_t other[LINK_MAC_LEN] = { 0x02, 0x6e, 0x61, 0x63, 0x72, 0x03 };
	struct prefix own = of("10.7.0.2/24"), next = of("10.7.0.9/24");
	struct error err = ERROR_INIT;

	CHECK_INT(address_add(&bed_nl, link_index, &own, &err), 0);
	CHECK_INT(neighbour_set(&bed_nl, link_index, &next, other, &err), 0);
	CHECK_INT(neighbour_set(&bed_nl, link_index, &next, mac, &err), 0);
	/* Complete and for ever. */
	CHECK(bed_proc_has("arp", "10.7.0.9         0x1         0x6         02:6e:61:63:72:02"));
	CHECK_INT(neighbour_set(&bed_nl, 4711, &next, mac, &err), -ENODEV);
	CHECK_INT(address_remove(&bed_nl, link_index, &own, &err), 0);
}

static int read_as(uint16_t type, const void *info, size_t len, uint16_t attr, size_t n_bytes,
		   int (*read)(const struct netmsg_head *answer, void *ret), void *ret)
{
	const uint8_t bytes[32] = { 1 };
	struct netmsg_head head = { 0 };
	struct netmsg_bytes rest;
	struct netmsg m;

	netmsg_begin(&m, type, 0, info, len);
	netmsg_put(&m, attr, bytes, n_bytes);
	rest = (struct netmsg_bytes){ m.data, m.len };
	CHECK_INT(netmsg_next(&rest, &head), 1);
	return read(&head, ret);
}

static void nonsense(void)
{
	struct ifaddrmsg a = { .ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_index = 1 };
	struct rtmsg r = { .rtm_family = AF_INET, .rtm_dst_len = 24, .rtm_type = RTN_UNICAST };
	struct address address;
	struct route route;

	r.rtm_table = RT_TABLE_MAIN;
	CHECK_INT(read_as(RTM_NEWADDR, &a, sizeof(a), IFA_LOCAL, 4, address_read, &address), 1);
	CHECK_INT(read_as(RTM_NEWADDR, &a, sizeof(a), IFA_LOCAL, 5, address_read, &address),
		  -EBADMSG);
	CHECK_INT(read_as(RTM_NEWADDR, &a, sizeof(a), IFA_LOCAL, 16, address_read, &address),
		  -EBADMSG);
	CHECK_INT(read_as(RTM_NEWADDR, &a, sizeof(a), IFA_LABEL, 4, address_read, &address),
		  -EBADMSG);
	CHECK_INT(read_as(RTM_NEWADDR, &a, 0, IFA_LOCAL, 0, address_read, &address), -EBADMSG);
	CHECK_INT(read_as(RTM_NEWLINK, &a, sizeof(a), IFA_LOCAL, 4, address_read, &address),
		  -EBADMSG);
	a.ifa_prefixlen = 33;
	CHECK_INT(read_as(RTM_NEWADDR, &a, sizeof(a), IFA_LOCAL, 4, address_read, &address),
		  -EBADMSG);
	a.ifa_family = AF_UNIX;
	CHECK_INT(read_as(RTM_NEWADDR, &a, sizeof(a), IFA_LOCAL, 4, address_read, &address), 0);

	CHECK_INT(read_as(RTM_NEWROUTE, &r, sizeof(r), RTA_DST, 4, route_read, &route), 1);
	CHECK_INT(read_as(RTM_NEWROUTE, &r, sizeof(r), RTA_DST, 16, route_read, &route), -EBADMSG);
	CHECK_INT(read_as(RTM_NEWROUTE, &r, sizeof(r), RTA_OIF, 3, route_read, &route), -EBADMSG);
	CHECK_INT(read_as(RTM_NEWROUTE, &r, sizeof(r), RTA_TABLE, 4, route_read, &route), 0);
	r.rtm_type = RTN_LOCAL;
	CHECK_INT(read_as(RTM_NEWROUTE, &r, sizeof(r), RTA_DST, 4, route_read, &route), 0);
	r.rtm_type = RTN_UNICAST;
	r.rtm_dst_len = 33;
	CHECK_INT(read_as(RTM_NEWROUTE, &r, sizeof(r), RTA_OIF, 4, route_read, &route), -EBADMSG);
}

UNIT_MAIN({ "own_namespace", own_namespace, true }, { "addresses", addresses },
	  { "routes", routes }, { "neighbours", neighbours }, { "nonsense", nonsense })
