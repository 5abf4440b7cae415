/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_PORT_PARTS_H
#define NACRE_NET_PORT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "net/netlink/link.h"
#include "net/netlink/netlink.h"
#include "net/range/prefix.h"

/*
 * Steps of making a pod's device that a routed port (net/port/port.h) has in common with a bridge
 * (net/port/bridge.h) and with devices that have no end at the node (net/port/lan.h). Private to
 * net/port. In the network namespace of a struct netlink, or else of the calling thread.
 */

/* The MAC of every node's end, and the address that each of them has on its link. */
extern const uint8_t port_node_mac[LINK_MAC_LEN];
extern const struct prefix port_gateway6; /* fe80::1/64 */

/* With a length of all bits. */
struct prefix port_host(const struct prefix *p);

/* A request about one link, flags as in struct ifinfomsg; what is said of it goes in behind. */
void port_begin_set(struct netmsg *m, uint32_t link, unsigned flags, unsigned change);
/* Into IFLA_AF_SPEC: no address of IPv6 of the kernel's making. */
void port_put_gen_mode(struct netmsg *m);
/* Into IFLA_AF_SPEC: how the node's end of a pod's link forwards IPv4. */
void port_put_settings4(struct netmsg *m, bool loopback);
/* The same of IPv6, which the kernel takes from files. */
int port_set_files6(const char *port, struct error *err) _must_check_;
/* No IPv6 on the link of that name. */
int port_close6(const char *name, struct error *err) _must_check_;
/* To a pod (no gateway) only where nobody else leads elsewhere; a pod's own may be led anew. */
int port_add_route(struct netlink *nl, const struct prefix *to, const struct prefix *via,
		   uint32_t link, struct error *err) _must_check_;
/* A token bucket for all that leaves by the link; 0: none. */
int port_set_rate(struct netlink *nl, uint32_t link, uint64_t bits, struct error *err) _must_check_;
/* A pod's device, and lo beside it. */
int port_power_pod(struct netlink *nl, uint32_t link, const char *name, bool has_ip6,
		   struct error *err) _must_check_;
/* As in other engines: programs without privilege may have any port, and may ping. Nothing is
 * written where one of the two settings is not as the kernel makes it: whoever asked for sysctls
 * has those. (Both asked for as the kernel makes them are as if nobody had asked.) */
void port_set_pod_files(void);

#endif
