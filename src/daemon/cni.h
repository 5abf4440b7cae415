/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_CNI_H
#define NACRE_DAEMON_CNI_H

#include "base/log/error.h"

struct config;
struct loop;
struct plugins;

/* Starts nacre-cni where the configuration wants plugins of CNI; *ret stays NULL where it does not.
 * Its records are in the root directory; network namespaces get names beside the run directory, in
 * /run/netns for /run/nacre, where daemons of plugins look for them. */
int cni_open(struct plugins **ret, struct loop *loop, const struct config *config, const char *root,
	     const char *run, struct error *err);
/* Whether pods of Kubernetes can have a network, as cri_network_ready_fn says it. */
int cni_network_ready(const struct config *config, const struct plugins *plugins,
		      const char **reason, struct error *err);

#endif
