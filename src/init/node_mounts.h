/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_NODE_MOUNTS_H
#define NACRE_INIT_NODE_MOUNTS_H

#include "base/log/error.h"

/*
 * Gives the keeper of the node a mount namespace of its own, so that the host does not see what it
 * mounts.
 *
 * Should: leave a descriptor of the host's namespace for processes that belong there; go on
 * receiving what the host mounts (propagation slave); put a tmpfs of the keeper's own on /run, in
 * its own namespace. Must not: let any mount of ours reach the host.
 */
int node_mounts_make(int *ret_host_ns_fd, struct error *err);

#endif
