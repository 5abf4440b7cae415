/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_PORT_H
#define NACRE_NET_PORT_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "net/netlink/link.h"
#include "net/range/prefix.h"

/*
 * A routed port: a veth pair between the node's network namespace and a pod's, without a bridge
 * (doc/decisions/routed-networks.md). The node routes the pod's addresses to its own end; neither
 * end asks for the other's MAC, both are told for good. Each port has the same gateway.
 *
 * The names and groups of the node's ends are ours: NAME is "nacre" with ten digits, and
 * PORT_GROUP + the number of the network is the group, so that a rule can match a port from the
 * instant at which it is there.
 *
 * All functions work in the network namespace of the calling thread, take milliseconds and are not
 * for a loop thread. They need CAP_NET_ADMIN, and CAP_SYS_ADMIN for the pod's side.
 */
#define PORT_GROUP 0x6e610000U
#define PORT_NETWORKS_MAX 255
#define PORT_PREFIX "nacre"

struct port_plan {
	char name[IF_NAMESIZE];     /* of the node's end */
	char pod_name[IF_NAMESIZE]; /* of the other one, "eth0" */
	const char *alias;          /* the owner, for display; cut to the kernel's limit */
	uint32_t group;
	uint32_t mtu; /* 0: the kernel's */
	struct prefix ip4,
		ip6; /* the pod's; their lengths do not count; ip6: family 0: IPv6 is off on it */
	struct prefix gateway4; /* that of IPv6 is fe80::1 */
	uint8_t mac[LINK_MAC_LEN];
	bool is_default; /* the pod's default routes are here; else those to pool4 and pool6 */
	struct prefix pool4, pool6;
	bool loopback; /* the node's own loopback addresses lead to its published ports */
	/* Of a machine: the pod's end is joined to this TAP device there, and has no addresses;
	 * those are the guest's, whose kernel is told (port_open_inside()). "": a pod's. */
	char tap[IF_NAMESIZE];
	uint64_t rate_to_pod, rate_from_pod; /* bits per second, by a token bucket; 0: no limit */
};

/* The name of the port with that address, and the MAC of its pod: "02:6e" and the address. */
void port_name(const struct prefix *ip4, char ret[IF_NAMESIZE]);
void port_mac(const struct prefix *ip4, uint8_t ret[LINK_MAC_LEN]);

/* Both ends are up then, *ret is the index of the node's. -EEXIST: there is a port of that name.
 * A failure leaves nothing. */
int port_make(const struct port_plan *plan, int pod_ns_fd, uint32_t *ret,
	      struct error *err) _must_check_;
/* Sets addresses, routes and neighbours of a pod's end, in the namespace of the calling thread. For
 * a guest, which has no other end: `link` is the device that the plan is for. */
int port_open_inside(const struct port_plan *plan, uint32_t link, struct error *err) _must_check_;
/* The default routes of a pod lead to this port of its own, which is there, from now on. */
int port_lead_out(const struct port_plan *plan, int pod_ns_fd, struct error *err) _must_check_;
/* Removes a port; no error where it does not exist. The kernel takes tens of milliseconds for
 * it: a port goes with its pod's namespace by itself. */
int port_remove(const char *name, struct error *err);

struct port_seen {
	uint32_t link;
	uint32_t group;
	uint32_t master; /* the bridge that it is in; or 0 */
	char name[IF_NAMESIZE];
};

/* All links of our groups; the caller frees *ret. */
int port_list(struct port_seen **ret, size_t *ret_n, struct error *err) _must_check_;

/* Whether new links have IPv6 here. */
bool port_has_ipv6(void);

#endif
