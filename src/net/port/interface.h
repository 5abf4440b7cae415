/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_INTERFACE_H
#define NACRE_NET_INTERFACE_H

#include <stdint.h>

#include "base/log/error.h"
#include "net/netlink/link.h"
#include "net/range/prefix.h"

/*
 * The set-up that makes a machine or a namespace reachable: lo and one Ethernet device brought up,
 * with an address and a way to everybody else. For pid 1 of a guest, whose kernel does none of it.
 */
struct interface_plan {
	uint8_t mac[LINK_MAC_LEN];  /* zeroes: the only device of Ethernet there is, as it is */
	const char *name;           /* that it gets while it is down; NULL: the one that it has */
	uint32_t mtu;               /* 0: the kernel's */
	struct prefix address;      /* or none */
	struct prefix gateway;      /* of the default route, or none; beside an address of IPv4
				     * with the length 32 it is on the link */
	const uint8_t *gateway_mac; /* where nobody is to be asked for it; or NULL */
};

/*
 * In the namespace of the calling thread. The device is the one that has the MAC, or else the only
 * one of Ethernet there is, which gets it: a copy of a guest has that of its template. Again with
 * the same plan it changes nothing, and with another one it adds to what is there. -ENODEV: there
 * is no such device (yet), or there are several. Where another device has the name, that one gets
 * the old name of this; both have to be down. Returns the index of the device.
 */
int interface_up(const struct interface_plan *plan, struct error *err) _must_check_;
/* The device that has the MAC `device`, and no other one (-ENODEV), which is down: it gets the MAC,
 * the name and the MTU of the plan, and nothing else of it. Returns its index. */
int interface_take(const uint8_t device[LINK_MAC_LEN], const struct interface_plan *plan,
		   struct error *err) _must_check_;

#endif
