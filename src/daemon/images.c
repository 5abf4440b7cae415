/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/images.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text/str.h"
#include "daemon/config.h"
#include "daemon/place.h"
#include "image/image.h"
#include "volumes/volumes.h"

int images_open(struct image_store **ret, struct loop *loop, struct pool *pool,
		const struct place *place, const struct config *config, struct root_store *store,
		struct error *err)
{
	_cleanup_str_ char *fetch = place_helper(config->libexec, "nacre-fetch");
	_cleanup_str_ char *transfer = place_helper(config->libexec, "nacre-transfer");
	struct image_store_config c = {
		.loop = loop,
		.pool = pool,
		.root_fd = place->root_fd,
		.fetch_path = fetch,
		.transfer_path = transfer,
		.reserve = config->images.reserve,
		.root = config->images.root,
		.parallel_unpacks = config->images.parallel_unpacks,
		.network = { .registry_dirs = config->images.registry_dirs,
			     .policy = config->images.policy,
			     .parallel_downloads = config->images.parallel_downloads,
			     .no_progress = config->images.no_progress,
			     .http_proxy = getenv("http_proxy"),
			     .https_proxy = getenv("https_proxy") ?: getenv("HTTPS_PROXY"),
			     .no_proxy = getenv("no_proxy") ?: getenv("NO_PROXY") },
	};

	if (!fetch || !transfer)
		return error_set(err, -ENOMEM, "find the helpers");
	c.store = store;
	return image_store_new(ret, &c, err);
}

int images_open_volumes(struct volumes **ret, struct pool *pool, const struct place *place,
			const char *root, struct root_store *store, struct error *err)
{
	const struct volumes_config config = {
		.pool = pool, .store = store, .root_fd = place->root_fd, .root = root
	};

	return volumes_new(ret, &config, err);
}
