/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content/model.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>

#include "base/fault/failpoint.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/memory/inventory.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/transfer/verdict.h"
#include "store/root.h"

#define STORE_PREFIX_MIN 6

/* ---- records ---- */

static int image_record_copy(struct image_record *r, const struct root_image *from)
{
	struct image *i = &r->image;

	i->names = strv_copy(from->names);
	i->origins = strv_copy(from->origins);
	i->config.env = strv_copy(from->env);
	i->config.entrypoint = strv_copy(from->entrypoint);
	i->config.cmd = strv_copy(from->cmd);
	i->config.volumes = strv_copy(from->volumes);
	i->config.health = strv_copy(from->health);
	i->verdicts = strv_copy(from->verdicts);
	i->source = strdup(from->source ? from->source : "");
	i->config.user = strdup(from->user ? from->user : "");
	i->config.working_dir = strdup(from->working_dir ? from->working_dir : "");
	i->config.stop_signal = strdup(from->stop_signal ? from->stop_signal : "");
	r->blobs = strv_copy(from->blobs);
	i->layers = calloc(from->n_layers + 1, sizeof(*i->layers));
	if (!i->names || !i->origins || !i->verdicts || !i->source || !i->config.env ||
	    !i->config.entrypoint || !i->config.cmd || !i->config.user || !i->config.working_dir ||
	    !i->config.stop_signal || !i->config.volumes || !i->config.health || !r->blobs ||
	    !i->layers)
		return -ENOMEM;
	verdicts_keep(i->verdicts, i->names);
	i->n_layers = from->n_layers;
	if (from->n_layers)
		memcpy(i->layers, from->layers, from->n_layers * sizeof(*i->layers));
	return 0;
}

struct image_record *image_record_new(const struct root_image *image)
{
	struct image_record *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	list_init(&r->image.link);
	r->image.size = image->size;
	r->image.created = image->created;
	r->image.pinned = image->pinned != 0;
	if (str_copy(r->image.id, sizeof(r->image.id), image->id) < 0 ||
	    str_copy(r->image.digest, sizeof(r->image.digest), image->digest) < 0 ||
	    image_record_copy(r, image) < 0)
		return image_record_free(r);
	return r;
}

struct image_record *image_record_free(struct image_record *r)
{
	if (!r)
		return NULL;
	list_remove(&r->image.link);
	strv_free(r->image.names);
	strv_free(r->image.origins);
	strv_free(r->image.verdicts);
	free(r->image.source);
	strv_free(r->image.config.env);
	strv_free(r->image.config.entrypoint);
	strv_free(r->image.config.cmd);
	strv_free(r->image.config.volumes);
	strv_free(r->image.config.health);
	free(r->image.config.user);
	free(r->image.config.working_dir);
	free(r->image.config.stop_signal);
	free(r->image.layers);
	strv_free(r->blobs);
	free(r);
	return NULL;
}

void image_record_view(const struct image_record *r, struct root_image *ret)
{
	const struct image *i = &r->image;

	*ret = (struct root_image){
		.id = i->id,
		.digest = i->digest,
		.size = i->size,
		.created = i->created,
		.pinned = i->pinned,
		.source = i->source,
		.user = i->config.user,
		.working_dir = i->config.working_dir,
		.stop_signal = i->config.stop_signal,
		.env = i->config.env,
		.entrypoint = i->config.entrypoint,
		.cmd = i->config.cmd,
		.volumes = i->config.volumes,
		.health = i->config.health,
		.names = i->names,
		.blobs = r->blobs,
		.origins = i->origins,
		.verdicts = i->verdicts,
		.layers = i->layers,
		.n_layers = i->n_layers,
	};
}

struct image *image_store_by_id(const struct image_store *s, const char *id)
{
	struct image *i;

	list_for_each (i, &s->images, struct image, link) {
		if (str_eq(i->id, id))
			return i;
	}
	return NULL;
}

bool image_has_origin(const struct image *image, const char *digest)
{
	for (size_t i = 0; image->origins[i]; i++) {
		const char *at = strrchr(image->origins[i], '@');

		if (at && str_eq(at + 1, digest))
			return true;
	}
	return false;
}

bool image_has_name(const struct image *image, const char *name)
{
	for (size_t i = 0; image->names[i]; i++)
		if (str_eq(image->names[i], name))
			return true;
	return false;
}

