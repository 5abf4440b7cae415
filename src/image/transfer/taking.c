/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/taking.h"

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/memory/tally.h"
#include "image/content/storing.h"

int taking_begin(struct taking *t, struct image_store *s, const struct taking_ops *ops,
		 struct error *err)
{
	*t = (struct taking){ .ops = ops, .store = s, .dir_fd = -1, .err = ERROR_INIT };
	list_init(&t->link);
	incoming_init(&t->incoming);
	return storing_make_staging(s, t->id, &t->dir_fd, err);
}

void taking_drop(struct taking *t)
{
	if (*t->id)
		trash_add(t->store, t->store->staging_fd, t->id, NULL);
}

void taking_done(struct taking *t)
{
	layering_done(&t->layering);
	incoming_done(&t->incoming);
	list_remove(&t->link);
	t->dir_fd = fd_close(t->dir_fd);
}

void taking_fail(struct taking *t, const struct error *err)
{
	if (err && !t->err.code)
		t->err = *err;
}

bool taking_failed(const struct taking *t)
{
	return t->err.code || t->cancelled;
}

/* ---- storing, recording ---- */

static void taking_store_run(struct pool_work *work)
{
	struct taking *t = container_of(work, struct taking, work);

	(void)storing_run(t->store, &t->incoming, t->dir_fd, &t->err);
}

static void taking_store_done(struct pool_work *work)
{
	struct taking *t = container_of(work, struct taking, work);

	t->ops->stored(t);
}

int taking_store(struct taking *t, struct error *err)
{
	int r = storing_hold(t->store, &t->incoming, err);

	if (r < 0)
		return r;
	t->work = (struct pool_work){ .run = taking_store_run, .done = taking_store_done };
	pool_submit(t->store->config.pool, &t->work);
	return 0;
}

static void taking_record_done(struct recording *r)
{
	struct taking *t = container_of(r, struct taking, recording);

	taking_fail(t, r->err.code ? &r->err : NULL);
	t->ops->recorded(t);
}

static void taking_unwanted(struct recording *r, const char *id)
{
	(void)image_store_remove(r->store, id, NULL, NULL, NULL);
}

int taking_record(struct taking *t, const char *name, const char *source, const char *origin,
		  const struct image_verdict *verdict)
{
	t->recording = (struct recording){ .store = t->store,
					   .incoming = &t->incoming,
					   .name = name,
					   .source = source,
					   .origin = origin,
					   .verdict = verdict,
					   .unwanted = taking_unwanted,
					   .done = taking_record_done,
					   .err = ERROR_INIT };
	if (recording_start(&t->recording))
		return 0;
	taking_fail(t, &t->recording.err);
	return t->err.code;
}

/* ---- the end ---- */

static void taking_end(struct trash_watch *w)
{
	struct taking *t = container_of(w, struct taking, watch);
	const struct incoming_image *first =
		list_first(&t->incoming.images, struct incoming_image, link);
	struct image *image = NULL;

	if (!taking_failed(t))
		image = image_store_by_id(t->store, first->id);
	if (!taking_failed(t) && !image)
		(void)error_refuse(&t->err, ERROR_ABORTED, "the image was removed while it was %s",
				   t->ops->was);
	t->ops->ended(t, image);
}

void taking_undo(struct taking *t)
{
	t->watch.gone = taking_end;
	t->watch.n_pending++;
	FAILPOINT_BEFORE(t->ops->clean);
	storing_release(t->store, &t->incoming, &t->watch);
	trash_add(t->store, t->store->staging_fd, t->id, &t->watch);
	FAILPOINT_AFTER(t->ops->clean);
	if (--t->watch.n_pending == 0)
		taking_end(&t->watch);
}

void taking_tally(const struct list *all, struct tally *tally)
{
	const struct taking *t;

	list_for_each (t, all, struct taking, link)
		tally_may(tally, "staging", t->id);
}
