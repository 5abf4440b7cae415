/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_GUEST_END_H
#define NACRE_NETWORK_GUEST_END_H

#include "net/port/segment.h"
#include "net/port/setup.h"
#include "network/driver.h"

/*
 * The end of an attachment that the guest of a machine has (doc/decisions/machines-on-networks.md).
 * The pod's device is in the network namespace of the machine, and a TAP device beside it leads to
 * the guest: both are joined, and the guest gives its own device what the pod's has.
 *
 * A routed port has nothing there but its wire, since its configuration follows from its plan. What
 * plugins and other drivers make is read from the kernel, and stays as they made it: CHECK of a
 * plugin looks for it.
 */

/* A pod in a machine is on at most so many networks at once: so many devices its guest has. */
#define GUEST_END_MAX SEGMENT_POD_TAPS

/* A copy for a thread. */
struct guest_end {
	struct driver_plan plan;
	bool by_plugins;
	bool leads_out; /* the default routes come to it now */
};

void guest_end_plan(const struct attachment *a, struct guest_end *ret);
/* Whether its guest can be told of it before it boots. */
bool guest_end_is_known(const struct attachment *a);
/* On a thread, in any namespace: joins it, if it is not, and says what the guest is to have. netns:
 * that of the machine. ERROR_PRECONDITION: the kernel lacks what joins devices. */
int guest_end_join(const struct guest_end *g, int netns_fd, struct setup *ret,
		   struct error *err) _must_check_;

#endif
