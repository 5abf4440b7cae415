/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A copy is one run of `nacre-transfer copy`, which speaks to both registries. It says what is to
 * be there, and wants a file for each blob that is not: one of the job's directory, which has
 * lost its name before it is handed over, so that it goes with the last that holds it, whoever
 * dies. As many are out as the reserve of the disk lets; a blob for which there is no room waits
 * for the others to be sent, and only one that finds no room alone is an error.
 */

#include "image/transfer/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "image/content/room.h"
#include "image/registry.h"
#include "image/transfer/network.h"
#include "image/transfer/transfer_job.h"
#include "wire/name/reference.h"

#define COPIES_MAX 16                           /* at once, over all clients */
#define COPY_DOCUMENTS_MAX (UINT64_C(32) << 20) /* bytes of all documents of one */
#define COPY_FILE "blob"

enum copy_blob_state {
	COPY_BLOB_LISTED, /* in the destination, as far as is known */
	COPY_BLOB_WANTED, /* a file is to be found for it */
	COPY_BLOB_LOADING,
	COPY_BLOB_SENDING, /* all of it is in the file */
	COPY_BLOB_THERE,
};

struct copy_blob {
	char digest[DIGEST_SIZE];
	uint64_t size;
	enum copy_blob_state state;
};

struct image_copy {
	struct list link;
	struct image_store *store;
	struct image_push_ops ops;
	void *userdata;
	bool cancelled, listed, resolved, said_done;
	char source[REFERENCE_SIZE], destination[REFERENCE_SIZE];
	char origin[IMAGE_ORIGIN_MAX + 1];
	struct transfer_job transfer_job;
	struct copy_blob *blobs; /* FETCH_CONTENTS_MAX; the last is what the reference names */
	unsigned n_blobs;
};

static void copy_free(struct image_copy *c)
{
	transfer_job_done(&c->transfer_job);
	if (!list_empty(&c->link))
		c->store->n_copies--;
	list_remove(&c->link);
	free(c->blobs);
	free(c);
}

/* ---- what clients hear ---- */

static void copy_tell(const struct image_copy *c, const struct image_push_event *e)
{
	if (!c->cancelled)
		c->ops.on_event(c->userdata, e);
}

static void copy_tell_note(const struct image_copy *c, const char *text)
{
	copy_tell(c, &(struct image_push_event){
			     .step = IMAGE_PUSH_NOTE, .text = text, .digest = "" });
}

static void copy_tell_blob(const struct image_copy *c, const struct copy_blob *b,
			   enum image_push_step step, uint64_t n_bytes)
{
	copy_tell(c, &(struct image_push_event){ .step = step,
						 .text = "",
						 .digest = b->digest,
						 .blob = (unsigned)(b - c->blobs) + 1,
						 .n_blobs = c->n_blobs,
						 .n_bytes = n_bytes,
						 .size = b->size });
}

/* ---- files ---- */

/* Whether there is room for one more beside those that are on their way; without any of these the
 * answer is yes or an error. */
static int copy_find_room(const struct image_copy *c, const struct copy_blob *b, struct error *err)
{
	uint64_t need = b->size, have;
	bool alone = true, enough;
	int r;

	for (unsigned i = 0; i < c->n_blobs; i++) {
		if (c->blobs[i].state != COPY_BLOB_LOADING &&
		    c->blobs[i].state != COPY_BLOB_SENDING)
			continue;
		alone = false;
		need += c->blobs[i].size;
	}
	if (alone) {
		r = room_check(c->store, need, err);
		return r < 0 ? r : 1;
	}
	r = c->store->config.reserve ? room_find(c->store, need, &enough, &have, err) : 1;
	return r == 0 ? enough : r;
}

