/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pull is one run of `nacre-transfer pull`, and what is made of what it brings:
 *
 * RESOLVING  The helper finds the image, and writes its documents into staging/ID/blobs. At the
 *            last of their messages it is known which blobs the layers are, and whether there is
 *            room for them.
 * LOADING    Each distinct blob is joined as a download (image/transfer/blob_download.h). Those
 *            that nobody brings are taken, from the lowest layer, one for each connection: the
 *            helper gets the file, and a pipe that tells the unpacker how far it is. The layers
 *            are unpacked meanwhile (image/transfer/layering.h). The helper hears SKIP only of a
 *            blob that lies in the store: until then it may still have to take over.
 * COMMITTING The helper has ended, the layers have their places: the pool moves the documents.
 * RECORDING  The database writes.
 * UNDOING    The pool deletes staging, after success too.
 * Whatever fails or is cancelled kills the helpers, waits for their ends, and goes to UNDOING: what
 * the pull held is released, which takes away what nobody else has. Its downloads are left then,
 * and not before, so that who takes over a file is alone with it.
 */

#include "image/transfer/pull.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/content/commit.h"
#include "image/content/model.h"
#include "image/content/platform.h"
#include "image/helper/detached.h"
#include "image/transfer/blob_download.h"
#include "image/transfer/image_job.h"
#include "image/transfer/network.h"
#include "image/transfer/verdict.h"
#include "wire/name/reference.h"

/* Named limits of pulls. */
#define PULLS_MAX 64                            /* at once, over all clients */
#define PULL_DOCUMENTS_MAX (UINT64_C(32) << 20) /* bytes of all documents of one */
#define PULL_BLOB_MAX (UINT64_C(64) << 30)      /* bytes of one layer's blob */
#define PULL_RESTARTS_MAX 8                     /* of one blob: the registry is lying */
#define PULL_DOWNLOADS 6                        /* at once, where the configuration says none */

enum pull_state {
	PULL_RESOLVING,
	PULL_LOADING,
	PULL_COMMITTING,
	PULL_RECORDING,
	PULL_UNDOING,
	PULL_STATE_COUNT
};

static const bool edges[PULL_STATE_COUNT][PULL_STATE_COUNT] = {
	[PULL_RESOLVING] = { [PULL_LOADING] = true, [PULL_UNDOING] = true },
	[PULL_LOADING] = { [PULL_COMMITTING] = true, [PULL_UNDOING] = true },
	[PULL_COMMITTING] = { [PULL_RECORDING] = true, [PULL_UNDOING] = true },
	[PULL_RECORDING] = { [PULL_UNDOING] = true },
};

/* One distinct blob of the layers. */
struct pull_blob {
	struct blob_download_want want;
	struct image_pull *pull;
	const struct incoming_layer *layer; /* the lowest that is made of it */
	bool loading;                       /* by our helper */
	bool answered;                      /* with FETCH or SKIP */
	bool there;                         /* in the store, and held */
	unsigned n_restarts;
	int follow_fd; /* how far it is, for the unpacker; -1 */
};

struct image_pull {
	struct image_job image_job;
	enum pull_state state;
	struct image_pull_ops ops;
	void *userdata;
	bool said_done; /* by the helper, its last word */
	bool helper_ended;
	bool layered;              /* the layering has ended, or was never begun */
	char name[REFERENCE_SIZE]; /* to give it; "": none */
	char reference[REFERENCE_SIZE];
	char host[FETCH_HOST_MAX + 1]; /* of that */
	char source[REFERENCE_SIZE + 16];
	struct verdict verdict;      /* of the policy */
	char origin[REFERENCE_SIZE]; /* by the digest that the registry has it by */
	struct helper helper;
	struct loop_defer turn;
	struct pull_blob *blobs;
	unsigned n_blobs;
	unsigned n_loading;
};

static void pull_enter(struct image_pull *p, enum pull_state state)
{
	assert(edges[p->state][state]);
	p->state = state;
}

static struct incoming_image *pull_image(const struct image_pull *p)
{
	return list_first(&p->image_job.incoming.images, struct incoming_image, link);
}

/* ---- what clients hear ---- */

