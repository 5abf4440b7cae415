/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_CONVERT_NETWORK_H
#define NACRE_RUNTIME_CONVERT_NETWORK_H

#include "api/nacre.pb-c.h"
#include "base/memory/arena.h"

/* runtime/core/convert.h for networks, and for who is on them. NULL without memory, unless said
 * otherwise. */

struct attachment;
struct network;
struct workload;

Nacre__V1__Network *convert_network(struct arena *a, const struct network *n);
/* A workload that is on one. */
Nacre__V1__NetworkPod *convert_network_pod(struct arena *a, const struct workload *w,
					   const struct attachment *on);
/* Its attachment to a network. */
Nacre__V1__WorkloadNetwork *convert_attached(struct arena *a, const struct attachment *from);
/* Puts the networks of a workload into what is shown. 0 or -ENOMEM. */
int convert_attachment(struct arena *a, const struct workload *w, Nacre__V1__Workload *m);

#endif
