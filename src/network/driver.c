/* SPDX-License-Identifier: Apache-2.0 */
#include "network/driver.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text/str.h"
#include "net/filter/filter.h"
#include "net/netlink/address.h"
#include "net/netlink/netlink.h"
#include "net/port/segment.h"
#include "network/state.h"

/* The time in which the kernel brings back the device of a namespace that is gone. What is no
 * hardware is destroyed with it. */
#define DRIVER_RETURN_MS 2000

/* ---- words ---- */

static const char *const driver_words[] = {
	[NETWORK_ROUTED] = "routed", [NETWORK_BRIDGE] = "bridge", [NETWORK_MACVLAN] = "macvlan",
	[NETWORK_IPVLAN] = "ipvlan", [NETWORK_DEVICE] = "device",
};
static_assert(ARRAY_SIZE(driver_words) == NETWORK_DRIVER_COUNT, "a word for each driver");

/* The first of a driver is its default. */
static const struct {
	enum network_driver driver;
	const char *word;
} driver_modes[] = {
	[LAN_MACVLAN_BRIDGE] = { NETWORK_MACVLAN, "bridge" },
	[LAN_MACVLAN_PRIVATE] = { NETWORK_MACVLAN, "private" },
	[LAN_IPVLAN_L2] = { NETWORK_IPVLAN, "l2" },
	[LAN_IPVLAN_L3] = { NETWORK_IPVLAN, "l3" },
};
static_assert(ARRAY_SIZE(driver_modes) == LAN_KIND_COUNT, "a word for each kind");

const char *network_driver_word(enum network_driver driver)
{
	return driver_words[driver];
}

int network_driver_of(const char *word, enum network_driver *ret)
{
	*ret = NETWORK_ROUTED;
	if (str_empty(word))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(driver_words); i++) {
		if (!str_eq(driver_words[i], word))
			continue;
		*ret = (enum network_driver)i;
		return 0;
	}
	return -EINVAL;
}

static bool driver_has_modes(enum network_driver driver)
{
	return driver == NETWORK_MACVLAN || driver == NETWORK_IPVLAN;
}

const char *network_mode_word(const struct network *n)
{
	return driver_has_modes(n->driver) ? driver_modes[n->kind].word : "";
}

static int driver_take_mode(enum network_driver driver, const char *word, enum lan_kind *ret)
{
	*ret = LAN_MACVLAN_BRIDGE;
	for (size_t i = 0; i < ARRAY_SIZE(driver_modes); i++) {
		if (driver_modes[i].driver != driver ||
		    (!str_empty(word) && !str_eq(driver_modes[i].word, word)))
			continue;
		*ret = (enum lan_kind)i;
		return 0;
	}
	return str_empty(word) ? 0 : -EINVAL;
}

/* ---- the network ---- */

static int driver_check_mode(const struct network_spec *spec, struct error *err)
{
	enum lan_kind kind;

	if (driver_take_mode(spec->driver, spec->mode, &kind) == 0)
		return 0;
	return error_field(err, ERROR_INVALID, "mode", "\"%.32s\" is no mode of %s: %s", spec->mode,
			   network_driver_word(spec->driver),
			   spec->driver == NETWORK_MACVLAN  ? "bridge or private"
			   : spec->driver == NETWORK_IPVLAN ? "l2 or l3"
							    : "it has none");
}

/* What neither filters nor translates for its pods cannot keep these promises. */
static int driver_check_outside(const struct network_spec *spec, struct error *err)
{
	const char *word = network_driver_word(spec->driver);

	if (!spec->subnet4.family)
		return error_field(err, ERROR_INVALID, "subnets",
				   "a network of driver %s needs a subnet of IPv4: the one that "
				   "its parent is on, as in 192.0.2.0/24",
				   word);
	if (spec->internal)
		return error_field(err, ERROR_INVALID, "internal",
				   "the node sees no packet of a network of driver %s, and cannot "
				   "close it; use the driver routed or bridge",
				   word);
	if (spec->node_open)
		return error_field(err, ERROR_INVALID, "node_open",
				   "the node sees no packet of a network of driver %s; use the "
				   "driver routed or bridge",
				   word);
	if (spec->driver == NETWORK_DEVICE && str_empty(spec->parent))
		return error_field(err, ERROR_INVALID, "parent",
				   "required: the device that its pod is to have");
	return 0;
}

