/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_NAMESPACE_H
#define NACRE_NETWORK_NAMESPACE_H

#include "base/log/error.h"

/*
 * The network namespace of a cell, which is to be there before its keeper has heard of the cell: it
 * is made on a thread of the pool, empty, and lives while somebody holds a descriptor of it or a
 * process is in it.
 */

struct network_namespace;
struct networks;

/* done follows, once, unless it is abandoned before; networks_begin() was called. -ENOMEM. */
int network_namespace_new(struct network_namespace **ret, struct networks *all,
			  void (*done)(void *userdata), void *userdata);
/* Its descriptor, which stays its own. -EINPROGRESS: it is being made; else why it could not be. */
int network_namespace_fd(const struct network_namespace *n, struct error *err);
/* Nobody waits for it any more, and its descriptor is closed. NULL is fine. */
struct network_namespace *network_namespace_free(struct network_namespace *n);

#endif
