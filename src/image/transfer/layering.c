/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One image after the other. Each of its layers goes from WAITING (its blob cannot be read yet, no
 * helper is free, or another layering unpacks the same) to UNPACKING to UNPACKED to SETTLED; the
 * last step is taken in order. All steps are taken in layering_turn(), which whoever changes
 * something schedules, so that no callback comes within a call.
 *
 * A helper that follows a download sees bytes that nobody has verified yet. Where it fails, that
 * says nothing so far: the download may turn out to be wrong and begin anew, or to be cut. The
 * layer waits again then, for the whole blob, and only what is wrong with that is told.
 */

#include "image/transfer/layering.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "image/helper/detached.h"
#include "image/helper/helper.h"
#include "image/rootfs/closing.h"
#include "image/rootfs/overlay.h"
#include "image/rootfs/repair.h"
#include "image/transfer/incoming.h"

/* Named limits of a layer. */
#define LAYERING_BYTES_MAX (UINT64_C(20) << 30) /* of its tar */
#define LAYERING_ENTRIES_MAX UINT64_C(2000000)

/* Bytes of files that are worth a sync of their own. */
#define LAYERING_SYNC_EARLY (UINT64_C(32) << 20)

/* What the helper needs until it has closed its sandbox, and what it keeps (fetch/job/sandbox.c).
 */
#define CAP(name) (UINT64_C(1) << (name))
#define LAYERING_CAPS                                                                              \
	(CAP(CAP_SYS_ADMIN) | CAP(CAP_SYS_CHROOT) | CAP(CAP_SETPCAP) | CAP(CAP_CHOWN) |            \
	 CAP(CAP_DAC_OVERRIDE) | CAP(CAP_FOWNER) | CAP(CAP_FSETID) | CAP(CAP_SETFCAP))

enum layer_state {
	LAYER_WAITING,   /* staging has nothing of it */
	LAYER_UNPACKING, /* a helper writes into its directory */
	LAYER_UNPACKED,  /* whole, in staging */
	LAYER_SETTLED,   /* incoming_layer.layer is held */
	LAYER_STATE_COUNT
};

static const bool edges[LAYER_STATE_COUNT][LAYER_STATE_COUNT] = {
	[LAYER_WAITING] = { [LAYER_UNPACKING] = true, [LAYER_SETTLED] = true },
	[LAYER_UNPACKING] = { [LAYER_WAITING] = true, [LAYER_UNPACKED] = true },
	[LAYER_UNPACKED] = { [LAYER_SETTLED] = true },
};

struct layering_layer {
	struct incoming_layer *layer;
	enum layer_state state;
	bool whole;       /* the next helper waits for all of the blob */
	bool repaired;    /* its implied directories have their attributes, or there are none */
	uint64_t n_bytes; /* unpacked */
};

/* One run of a helper. */
struct unpacking {
	struct list link;
	struct layering *layering;
	struct layering_layer *layer;
	struct helper helper;
	struct budget_share memory; /* for its window */
	int detached_fd;            /* its directory */
	bool followed;
	bool restarted; /* killed, so that it begins anew */
	bool said;      /* that it is unpacked */
};

static void layer_enter(struct layering_layer *layer, enum layer_state state)
{
	assert(edges[layer->state][state]);
	layer->state = state;
}

static unsigned layering_position(const struct layering *l, const struct layering_layer *layer)
{
	return (unsigned)(layer - l->layers) + 1;
}

static void layer_dir(const struct layering *l, const struct layering_layer *layer, char ret[24])
{
	(void)str_printf(ret, 24, "layer-%u", layering_position(l, layer));
}

/* What has become free or known may be what another one waits for. */
static void layering_wake_others(const struct layering *l)
{
	struct layering *other;

	list_for_each (other, &l->store->layerings, struct layering, link) {
		if (other != l)
			loop_defer_schedule(&other->turn);
	}
}

/* ---- the end ---- */

static void layering_leave(struct layering *l)
{
	list_remove(&l->link);
	if (list_empty(&l->store->layerings))
		helper_namespaces_close(&l->store->helper_namespaces);
}

static void layering_end(struct layering *l)
{
	struct error err = l->err;

	loop_defer_done(&l->turn);
	layering_leave(l);
	layering_wake_others(l);
	free(l->layers);
	l->layers = NULL;
	l->ops->on_end(l, err.code ? &err : NULL);
}

