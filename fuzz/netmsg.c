/* SPDX-License-Identifier: Apache-2.0 */

/* A datagram of netlink: what the kernel answers about links, addresses and routes. */

#include "fuzz.h"
#include "net/netlink/address.h"
#include "net/netlink/link.h"
#include "net/netlink/netmsg.h"

/* All attributes below, which lie within what they are in. */
static void walk(struct netmsg_bytes rest, unsigned depth)
{
	const uint8_t *end = rest.at + rest.len;
	struct netattr a;

	while (netattr_next(&rest, &a) > 0) {
		char text[16];
		uint32_t number;

		fuzz_need(a.value.at + a.value.len <= end && rest.at <= end);
		fuzz_need(netattr_u32(&a, &number) < 0 || a.value.len == 4);
		if (netattr_str(&a, text, sizeof(text)) == 0)
			fuzz_need(strlen(text) < a.value.len);
		if (depth < 8)
			walk(a.value, depth + 1);
	}
}

static void read_all(const struct netmsg_head *head)
{
	struct netmsg_verdict v;
	struct address address;
	struct route route;
	struct link link;

	if (netmsg_verdict(head, &v) == 0)
		fuzz_need(v.code <= 0 && v.code > -4096 && strlen(v.text) < sizeof(v.text));
	if (link_read(head, &link) > 0)
		fuzz_need(link.index > 0 && link.name[0] != '\0' &&
			  strlen(link.name) < sizeof(link.name) &&
			  strlen(link.kind) < sizeof(link.kind));
	if (address_read(head, &address) > 0)
		fuzz_need(address.link > 0 && prefix_size(&address.prefix) > 0 &&
			  address.prefix.length <= prefix_size(&address.prefix) * 8);
	if (route_read(head, &route) > 0)
		fuzz_need(route.to.length <= prefix_size(&route.to) * 8 &&
			  (prefix_size(&route.via) == 0 || route.via.family == route.to.family));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct netmsg_bytes rest = { data, size };
	struct netmsg_head head;

	while (netmsg_next(&rest, &head) > 0) {
		fuzz_need(head.body.at + head.body.len <= data + size);
		read_all(&head);
		walk(head.body, 0);
	}
	return 0;
}
