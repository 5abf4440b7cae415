/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_LAN_H
#define NACRE_NET_LAN_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "net/netlink/link.h"
#include "net/range/prefix.h"

/*
 * A pod's device on a network of Ethernet, where its neighbours answer for themselves: the pod's
 * end of a port of a bridge (net/port/bridge.h), a child of a device of the node (macvlan, ipvlan),
 * or a device of the node itself, lent to the pod.
 *
 * Children and lent devices have no end at the node, so its packet filter sees nothing of theirs. A
 * child is destroyed with its parent, and with the pod's namespace.
 *
 * All functions work in the network namespace of the calling thread, take milliseconds and are not
 * for a loop thread. They need CAP_NET_ADMIN, and CAP_SYS_ADMIN for the pod's side.
 */

struct lan_plan {
	char pod_name[IF_NAMESIZE];
	uint32_t mtu;           /* 0: that of the parent, or as it is */
	struct prefix ip4, ip6; /* with the lengths of their subnets; ip6: family 0: no IPv6 */
	struct prefix gateway4, gateway6; /* of the default routes; family 0: there is none */
	const uint8_t *gateway_mac;       /* told for good; NULL: the gateway is asked */
	const uint8_t *mac;               /* of a child; NULL: as it comes */
	bool is_default;                  /* the pod's default routes are here */
	uint64_t rate_from_pod;           /* bits per second; 0: no limit */
};

enum lan_kind {
	LAN_MACVLAN_BRIDGE,  /* children of one parent reach each other */
	LAN_MACVLAN_PRIVATE, /* they do not */
	LAN_IPVLAN_L2,       /* with the MAC of the parent */
	LAN_IPVLAN_L3,       /* likewise; the parent routes, without broadcast */
	LAN_KIND_COUNT
};

/* Brings up the device of that name which stands in the pod's namespace. A failure leaves it as
 * far as it came. */
int lan_open(const struct lan_plan *plan, int pod_ns_fd, struct error *err) _must_check_;
/* Its default routes lead to that device from now on. */
int lan_lead_out(const struct lan_plan *plan, int pod_ns_fd, struct error *err) _must_check_;

/* A child of the device `parent` in the pod's namespace, open. -ENODEV: there is no such parent;
 * -EEXIST: the pod has a device of that name; -EOPNOTSUPP: this kernel has no such kind of link;
 * -EBUSY: the parent has children of the other kind, or is part of something. A failure leaves
 * nothing. */
int lan_make_child(const struct lan_plan *plan, enum lan_kind kind, const char *parent,
		   int pod_ns_fd, struct error *err) _must_check_;
/* Removes the child; no error where it does not exist. */
int lan_remove_child(const char *pod_name, int pod_ns_fd, struct error *err);

/* The state of a lent device that is restored when it comes back. */
struct lan_home {
	char name[IF_NAMESIZE];
	char kind[LINK_KIND_MAX]; /* "": it is no device of software */
	uint8_t mac[LINK_MAC_LEN];
	uint32_t mtu;
	bool up;
};

/* The present state of the device of that name. -ENODEV. */
int lan_look_home(const char *name, struct lan_home *ret, struct error *err) _must_check_;
/* Lends the device to the pod, where it is open; its addresses and routes are lost. -ENODEV: it is
 * not there; -EEXIST as above; -EINVAL: the kernel moves no such device. A failure brings it back.
 */
int lan_lend(const struct lan_plan *plan, const struct lan_home *home, int pod_ns_fd,
	     struct error *err) _must_check_;
/* Takes it back from the pod that has it, out of any group: the device of its kind with that name
 * there, or else with its MAC. -ENODEV: the pod has neither. */
int lan_take_back(const char *pod_name, const struct lan_home *home, int pod_ns_fd,
		  struct error *err);
/* The same where the pod's namespace is gone: the kernel brings a device of hardware back into the
 * initial namespace, some time later, without its state and under the pod's name for it or as
 * "devN"; it is known by its MAC. Waits up to wait_ms for that. -ENODEV: it has not come. */
int lan_receive_back(const struct lan_home *home, int wait_ms, struct error *err);

#endif
