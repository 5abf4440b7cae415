/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_SPEC_H
#define NACRE_NETWORK_SPEC_H

#include "network/model.h"

/* The specification of a network that is to be made; texts stay the caller's. */
struct network_spec {
	const char *name;
	struct prefix subnet4, subnet6; /* family 0: one that is free is chosen */
	struct prefix gateway4;         /* family 0: the first address */
	bool no_ipv6;
	bool internal;
	bool node_open;
	uint32_t mtu; /* 0: that of the host's default route, or of the parent */
	enum network_driver driver;
	const char *parent, *mode; /* "" or NULL: that of the default route; the driver's first */
	struct prefix range4;      /* of subnet4; family 0: all of it */
	struct prefix gateway6;    /* of subnet6; family 0: its first, or fe80::1 */
};

#endif