int driver_check_spec(const struct network_spec *spec, struct error *err)
{
	const bool passes = spec->driver == NETWORK_ROUTED || spec->driver == NETWORK_BRIDGE;
	int r = driver_check_mode(spec, err);

	if (r < 0)
		return r;
	if (!passes)
		return driver_check_outside(spec, err);
	if (!str_empty(spec->parent))
		return error_field(err, ERROR_INVALID, "parent",
				   "a network of driver %s has no parent; that is for macvlan, "
				   "ipvlan and device",
				   network_driver_word(spec->driver));
	if (spec->gateway6.family)
		return error_field(err, ERROR_INVALID, "gateway6",
				   "that of driver %s is fe80::1; another one is for macvlan, "
				   "ipvlan and device",
				   network_driver_word(spec->driver));
	return spec->driver == NETWORK_BRIDGE ? filter_has_bridges(err) : 0;
}

/* The device of the default route of IPv4. */
static int driver_find_uplink(struct netlink *nl, struct link *ret, struct error *err)
{
	struct route *routes = NULL;
	size_t n = 0;
	int r = route_list(nl, &routes, &n, err);
	uint32_t link = 0;

	for (size_t i = 0; i < n && r == 0 && link == 0; i++)
		if (routes[i].to.length == 0 && routes[i].to.family == AF_INET)
			link = routes[i].link;
	free(routes);
	if (r < 0)
		return r;
	return link ? link_get(nl, link, ret, err)
		    : error_field(err, ERROR_PRECONDITION, "parent",
				  "this host has no default route whose device could be the "
				  "parent; name one");
}

static int driver_find_parent(const struct network_spec *spec, struct link *ret, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct error none = ERROR_INIT;
	int r;

	r = netlink_open(&nl, err);
	if (r < 0)
		return r;
	if (str_empty(spec->parent))
		return driver_find_uplink(&nl, ret, err);
	r = link_find(&nl, spec->parent, ret, &none);
	if (r == -ENODEV || r == -EINVAL)
		return error_field(err, ERROR_PRECONDITION, "parent",
				   "this host has no device %.32s (ip link lists those that it "
				   "has)",
				   spec->parent);
	return r < 0 ? error_copy(err, &none) : 0;
}

static int driver_check_parent(const struct networks *all, enum network_driver driver,
			       const struct link *parent, struct error *err)
{
	const struct network *n;

	if (parent->index == 1 || (parent->group & 0xffff0000U) == PORT_GROUP)
		return error_field(err, ERROR_PRECONDITION, "parent",
				   "%s is no device that leads anywhere but to the node and its "
				   "pods; name another one",
				   parent->name);
	list_for_each (n, &all->list, struct network, link)
		if (str_eq(n->parent, parent->name) &&
		    (n->driver == NETWORK_DEVICE || driver == NETWORK_DEVICE))
			return error_field(err, ERROR_PRECONDITION, "parent",
					   "%s is the parent of the network %s, and a device that "
					   "is lent to a pod is no other network's",
					   parent->name, n->name);
	return 0;
}

int driver_take_spec(struct network *n, const struct network_spec *spec, struct error *err)
{
	struct link parent = { .index = 0 };
	int r;

	n->driver = spec->driver;
	(void)driver_take_mode(spec->driver, spec->mode, &n->kind);
	if (network_passes_node(n))
		return 0;
	r = driver_find_parent(spec, &parent, err);
	if (r == 0)
		r = driver_check_parent(n->all, n->driver, &parent, err);
	if (r == 0)
		(void)str_copy(n->parent, sizeof(n->parent), parent.name);
	return r;
}

int driver_take_record(struct network *n, const char *driver, const char *parent, const char *mode)
{
	return network_driver_of(driver, &n->driver) < 0 ||
			       driver_take_mode(n->driver, mode, &n->kind) < 0 ||
			       str_copy(n->parent, sizeof(n->parent), parent) < 0 ||
			       (!network_passes_node(n) && !n->parent[0])
		       ? -EBADMSG
		       : 0;
}

uint32_t driver_mtu(const struct network *n)
{
	struct lan_home home;

	return lan_look_home(n->parent, &home, NULL) < 0 ? 0 : home.mtu;
}

/* ---- who is to be on it ---- */

/* Nobody is told what he gets at a moment when he cannot have it. */
static int driver_look_at_device(struct attachment *a, struct error *err)
{
	const struct network *n = a->network;
	int r;

	if (!list_empty(&n->attachments))
		return error_field(err, ERROR_EXISTS, "network",
				   "the device %s of the network %s is lent to %s", n->parent,
				   n->name,
				   list_first(&n->attachments, struct attachment, link)->owner);
	r = lan_look_home(n->parent, &a->home, NULL);
	return r < 0 ? error_field(err, ERROR_PRECONDITION, "network",
				   "the device %s of the network %s is not there (ip link lists "
				   "those that this host has)",
				   n->parent, n->name)
		     : 0;
}