static void pull_tell(struct image_pull *p, const struct image_pull_event *e)
{
	if (p->ops.on_event && !image_job_failed(&p->image_job))
		p->ops.on_event(p->userdata, e);
}

static void pull_say(struct image_pull *p, enum image_pull_step step, const char *digest,
		     const char *text)
{
	pull_tell(p, &(struct image_pull_event){ .step = step, .text = text, .digest = digest });
}

/* A blob may be several layers. */
static void pull_tell_blob(const struct pull_blob *b, enum image_pull_step step, uint64_t n_bytes,
			   bool there)
{
	const struct incoming_layer *l;
	unsigned position = 0;

	list_for_each (l, &pull_image(b->pull)->layers, struct incoming_layer, link) {
		position++;
		if (!str_eq(l->digest, b->layer->digest))
			continue;
		pull_tell(b->pull,
			  &(struct image_pull_event){ .step = step,
						      .text = "",
						      .digest = l->digest,
						      .layer = position,
						      .n_layers = pull_image(b->pull)->n_layers,
						      .n_bytes = n_bytes,
						      .size = l->size,
						      .there = there });
	}
}

/* ---- the end ---- */

static void pull_free(struct image_pull *p)
{
	helper_done(&p->helper);
	for (unsigned k = 0; k < p->n_blobs; k++) {
		blob_download_leave(&p->blobs[k].want);
		(void)fd_close(p->blobs[k].follow_fd);
	}
	free(p->blobs);
	verdict_done(&p->verdict);
	loop_defer_done(&p->turn);
	if (!list_empty(&p->image_job.link))
		p->image_job.store->n_pulls--;
	image_job_done(&p->image_job);
	free(p);
}

static void pull_ended(struct image_job *t, struct image *image)
{
	struct image_pull *p = container_of(t, struct image_pull, image_job);

	if (!t->cancelled)
		p->ops.on_done(p->userdata, image, t->err.code ? &t->err : NULL);
	pull_free(p);
}

static void pull_undo(struct image_pull *p)
{
	pull_enter(p, PULL_UNDOING);
	for (unsigned k = 0; k < p->n_blobs; k++)
		blob_download_leave(&p->blobs[k].want);
	image_job_undo(&p->image_job);
}

/* Nothing goes on from here but to the end, which comes when the helpers are gone. */
static void pull_fail(struct image_pull *p, const struct error *err)
{
	image_job_fail(&p->image_job, err);
	helper_kill(&p->helper);
	layering_cancel(&p->image_job.layering);
	loop_defer_schedule(&p->turn);
}

/* What a registry or the disk did to a blob, or what is in it: the image is named. */
static void pull_blame(struct image_pull *p, const struct error *err)
{
	struct error fault = *err;

	(void)error_wrap(&fault, fault.code, "image %.200s", p->reference);
	pull_fail(p, &fault);
}

/* ---- recording, storing ---- */

static void pull_recorded(struct image_job *t)
{
	pull_undo(container_of(t, struct image_pull, image_job));
}

static void pull_stored(struct image_job *t)
{
	struct image_pull *p = container_of(t, struct image_pull, image_job);

	if (image_job_failed(t)) {
		pull_undo(p);
		return;
	}
	pull_enter(p, PULL_RECORDING);
	p->verdict.said.reference = *p->name ? p->name : p->reference;
	p->verdict.said.at = clock_real();
	if (image_job_record(t, p->name, p->source, p->origin, &p->verdict.said) < 0)
		pull_undo(p);
}

static void pull_store(struct image_pull *p)
{
	const struct fetchmsg done = { .type = FETCHMSG_DONE, .done = { .n_images = 1 } };
	struct error err = ERROR_INIT;

	pull_enter(p, PULL_COMMITTING);
	if (incoming_take(&p->image_job.incoming, &done, &err) == 0 &&
	    incoming_check(&p->image_job.incoming, &err) == 0 &&
	    image_job_store(&p->image_job, &err) == 0)
		return;
	image_job_fail(&p->image_job, &err);
	pull_undo(p);
}

static const struct image_job_ops pull_image_job_ops = { .was = "pulled",
							 .clean = "pull.clean",
							 .stored = pull_stored,
							 .recorded = pull_recorded,
							 .ended = pull_ended };