/* The first error counts; what runs is killed, and the end comes behind that. */
static void layering_fail(struct layering *l, const struct error *err)
{
	struct unpacking *u;

	if (!l->err.code)
		l->err = *err;
	list_for_each (u, &l->unpackings, struct unpacking, link)
		helper_kill(&u->helper);
	loop_defer_schedule(&l->turn);
}

static void layering_early_sync_run(struct pool_work *work)
{
	struct layering *l = container_of(work, struct layering, work);

	if (sysio_syncfs(l->dir_fd) < 0)
		(void)error_set(&l->sync_err, -errno, "sync the layers");
}

static void layering_early_sync_done(struct pool_work *work)
{
	struct layering *l = container_of(work, struct layering, work);

	l->ahead = false;
	if (l->sync_err.code)
		layering_fail(l, &l->sync_err);
	loop_defer_schedule(&l->turn);
}

/* The disk is kept busy while the processors are: what is written at the end is only the rest. */
static void layering_sync_early(struct layering *l, uint64_t n_bytes)
{
	l->n_unsynced += n_bytes;
	if (l->ahead || l->n_unsynced < LAYERING_SYNC_EARLY)
		return;
	l->n_unsynced = 0;
	l->ahead = true;
	l->work = (struct pool_work){ .run = layering_early_sync_run,
				      .done = layering_early_sync_done };
	pool_submit(l->store->config.pool, &l->work);
}

static void layering_sync_run(struct pool_work *work)
{
	struct layering *l = container_of(work, struct layering, work);
	int r = FAILPOINT("import.sync");

	if (r < 0 || sysio_syncfs(l->dir_fd) < 0)
		(void)error_set(&l->sync_err, r < 0 ? r : -errno, "sync the layers");
	FAILPOINT_AFTER("import.sync");
}

static void layering_synced(struct pool_work *work)
{
	struct layering *l = container_of(work, struct layering, work);

	l->syncing = false;
	if (!l->err.code && l->sync_err.code)
		l->err = l->sync_err;
	layering_end(l);
}

static void layering_sync(struct layering *l)
{
	l->syncing = true;
	l->work = (struct pool_work){ .run = layering_sync_run, .done = layering_synced };
	pool_submit(l->store->config.pool, &l->work);
}

/* ---- settling ---- */

/* The blob of a layer that is there already: known to hold the same tar. What a configuration says
 * of a blob is believed when it was unpacked, or an image of the store has both. */
static bool layering_is_proven(const struct layering_layer *layer, const struct layer *found)
{
	return str_eq(found->blob, layer->layer->digest);
}

static void layering_prove(const struct layering *l, const struct layering_layer *layer,
			   struct layer *found)
{
	if (layering_is_proven(layer, found))
		return;
	(void)str_copy(found->blob, sizeof(found->blob), layer->layer->digest);
	layering_wake_others(l);
}

static void layering_use(struct layering *l, struct layering_layer *layer, struct layer *found,
			 bool fresh)
{
	layer_hold(found);
	layer->layer->layer = found;
	layer_enter(layer, LAYER_SETTLED);
	l->n_settled++;
	l->ops->on_layer(l, l->image, l->n_settled, layer->layer, fresh);
}

static int64_t layering_parent(const struct layering *l)
{
	return l->n_settled ? l->layers[l->n_settled - 1].layer->layer->number : 0;
}

/* What a layer lies on is known when those below have their places: not while it is unpacked. */
static void layering_repair_run(struct pool_work *work)
{
	struct layering *l = container_of(work, struct layering, repair);

	(void)repair_run(l->repair_fd, l->lower_fd, &l->repair_err);
}

static void layering_repaired(struct pool_work *work)
{
	struct layering *l = container_of(work, struct layering, repair);
	struct layering_layer *layer = TAKE_PTR(l->repairing);

	layer->repaired = true;
	closing_add(&l->store->closings, l->store->config.pool, TAKE_FD(l->repair_fd));
	closing_add(&l->store->closings, l->store->config.pool, TAKE_FD(l->lower_fd));
	if (l->repair_err.code) {
		(void)error_wrap(&l->repair_err, l->repair_err.code, "layer %u of %u",
				 layering_position(l, layer), l->image->n_layers);
		layering_fail(l, &l->repair_err);
	}
	loop_defer_schedule(&l->turn);
}