static int copy_open_file(const struct image_copy *c, struct error *err)
{
	int dir_fd = c->transfer_job.dir_fd;
	_cleanup_fd_ int fd = -1;
	int r = FAILPOINT("copy.file");

	if (r < 0)
		return error_set(err, r, "make a file for a blob");
	fd = sysio_openat(dir_fd, COPY_FILE, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			  0600);
	if (fd < 0)
		return error_set(err, -errno, "make a file for a blob");
	if (sysio_unlinkat(dir_fd, COPY_FILE, 0) < 0)
		return error_set(err, -errno, "unlink the file of a blob");
	FAILPOINT_AFTER("copy.file");
	return TAKE_FD(fd);
}

static int copy_give(struct image_copy *c, struct copy_blob *b, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_FETCH };
	_cleanup_fd_ int fd = -1;
	int r;

	fd = copy_open_file(c, err);
	if (fd < 0)
		return fd;
	(void)str_copy(m.fetch.digest, sizeof(m.fetch.digest), b->digest);
	m.fetch.size = b->size;
	r = helper_tell(&c->transfer_job.helper, &m, &fd, 1, err);
	if (r == 0)
		b->state = COPY_BLOB_LOADING;
	return r;
}

/* As far as there is room on the disk and in the socket. */
static int copy_give_all(struct image_copy *c, struct error *err)
{
	int r = 1;

	for (unsigned i = 0; r >= 0 && i < c->n_blobs; i++) {
		if (c->blobs[i].state != COPY_BLOB_WANTED)
			continue;
		r = copy_find_room(c, &c->blobs[i], err);
		if (r == 0)
			break;
		if (r > 0)
			r = copy_give(c, &c->blobs[i], err);
	}
	if (r != -EAGAIN)
		return MIN(r, 0);
	*err = (struct error)ERROR_INIT;
	helper_await_room(&c->transfer_job.helper);
	return 0;
}

static int copy_on_room(struct helper *h, struct error *err)
{
	return copy_give_all(container_of(h, struct image_copy, transfer_job.helper), err);
}

/* ---- what the helper says ---- */

static int copy_wrong(struct error *err)
{
	return error_set(err, -EPROTO, "nacre-transfer: a message that does not belong here");
}

static struct copy_blob *copy_find_blob(const struct image_copy *c, const char *digest)
{
	for (unsigned i = 0; i < c->n_blobs; i++)
		if (str_eq(c->blobs[i].digest, digest))
			return &c->blobs[i];
	return NULL;
}

static int copy_on_note(struct image_copy *c, const struct fetchmsg *m, struct error *err)
{
	copy_tell_note(c, m->note.text);
	return 0;
}

/* First what was found; at the end, what the destination has. */
static int copy_on_resolved(struct image_copy *c, const struct fetchmsg *m, struct error *err)
{
	char text[ERROR_TEXT_MAX];

	if (!c->listed) {
		(void)str_printf(text, sizeof(text), "%.300s is %s, from %.100s", c->source,
				 m->resolved.digest, m->resolved.origin);
		copy_tell_note(c, text);
		return 0;
	}
	if (c->resolved || !str_eq(m->resolved.digest, c->blobs[c->n_blobs - 1].digest))
		return copy_wrong(err);
	c->resolved = true;
	(void)str_copy(c->origin, sizeof(c->origin), m->resolved.origin);
	return 0;
}

static int copy_on_content(struct image_copy *c, const struct fetchmsg *m, struct error *err)
{
	struct copy_blob *b;

	if (c->listed || c->n_blobs == FETCH_CONTENTS_MAX || copy_find_blob(c, m->content.digest))
		return copy_wrong(err);
	b = &c->blobs[c->n_blobs++];
	(void)str_copy(b->digest, sizeof(b->digest), m->content.digest);
	b->size = m->content.size;
	return 0;
}

static int copy_on_content_end(struct image_copy *c, const struct fetchmsg *m, struct error *err)
{
	if (c->listed || c->n_blobs == 0 || m->content_end.n_contents != c->n_blobs)
		return copy_wrong(err);
	c->listed = true;
	return 0;
}