/* ---- layers ---- */

static struct pull_blob *pull_find_blob(struct image_pull *p, const char *digest)
{
	for (unsigned k = 0; k < p->n_blobs; k++) {
		const struct incoming_layer *layer = p->blobs[k].layer;

		if (layer && str_eq(layer->digest, digest))
			return &p->blobs[k];
	}
	return NULL;
}

static int pull_open_layer(struct layering *l, const struct incoming_layer *layer, bool whole,
			   struct layer_source *ret, struct error *err)
{
	struct image_pull *p = container_of(l, struct image_pull, image_job.layering);
	struct pull_blob *b = pull_find_blob(p, layer->digest);
	int fd;

	if (!b->there && (whole || b->follow_fd < 0))
		return -EAGAIN;
	if (b->there)
		fd = sysio_openat(p->image_job.store->blobs_fd, digest_hex(layer->digest),
				  O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	else
		fd = blob_download_open(&b->want, err);
	if (fd == -EAGAIN && !b->there)
		return -EAGAIN;
	if (fd < 0)
		return b->there ? error_set(err, -errno, "open blob %s", layer->digest) : fd;
	ret->blob_fd = fd;
	ret->follow_fd = b->there ? -1 : TAKE_FD(b->follow_fd);
	return 0;
}

static void pull_on_layer(struct layering *l, const struct incoming_image *image, unsigned position,
			  const struct incoming_layer *layer, bool fresh)
{
	pull_tell(container_of(l, struct image_pull, image_job.layering),
		  &(struct image_pull_event){ .step = IMAGE_PULL_UNPACKED,
					      .text = "",
					      .digest = layer->digest,
					      .layer = position,
					      .n_layers = image->n_layers,
					      .n_bytes = layer->layer->size,
					      .size = layer->size,
					      .there = !fresh });
}

static void pull_layered(struct layering *l, const struct error *err)
{
	struct image_pull *p = container_of(l, struct image_pull, image_job.layering);

	p->layered = true;
	if (err && !p->image_job.cancelled)
		pull_blame(p, err);
	loop_defer_schedule(&p->turn);
}

static const struct layering_ops pull_layering_ops = { .open = pull_open_layer,
						       .on_layer = pull_on_layer,
						       .on_end = pull_layered };

/* ---- blobs ---- */

static void pull_blob_progress(struct blob_download_want *w, uint64_t n_bytes)
{
	pull_tell_blob(container_of(w, struct pull_blob, want), IMAGE_PULL_LOADING, n_bytes, false);
}

static void pull_blob_change(struct blob_download_want *w)
{
	loop_defer_schedule(&container_of(w, struct pull_blob, want)->pull->turn);
}

static const struct blob_download_ops pull_blob_download_ops = { .on_progress = pull_blob_progress,
								 .on_change = pull_blob_change };

static int pull_answer(struct pull_blob *b, const struct fetchmsg *m, const int *fds, size_t n_fds,
		       struct error *err)
{
	b->answered = true;
	return helper_tell(&b->pull->helper, m, fds, n_fds, err);
}

/* The helper is to load the blob into fd, behind `from` bytes. */
static int pull_fetch(struct pull_blob *b, int fd, uint64_t from, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_FETCH };
	_cleanup_fd_ int write_fd = -1;
	int read_fd, fds[2];
	int r;

	r = blob_download_pipe(&read_fd, &write_fd, err);
	if (r < 0)
		return r;
	(void)fd_close(b->follow_fd);
	b->follow_fd = read_fd;
	(void)str_copy(m.fetch.digest, sizeof(m.fetch.digest), b->layer->digest);
	m.fetch.size = b->layer->size;
	m.fetch.from = from;
	m.fetch.follow = 1;
	fds[0] = fd;
	fds[1] = write_fd;
	return pull_answer(b, &m, fds, 2, err);
}