/* What a bridge cannot lead to its pods (net/port/bridge.h). */
static int driver_check_bridged(const struct network *n, const struct network_wish *wish,
				struct error *err)
{
	static const uint8_t loopback6[16] = { [15] = 1 };
	char field[32];

	for (size_t i = 0; i < wish->n_publish; i++) {
		const struct prefix *host = &wish->publish[i].host;

		if (host->family != AF_INET6 || memcmp(host->bytes, loopback6, 16) != 0)
			continue;
		(void)str_printf(field, sizeof(field), "publish[%zu]", i);
		return error_field(err, ERROR_PRECONDITION, field,
				   "the network %s is of driver bridge, to whose pods ::1 does not "
				   "lead; publish at 127.0.0.1, or use the driver routed",
				   n->name);
	}
	return 0;
}

int driver_take_wish(struct attachment *a, const struct network_wish *wish, struct error *err)
{
	const struct network *n = a->network;
	const char *word = network_driver_word(n->driver);

	if (n->driver == NETWORK_ROUTED)
		return 0;
	if (wish->of_machine && n->driver == NETWORK_IPVLAN)
		return error_field(
			err, ERROR_UNSUPPORTED, "network",
			"the network %s is of driver ipvlan, whose devices share the MAC "
			"of %s and get what is for their own addresses, which the guest "
			"of a machine has; use the driver macvlan",
			n->name, n->parent);
	if (n->driver == NETWORK_BRIDGE)
		return driver_check_bridged(n, wish, err);
	if (wish->n_publish > 0)
		return error_field(err, ERROR_PRECONDITION, "publish[0]",
				   "the network %s is of driver %s, whose pods are reached at "
				   "their own addresses alone; publish nothing, or use a network "
				   "of driver routed or bridge",
				   n->name, word);
	if (wish->rate_to_pod)
		return error_field(err, ERROR_PRECONDITION, "rate_to_pod",
				   "the network %s is of driver %s, and what comes to its pods "
				   "does not pass the node; limit rate_from_pod, or use a network "
				   "of driver routed or bridge",
				   n->name, word);
	if (wish->has_mac && n->driver != NETWORK_MACVLAN)
		return error_field(err, ERROR_PRECONDITION, "mac",
				   "the network %s is of driver %s, whose device has the MAC of "
				   "%s; leave it out",
				   n->name, word, n->parent);
	return n->driver == NETWORK_DEVICE ? driver_look_at_device(a, err) : 0;
}

/* ---- plans ---- */

/* Whether somebody of this host itself can reach a published port by a loopback address. */
static bool driver_wants_loopback(const struct attachment *a)
{
	for (size_t i = 0; i < a->n_publish; i++) {
		const struct prefix *host = &a->publish[i].host;

		if (!host->family || host->bytes[0] == 127 || host->family == AF_INET6)
			return true;
	}
	return false;
}

static void driver_plan_lan(const struct attachment *a, struct driver_plan *plan)
{
	const struct network *n = a->network;

	plan->lan = (struct lan_plan){ .mtu = n->asked_mtu ? n->mtu : 0,
				       .ip4 = a->ip4,
				       .ip6 = a->ip6,
				       .gateway4 = n->gateway4,
				       .gateway6 = n->gateway6,
				       .is_default = a->leads_out,
				       .rate_from_pod = a->rate_from_pod };
	memcpy(plan->lan.pod_name, plan->port.pod_name, sizeof(plan->lan.pod_name));
	plan->kind = n->kind;
	plan->home = a->home;
	(void)str_copy(plan->home.name, sizeof(plan->home.name), n->parent);
}

void driver_plan(const struct attachment *a, struct driver_plan *ret)
{
	const struct network *n = a->network;

	*ret = (struct driver_plan){
		.driver = n->driver,
		.number = n->number,
		.hairpin = a->n_publish > 0,
		.port = {
			.alias = a->owner,
			.group = PORT_GROUP + n->number,
			.mtu = n->mtu,
			.ip4 = a->ip4,
			.ip6 = a->ip6,
			.gateway4 = n->gateway4,
			.is_default = a->leads_out,
			.pool4 = n->pool4,
			.pool6 = n->pool6,
			.loopback = driver_wants_loopback(a),
			.rate_to_pod = a->rate_to_pod,
			.rate_from_pod = a->rate_from_pod,
		},
	};
	(void)str_copy(ret->network, sizeof(ret->network), n->name);
	(void)str_printf(ret->port.pod_name, sizeof(ret->port.pod_name), "eth%u", a->eth);
	memcpy(ret->port.name, a->device, sizeof(ret->port.name));
	memcpy(ret->port.mac, a->mac, sizeof(ret->port.mac));
	if (a->of_machine)
		segment_pod_tap(a->eth, ret->port.tap);
	driver_plan_lan(a, ret);
}