/* Of a name that it has lost the verdict lies there still, since it may get that back. */
int image_verdicts(const struct image *image, struct arena *a, struct image_verdict **ret,
		   size_t *ret_n)
{
	struct image_verdict *list = arena_zalloc(a, strv_len(image->verdicts) + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (char *const *line = image->verdicts; *line; line++) {
		int r = verdict_read(&list[n], a, *line);

		if (r == -ENOMEM)
			return r;
		if (r == 0 &&
		    (strchr(list[n].reference, '@') || image_has_name(image, list[n].reference)))
			n++;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

struct image *image_store_by_name(const struct image_store *s, const char *name)
{
	struct image *i;

	list_for_each (i, &s->images, struct image, link) {
		if (image_has_name(i, name))
			return i;
	}
	return NULL;
}

void image_drop_name(struct image *image, const char *name)
{
	size_t to = 0;

	for (size_t i = 0; image->names[i]; i++) {
		if (str_eq(image->names[i], name))
			free(image->names[i]);
		else
			image->names[to++] = image->names[i];
	}
	image->names[to] = NULL;
}

int image_store_give_name(struct image_store *s, struct image *image, const char *name)
{
	struct image *i;

	if (!image_has_name(image, name) && strv_add(&image->names, name) < 0)
		return -ENOMEM;
	list_for_each (i, &s->images, struct image, link) {
		if (i != image)
			image_drop_name(i, name);
	}
	return 0;
}

/* ---- layers and blobs ---- */

static void layer_key(char *ret, size_t size, int64_t parent, const char *diff_id)
{
	(void)str_printf(ret, size, "%" PRId64 "/%s", parent, diff_id);
}

struct layer *layer_find(const struct image_store *s, int64_t parent, const char *diff_id)
{
	char key[DIGEST_SIZE + 24];

	layer_key(key, sizeof(key), parent, diff_id);
	return map_get(&s->layers, key);
}

struct layer *layer_by_number(const struct image_store *s, int64_t number)
{
	size_t pos = 0;

	for (;;) {
		struct layer *l = map_next(&s->layers, &pos);

		if (!l || l->number == number)
			return l;
	}
}

struct layer *layer_add(struct image_store *s, int64_t number, int64_t parent, const char *diff_id,
			uint64_t size)
{
	struct layer *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct layer){ .number = number, .parent = parent, .size = size };
	layer_key(l->key, sizeof(l->key), parent, diff_id);
	if (str_copy(l->diff_id, sizeof(l->diff_id), diff_id) < 0 ||
	    map_add(&s->layers, l->key, l) < 0) {
		free(l);
		return NULL;
	}
	s->last_layer = MAX(s->last_layer, number);
	return l;
}

void layer_hold(struct layer *l)
{
	l->n_holds++;
}

void layer_release(struct image_store *s, struct layer *l, struct trash_watch *watch)
{
	char name[24];

	assert(l->n_holds > 0);
	if (--l->n_holds > 0)
		return;
	(void)str_printf(name, sizeof(name), "%" PRId64, l->number);
	trash_add(s, s->layers_fd, name, watch);
	trash_add(s, s->erofs_fd, name, watch);
	(void)map_remove(&s->layers, l->key);
	free(l);
}

int blob_hold(struct image_store *s, const char *digest)
{
	struct blob *b = map_get(&s->blobs, digest);

	if (!b) {
		b = calloc(1, sizeof(*b));
		if (!b)
			return -ENOMEM;
		if (str_copy(b->digest, sizeof(b->digest), digest) < 0 ||
		    map_add(&s->blobs, b->digest, b) < 0) {
			free(b);
			return -ENOMEM;
		}
	}
	b->n_holds++;
	return 0;
}

void blob_release(struct image_store *s, const char *digest, struct trash_watch *watch)
{
	struct blob *b = map_get(&s->blobs, digest);

	assert(b && b->n_holds > 0);
	if (--b->n_holds > 0)
		return;
	trash_add(s, s->blobs_fd, digest_hex(digest), watch);
	(void)map_remove(&s->blobs, b->digest);
	free(b);
}

/* ---- partial downloads ---- */

bool partial_is_held(const struct image_store *s, const char *name)
{
	char key[BLOB_DOWNLOAD_NAME_SIZE];

	return str_printf(key, sizeof(key), "sha256:%s", name) >= 0 &&
	       map_get(&s->blob_downloads, key);
}

/* ---- all of a record ---- */

int image_record_hold(struct image_store *s, const struct image_record *r)
{
	const struct image *i = &r->image;
	size_t n = 0;

	for (size_t k = 0; k < i->n_layers; k++)
		if (!layer_by_number(s, i->layers[k]))
			return -ENOENT;
	for (; r->blobs[n]; n++) {
		if (blob_hold(s, r->blobs[n]) == 0)
			continue;
		while (n > 0)
			blob_release(s, r->blobs[--n], NULL);
		return -ENOMEM;
	}
	for (size_t k = 0; k < i->n_layers; k++)
		layer_hold(layer_by_number(s, i->layers[k]));
	return 0;
}

void image_record_release(struct image_store *s, const struct image_record *r,
			  struct trash_watch *watch)
{
	const struct image *i = &r->image;

	for (size_t k = 0; k < i->n_layers; k++)
		layer_release(s, layer_by_number(s, i->layers[k]), watch);
	for (size_t k = 0; r->blobs[k]; k++)
		blob_release(s, r->blobs[k], watch);
}

/* ---- trash ---- */

struct trash {
	struct list link;
	struct pool_work work;
	struct image_store *store;
	struct trash_watch *watch;
	struct loop_timer retry;
	nsec_t delay;
	const char *kind; /* what it still lies among, as `from`; NULL: in staging, as `name` */
	int from_fd;
	char from[NAME_MAX + 1];
	char name[40];
	int result;
	bool held; /* until the store is open */
};

#define TRASH_RETRY_FIRST (100 * NSEC_PER_MSEC)
#define TRASH_RETRY_LAST (60 * NSEC_PER_SEC)

static void trash_run(struct pool_work *work)
{
	struct trash *t = container_of(work, struct trash, work);

	t->result = rootfd_remove_tree(t->store->staging_fd, t->name);
}

static void trash_free(struct trash *t)
{
	list_remove(&t->link);
	loop_timer_done(&t->retry);
	free(t);
}

/* A waiting caller is not held up by what cannot be deleted yet: it is out of sight. */
static void trash_tell(struct trash_watch *watch)
{
	if (!watch)
		return;
	assert(watch->n_pending > 0);
	if (--watch->n_pending == 0)
		watch->gone(watch);
}

static void trash_later(struct trash *t)
{
	loop_timer_set(&t->retry, t->delay);
	t->delay = MIN(t->delay * 2, TRASH_RETRY_LAST);
}

static void trash_work_done(struct pool_work *work)
{
	struct trash *t = container_of(work, struct trash, work);

	struct trash_watch *watch = TAKE_PTR(t->watch);

	if (t->result == 0) {
		trash_free(t);
	} else {
		log_debug("cannot delete", LOG_STR("name", t->name), LOG_INT("errno", -t->result));
		trash_later(t);
	}
	trash_tell(watch);
}

/* Of a directory that lives as long as the store; NULL for any other. */
static const char *trash_kind(const struct image_store *s, int dir_fd)
{
	const struct {
		int fd;
		const char *kind;
	} kinds[] = { { s->staging_fd, "staging" }, { s->blobs_fd, "blob" },
		      { s->layers_fd, "layer" },    { s->erofs_fd, "erofs" },
		      { s->partial_fd, "partial" }, { s->containers_fd, "rootfs" } };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].fd == dir_fd)
			return kinds[i].kind;
	return NULL;
}

