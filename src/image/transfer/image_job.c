/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/image_job.h"

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/memory/inventory.h"
#include "image/content/commit.h"

int image_job_begin(struct image_job *t, struct image_store *s, const struct image_job_ops *ops,
		    struct error *err)
{
	*t = (struct image_job){ .ops = ops, .store = s, .dir_fd = -1, .err = ERROR_INIT };
	list_init(&t->link);
	incoming_init(&t->incoming);
	return commit_make_staging(s, t->id, &t->dir_fd, err);
}

void image_job_drop(struct image_job *t)
{
	if (*t->id)
		trash_add(t->store, t->store->staging_fd, t->id, NULL);
}

void image_job_done(struct image_job *t)
{
	layering_done(&t->layering);
	incoming_done(&t->incoming);
	list_remove(&t->link);
	t->dir_fd = fd_close(t->dir_fd);
}

void image_job_fail(struct image_job *t, const struct error *err)
{
	if (err && !t->err.code)
		t->err = *err;
}

bool image_job_failed(const struct image_job *t)
{
	return t->err.code || t->cancelled;
}

/* ---- storing, recording ---- */

static void image_job_store_run(struct pool_work *work)
{
	struct image_job *t = container_of(work, struct image_job, work);

	(void)commit_run(t->store, &t->incoming, t->dir_fd, &t->err);
}

static void image_job_store_done(struct pool_work *work)
{
	struct image_job *t = container_of(work, struct image_job, work);

	t->ops->stored(t);
}

int image_job_store(struct image_job *t, struct error *err)
{
	int r = commit_hold(t->store, &t->incoming, err);

	if (r < 0)
		return r;
	t->work = (struct pool_work){ .run = image_job_store_run, .done = image_job_store_done };
	pool_submit(t->store->config.pool, &t->work);
	return 0;
}

static void image_job_record_done(struct recording *r)
{
	struct image_job *t = container_of(r, struct image_job, recording);

	image_job_fail(t, r->err.code ? &r->err : NULL);
	t->ops->recorded(t);
}

static void image_job_unwanted(struct recording *r, const char *id)
{
	(void)image_store_remove(r->store, id, NULL, NULL, NULL);
}

int image_job_record(struct image_job *t, const char *name, const char *source, const char *origin,
		     const struct image_verdict *verdict)
{
	t->recording = (struct recording){ .store = t->store,
					   .incoming = &t->incoming,
					   .name = name,
					   .source = source,
					   .origin = origin,
					   .verdict = verdict,
					   .unwanted = image_job_unwanted,
					   .done = image_job_record_done,
					   .err = ERROR_INIT };
	if (recording_start(&t->recording))
		return 0;
	image_job_fail(t, &t->recording.err);
	return t->err.code;
}

/* ---- the end ---- */

static void image_job_end(struct trash_watch *w)
{
	struct image_job *t = container_of(w, struct image_job, watch);
	const struct incoming_image *first =
		list_first(&t->incoming.images, struct incoming_image, link);
	struct image *image = NULL;

	if (!image_job_failed(t))
		image = image_store_by_id(t->store, first->id);
	if (!image_job_failed(t) && !image)
		(void)error_refuse(&t->err, ERROR_ABORTED, "the image was removed while it was %s",
				   t->ops->was);
	t->ops->ended(t, image);
}

void image_job_undo(struct image_job *t)
{
	t->watch.gone = image_job_end;
	t->watch.n_pending++;
	FAILPOINT_BEFORE(t->ops->clean);
	commit_release(t->store, &t->incoming, &t->watch);
	trash_add(t->store, t->store->staging_fd, t->id, &t->watch);
	FAILPOINT_AFTER(t->ops->clean);
	if (--t->watch.n_pending == 0)
		image_job_end(&t->watch);
}

void image_job_inventory(const struct list *all, struct inventory *inventory)
{
	const struct image_job *t;

	list_for_each (t, all, struct image_job, link)
		inventory_may(inventory, "staging", t->id);
}