/* What all that are settled are together, or for the root the highest of them, which has what those
 * below it have; -1 where there are none. */
static int layering_open_lower(struct layering *l, enum repair_need need, int *ret_fd,
			       struct error *err)
{
	int64_t numbers[FETCH_LAYERS_MAX];
	const struct image image = { .layers = numbers, .n_layers = l->n_settled };
	char name[24];

	*ret_fd = -1;
	if (!l->n_settled)
		return 0;
	for (unsigned k = 0; k < l->n_settled; k++)
		numbers[k] = l->layers[k].layer->layer->number;
	if (need == REPAIR_MORE) {
		*ret_fd = overlay_mount(l->store, &image, NULL, -1, NULL, err);
		return MIN(*ret_fd, 0);
	}
	(void)str_printf(name, sizeof(name), "%" PRId64, numbers[l->n_settled - 1]);
	*ret_fd = sysio_openat(l->store->layers_fd, name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return *ret_fd < 0 ? error_set(err, -errno, "open layer %s", name) : 0;
}

/* 1: that is under way. */
static int layering_repair(struct layering *l, struct layering_layer *layer, struct error *err)
{
	_cleanup_fd_ int dir_fd = -1;
	enum repair_need need;
	char dir[24];
	int r;

	layer_dir(l, layer, dir);
	dir_fd = sysio_openat(l->dir_fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (dir_fd < 0)
		return error_set(err, -errno, "open an unpacked layer");
	need = repair_look(dir_fd);
	layer->repaired = need == REPAIR_NOTHING;
	if (layer->repaired)
		return 0;
	r = layering_open_lower(l, need, &l->lower_fd, err);
	if (r < 0)
		return error_wrap(err, r, "look at the layers below");
	l->repair_fd = detached_open(l->dir_fd, dir, 0, err);
	if (l->repair_fd < 0) {
		l->lower_fd = fd_close(l->lower_fd);
		return l->repair_fd;
	}
	l->repairing = layer;
	l->repair_err = (struct error)ERROR_INIT;
	l->repair = (struct pool_work){ .run = layering_repair_run, .done = layering_repaired };
	pool_submit(l->store->config.pool, &l->repair);
	return 1;
}

/* The unpacked directory becomes a layer. */
static int layering_take(struct layering *l, struct layering_layer *layer, struct error *err)
{
	int64_t number = l->store->last_layer + 1;
	struct layer *taken;
	char from[24], to[24];
	int r;

	r = FAILPOINT("import.layer");
	if (r < 0)
		return error_set(err, r, "take a layer");
	layer_dir(l, layer, from);
	(void)str_printf(to, sizeof(to), "%" PRId64, number);
	if (sysio_renameat(l->dir_fd, from, l->store->layers_fd, to) < 0)
		return error_set(err, -errno, "move a layer to its place");
	taken = layer_add(l->store, number, layering_parent(l), layer->layer->diff_id,
			  layer->n_bytes);
	if (!taken) {
		trash_add(l->store, l->store->layers_fd, to, NULL);
		return error_set(err, -ENOMEM, "take a layer");
	}
	(void)str_copy(taken->blob, sizeof(taken->blob), layer->layer->digest);
	layering_use(l, layer, taken, true);
	layering_sync_early(l, layer->n_bytes);
	FAILPOINT_AFTER("import.layer");
	layering_wake_others(l);
	return 0;
}

static struct unpacking *layering_unpacking(const struct layering *l,
					    const struct layering_layer *layer)
{
	struct unpacking *u;

	list_for_each (u, &l->unpackings, struct unpacking, link) {
		if (u->layer == layer)
			return u;
	}
	return NULL;
}

/* Somebody else has made it meanwhile. It waits again then, and finds that. */
static void layering_give_up(struct layering *l, struct layering_layer *layer)
{
	struct unpacking *u = layering_unpacking(l, layer);

	if (!u || u->restarted)
		return;
	u->restarted = true;
	helper_kill(&u->helper);
}

/* As many as are there, in order. */
static int layering_settle(struct layering *l, struct error *err)
{
	int r = 0;

	while (r == 0 && l->n_settled < l->image->n_layers) {
		struct layering_layer *layer = &l->layers[l->n_settled];
		struct layer *found =
			layer_find(l->store, layering_parent(l), layer->layer->diff_id);
		bool proven = found && layering_is_proven(layer, found);
		char dir[24];

		if (proven && layer->state == LAYER_UNPACKING)
			layering_give_up(l, layer);
		if (layer->state == LAYER_UNPACKING || (!proven && layer->state == LAYER_WAITING))
			return 0;
		if (found && layer->state == LAYER_UNPACKED) {
			layer_dir(l, layer, dir);
			trash_add(l->store, l->dir_fd, dir, NULL);
			layering_prove(l, layer, found);
		}
		if (found) {
			layering_use(l, layer, found, false);
			continue;
		}
		r = layer->repaired ? 0 : layering_repair(l, layer, err);
		if (r > 0)
			return 0;
		if (r == 0)
			r = layering_take(l, layer, err);
	}
	return r < 0 ? error_wrap(err, r, "layer %u of %u", l->n_settled + 1, l->image->n_layers)
		     : 0;
}

/* ---- unpacking ---- */

static void unpacking_may_take(struct budget_share *share)
{
	struct unpacking *u = container_of(share, struct unpacking, memory);
	struct error err = ERROR_INIT;

	/* One that does not listen has no use for it either. */
	if (helper_tell(&u->helper, &(struct fetchmsg){ .type = FETCHMSG_GO }, NULL, 0, &err) < 0)
		helper_kill(&u->helper);
}

static int unpacking_message(struct helper *h, const struct fetchmsg *m, struct error *err)
{
	struct unpacking *u = container_of(h, struct unpacking, helper);

	if (m->type == FETCHMSG_MEMORY) {
		budget_ask(&u->layering->store->budget, &u->memory, m->memory.n_bytes);
		return 0;
	}
	if (m->type != FETCHMSG_UNPACKED || u->said)
		return error_set(err, -EPROTO, "nacre-fetch: a message that does not belong here");
	u->said = true;
	u->layer->n_bytes = m->unpacked.n_bytes;
	return 0;
}

static void unpacking_free(struct unpacking *u)
{
	helper_done(&u->helper);
	budget_leave(&u->memory);
	(void)fd_close(u->detached_fd);
	list_remove(&u->link);
	u->layering->n_running--;
	free(u);
}

/* Nothing of it stays, and it may be begun again. */
static void unpacking_drop(struct unpacking *u)
{
	char dir[24];

	layer_dir(u->layering, u->layer, dir);
	trash_add(u->layering->store, u->layering->dir_fd, dir, NULL);
	u->layer->whole = !u->restarted;
	layer_enter(u->layer, LAYER_WAITING);
}

/* Whatever the blob is worth, there is no room for what is in it. */
static bool unpacking_is_full(const struct error *err)
{
	return err->kind == ERROR_EXHAUSTED || err->code == -ENOSPC || err->code == -EDQUOT;
}

static void unpacking_end(struct helper *h, const struct error *err)
{
	struct unpacking *u = container_of(h, struct unpacking, helper);
	struct layering *l = u->layering;
	struct error fault = ERROR_INIT;

	if (err)
		fault = *err;
	else if (!u->said)
		(void)error_set(&fault, -EPROTO, "nacre-fetch: it ended too early");
	if (!fault.code) {
		layer_enter(u->layer, LAYER_UNPACKED);
	} else {
		bool final = !u->restarted && (!u->followed || unpacking_is_full(&fault));

		unpacking_drop(u);
		if (!final)
			fault = (struct error)ERROR_INIT;
	}
	if (fault.code) {
		(void)error_wrap(&fault, fault.code, "layer %u of %u",
				 layering_position(l, u->layer), l->image->n_layers);
		layering_fail(l, &fault);
	}
	closing_add(&l->store->closings, l->store->config.pool, TAKE_FD(u->detached_fd));
	unpacking_free(u);
	loop_defer_schedule(&l->turn);
	layering_wake_others(l);
}

static const struct helper_ops unpacking_ops = { .on_message = unpacking_message,
						 .on_end = unpacking_end };

static int unpacking_spawn(struct unpacking *u, const struct layer_source *source,
			   struct error *err)
{
	const struct incoming_layer *from = u->layer->layer;
	struct layering *l = u->layering;
	struct fetchmsg request = { .type = FETCHMSG_UNPACK,
				    .unpack = { .size = from->size,
						.compression = from->compression,
						.max_bytes = LAYERING_BYTES_MAX,
						.max_entries = LAYERING_ENTRIES_MAX,
						.follow = source->follow_fd >= 0 } };
	char dir[24];
	int r;

	layer_dir(l, u->layer, dir);
	if (sysio_mkdirat(l->dir_fd, dir, 0755) < 0)
		return error_set(err, -errno, "make a directory for the layer");
	u->detached_fd = detached_open(l->dir_fd, dir, 0, err);
	if (u->detached_fd < 0)
		return u->detached_fd;
	r = helper_namespaces_open(&l->store->helper_namespaces, err);
	if (r < 0)
		return r;
	(void)str_copy(request.unpack.digest, sizeof(request.unpack.digest), from->digest);
	(void)str_copy(request.unpack.diff_id, sizeof(request.unpack.diff_id), from->diff_id);
	return helper_start(
		&u->helper,
		&(struct helper_config){ .loop = l->store->config.loop,
					 .path = l->store->fetch_path,
					 .command = "unpack-apart",
					 .caps = LAYERING_CAPS,
					 .from_fd = source->blob_fd,
					 .to_fd = u->detached_fd,
					 .more_fd = source->follow_fd,
					 .net_ns_fd = l->store->helper_namespaces.net_fd,
					 .mount_ns_fd = l->store->helper_namespaces.mount_fd,
					 .request = &request },
		&unpacking_ops, err);
}

static void layer_source_close(struct layer_source *s)
{
	s->blob_fd = fd_close(s->blob_fd);
	s->follow_fd = fd_close(s->follow_fd);
}

/* 1: a helper runs. 0: it waits for its blob. */
static int layering_unpack(struct layering *l, struct layering_layer *layer, struct error *err)
{
	_cleanup_(layer_source_close) struct layer_source source = { -1, -1 };
	struct unpacking *u;
	int r;

	r = l->ops->open(l, layer->layer, layer->whole, &source, err);
	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		return r;
	u = calloc(1, sizeof(*u));
	if (!u)
		return error_set(err, -ENOMEM, "unpack");
	*u = (struct unpacking){ .layering = l,
				 .layer = layer,
				 .memory = { .on_grant = unpacking_may_take },
				 .detached_fd = -1,
				 .followed = source.follow_fd >= 0 };
	list_init(&u->link);
	list_add_tail(&l->unpackings, &u->link);
	l->n_running++;
	layer_enter(layer, LAYER_UNPACKING);
	r = unpacking_spawn(u, &source, err);
	if (r == 0)
		return 1;
	unpacking_drop(u);
	unpacking_free(u);
	return r;
}

static bool layering_has_same_chain(const struct layering *l, const struct layering *other,
				    unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		if (!str_eq(l->layers[k].layer->diff_id, other->layers[k].layer->diff_id))
			return false;
	return true;
}

/* Whether it hangs on a registry that l does not ask. */
static bool layering_hangs(const struct layering *l, const struct layering *other,
			   const struct layering_layer *layer)
{
	const struct unpacking *u = layering_unpacking(other, layer);

	return u && u->followed && !str_eq(l->from, other->from);
}

/* Whether somebody else unpacks the very same layer, or has, and it waits for those below. */
static bool layering_is_claimed(const struct layering *l, unsigned k)
{
	const struct layering *other;

	list_for_each (other, &l->store->layerings, struct layering, link) {
		if (other == l || !other->image || other->err.code || k >= other->image->n_layers)
			continue;
		if ((other->layers[k].state == LAYER_UNPACKING ||
		     other->layers[k].state == LAYER_UNPACKED) &&
		    !layering_hangs(l, other, &other->layers[k]) &&
		    layering_has_same_chain(l, other, k + 1))
			return true;
	}
	return false;
}

static int layering_begin_more(struct layering *l, struct error *err)
{
	const struct layer *found = l->n_settled ? l->layers[l->n_settled - 1].layer->layer : NULL;
	unsigned n_max = l->store->config.parallel_unpacks;
	bool there = true;

	for (unsigned k = l->n_settled; k < l->image->n_layers && l->n_running < n_max; k++) {
		int r = 0;

		/* Those above one that is only verified will settle without being unpacked. */
		if (there)
			found = layer_find(l->store, found ? found->number : 0,
					   l->layers[k].layer->diff_id);
		there = there && found;
		if (there && layering_is_proven(&l->layers[k], found))
			continue;
		if (l->layers[k].state == LAYER_WAITING && !layering_is_claimed(l, k))
			r = layering_unpack(l, &l->layers[k], err);
		if (r < 0)
			return error_wrap(err, r, "layer %u of %u", k + 1, l->image->n_layers);
	}
	return 0;
}

/* ---- one image after the other ---- */

static int layering_take_up(struct layering *l, struct incoming_image *image, struct error *err)
{
	struct incoming_layer *from;
	unsigned n = 0;

	free(l->layers);
	l->n_settled = 0;
	l->image = NULL;
	l->layers = calloc((size_t)image->n_layers + 1, sizeof(*l->layers));
	if (!l->layers)
		return error_set(err, -ENOMEM, "unpack");
	list_for_each (from, &image->layers, struct incoming_layer, link)
		l->layers[n++].layer = from;
	l->image = image;
	return 0;
}

/* 1: all images have their layers. */
static int layering_advance(struct layering *l, struct error *err)
{
	int r;

	for (;;) {
		struct list *next = l->image->link.next;

		r = layering_settle(l, err);
		if (r == 0)
			r = layering_begin_more(l, err);
		if (r < 0 || l->repairing || l->n_settled < l->image->n_layers)
			return r;
		if (next == &l->incoming->images)
			return 1;
		r = layering_take_up(l, list_entry(next, struct incoming_image, link), err);
		if (r < 0)
			return r;
	}
}

static void layering_turn(struct loop_defer *d)
{
	struct layering *l = container_of(d, struct layering, turn);
	struct error err = ERROR_INIT;
	int r = 0;

	if (l->syncing)
		return;
	/* What is being mended keeps those above it from their places, and from nothing else. */
	if (!l->err.code)
		r = l->repairing ? layering_begin_more(l, &err) : layering_advance(l, &err);
	if (r < 0)
		layering_fail(l, &err);
	else if (r > 0 && !l->ahead)
		layering_sync(l); /* its end is this one's */
	if (!l->syncing && !l->repairing && !l->ahead && l->err.code && l->n_running == 0)
		layering_end(l);
}

int layering_start(struct layering *l, struct image_store *store, struct incoming *incoming,
		   int dir_fd, const char *from, const struct layering_ops *ops, struct error *err)
{
	int r;

	*l = (struct layering){ .ops = ops,
				.store = store,
				.incoming = incoming,
				.dir_fd = dir_fd,
				.from = from,
				.repair_fd = -1,
				.lower_fd = -1,
				.err = ERROR_INIT,
				.repair_err = ERROR_INIT,
				.sync_err = ERROR_INIT };
	list_init(&l->link);
	list_init(&l->unpackings);
	r = layering_take_up(l, list_first(&incoming->images, struct incoming_image, link), err);
	if (r < 0)
		return r;
	loop_defer_init(&l->turn, store->config.loop, layering_turn);
	list_add_tail(&store->layerings, &l->link);
	loop_defer_schedule(&l->turn);
	return 0;
}

void layering_kick(struct layering *l)
{
	if (l->layers)
		loop_defer_schedule(&l->turn);
}

void layering_restart(struct layering *l, const char *digest)
{
	struct unpacking *u;

	if (!l->layers)
		return;
	for (unsigned k = 0; k < l->image->n_layers; k++)
		if (str_eq(l->layers[k].layer->digest, digest))
			l->layers[k].whole = false;
	list_for_each (u, &l->unpackings, struct unpacking, link) {
		if (!u->followed || !str_eq(u->layer->layer->digest, digest))
			continue;
		u->restarted = true;
		helper_kill(&u->helper);
	}
}

void layering_cancel(struct layering *l)
{
	struct error err = ERROR_INIT;

	if (!l->layers)
		return;
	(void)error_refuse(&err, ERROR_CANCELLED, "cancelled");
	layering_fail(l, &err);
}

void layering_done(struct layering *l)
{
	if (!l->layers)
		return;
	while (!list_empty(&l->unpackings))
		unpacking_free(list_first(&l->unpackings, struct unpacking, link));
	l->repair_fd = fd_close(l->repair_fd);
	l->lower_fd = fd_close(l->lower_fd);
	loop_defer_done(&l->turn);
	layering_leave(l);
	free(l->layers);
	l->layers = NULL;
}
