/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_BRIDGE_H
#define NACRE_NET_BRIDGE_H

#include "net/port/lan.h"
#include "net/port/port.h"

/*
 * A network of pods that is one bridge of the node: pods see each other's broadcasts and ask each
 * other for MACs, as routed ports (net/port/port.h) do not. The bridge has the gateway's address
 * and is what the node routes each pod's addresses to, with the pod's MAC told for good; so the
 * node asks nobody, whatever a pod sends to addresses that nobody has.
 *
 * 127.0.0.1 leads to published ports, and ::1 does not: where br_netfilter is on, an answer is
 * translated back while it is bridged, and the kernel's IPv6 drops what comes for ::1 from
 * elsewhere.
 *
 * A port takes frames of its pod's MAC alone, and learns none; what is in them is the packet
 * filter's affair (net/filter/filter.h), which finds bridge and ports by their group.
 *
 * All functions work in the network namespace of the calling thread, take milliseconds and are not
 * for a loop thread. They need CAP_NET_ADMIN, and CAP_SYS_ADMIN for the pod's side.
 */

struct bridge_plan {
	char name[IF_NAMESIZE];
	const char *alias; /* the network's name, for people; or NULL */
	uint32_t group;
	uint32_t mtu; /* 0: the kernel's */
	struct prefix gateway4;
	bool has_ip6; /* that of IPv6 is fe80::1 */
};

/* "nacrebr" and the number of the network. */
void bridge_name(unsigned number, char ret[IF_NAMESIZE]);

/* -ENODEV: there is no device of that name that is a bridge. */
int bridge_find(const char *name, uint32_t *ret, struct error *err) _must_check_;
/* Makes the bridge, or what is missing of one that is there. *ret is its index. */
int bridge_make(const struct bridge_plan *plan, uint32_t *ret, struct error *err) _must_check_;

/* A port of the bridge of that index, as port_make() makes a routed one: plan->gateway4 is the
 * bridge's; *ret is the index of the node's end. hairpin: published ports of the node that lead
 * back to the pod itself need it where br_netfilter is on. */
int bridge_make_port(const struct port_plan *plan, uint32_t bridge, bool hairpin, int pod_ns_fd,
		     uint32_t *ret, struct error *err) _must_check_;
/* The port of that index, which has lost its bridge, is in this one: of plan name, MAC and
 * addresses count. */
int bridge_rejoin(const struct port_plan *plan, uint32_t bridge, bool hairpin, uint32_t link,
		  struct error *err) _must_check_;
/* The plan that lan_lead_out() takes for the pod of such a port. */
void bridge_lan_plan(const struct port_plan *plan, struct lan_plan *ret);

/* The node routes those addresses to the bridge no more; ip6 may be of family 0. A port itself goes
 * as a routed one does. */
int bridge_forget(uint32_t bridge, const struct prefix *ip4, const struct prefix *ip6,
		  struct error *err);
/* The same for all addresses but these n. */
int bridge_forget_others(uint32_t bridge, const struct prefix *known, size_t n,
			 struct error *err) _must_check_;

#endif