static int pull_take_blob_download(struct pull_blob *b, struct error *err)
{
	uint64_t from = 0;
	int fd = -1;
	int r;

	r = blob_download_take(&b->want, &fd, &from, err);
	if (r < 0)
		return r;
	b->loading = true;
	b->pull->n_loading++;
	r = pull_fetch(b, fd, from, err);
	if (r < 0)
		return r;
	pull_tell_blob(b, IMAGE_PULL_LOADING, from, false);
	layering_kick(&b->pull->image_job.layering);
	return 0;
}

/* The blob lies in the store, and is ours too from here on. */
static int pull_have(struct pull_blob *b, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_BLOB };
	struct image_pull *p = b->pull;
	struct incoming_blob *in;
	int r;

	(void)str_copy(m.blob.digest, sizeof(m.blob.digest), b->layer->digest);
	m.blob.size = b->layer->size;
	if (blob_hold(p->image_job.store, b->layer->digest) < 0)
		return error_set(err, -ENOMEM, "hold a blob");
	r = incoming_take(&p->image_job.incoming, &m, err);
	if (r < 0) {
		blob_release(p->image_job.store, b->layer->digest, NULL);
		return r;
	}
	in = map_get(&p->image_job.incoming.by_digest, b->layer->digest);
	in->held = true;
	b->there = true;
	b->follow_fd = fd_close(b->follow_fd);
	blob_download_leave(&b->want);
	layering_kick(&p->image_job.layering);
	if (b->answered)
		return 0;
	m = (struct fetchmsg){ .type = FETCHMSG_SKIP };
	(void)str_copy(m.skip.digest, sizeof(m.skip.digest), b->layer->digest);
	return pull_answer(b, &m, NULL, 0, err);
}

static int pull_join(struct pull_blob *b, struct error *err)
{
	const struct incoming_layer *l = b->layer;

	return blob_download_join(&b->want, b->pull->image_job.store, l->digest, l->size,
				  b->pull->host, &pull_blob_download_ops) < 0
		       ? error_set(err, -ENOMEM, "load a blob")
		       : 0;
}

static int pull_blob_step(struct pull_blob *b, struct error *err)
{
	const struct image_network *n = &b->pull->image_job.store->config.network;

	if (b->there)
		return 0;
	/* What was there when the documents came may have gone with another image since. */
	if (!b->want.blob_download) {
		if (commit_has(b->pull->image_job.store, b->layer->digest, b->layer->size))
			return pull_have(b, err);
		if (pull_join(b, err) < 0)
			return err->code;
	}
	switch (blob_download_state(&b->want)) {
	case BLOB_DOWNLOAD_IDLE:
		if (b->pull->n_loading < (n->parallel_downloads ?: PULL_DOWNLOADS))
			return pull_take_blob_download(b, err);
		return 0;
	case BLOB_DOWNLOAD_LANDED:
		pull_tell_blob(b, IMAGE_PULL_LOADED, b->layer->size, false);
		return pull_have(b, err);
	case BLOB_DOWNLOAD_FAILED:
		return error_copy(err, blob_download_error(&b->want));
	case BLOB_DOWNLOAD_LOADING:
	case BLOB_DOWNLOAD_COMMITTING:
	case BLOB_DOWNLOAD_STATE_COUNT:
		break;
	}
	return 0;
}

static void pull_turn(struct loop_defer *d)
{
	struct image_pull *p = container_of(d, struct image_pull, turn);
	struct error err = ERROR_INIT;
	bool all = true;

	if (p->state > PULL_LOADING)
		return;
	for (unsigned k = 0; k < p->n_blobs && !image_job_failed(&p->image_job); k++) {
		if (pull_blob_step(&p->blobs[k], &err) < 0)
			pull_blame(p, &err);
		all = all && p->blobs[k].there;
	}
	if (!p->helper_ended || !p->layered)
		return;
	if (image_job_failed(&p->image_job))
		pull_undo(p);
	else if (p->state == PULL_LOADING && all)
		pull_store(p);
}

/* ---- what is to be loaded ---- */

