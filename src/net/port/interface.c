/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/interface.h"

#include <errno.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text/str.h"
#include "net/netlink/address.h"
#include "net/netlink/netlink.h"

static int interface_lo_up(struct netlink *nl, struct error *err)
{
	const struct link_change up = { .power = LINK_UP };
	struct link lo;
	int r;

	r = link_find(nl, "lo", &lo, err);
	return r < 0 ? r : link_set(nl, lo.index, &up, err);
}

static const struct link *interface_choose(const struct link *list, size_t n, const uint8_t *mac)
{
	const struct link *only = NULL;
	size_t n_of_ethernet = 0;

	for (size_t i = 0; i < n; i++) {
		if (list[i].type != ARPHRD_ETHER || !list[i].has_mac)
			continue;
		if (memcmp(list[i].mac, mac, LINK_MAC_LEN) == 0)
			return &list[i];
		only = &list[i];
		n_of_ethernet++;
	}
	return n_of_ethernet == 1 ? only : NULL;
}

/* exactly: the only one of another MAC will not do. */
static int interface_find(struct netlink *nl, const uint8_t *mac, bool exactly, struct link *ret,
			  struct error *err)
{
	const struct link *found;
	struct link *list = NULL;
	char text[LINK_MAC_TEXT];
	size_t n;
	int r;

	r = link_list(nl, &list, &n, err);
	if (r < 0)
		return r;
	found = interface_choose(list, n, mac);
	if (found && exactly && memcmp(found->mac, mac, LINK_MAC_LEN) != 0)
		found = NULL;
	if (found)
		*ret = *found;
	free(list);
	link_print_mac(mac, text);
	return found ? 0 : error_set(err, -ENODEV, "find the network device %s", text);
}

/* What is there already is as good. */
static int interface_there(int r)
{
	return r == -EEXIST ? 0 : r;
}

/* An address of its own network alone, as clouds give it, leads to no gateway: that is on the link
 * all the same. */
static int interface_reach(struct netlink *nl, const struct link *link,
			   const struct interface_plan *plan, struct error *err)
{
	const struct route route = { .to = plan->gateway, .link = link->index };

	if (plan->address.family != AF_INET || plan->address.length != 32)
		return 0;
	return interface_there(route_add(nl, &route, err));
}

static int interface_set(struct netlink *nl, const struct link *link,
			 const struct interface_plan *plan, struct error *err)
{
	static const uint8_t none[LINK_MAC_LEN];
	const struct link_change change = {
		.mac = memcmp(plan->mac, none, LINK_MAC_LEN) != 0 &&
				       memcmp(link->mac, plan->mac, LINK_MAC_LEN) != 0
			       ? plan->mac
			       : NULL,
		.mtu = plan->mtu,
		.power = LINK_UP,
		.no_auto_ipv6 = true,
	};
	int r;

	r = link_set(nl, link->index, &change, err);
	if (r < 0)
		return error_wrap(err, r, "%s", link->name);
	if (prefix_size(&plan->address) > 0)
		r = interface_there(address_add(nl, link->index, &plan->address, err));
	if (r == 0 && prefix_size(&plan->gateway) > 0 && plan->gateway_mac)
		r = neighbour_set(nl, link->index, &plan->gateway, plan->gateway_mac, err);
	if (r == 0 && prefix_size(&plan->gateway) > 0)
		r = interface_reach(nl, link, plan, err);
	if (r == 0 && prefix_size(&plan->gateway) > 0)
		r = interface_there(route_add_default(nl, &plan->gateway, err));
	return r;
}

/* Takes the name from whoever has it, for the one that it has. */
static int interface_name(struct netlink *nl, struct link *link, const char *name,
			  struct error *err)
{
	const struct link_change aside = { .name = "nacre-aside" }, wanted = { .name = name };
	struct link_change old = { .name = link->name };
	struct link other = { .index = 0 };
	int r;

	if (str_eq(link->name, name))
		return 0;
	r = link_find(nl, name, &other, NULL);
	if (r == -ENODEV)
		return link_set(nl, link->index, &wanted, err);
	if (r == 0)
		r = link_set(nl, other.index, &aside, err);
	if (r == 0)
		r = link_set(nl, link->index, &wanted, err);
	if (r == 0)
		r = link_set(nl, other.index, &old, err);
	return r;
}

int interface_up(const struct interface_plan *plan, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link link = { .index = 0 };
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = interface_lo_up(&nl, err);
	if (r == 0)
		r = interface_find(&nl, plan->mac, false, &link, err);
	if (r == 0 && plan->name)
		r = interface_name(&nl, &link, plan->name, err);
	if (r == 0)
		r = interface_set(&nl, &link, plan, err);
	return r < 0 ? r : (int)link.index;
}

int interface_take(const uint8_t device[LINK_MAC_LEN], const struct interface_plan *plan,
		   struct error *err)
{
	const struct link_change change = { .mac = plan->mac, .mtu = plan->mtu };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link link = { .index = 0 };
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = interface_find(&nl, device, true, &link, err);
	if (r == 0)
		r = interface_name(&nl, &link, plan->name, err);
	if (r == 0)
		r = link_set(&nl, link.index, &change, err);
	return r < 0 ? r : (int)link.index;
}