void driver_plan_bridge(const struct network *n, struct bridge_plan *ret)
{
	*ret = (struct bridge_plan){ .group = PORT_GROUP + n->number,
				     .mtu = n->mtu,
				     .gateway4 = n->gateway4,
				     .has_ip6 = n->pool6.family != 0 };
	bridge_name(n->number, ret->name);
}

/* ---- on a thread ---- */

static int driver_make_bridged(const struct driver_plan *plan, int netns_fd, uint32_t *ret_link,
			       uint32_t *ret_bridge, struct error *err)
{
	const struct port_plan *p = &plan->port;
	struct bridge_plan bridge = { .group = p->group,
				      .mtu = p->mtu,
				      .gateway4 = p->gateway4,
				      .has_ip6 = p->pool6.family != 0 };
	uint32_t index = 0;
	int r;

	bridge_name(plan->number, bridge.name);
	r = bridge_find(bridge.name, &index, NULL);
	/* Somebody has removed it. */
	if (r < 0)
		r = bridge_make(&bridge, &index, err);
	if (r == 0)
		r = bridge_make_port(p, index, plan->hairpin, netns_fd, ret_link, err);
	if (r == 0)
		*ret_bridge = index;
	return r;
}

static int driver_blame_parent(const struct driver_plan *plan, int r, struct error *err)
{
	const char *word = network_driver_word(plan->driver), *parent = plan->home.name;

	if (r == -ENODEV)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the device %s, the parent of the network %s, is not there "
				    "any more (ip link lists those that this host has)",
				    parent, plan->network);
	if (r == -EOPNOTSUPP)
		return error_refuse(err, ERROR_PRECONDITION,
				    "this kernel has no %s, of which the network %s is; load the "
				    "module %s, or use another driver",
				    word, plan->network, word);
	if (r == -EBUSY || r == -EINVAL)
		return error_refuse(
			err, ERROR_PRECONDITION,
			"the kernel takes %s for no %s: it is part of a bridge or bond, "
			"has devices of another kind upon it, or cannot leave this "
			"network namespace",
			parent, plan->driver == NETWORK_DEVICE ? "device of a pod" : word);
	return r;
}

static int driver_make_child(const struct driver_plan *plan, int netns_fd, struct error *err)
{
	struct lan_plan lan = plan->lan;

	lan.mac = plan->driver == NETWORK_MACVLAN ? plan->port.mac : NULL;
	return driver_blame_parent(
		plan, lan_make_child(&lan, plan->kind, plan->home.name, netns_fd, err), err);
}

int driver_make(const struct driver_plan *plan, int netns_fd, uint32_t *ret_link,
		uint32_t *ret_bridge, struct error *err)
{
	*ret_link = *ret_bridge = 0;
	switch (plan->driver) {
	case NETWORK_BRIDGE:
		return driver_make_bridged(plan, netns_fd, ret_link, ret_bridge, err);
	case NETWORK_MACVLAN:
	case NETWORK_IPVLAN:
		return driver_make_child(plan, netns_fd, err);
	case NETWORK_DEVICE:
		return driver_blame_parent(plan, lan_lend(&plan->lan, &plan->home, netns_fd, err),
					   err);
	case NETWORK_ROUTED:
	case NETWORK_DRIVER_COUNT:
	default:
		return port_make(&plan->port, netns_fd, ret_link, err);
	}
}

int driver_remove(const struct driver_plan *plan, int netns_fd, struct error *err)
{
	switch (plan->driver) {
	case NETWORK_MACVLAN:
	case NETWORK_IPVLAN:
		return netns_fd < 0 ? 0 : lan_remove_child(plan->lan.pod_name, netns_fd, err);
	case NETWORK_DEVICE:
		return netns_fd < 0
			       ? lan_receive_back(&plan->home,
						  plan->home.kind[0] ? 0 : DRIVER_RETURN_MS, err)
			       : lan_take_back(plan->lan.pod_name, &plan->home, netns_fd, err);
	case NETWORK_BRIDGE:
	case NETWORK_ROUTED:
	case NETWORK_DRIVER_COUNT:
	default:
		return port_remove(plan->port.name, err);
	}
}

int driver_lead_out(const struct driver_plan *plan, int netns_fd, struct error *err)
{
	struct lan_plan lan = plan->lan;

	if (plan->driver == NETWORK_ROUTED)
		return port_lead_out(&plan->port, netns_fd, err);
	if (plan->driver == NETWORK_BRIDGE)
		bridge_lan_plan(&plan->port, &lan);
	return lan_lead_out(&lan, netns_fd, err);
}
