/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_METADATA_H
#define NACRE_NETWORK_METADATA_H

#include "base/log/error.h"
#include "net/port/metadata.h"

/*
 * The sockets of a pod's metadata service (net/port/metadata.h), made on a thread of the pool.
 */

struct network_metadata;
struct networks;

/* netns_fd: the pod's network namespace, taken over. done follows, once, unless it is abandoned
 * before. -ENOMEM. */
int network_metadata_new(struct network_metadata **ret, struct networks *all, int netns_fd,
			 void (*done)(void *userdata), void *userdata);
/* Hands the sockets over, once. -EINPROGRESS: they are being made; else why they could not be. */
int network_metadata_take(struct network_metadata *m, struct metadata_sockets *ret,
			  struct error *err);
/* Nobody waits for them any more, and those that were not taken are closed. NULL is fine. */
struct network_metadata *network_metadata_free(struct network_metadata *m);

#endif