static int copy_on_want(struct image_copy *c, const struct fetchmsg *m, struct error *err)
{
	struct copy_blob *b = copy_find_blob(c, m->want.digest);

	if (!c->listed || !b || b->state != COPY_BLOB_LISTED || b->size != m->want.size)
		return copy_wrong(err);
	b->state = COPY_BLOB_WANTED;
	return copy_give_all(c, err);
}

/* What was in the file goes with it. */
static int copy_on_restart(struct image_copy *c, const struct fetchmsg *m, struct error *err)
{
	struct copy_blob *b = copy_find_blob(c, m->restart.digest);
	char text[ERROR_TEXT_MAX];

	if (!b || b->state != COPY_BLOB_LOADING)
		return copy_wrong(err);
	(void)str_printf(text, sizeof(text), "blob %s: %s; it is loaded anew", b->digest,
			 m->restart.text);
	copy_tell_note(c, text);
	b->state = COPY_BLOB_WANTED;
	return copy_give_all(c, err);
}

/* Documents, which nobody here reads, or a whole blob. */
static int copy_on_blob(struct image_copy *c, const struct fetchmsg *m, struct error *err)
{
	struct copy_blob *b = copy_find_blob(c, m->blob.digest);

	if (!c->listed)
		return 0;
	if (!b || b->state != COPY_BLOB_LOADING || b->size != m->blob.size)
		return copy_wrong(err);
	b->state = COPY_BLOB_SENDING;
	return 0;
}

static int copy_on_progress(struct image_copy *c, const struct fetchmsg *m, struct error *err)
{
	const struct copy_blob *b = copy_find_blob(c, m->progress.digest);

	if (!b || m->progress.n_bytes > b->size ||
	    (b->state != COPY_BLOB_LOADING && b->state != COPY_BLOB_SENDING))
		return copy_wrong(err);
	copy_tell_blob(c, b,
		       b->state == COPY_BLOB_LOADING ? IMAGE_PUSH_LOADING : IMAGE_PUSH_SENDING,
		       m->progress.n_bytes);
	return 0;
}

static int copy_on_pushed(struct image_copy *c, const struct fetchmsg *m, struct error *err)
{
	static const enum image_push_step steps[] = {
		[FETCH_PUSHED_UPLOADED] = IMAGE_PUSH_SENT,
		[FETCH_PUSHED_EXISTED] = IMAGE_PUSH_THERE,
		[FETCH_PUSHED_MOUNTED] = IMAGE_PUSH_MOUNTED,
	};
	struct copy_blob *b = copy_find_blob(c, m->pushed.digest);

	if (!c->listed || !b || m->pushed.how >= ARRAY_SIZE(steps) ||
	    (b->state != COPY_BLOB_LISTED && b->state != COPY_BLOB_SENDING))
		return copy_wrong(err);
	b->state = COPY_BLOB_THERE;
	copy_tell_blob(c, b, steps[m->pushed.how], b->size);
	return copy_give_all(c, err);
}

static int copy_on_done(struct image_copy *c, const struct fetchmsg *m, struct error *err)
{
	for (unsigned i = 0; i < c->n_blobs; i++)
		if (c->blobs[i].state != COPY_BLOB_THERE)
			return copy_wrong(err);
	if (!c->resolved)
		return copy_wrong(err);
	c->said_done = true;
	return 0;
}

static int (*const copy_takers[FETCHMSG_TYPE_COUNT])(struct image_copy *c, const struct fetchmsg *m,
						     struct error *err) = {
	[FETCHMSG_NOTE] = copy_on_note,       [FETCHMSG_RESOLVED] = copy_on_resolved,
	[FETCHMSG_CONTENT] = copy_on_content, [FETCHMSG_CONTENT_END] = copy_on_content_end,
	[FETCHMSG_WANT] = copy_on_want,       [FETCHMSG_RESTART] = copy_on_restart,
	[FETCHMSG_BLOB] = copy_on_blob,       [FETCHMSG_PROGRESS] = copy_on_progress,
	[FETCHMSG_PUSHED] = copy_on_pushed,   [FETCHMSG_DONE] = copy_on_done,
};

