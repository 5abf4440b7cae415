/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_NETWORK_H
#define NACRE_IMAGE_NETWORK_H

#include "image/helper/helper.h"
#include "image/registry.h"

/* Runs of nacre-transfer: what is common to pulling, pushing, copying and listing. */

struct image_store;

/*
 * Starts `command` with its request, and tells it what the configuration says of networks,
 * registries, proxies and the node's policy, and `auths`. detached_fd: where documents are written,
 * or any directory. The caller still tells it GO, behind what else it has to say.
 */
int network_start(struct helper *h, const struct image_store *s, const char *command,
		  const struct fetchmsg *request, const struct image_auths *auths, int detached_fd,
		  const struct helper_ops *ops, struct error *err);
int network_go(struct helper *h, struct error *err);

#endif
