/* SPDX-License-Identifier: Apache-2.0 */

#include "init/guest_self.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/text/str.h"
#include "base/time/clock.h"
#include "instance/peer.h"
#include "net/port/interface.h"
#include "net/port/peer_port.h"
#include "net/port/port.h"
#include "net/port/setup.h"

#define NET_APPEARS_WITHIN (10 * NSEC_PER_SEC)
#define NET_PAUSE (2 * NSEC_PER_MSEC)
#define NET_BACKLOG 64
#define NET_SECOND "eth1"

static struct prefix net_prefix(const uint8_t address[4], uint32_t length)
{
	struct prefix p = { .family = AF_INET, .length = (uint8_t)length };

	memcpy(p.bytes, address, 4);
	return p;
}

/* A device comes up on its own time, behind its driver. device: the MAC that it has now; NULL:
 * that of the plan, and it is brought up. */
static int net_up(const uint8_t *device, const struct interface_plan *plan, struct error *err)
{
	const struct timespec pause = { .tv_nsec = (long)NET_PAUSE };
	nsec_t began = clock_mono();
	int r;

	for (;;) {
		r = device ? interface_take(device, plan, err) : interface_up(plan, err);
		if (r != -ENODEV || clock_mono() - began > NET_APPEARS_WITHIN)
			return r;
		(void)nanosleep(&pause, NULL);
	}
}

int guest_net_up(const struct bootmsg_boot *boot, bool is_way, const char *name, struct error *err)
{
	struct interface_plan plan = {
		.name = name,
		.mtu = boot->mtu,
		.address = net_prefix(boot->address, boot->prefix),
	};

	if (is_way)
		plan.gateway = net_prefix(boot->gateway, 32);
	memcpy(plan.mac, boot->mac, sizeof(plan.mac));
	return net_up(NULL, &plan, err);
}

int guest_net_nic(const struct bootmsg_nic *nic, struct error *err)
{
	struct interface_plan plan = { .name = NET_SECOND, .mtu = nic->mtu };
	int r;

	if ((*nic->address && prefix_parse(nic->address, &plan.address) < 0) ||
	    (*nic->gateway && prefix_parse(nic->gateway, &plan.gateway) < 0))
		return error_set(err, -EBADMSG, "the addresses of " NET_SECOND);
	memcpy(plan.mac, nic->mac, sizeof(plan.mac));
	r = net_up(NULL, &plan, err);
	return r < 0 ? r : 0;
}

static int net_take_addresses(const struct bootmsg_link *link, struct port_plan *ret)
{
	if (prefix_parse(link->address, &ret->ip4) < 0 ||
	    prefix_parse(link->gateway, &ret->gateway4) < 0 || ret->ip4.family != AF_INET ||
	    ret->gateway4.family != AF_INET)
		return -EBADMSG;
	if (*link->address6 &&
	    (prefix_parse(link->address6, &ret->ip6) < 0 || ret->ip6.family != AF_INET6))
		return -EBADMSG;
	ret->pool4 = ret->ip4;
	ret->pool6 = ret->ip6;
	return 0;
}

int guest_net_link(const struct bootmsg_link *link, struct error *err)
{
	struct interface_plan device = { .name = link->name, .mtu = link->mtu };
	struct port_plan plan = { .is_default = link->leads_out };
	int r;

	if (net_take_addresses(link, &plan) < 0 ||
	    str_copy(plan.pod_name, sizeof(plan.pod_name), link->name) < 0)
		return error_set(err, -EBADMSG, "the addresses of a pod");
	memcpy(device.mac, link->mac, sizeof(device.mac));
	r = net_up(link->device, &device, err);
	if (r >= 0)
		r = port_open_inside(&plan, (uint32_t)r, err);
	return r < 0 ? error_wrap(err, r, "the network of a pod") : 0;
}

/* It begins again as the device that it was. */
static int net_take_back(const struct peer_link *l, struct error *err)
{
	const struct link_change change = { .mac = l->device };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct error none = ERROR_INIT;
	struct link link;
	int r = netlink_open(&nl, err);

	if (r < 0)
		return r;
	r = link_find(&nl, l->name, &link, &none);
	if (r == -ENODEV)
		return 0;
	if (r < 0)
		return error_copy(err, &none);
	r = setup_clear(&nl, link.index, err);
	return r == 0 ? link_set(&nl, link.index, &change, err) : r;
}

/* It has its name and its MAC, or gets them now. */
static int net_find_own(struct netlink *nl, const struct peer_link *l, struct link *ret,
			struct error *err)
{
	struct interface_plan device = { .name = l->name, .mtu = l->mtu };
	int r = link_find(nl, l->name, ret, NULL);

	if (r == 0 && memcmp(ret->mac, l->mac, sizeof(ret->mac)) == 0)
		return 0;
	memcpy(device.mac, l->mac, sizeof(device.mac));
	r = net_up(l->device, &device, err);
	if (r == -ENODEV)
		return error_refuse(err, ERROR_NOT_FOUND,
				    "this machine has no network device for %s", l->name);
	return r < 0 ? r : link_get(nl, (uint32_t)r, ret, err);
}

int guest_net_put(const struct peer_link *l, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct setup setup = { .mtu = l->mtu };
	struct link link;
	int r = l->gone ? 0 : setup_parse(l->settings, &setup, err);

	if (l->gone)
		return net_take_back(l, err);
	if (r < 0)
		return error_wrap_field(err, r, "settings");
	r = netlink_open(&nl, err);
	if (r == 0)
		r = net_find_own(&nl, l, &link, err);
	if (r == 0)
		r = setup_apply(&nl, &link, &setup, err);
	return r < 0 ? error_wrap(err, r, "the device %s of a pod", l->name) : 0;
}

int guest_net_listen(const struct bootmsg_boot *boot, int device, uint16_t port, struct error *err)
{
	struct peer_port_plan plan = {
		.device = (uint32_t)device,
		.port = port,
		.backlog = NET_BACKLOG,
	};

	memcpy(plan.address, boot->address, sizeof(plan.address));
	memcpy(plan.peer, boot->gateway, sizeof(plan.peer));
	return peer_port_listen(&plan, err);
}
