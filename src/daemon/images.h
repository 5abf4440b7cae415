/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_IMAGES_H
#define NACRE_DAEMON_IMAGES_H

#include "base/log/error.h"

struct config;
struct image_store;
struct loop;
struct place;
struct pool;
struct root_store;
struct volumes;

/* The images of a node, with the helpers and the proxies that its configuration and its environment
 * name. */
int images_open(struct image_store **ret, struct loop *loop, struct pool *pool,
		const struct place *place, const struct config *config, struct root_store *store,
		struct error *err);
/* Its volumes (volumes/volumes.h); root: the path of its root directory. */
int images_open_volumes(struct volumes **ret, struct pool *pool, const struct place *place,
			const char *root, struct root_store *store, struct error *err);

#endif