/* Refused now, rather than when the disk is full. */
static int pull_check_room(const struct image_pull *p, struct error *err)
{
	uint64_t load = 0;

	for (unsigned k = 0; k < p->n_blobs; k++) {
		const struct incoming_layer *l = p->blobs[k].layer;

		if (l->size > PULL_BLOB_MAX)
			return error_refuse(err, ERROR_EXHAUSTED,
					    "image %.200s: blob %s has %.1f MB, more than %.1f MB",
					    p->reference, l->digest, (double)l->size / 1e6,
					    (double)PULL_BLOB_MAX / 1e6);
		if (p->blobs[k].want.blob_download)
			load += l->size -
				MIN(blob_download_kept(p->image_job.store, l->digest), l->size);
	}
	return commit_check_room(p->image_job.store, pull_image(p), p->reference, load, err);
}

static int pull_want(struct image_pull *p, const struct incoming_layer *l, struct error *err)
{
	struct pull_blob *b = pull_find_blob(p, l->digest);

	if (b && b->layer->size != l->size)
		return error_refuse(err, ERROR_INVALID, "image %.200s: blob %s has two sizes",
				    p->reference, l->digest);
	if (b)
		return 0;
	b = &p->blobs[p->n_blobs++];
	*b = (struct pull_blob){ .pull = p, .layer = l, .follow_fd = -1 };
	return commit_has(p->image_job.store, l->digest, l->size) ? 0 : pull_join(b, err);
}

/* The documents are there. */
static int pull_plan(struct image_pull *p, struct error *err)
{
	const struct incoming_image *image = pull_image(p);
	const struct incoming_layer *l;
	int r = 0;

	p->blobs = calloc((size_t)image->n_layers + 1, sizeof(*p->blobs));
	if (!p->blobs)
		return error_set(err, -ENOMEM, "load the layers");
	list_for_each (l, &image->layers, struct incoming_layer, link) {
		r = pull_want(p, l, err);
		if (r < 0)
			return r;
	}
	r = pull_check_room(p, err);
	if (r == 0)
		r = FAILPOINT("pull.plan") < 0 ? error_set(err, -EIO, "plan a pull") : 0;
	if (r == 0)
		r = layering_start(&p->image_job.layering, p->image_job.store,
				   &p->image_job.incoming, p->image_job.dir_fd, p->host,
				   &pull_layering_ops, err);
	if (r < 0)
		return r;
	p->layered = false;
	pull_enter(p, PULL_LOADING);
	for (unsigned k = 0; k < p->n_blobs; k++)
		pull_tell_blob(&p->blobs[k],
			       p->blobs[k].want.blob_download ? IMAGE_PULL_WAITING
							      : IMAGE_PULL_LOADED,
			       p->blobs[k].want.blob_download ? 0 : p->blobs[k].layer->size,
			       !p->blobs[k].want.blob_download);
	loop_defer_schedule(&p->turn);
	FAILPOINT_AFTER("pull.plan");
	return 0;
}

/* ---- what the helper says ---- */

static int pull_wrong(struct error *err)
{
	return error_set(err, -EPROTO, "nacre-transfer: a message that does not belong here");
}

static int pull_on_resolved(struct image_pull *p, const struct fetchmsg *m, struct error *err)
{
	struct reference ref;

	pull_say(p, IMAGE_PULL_RESOLVED, m->resolved.digest, m->resolved.origin);
	if (reference_parse(&ref, p->reference, err) < 0)
		return -EINVAL;
	*ref.tag = '\0';
	(void)str_copy(ref.digest, sizeof(ref.digest), m->resolved.digest);
	reference_format(&ref, p->origin);
	return 0;
}

static int pull_on_signer(struct image_pull *p, const struct fetchmsg *m, struct error *err)
{
	return p->state == PULL_RESOLVING ? verdict_take(&p->verdict, m, err) : pull_wrong(err);
}

/* Of what was found, and once. */
static int pull_on_verdict(struct image_pull *p, const struct fetchmsg *m, struct error *err)
{
	const char *at = strchr(p->origin, '@');

	if (!at || !str_eq(at + 1, m->verdict.digest) ||
	    m->verdict.verdict == FETCH_VERDICT_REFUSED)
		return pull_wrong(err);
	return pull_on_signer(p, m, err);
}

static int pull_on_note(struct image_pull *p, const struct fetchmsg *m, struct error *err)
{
	pull_say(p, IMAGE_PULL_NOTE, "", m->note.text);
	return 0;
}

