/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store of images, opened with recovery and closed. The database says what exists. A directory
 * of a layer or a blob that no record names is left from an import that did not get so far, or from
 * a removal that did: it goes at the start. A record whose layer is missing is left from a removal
 * on a full disk (see removal_dropped_last()): it goes too.
 */

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/content/collect.h"
#include "image/content/lease.h"
#include "image/content/model.h"
#include "image/content/prune.h"
#include "image/content/space.h"
#include "image/content/survey.h"
#include "image/rootfs/closing.h"
#include "image/rootfs/erofs.h"
#include "image/rootfs/lower.h"
#include "image/rootfs/rootfs.h"
#include "image/transfer/blob_download.h"
#include "image/transfer/copy.h"
#include "image/transfer/export.h"
#include "image/transfer/import.h"
#include "image/transfer/listing.h"
#include "image/transfer/pull.h"
#include "image/transfer/push.h"
#include "image/transfer/verify.h"
#include "store/root.h"
#include "wire/message/fetchmsg.h"

/* ---- opening ---- */

static int store_open_dir(int parent_fd, const char *name, mode_t mode, struct error *err)
{
	int fd;

	if (sysio_mkdirat(parent_fd, name, mode) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory %s", name);
	fd = sysio_openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return fd < 0 ? error_set(err, -errno, "open the directory %s", name) : fd;
}

static int store_open_dirs(struct image_store *s, struct error *err)
{
	_cleanup_fd_ int blobs_fd = store_open_dir(s->config.root_fd, "blobs", 0700, err);

	if (blobs_fd < 0)
		return blobs_fd;
	s->blobs_fd = store_open_dir(blobs_fd, "sha256", 0700, err);
	if (s->blobs_fd < 0)
		return s->blobs_fd;
	s->layers_fd = store_open_dir(s->config.root_fd, "layers", 0700, err);
	if (s->layers_fd < 0)
		return s->layers_fd;
	s->containers_fd = store_open_dir(s->config.root_fd, "containers", 0700, err);
	if (s->containers_fd < 0)
		return s->containers_fd;
	s->erofs_fd = store_open_dir(s->config.root_fd, "erofs", 0700, err);
	if (s->erofs_fd < 0)
		return s->erofs_fd;
	s->partial_fd = store_open_dir(s->config.root_fd, "partial", 0700, err);
	if (s->partial_fd < 0)
		return s->partial_fd;
	s->staging_fd = store_open_dir(s->config.root_fd, "staging", 0700, err);
	return MIN(s->staging_fd, 0);
}

static void store_close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* Calls fn with each name in a directory; fn may move the entry away. */
static int store_each_name(int dir_fd, void (*fn)(struct image_store *s, const char *name),
			   struct image_store *s, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	_cleanup_(store_close_dir) DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir)
		return error_set(err, -errno, "read a directory");
	fd = -1;
	for (;;) {
		const struct dirent *e = readdir(dir);

		if (!e)
			return 0;
		if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, ".."))
			fn(s, e->d_name);
	}
}

static void store_check_staged(struct image_store *s, const char *name)
{
	trash_add(s, s->staging_fd, name, NULL);
}

static void store_check_blob(struct image_store *s, const char *name)
{
	char digest[DIGEST_SIZE];

	if (str_printf(digest, sizeof(digest), "sha256:%s", name) < 0 ||
	    !map_get(&s->blobs, digest))
		trash_add(s, s->blobs_fd, name, NULL);
}

static void store_check_layer(struct image_store *s, const char *name)
{
	uint64_t number;

	if (parse_u64(name, 0, INT64_MAX / 2, &number) < 0)
		number = 0;
	else if (number == 0 || layer_by_number(s, (int64_t)number))
		return;
	/* The next layer stays clear of what cannot be moved away yet. */
	s->last_layer = MAX(s->last_layer, (int64_t)number);
	trash_add(s, s->layers_fd, name, NULL);
}

