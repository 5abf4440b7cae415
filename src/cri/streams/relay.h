/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_RELAY_H
#define NACRE_CRI_RELAY_H

#include "base/log/error.h"
#include "base/memory/list.h"

/*
 * A connection to a port of a pod with a kernel of its own: the pod's keeper makes it, and one end
 * of a pair of sockets stands for it here. What the pod sends faster than its reader reads waits in
 * the pod, but for one message; likewise the other way.
 */

struct dial;
struct peer;

/* Answers the dial: with a socket that is connected, or with the reason. The relay is one of the
 * list, until the connection is over or relays_free(). An error is the caller's to answer with. */
int relay_open(struct list *relays, struct peer *peer, struct dial *d, struct error *err);
/* All of a list, with their connections. */
void relays_free(struct list *relays);

#endif