static struct pull_blob *pull_loading_blob(struct image_pull *p, const char *digest)
{
	struct pull_blob *b = pull_find_blob(p, digest);

	return b && b->loading ? b : NULL;
}

static int pull_on_blob(struct image_pull *p, const struct fetchmsg *m, struct error *err)
{
	struct pull_blob *b;

	if (p->state == PULL_RESOLVING)
		return incoming_take(&p->image_job.incoming, m, err);
	b = pull_loading_blob(p, m->blob.digest);
	if (!b || m->blob.size != b->layer->size)
		return pull_wrong(err);
	b->loading = false;
	p->n_loading--;
	loop_defer_schedule(&p->turn);
	return blob_download_whole(&b->want, err);
}

static int pull_on_progress(struct image_pull *p, const struct fetchmsg *m, struct error *err)
{
	struct pull_blob *b = pull_loading_blob(p, m->progress.digest);

	if (!b)
		return pull_wrong(err);
	blob_download_progress(&b->want, m->progress.n_bytes);
	pull_tell_blob(b, IMAGE_PULL_LOADING, m->progress.n_bytes, false);
	return 0;
}

static int pull_on_restart(struct image_pull *p, const struct fetchmsg *m, struct error *err)
{
	struct pull_blob *b = pull_loading_blob(p, m->restart.digest);
	char text[ERROR_TEXT_MAX];
	int r;

	if (!b)
		return pull_wrong(err);
	if (++b->n_restarts > PULL_RESTARTS_MAX)
		return error_refuse(err, ERROR_INVALID, "image %.200s: blob %s: %s", p->reference,
				    b->layer->digest, m->restart.text);
	(void)str_printf(text, sizeof(text), "%s; it is loaded anew", m->restart.text);
	pull_say(p, IMAGE_PULL_NOTE, b->layer->digest, text);
	layering_restart(&p->image_job.layering, b->layer->digest);
	r = blob_download_restart(&b->want, err);
	if (r < 0)
		return r;
	r = pull_fetch(b, blob_download_file(&b->want), 0, err);
	layering_kick(&p->image_job.layering);
	return r;
}

static int pull_on_word(struct image_pull *p, const struct fetchmsg *m, struct error *err)
{
	struct incoming_image *image = pull_image(p);

	/* It has the name that it was asked by, not what it says of itself. */
	if (m->word.list != FETCH_NAME || !image || image->ended)
		return incoming_take(&p->image_job.incoming, m, err);
	image->n_words++;
	return 0;
}

/* What landed meanwhile is taken before incoming hears of it (pull_store()). */
static int pull_on_done(struct image_pull *p, const struct fetchmsg *m, struct error *err)
{
	if (p->state != PULL_LOADING || m->done.n_images != 1)
		return pull_wrong(err);
	p->said_done = true;
	return 0;
}

static int pull_on_document(struct image_pull *p, const struct fetchmsg *m, struct error *err)
{
	int r;

	if (p->state != PULL_RESOLVING || !p->verdict.done)
		return pull_wrong(err);
	r = incoming_take(&p->image_job.incoming, m, err);
	return r == 0 && m->type == FETCHMSG_IMAGE_END ? pull_plan(p, err) : r;
}

static int (*const pull_takers[FETCHMSG_TYPE_COUNT])(struct image_pull *p, const struct fetchmsg *m,
						     struct error *err) = {
	[FETCHMSG_RESOLVED] = pull_on_resolved,  [FETCHMSG_NOTE] = pull_on_note,
	[FETCHMSG_BLOB] = pull_on_blob,          [FETCHMSG_IMAGE] = pull_on_document,
	[FETCHMSG_WORD] = pull_on_word,          [FETCHMSG_LAYER] = pull_on_document,
	[FETCHMSG_IMAGE_END] = pull_on_document, [FETCHMSG_DONE] = pull_on_done,
	[FETCHMSG_PROGRESS] = pull_on_progress,  [FETCHMSG_RESTART] = pull_on_restart,
	[FETCHMSG_SIGNER] = pull_on_signer,      [FETCHMSG_VERDICT] = pull_on_verdict,
};

