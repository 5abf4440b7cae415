/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_SUBNETS_H
#define NACRE_NET_SUBNETS_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "net/range/prefix.h"

/*
 * Subnets for networks of the node: private ones (RFC 1918, RFC 6598, RFC 4193) that no route of
 * the host, the default one aside, and no other network overlaps. In the network namespace of the
 * calling thread; some 100 us.
 */

/* The first free one of `length` bits of IPv4. ERROR_EXHAUSTED. */
int subnets_choose(unsigned length, const struct prefix *used, size_t n_used, struct prefix *ret,
		   struct error *err) _must_check_;
/* Whether that one is free. ERROR_PRECONDITION, which blames the field "subnets": what it
 * overlaps. */
int subnets_check(const struct prefix *subnet, const struct prefix *used, size_t n_used,
		  struct error *err) _must_check_;

/* The same, where a route of the host is no reason against it. */
int subnets_check_others(const struct prefix *subnet, const struct prefix *used, size_t n_used,
			 struct error *err) _must_check_;

/* A /48 of IPv6 for this node, of random bits, and the /64 of that number in it. */
int subnets_draw_site(struct prefix *ret, struct error *err) _must_check_;
struct prefix subnets_of_site(const struct prefix *site, uint16_t number);

/* Of the link of the default route, at least 1280; 1500 where there is none. */
uint32_t subnets_default_mtu(void);

/*
 * Routes that say that a subnet's unused addresses are nowhere, so that what is sent to one does
 * not leave by the default route: makes those of these subnets, and removes those of others that
 * were made so.
 */
int subnets_settle_routes(const struct prefix *subnets, size_t n, struct error *err) _must_check_;

#endif