static int copy_message(struct helper *h, const struct fetchmsg *m, struct error *err)
{
	struct image_copy *c = container_of(h, struct image_copy, transfer_job.helper);

	if (c->said_done || !copy_takers[m->type])
		return copy_wrong(err);
	return copy_takers[m->type](c, m, err);
}

static void copy_end(struct helper *h, const struct error *err)
{
	struct image_copy *c = container_of(h, struct image_copy, transfer_job.helper);
	struct image_pushed pushed = { .reference = c->destination, .digest = "", .origin = "" };
	struct error fault = ERROR_INIT;

	if (err)
		fault = *err;
	else if (!c->said_done)
		(void)error_set(&fault, -EPROTO, "nacre-transfer: it ended too early");
	if (!fault.code) {
		pushed.digest = c->blobs[c->n_blobs - 1].digest;
		pushed.size = c->blobs[c->n_blobs - 1].size;
		pushed.origin = c->origin;
	}
	FAILPOINT_BEFORE("copy.end");
	if (!c->cancelled)
		c->ops.on_done(c->userdata, &pushed, fault.code ? &fault : NULL);
	transfer_job_drop(&c->transfer_job);
	copy_free(c);
}

static const struct helper_ops copy_helper_ops = { .on_message = copy_message,
						   .on_room = copy_on_room,
						   .on_end = copy_end };

/* ---- the beginning ---- */

static int copy_start_helper(struct image_copy *c, const struct image_copy_request *q,
			     struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_COPY };
	int r;

	m.copy.reference = c->source;
	m.copy.destination = c->destination;
	m.copy.architecture = q->architecture ?: "";
	m.copy.variant = q->variant ?: "";
	m.copy.max_bytes = COPY_DOCUMENTS_MAX;
	m.copy.referrers = q->referrers;
	r = FAILPOINT("copy.start");
	if (r < 0)
		return error_set(err, r, "start the helper");
	r = room_check(c->store, COPY_DOCUMENTS_MAX, err);
	if (r == 0)
		r = transfer_job_start(&c->transfer_job, c->store, "copy", &m, &q->auths,
				       &copy_helper_ops, err);
	if (r == 0)
		r = network_go(&c->transfer_job.helper, err);
	FAILPOINT_AFTER("copy.start");
	return r;
}

int image_copy_start(struct image_store *s, const struct image_copy_request *q,
		     const struct image_push_ops *ops, void *userdata, struct image_copy **ret,
		     struct error *err)
{
	struct image_copy *c;
	int r;

	if (s->n_copies >= COPIES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%u images are being copied already",
				    s->n_copies);
	c = calloc(1, sizeof(*c));
	if (!c)
		return error_set(err, -ENOMEM, "copy %.300s", q->source);
	*c = (struct image_copy){ .store = s, .ops = *ops, .userdata = userdata };
	list_init(&c->link);
	c->blobs = calloc(FETCH_CONTENTS_MAX, sizeof(*c->blobs));
	r = c->blobs ? reference_normalise(c->source, q->source, err)
		     : error_set(err, -ENOMEM, "copy an image");
	if (r == 0)
		r = reference_normalise(c->destination, q->destination, err);
	if (r == 0)
		r = copy_start_helper(c, q, err);
	if (r < 0) {
		transfer_job_drop(&c->transfer_job);
		copy_free(c);
		return r;
	}
	list_add_tail(&s->copies, &c->link);
	s->n_copies++;
	*ret = c;
	return 0;
}

void image_copy_cancel(struct image_copy *c)
{
	c->cancelled = true;
	helper_kill(&c->transfer_job.helper);
}

void copy_free_all(struct image_store *s)
{
	while (!list_empty(&s->copies))
		copy_free(list_first(&s->copies, struct image_copy, link));
}