static int pull_message(struct helper *h, const struct fetchmsg *m, struct error *err)
{
	struct image_pull *p = container_of(h, struct image_pull, helper);

	if (p->said_done || !pull_takers[m->type])
		return pull_wrong(err);
	return pull_takers[m->type](p, m, err);
}

static void pull_helper_end(struct helper *h, const struct error *err)
{
	struct image_pull *p = container_of(h, struct image_pull, helper);
	struct error fault = ERROR_INIT;

	p->helper_ended = true;
	if (err)
		fault = *err;
	else if (!p->said_done || p->n_loading > 0)
		(void)error_set(&fault, -EPROTO, "nacre-transfer: it ended too early");
	if (fault.code && !p->image_job.cancelled)
		pull_fail(p, &fault);
	loop_defer_schedule(&p->turn);
}

static const struct helper_ops pull_helper_ops = { .on_message = pull_message,
						   .on_end = pull_helper_end };

/* ---- the beginning ---- */

static int pull_start_helper(struct image_pull *p, const struct image_pull_request *q,
			     struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_PULL };
	_cleanup_fd_ int detached_fd = -1;
	struct utsname u;
	int r;

	if (uname(&u) < 0)
		return error_set(err, -errno, "uname");
	m.pull.reference = p->reference;
	m.pull.os = "linux";
	m.pull.architecture =
		str_empty(q->architecture) ? platform_architecture(&u) : q->architecture;
	m.pull.variant = q->variant ?: "";
	m.pull.max_bytes = PULL_DOCUMENTS_MAX;
	r = FAILPOINT("pull.start");
	if (r < 0)
		return error_set(err, r, "start the helper");
	detached_fd = detached_open(p->image_job.dir_fd, "blobs", 0, err);
	if (detached_fd < 0)
		return detached_fd;
	r = network_start(&p->helper, p->image_job.store, "pull", &m, &q->auths, detached_fd,
			  &pull_helper_ops, err);
	if (r == 0)
		r = network_go(&p->helper, err);
	FAILPOINT_AFTER("pull.start");
	return r;
}

static int pull_set_names(struct image_pull *p, const char *text, struct error *err)
{
	struct reference ref;

	if (reference_parse(&ref, text, err) < 0)
		return -EINVAL;
	reference_format(&ref, p->reference);
	(void)str_printf(p->host, sizeof(p->host), "%.*s", (int)strcspn(p->reference, "/"),
			 p->reference);
	(void)str_printf(p->source, sizeof(p->source), "registry:%s", p->reference);
	*ref.digest = '\0';
	if (*ref.tag)
		reference_format(&ref, p->name);
	return 0;
}

int image_pull_start(struct image_store *s, const struct image_pull_request *q,
		     const struct image_pull_ops *ops, void *userdata, struct image_pull **ret,
		     struct error *err)
{
	struct image_pull *p;
	int r;

	if (s->n_pulls >= PULLS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%u images are being pulled already",
				    s->n_pulls);
	p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(err, -ENOMEM, "pull %.300s", q->reference);
	*p = (struct image_pull){
		.state = PULL_RESOLVING, .ops = *ops, .userdata = userdata, .layered = true
	};
	verdict_init(&p->verdict);
	loop_defer_init(&p->turn, s->config.loop, pull_turn);
	r = image_job_begin(&p->image_job, s, &pull_image_job_ops, err);
	if (r == 0)
		r = pull_set_names(p, q->reference, err);
	if (r == 0)
		r = pull_start_helper(p, q, err);
	if (r < 0) {
		image_job_drop(&p->image_job);
		pull_free(p);
		return r;
	}
	list_add_tail(&s->pulls, &p->image_job.link);
	s->n_pulls++;
	*ret = p;
	return 0;
}

void image_pull_cancel(struct image_pull *p)
{
	p->image_job.cancelled = true;
	p->image_job.recording.cancelled = true;
	pull_fail(p, NULL);
}

void pull_free_all(struct image_store *s)
{
	while (!list_empty(&s->pulls))
		pull_free(list_first(&s->pulls, struct image_pull, image_job.link));
}

void pull_inventory(const struct image_store *s, struct inventory *t)
{
	image_job_inventory(&s->pulls, t);
}
