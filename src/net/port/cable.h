/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_CABLE_H
#define NACRE_NET_CABLE_H

#include <stdint.h>

#include "base/log/error.h"
#include "net/netlink/link.h"
#include "net/range/prefix.h"

/*
 * A cable between two network namespaces: a pair of veth devices, of which each end is put into a
 * bridge, or gets an address, or is left to the owner of the namespace. It goes with either
 * namespace, and with either end being deleted.
 */
struct cable_end {
	int ns_fd;
	const char *name;             /* of the device, which must be free there (-EEXIST) */
	const char *bridge;           /* to be put into (-ENODEV where it is not there), or NULL */
	const uint8_t *mac;           /* LINK_MAC_LEN bytes; NULL: the kernel makes one up */
	const struct prefix *address; /* or NULL */
};

/* Both ends are up then. A failure leaves nothing. mtu 0 is the kernel's. Not for a loop thread
 * (net/port/inside.h). */
int cable_lay(const struct cable_end ends[2], uint32_t mtu, struct error *err) _must_check_;

struct pool;

/*
 * Takes the cable away that has an end of that name in the namespace of the pool's threads, if
 * there is one, on such a thread, some time later; what fails is logged. It goes by itself with a
 * namespace, but who has ended there may leave connections of TCP that hold it for minutes.
 */
void cable_cut(struct pool *pool, const char *name);

#endif
