/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_NETWORKS_H
#define NACRE_NETWORK_NETWORKS_H

#include "network/model.h"
#include "network/spec.h"

/*
 * The networks of a node. A network is recorded in the root directory and lives until it is
 * removed; its attachments are part of the workloads' records (network/attachment.h). The kernel's
 * state (ports, packet filter, forwarding) follows on the pool's threads (network/settle.h).
 *
 * One daemon has the networks of a network namespace: it claims them (an abstract unix socket)
 * before it touches anything of the host, at the first moment that somebody needs a network.
 *
 * All of it belongs to the loop thread.
 */

/* Reads the records; touches nothing of the host. */
int networks_new(struct networks **ret, const struct networks_config *config, struct error *err);
/* Nothing is begun any more: before the pool goes, and before the attachments do. NULL
 * is fine. */
void networks_stop(struct networks *all);
/* Once the pool is gone. The kernel's state stays as it is while a network has an attachment; else
 * the host's former state is restored. */
struct networks *networks_free(struct networks *all);

/*
 * Makes sure that this daemon has the networks of this host, that the default one is there, and
 * that the kernel is being brought to agree with all of them. Idempotent. ERROR_PRECONDITION with
 * the cure: another daemon has them (its pid), nf_tables is missing, there is no privilege.
 */
int networks_begin(struct networks *all, struct error *err);

/*
 * ERROR_INVALID (naming the field: "name", "subnets", "gateway", "mtu", "ip_range", and those of
 * network/driver.h), ERROR_EXISTS,
 * ERROR_PRECONDITION (the subnet overlaps a route of the host or another network, or this host
 * cannot have networks: the error says why and what to do), ERROR_EXHAUSTED. Once this returns 0
 * done follows, when the record lies on the disk; where it cannot be written, the network is gone.
 */
int networks_create(struct networks *all, const struct network_spec *spec, network_fn done,
		    void *userdata, struct error *err);
/* ERROR_NOT_FOUND; ERROR_PRECONDITION: it is in use (by whom), or it is the default one. done's
 * network is NULL. */
int networks_remove(struct networks *all, const char *name, network_fn done, void *userdata,
		    struct error *err);
/* In order of number. */
const struct list *networks_list(const struct networks *all);
/* NULL: there is none, or it is being removed. */
struct network *networks_find(const struct networks *all, const char *name);

#endif
