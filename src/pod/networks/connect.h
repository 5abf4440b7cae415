/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_CONNECT_H
#define NACRE_POD_CONNECT_H

#include "pod/workload/model.h"

/*
 * Networks that a pod gets and leaves while it runs. One change at a time for each pod. It is
 * recorded before the kernel is touched (attachment.is_half), and again when it is over: a daemon
 * that starts in between takes that network out of the pod, so that the record and the kernel
 * agree.
 *
 * settings: what the record says of the pod once it is done (workload_set_settings()).
 */

struct network_wish;

/*
 * done: it is on the network, or nothing has changed. ERROR_PRECONDITION: it does not run, or has
 * no network of the node; ERROR_UNAVAILABLE: another change is under way; ERROR_EXISTS ("network"):
 * it is on it; and what network_attach() says.
 */
int workload_connect(struct workload *w, const struct network_wish *wish, const char *settings,
		     workload_fn done, void *userdata, struct error *err);
/*
 * done: it is not on the network any more. ERROR_PRECONDITION: it is not on it, it does not run, or
 * (unless `force`) ports are published there. Behind the last one it has loopback alone.
 */
int workload_disconnect(struct workload *w, const char *network, bool force, const char *settings,
			workload_fn done, void *userdata, struct error *err);

struct names_wait;

/* Waits for /etc/hosts of the pods to be updated, which begins without NAMES_SETTLE
 * (names_await()). */
void workloads_await_names(struct workloads *all, struct names_wait *wait);

#endif
