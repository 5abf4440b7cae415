/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_CONNTRACK_H
#define NACRE_NET_CONNTRACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "net/range/prefix.h"

/*
 * Connections that the kernel remembers (nf_conntrack). A protocol without connections of its own
 * has one as long as somebody sends, so a client would stay with a pod that is gone, or with nobody
 * where it began before the port was published.
 */
struct conntrack_stale {
	uint8_t protocol;
	uint16_t host_port;
	struct prefix pod; /* the one that has, or had, the port */
};

/*
 * Forgets what came to these ports of the host and is led to that pod, or nowhere. Reads all that
 * the kernel of this network namespace remembers of these protocols: ten milliseconds and more, on
 * a thread of its own. -EPROTONOSUPPORT: it cannot be asked.
 */
int conntrack_forget(const struct conntrack_stale *list, size_t n, struct error *err) _must_check_;

#endif