/* Whether an import has made it anew meanwhile. All other names are drawn, and never come again. */
static bool trash_is_wanted(const struct trash *t)
{
	char digest[DIGEST_SIZE];
	uint64_t number;

	if (str_eq(t->kind, "partial"))
		return partial_is_held(t->store, t->from);
	if (str_eq(t->kind, "blob"))
		return str_printf(digest, sizeof(digest), "sha256:%s", t->from) >= 0 &&
		       map_get(&t->store->blobs, digest);
	if (str_eq(t->kind, "layer"))
		return parse_u64(t->from, 0, INT64_MAX, &number) == 0 &&
		       layer_by_number(t->store, (int64_t)number);
	return false;
}

/* Under another name each time: one of an earlier life may be there still. */
static int trash_move(struct trash *t)
{
	(void)str_printf(t->name, sizeof(t->name), "gone-%" PRIu64, ++t->store->n_trash);
	if (sysio_renameat(t->from_fd, t->from, t->store->staging_fd, t->name) < 0)
		return -errno;
	t->kind = NULL;
	return 0;
}

static void trash_retry(struct loop_timer *timer)
{
	struct trash *t = container_of(timer, struct trash, retry);
	int r = 0;

	if (t->kind)
		r = trash_is_wanted(t) ? -ENOENT : trash_move(t);
	if (r == 0)
		pool_submit(t->store->config.pool, &t->work);
	else if (r == -ENOENT)
		trash_free(t);
	else
		trash_later(t);
}

