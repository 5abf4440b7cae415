/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_PUBLISH_H
#define NACRE_NETWORK_PUBLISH_H

#include "base/log/error.h"
#include "net/filter/filter.h"

/*
 * Ports of the host that lead to a pod. The packet filter turns what comes for one around before
 * any socket sees it, so a program that listened there would wait for ever, and a pod would take a
 * port away from one that does. A socket that is bound, and does not listen, keeps both from
 * happening: the kernel refuses the second of the two, and what comes while the filter is not there
 * is answered by a reset.
 *
 * Private to this area.
 */

/* Whether both cannot be there at once. */
bool publish_collides(const struct filter_publish *a, const struct filter_publish *b);

/*
 * A socket that holds the port, of both families where host names none of them and with_ipv6.
 * host_port 0: the kernel chooses, and p says which. -EADDRINUSE; -EADDRNOTAVAIL: no address of
 * this host; -EPROTONOSUPPORT: a kernel without this protocol.
 */
int publish_reserve(struct filter_publish *p, bool with_ipv6);

#define PUBLISH_OWNER_MAX 96

/* The program that has the port, for display: "nginx (pid 12)", or "another program". */
void publish_owner(const struct filter_publish *p, char ret[PUBLISH_OWNER_MAX]);

#endif
