/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_ADDRESS_H
#define NACRE_NET_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

#include "net/netlink/link.h"
#include "net/netlink/netlink.h"
#include "net/range/prefix.h"

/*
 * Addresses of links, routes and neighbours, in the namespace of a struct netlink. Changing them
 * needs CAP_NET_ADMIN there. Errors that callers tell apart: -EEXIST for what is there already,
 * -ENODEV for a link that is not; -EADDRNOTAVAIL and -ESRCH for an address and a route that is not
 * there to be removed; -ENETUNREACH for a gateway that no link leads to.
 */

/* The address with the length of its network; one of IPv6 can be used at once (no detection of
 * duplicates). */
int address_add(struct netlink *nl, uint32_t link, const struct prefix *address,
		struct error *err) _must_check_;
int address_remove(struct netlink *nl, uint32_t link, const struct prefix *address,
		   struct error *err) _must_check_;

struct address {
	uint32_t link;
	struct prefix prefix;
};

/* Those of all links; the caller frees *ret. */
int address_list(struct netlink *nl, struct address **ret, size_t *ret_n,
		 struct error *err) _must_check_;

/* A route of the main table. */
struct route {
	struct prefix to;  /* a network; length 0 of a family is the default route */
	struct prefix via; /* the gateway; none where the network is on the link itself */
	uint32_t link;     /* where it leaves; 0: where the gateway is */
	bool forbidden;    /* packets to it are refused; only of a route that is added */
};

int route_add(struct netlink *nl, const struct route *route, struct error *err) _must_check_;
/* The default route by that gateway. */
int route_add_default(struct netlink *nl, const struct prefix *via, struct error *err) _must_check_;
int route_remove(struct netlink *nl, const struct route *route, struct error *err) _must_check_;
/* Those of the main table, of both families; the caller frees *ret. One with several gateways has
 * none here. */
int route_list(struct netlink *nl, struct route **ret, size_t *ret_n,
	       struct error *err) _must_check_;

/* Says once and for all which MAC an address of this link has, in the place of what is known. */
int neighbour_set(struct netlink *nl, uint32_t link, const struct prefix *address,
		  const uint8_t mac[LINK_MAC_LEN], struct error *err) _must_check_;

/* Decode an answer, without a socket: 1, 0 (of no interest), or -EBADMSG. */
int address_read(const struct netmsg_head *answer, void *ret) _must_check_;
int route_read(const struct netmsg_head *answer, void *ret) _must_check_;

#endif