void trash_add(struct image_store *s, int dir_fd, const char *name, struct trash_watch *watch)
{
	struct trash *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return;
	*t = (struct trash){ .work = { .run = trash_run, .done = trash_work_done },
			     .store = s,
			     .kind = trash_kind(s, dir_fd),
			     .from_fd = dir_fd,
			     .delay = TRASH_RETRY_FIRST };
	list_init(&t->link);
	loop_timer_init(&t->retry, s->config.loop, trash_retry);
	FAILPOINT_BEFORE("image.trash");
	(void)str_copy(t->from, sizeof(t->from), name);
	r = trash_move(t);
	if (r == -ENOENT || (r < 0 && !t->kind)) {
		trash_free(t);
		return;
	}
	list_add_tail(&s->trash, &t->link);
	if (r < 0) {
		log_debug("cannot move into the trash", LOG_STR("name", name),
			  LOG_INT("errno", -r));
		trash_later(t);
		return;
	}
	FAILPOINT_AFTER("image.trash");
	t->watch = watch;
	if (watch)
		watch->n_pending++;
	if (s->open)
		pool_submit(s->config.pool, &t->work);
	else
		t->held = true;
}

void trash_begin(struct image_store *s)
{
	struct trash *t;

	s->open = true;
	list_for_each (t, &s->trash, struct trash, link) {
		if (!t->held)
			continue;
		t->held = false;
		pool_submit(s->config.pool, &t->work);
	}
}

void trash_done(struct image_store *s)
{
	while (!list_empty(&s->trash)) {
		trash_free(list_first(&s->trash, struct trash, link));
	}
}

void trash_inventory(const struct image_store *s, struct inventory *t)
{
	const struct trash *entry;

	list_for_each (entry, &s->trash, struct trash, link)
		inventory_may(t, entry->kind ?: "staging", entry->kind ? entry->from : entry->name);
}

/* ---- finding ---- */

const struct list *image_store_list(const struct image_store *s)
{
	return &s->images;
}

static int store_not_found(const char *reference, struct error *err)
{
	return error_refuse(err, ERROR_NOT_FOUND, "there is no image \"%.300s\"", reference);
}

static struct image *store_find_digest(const struct image_store *s, const char *digest)
{
	struct image *found = NULL;
	struct image *i;

	list_for_each (i, &s->images, struct image, link) {
		if (str_eq(i->id, digest) || str_eq(i->digest, digest))
			return i;
	}
	/* Of an index that several platforms were pulled by, the one that came last. */
	list_for_each (i, &s->images, struct image, link)
		if (image_has_origin(i, digest))
			found = i;
	return found;
}

/* The image whose id begins with these digits: 1 and *ret, 0 where there is none, or ERROR_INVALID.
 */
static int store_find_prefix(const struct image_store *s, const char *digits, struct image **ret,
			     struct error *err)
{
	size_t len = strlen(digits);
	struct image *found = NULL;
	struct image *i;

	if (len < STORE_PREFIX_MIN || len > DIGEST_HEX_LEN ||
	    strspn(digits, "0123456789abcdef") != len)
		return 0;
	list_for_each (i, &s->images, struct image, link) {
		if (!str_has_prefix(digest_hex(i->id), digits))
			continue;
		if (found)
			return error_refuse(err, ERROR_INVALID,
					    "\"%s\" is the beginning of more than one image id",
					    digits);
		found = i;
	}
	*ret = found;
	return found != NULL;
}

struct image *image_store_find_name(struct image_store *s, const char *reference,
				    char ret_name[REFERENCE_SIZE], struct error *err)
{
	struct image *image = NULL;
	struct reference ref;
	int r;

	*ret_name = '\0';
	if (digest_is_valid(reference))
		image = store_find_digest(s, reference);
	else if (reference_parse(&ref, reference, err) == 0) {
		reference_format(&ref, ret_name);
		image = *ref.digest ? store_find_digest(s, ref.digest)
				    : image_store_by_name(s, ret_name);
		if (*ref.digest)
			*ret_name = '\0';
	} else if (str_has_prefix(reference, "sha256:")) {
		reference += strlen("sha256:");
	} else if (!digest_is_hex(reference)) {
		return NULL;
	}
	if (image)
		return image;
	if (err)
		*err = (struct error)ERROR_INIT;
	*ret_name = '\0';
	r = store_find_prefix(s, reference, &image, err);
	if (r == 0)
		(void)store_not_found(reference, err);
	return image;
}

struct image *image_store_find(struct image_store *s, const char *reference, struct error *err)
{
	char name[REFERENCE_SIZE];

	return image_store_find_name(s, reference, name, err);
}
