/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_SETUP_H
#define NACRE_NET_SETUP_H

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "net/netlink/link.h"
#include "net/netlink/netlink.h"
#include "net/range/prefix.h"

/*
 * The configuration of one device: what another one needs to be the same in another kernel, that of
 * the guest of a machine. A value. As text it is lines:
 *
 *   address PREFIX
 *   neighbour ADDRESS MAC           for good
 *   route PREFIX [via ADDRESS] [from ADDRESS] [metric N] [mtu N]
 *
 * Routes are those of the main table. Addresses bring none of their own.
 */

#define SETUP_ADDRESSES_MAX 16
#define SETUP_NEIGHBOURS_MAX 64
#define SETUP_ROUTES_MAX 64

struct setup_neighbour {
	struct prefix address;
	uint8_t mac[LINK_MAC_LEN];
};

struct setup_route {
	struct prefix to;
	struct prefix via, from; /* family 0: none */
	uint32_t metric, mtu;    /* 0: none */
};

struct setup {
	uint8_t mac[LINK_MAC_LEN];
	uint32_t mtu;
	size_t n_addresses, n_neighbours, n_routes;
	struct prefix addresses[SETUP_ADDRESSES_MAX];
	struct setup_neighbour neighbours[SETUP_NEIGHBOURS_MAX];
	struct setup_route routes[SETUP_ROUTES_MAX];
};

/* Of a device that is there, in the namespace of nl, but for addresses of its link alone. -E2BIG:
 * more of a kind than the limit. */
int setup_read(struct netlink *nl, uint32_t link, struct setup *ret,
	       struct error *err) _must_check_;
/* Gives it to a device, with IPv6 on or off as there are such addresses, and power; what is there
 * already is as good. MAC and MTU are not its affair. */
int setup_apply(struct netlink *nl, const struct link *link, const struct setup *setup,
		struct error *err) _must_check_;
/* Takes all addresses off a device, and its power; what leads there goes with that. */
int setup_clear(struct netlink *nl, uint32_t link, struct error *err) _must_check_;

/* The lines; -ENOMEM. */
int setup_print(const struct setup *setup, struct buf *b) _must_check_;
/* Adds those lines to *ret. ERROR_INVALID with the line. */
int setup_parse(const char *text, struct setup *ret, struct error *err) _must_check_;

#endif