/* A download goes on for a day. */
static void store_check_partial(struct image_store *s, const char *name)
{
	int64_t now = (int64_t)(clock_real() / NSEC_PER_SEC);
	struct stat st;

	if (fstatat(s->partial_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    !digest_is_hex(name) || now - st.st_mtim.tv_sec >= PARTIAL_SECONDS_MAX)
		trash_add(s, s->partial_fd, name, NULL);
}

/* Files go with the layer that they are named after. */
static void store_check_erofs(struct image_store *s, const char *name)
{
	uint64_t number;

	if (parse_u64(name, 0, INT64_MAX / 2, &number) < 0 || !number ||
	    !layer_by_number(s, (int64_t)number))
		trash_add(s, s->erofs_fd, name, NULL);
}

static int store_load_layer(void *data, const struct root_layer *layer)
{
	struct image_store *s = data;
	struct stat st;
	char name[24];

	(void)str_printf(name, sizeof(name), "%" PRId64, layer->number);
	if (layer->number <= 0 || !digest_is_valid(layer->diff_id) ||
	    fstatat(s->layers_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	return layer_add(s, layer->number, layer->parent, layer->diff_id, layer->size) ? 0
										       : -ENOMEM;
}

struct store_loading {
	struct image_store *store;
	char **lost; /* ids of images without their layers */
};

/* Which blobs the layers were made of: where no two are the same, they are in order behind the
 * documents. */
static void store_learn_blobs(const struct image_store *s, const struct image_record *r)
{
	if (strv_len(r->blobs) != r->image.n_layers + 2)
		return;
	for (size_t k = 0; k < r->image.n_layers; k++) {
		struct layer *l = layer_by_number(s, r->image.layers[k]);

		(void)str_copy(l->blob, sizeof(l->blob), r->blobs[k + 2]);
	}
}

static int store_load_image(void *data, const struct root_image *image)
{
	struct store_loading *l = data;
	struct image_record *r = image_record_new(image);
	int code;

	if (!r)
		return -ENOMEM;
	code = image_record_hold(l->store, r);
	if (code == 0) {
		store_learn_blobs(l->store, r);
		list_add_tail(&l->store->images, &r->image.link);
		return 0;
	}
	(void)image_record_free(r);
	if (code != -ENOENT)
		return code;
	log_debug("an image has lost a layer and is dropped", LOG_STR("image", image->id));
	return strv_add(&l->lost, image->id);
}

static void store_loading_done(struct store_loading *l)
{
	strv_free(l->lost);
}

static int store_load_records(struct image_store *s, struct error *err)
{
	_cleanup_(store_loading_done) struct store_loading l = { s, strv_copy(NULL) };
	int r;

	if (!l.lost)
		return error_set(err, -ENOMEM, "read the images");
	r = root_store_each_layer(s->config.store, store_load_layer, s, err);
	if (r == 0)
		r = root_store_each_image(s->config.store, store_load_image, &l, err);
	/* Others read the database behind this: nothing is written before all have. */
	if (r == 0)
		s->lost = TAKE_PTR(l.lost);
	return r < 0 ? error_wrap(err, r, "read the images") : 0;
}

/* Layers whose image is gone, though the record of the layer is not. */
static void store_drop_unheld(struct image_store *s)
{
	size_t pos = 0;

	for (;;) {
		struct layer *l = map_next(&s->layers, &pos);

		if (!l)
			return;
		if (l->n_holds > 0)
			continue;
		(void)map_remove(&s->layers, l->key);
		free(l);
	}
}

static int store_load(struct image_store *s, struct error *err)
{
	int r;

	r = store_load_records(s, err);
	if (r < 0)
		return r;
	store_drop_unheld(s);
	r = store_each_name(s->staging_fd, store_check_staged, s, err);
	if (r == 0)
		r = store_each_name(s->blobs_fd, store_check_blob, s, err);
	if (r == 0)
		r = store_each_name(s->layers_fd, store_check_layer, s, err);
	if (r == 0)
		r = store_each_name(s->erofs_fd, store_check_erofs, s, err);
	if (r == 0)
		r = store_each_name(s->partial_fd, store_check_partial, s, err);
	if (r < 0)
		return r;
	/* What an image without layers lies on. */
	if (sysio_mkdirat(s->layers_fd, "0", 0755) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make an empty layer");
	return 0;
}

static unsigned store_parallel(unsigned wanted)
{
	long n = wanted ? (long)wanted : MIN(sysconf(_SC_NPROCESSORS_ONLN), 4);

	return (unsigned)MAX(1, MIN(n, IMAGE_UNPACKS_MAX));
}

int image_store_new(struct image_store **ret, const struct image_store_config *config,
		    struct error *err)
{
	struct image_store *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_set(err, -ENOMEM, "open the store of images");
	*s = (struct image_store){ .config = *config,
				   .blobs_fd = -1,
				   .layers_fd = -1,
				   .containers_fd = -1,
				   .staging_fd = -1,
				   .erofs_fd = -1,
				   .partial_fd = -1,
				   .helper_namespaces = HELPER_NAMESPACES_INIT,
				   .blob_downloads = MAP_INIT,
				   .layers = MAP_INIT,
				   .blobs = MAP_INIT,
				   .containers = MAP_INIT };
	budget_init(&s->budget, FETCH_MEMORY_MAX);
	list_init(&s->closings);
	list_init(&s->images);
	list_init(&s->recordings);
	list_init(&s->leaving);
	list_init(&s->imports);
	list_init(&s->layerings);
	list_init(&s->pulls);
	list_init(&s->pushes);
	list_init(&s->copies);
	list_init(&s->listings);
	list_init(&s->verifies);
	list_init(&s->transfer_jobs);
	s->config.parallel_unpacks = store_parallel(config->parallel_unpacks);
	list_init(&s->leases);
	list_init(&s->exports);
	list_init(&s->surveys);
	list_init(&s->prunes);
	list_init(&s->spaces);
	list_init(&s->trash);
	list_init(&s->erofs);
	list_init(&s->lowers);
	list_init(&s->lower_waits);
	s->fetch_path = strdup(config->fetch_path);
	s->transfer_path = strdup(config->transfer_path);
	if (!s->fetch_path || !s->transfer_path)
		r = error_set(err, -ENOMEM, "copy a path");
	else
		r = store_open_dirs(s, err);
	if (r == 0)
		r = store_load(s, err);
	if (r < 0) {
		(void)image_store_free(s);
		return error_wrap(err, r, "open the store of images");
	}
	trash_begin(s);
	collect_begin(s);
	*ret = s;
	return 0;
}

static void store_free_images(struct list *images)
{
	while (!list_empty(images))
		(void)image_record_free(image_record_of(list_first(images, struct image, link)));
}

static void store_free_map(struct map *m)
{
	size_t pos = 0;
	void *value;

	for (value = map_next(m, &pos); value; value = map_next(m, &pos))
		free(value);
	map_done(m);
}

struct image_store *image_store_free(struct image_store *s)
{
	if (!s)
		return NULL;
	strv_free(s->lost);
	import_free_all(s);
	export_free_all(s);
	lease_free_all(s);
	pull_free_all(s);
	push_free_all(s);
	copy_free_all(s);
	listings_free_all(s);
	verifies_free_all(s);
	prune_free_all(s);
	survey_free_all(s);
	space_free_all(s);
	collect_done(s);
	blob_download_free_all(s);
	erofs_free_all(s);
	rootfs_free_all(s);
	lower_free_all(s);
	trash_done(s);
	closing_free_all(&s->closings);
	store_free_images(&s->images);
	store_free_images(&s->leaving);
	store_free_map(&s->layers);
	store_free_map(&s->blobs);
	free(s->fetch_path);
	free(s->transfer_path);
	(void)fd_close(s->blobs_fd);
	(void)fd_close(s->layers_fd);
	(void)fd_close(s->containers_fd);
	(void)fd_close(s->staging_fd);
	(void)fd_close(s->erofs_fd);
	(void)fd_close(s->partial_fd);
	free(s);
	return NULL;
}
