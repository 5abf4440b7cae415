/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A push is one run of `nacre-fetch push`, which is handed the blobs of an image as open files: the
 * helper opens none. The image is leased for as long as it runs, so that it may be removed
 * meanwhile. Files are handed over as the socket has room, and all of them before GO.
 */

#include "image/transfer/push.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "image/registry.h"
#include "image/transfer/network.h"
#include "image/transfer/transfer_job.h"
#include "wire/name/reference.h"

#define PUSHES_MAX 16     /* at once, over all clients */
#define PUSH_MOUNTS_MAX 4 /* repositories that a blob may be mounted from */

struct push_blob {
	const char *digest;
	uint64_t size;
	bool there; /* in the registry, as far as it has said */
};

struct image_push {
	struct list link;
	struct image_store *store;
	struct image_push_ops ops;
	void *userdata;
	bool cancelled, resolved, said_done;
	char reference[REFERENCE_SIZE];
	char origin[IMAGE_ORIGIN_MAX + 1];
	struct image_lease *lease;
	struct transfer_job transfer_job;
	struct push_blob *blobs; /* the manifest is the last */
	unsigned n_blobs, n_handed;
};

static void push_free(struct image_push *p)
{
	transfer_job_done(&p->transfer_job);
	if (!list_empty(&p->link))
		p->store->n_pushes--;
	list_remove(&p->link);
	(void)image_lease_free(p->lease);
	free(p->blobs);
	free(p);
}

/* ---- what clients hear ---- */

static void push_tell(const struct image_push *p, const struct image_push_event *e)
{
	if (!p->cancelled)
		p->ops.on_event(p->userdata, e);
}

static void push_tell_blob(const struct image_push *p, const struct push_blob *b,
			   enum image_push_step step, uint64_t n_bytes)
{
	push_tell(p, &(struct image_push_event){ .step = step,
						 .text = "",
						 .digest = b->digest,
						 .blob = (unsigned)(b - p->blobs) + 1,
						 .n_blobs = p->n_blobs,
						 .n_bytes = n_bytes,
						 .size = b->size });
}

/* ---- what the helper says ---- */

static int push_wrong(struct error *err)
{
	return error_set(err, -EPROTO, "nacre-transfer: a message that does not belong here");
}

static struct push_blob *push_find_blob(const struct image_push *p, const char *digest)
{
	for (unsigned k = 0; k < p->n_handed; k++)
		if (str_eq(p->blobs[k].digest, digest) && !p->blobs[k].there)
			return &p->blobs[k];
	return NULL;
}

static int push_on_note(struct image_push *p, const struct fetchmsg *m, struct error *err)
{
	push_tell(p, &(struct image_push_event){
			     .step = IMAGE_PUSH_NOTE, .text = m->note.text, .digest = "" });
	return 0;
}

static int push_on_progress(struct image_push *p, const struct fetchmsg *m, struct error *err)
{
	struct push_blob *b = push_find_blob(p, m->progress.digest);

	if (!b || m->progress.n_bytes > b->size)
		return push_wrong(err);
	push_tell_blob(p, b, IMAGE_PUSH_SENDING, m->progress.n_bytes);
	return 0;
}

static int push_on_pushed(struct image_push *p, const struct fetchmsg *m, struct error *err)
{
	static const enum image_push_step steps[] = {
		[FETCH_PUSHED_UPLOADED] = IMAGE_PUSH_SENT,
		[FETCH_PUSHED_EXISTED] = IMAGE_PUSH_THERE,
		[FETCH_PUSHED_MOUNTED] = IMAGE_PUSH_MOUNTED,
	};
	struct push_blob *b = push_find_blob(p, m->pushed.digest);

	if (!b || m->pushed.how >= ARRAY_SIZE(steps))
		return push_wrong(err);
	b->there = true;
	push_tell_blob(p, b, steps[m->pushed.how], b->size);
	return 0;
}

static int push_on_resolved(struct image_push *p, const struct fetchmsg *m, struct error *err)
{
	if (p->resolved || !str_eq(m->resolved.digest, p->blobs[p->n_blobs - 1].digest))
		return push_wrong(err);
	p->resolved = true;
	(void)str_copy(p->origin, sizeof(p->origin), m->resolved.origin);
	return 0;
}

static int push_on_done(struct image_push *p, const struct fetchmsg *m, struct error *err)
{
	for (unsigned k = 0; k < p->n_blobs; k++)
		if (!p->blobs[k].there)
			return push_wrong(err);
	if (!p->resolved)
		return push_wrong(err);
	p->said_done = true;
	return 0;
}

static int (*const push_takers[FETCHMSG_TYPE_COUNT])(struct image_push *p, const struct fetchmsg *m,
						     struct error *err) = {
	[FETCHMSG_NOTE] = push_on_note,     [FETCHMSG_PROGRESS] = push_on_progress,
	[FETCHMSG_PUSHED] = push_on_pushed, [FETCHMSG_RESOLVED] = push_on_resolved,
	[FETCHMSG_DONE] = push_on_done,
};

static int push_message(struct helper *h, const struct fetchmsg *m, struct error *err)
{
	struct image_push *p = container_of(h, struct image_push, transfer_job.helper);

	if (p->said_done || !push_takers[m->type])
		return push_wrong(err);
	return push_takers[m->type](p, m, err);
}

static void push_helper_end(struct helper *h, const struct error *err)
{
	struct image_push *p = container_of(h, struct image_push, transfer_job.helper);
	const struct push_blob *manifest = &p->blobs[p->n_blobs - 1];
	struct error fault = ERROR_INIT;

	if (err)
		fault = *err;
	else if (!p->said_done)
		(void)error_set(&fault, -EPROTO, "nacre-transfer: it ended too early");
	FAILPOINT_BEFORE("push.end");
	if (!p->cancelled)
		p->ops.on_done(p->userdata,
			       &(struct image_pushed){ .reference = p->reference,
						       .digest = manifest->digest,
						       .origin = p->origin,
						       .size = manifest->size },
			       fault.code ? &fault : NULL);
	transfer_job_drop(&p->transfer_job);
	push_free(p);
}

/* ---- the beginning ---- */

static int push_hand(struct image_push *p, const struct push_blob *b, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_PUSH_BLOB };
	_cleanup_fd_ int fd = image_lease_open(p->lease, b->digest);

	if (fd < 0)
		return error_set(err, fd, "open blob %s", b->digest);
	(void)str_copy(m.push_blob.digest, sizeof(m.push_blob.digest), b->digest);
	m.push_blob.size = b->size;
	m.push_blob.manifest = b == &p->blobs[p->n_blobs - 1];
	return helper_tell(&p->transfer_job.helper, &m, &fd, 1, err);
}

/* As far as the socket has room; push_on_room() goes on. */
static int push_hand_all(struct image_push *p, struct error *err)
{
	int r = 0;

	while (r == 0 && p->n_handed < p->n_blobs) {
		r = push_hand(p, &p->blobs[p->n_handed], err);
		if (r == 0)
			p->n_handed++;
	}
	if (r == 0)
		r = network_go(&p->transfer_job.helper, err);
	if (r != -EAGAIN)
		return r;
	*err = (struct error)ERROR_INIT;
	helper_await_room(&p->transfer_job.helper);
	return 0;
}

static int push_on_room(struct helper *h, struct error *err)
{
	return push_hand_all(container_of(h, struct image_push, transfer_job.helper), err);
}

static const struct helper_ops push_helper_ops = { .on_message = push_message,
						   .on_room = push_on_room,
						   .on_end = push_helper_end };

static int push_list_blobs(struct image_push *p, struct error *err)
{
	const struct image *image = image_lease_image(p->lease);
	char *const *all = image_lease_blobs(p->lease);

	p->blobs = calloc(strv_len(all) + 1, sizeof(*p->blobs));
	if (!p->blobs)
		return error_set(err, -ENOMEM, "push an image");
	for (; *all; all++)
		if (!str_eq(*all, image->digest))
			p->blobs[p->n_blobs++].digest = *all;
	p->blobs[p->n_blobs++].digest = image->digest;
	for (unsigned k = 0; k < p->n_blobs; k++) {
		_cleanup_fd_ int fd = image_lease_open(p->lease, p->blobs[k].digest);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0)
			return error_set(err, fd < 0 ? fd : -errno, "open blob %s",
					 p->blobs[k].digest);
		p->blobs[k].size = (uint64_t)st.st_size;
	}
	return 0;
}

static int push_tell_mount(struct image_push *p, const char *text, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_MOUNT };
	struct error none = ERROR_INIT;
	struct reference to, from;

	/* What is no reference (a file's name) names no repository. */
	if (reference_parse(&from, text, &none) < 0 ||
	    reference_parse(&to, p->reference, &none) < 0 || str_eq(from.name, to.name))
		return 0;
	m.mount.name = from.name;
	return helper_tell(&p->transfer_job.helper, &m, NULL, 0, err);
}

/* Where the registry may have the blobs: under the image's other names, and where it came from. */
static int push_tell_mounts(struct image_push *p, struct error *err)
{
	const struct image *image = image_lease_image(p->lease);
	unsigned n = 0;
	int r = 0;

	if (str_has_prefix(image->source, "registry:"))
		r = push_tell_mount(p, image->source + strlen("registry:"), err);
	for (char **name = image->names; r == 0 && name && *name && n < PUSH_MOUNTS_MAX;
	     name++, n++)
		r = push_tell_mount(p, *name, err);
	return r;
}

static int push_start_helper(struct image_push *p, const struct image_auths *auths,
			     struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_PUSH, .push = { .reference = p->reference } };
	int r = FAILPOINT("push.start");

	if (r < 0)
		return error_set(err, r, "start the helper");
	r = transfer_job_start(&p->transfer_job, p->store, "push", &m, auths, &push_helper_ops,
			       err);
	if (r == 0)
		r = push_tell_mounts(p, err);
	if (r == 0)
		r = push_hand_all(p, err);
	FAILPOINT_AFTER("push.start");
	return r;
}

/* Where it goes: with a tag, or by the digest that it has. */
static int push_set_reference(struct image_push *p, const char *text, const char *digest,
			      struct error *err)
{
	struct reference ref;

	if (reference_parse(&ref, text, err) < 0)
		return -EINVAL;
	if (*ref.digest && !str_eq(ref.digest, digest))
		return error_refuse(err, ERROR_INVALID,
				    "the image has the digest %s, and cannot be pushed as %s",
				    digest, ref.digest);
	reference_format(&ref, p->reference);
	return 0;
}

int image_push_start(struct image_store *s, const struct image_push_request *q,
		     const struct image_push_ops *ops, void *userdata, struct image_push **ret,
		     struct error *err)
{
	struct image_push *p;
	int r;

	if (s->n_pushes >= PUSHES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%u images are being pushed already",
				    s->n_pushes);
	p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(err, -ENOMEM, "push %.300s", q->destination);
	*p = (struct image_push){ .store = s, .ops = *ops, .userdata = userdata };
	list_init(&p->link);
	r = push_set_reference(p, q->destination, q->image->digest, err);
	if (r == 0 && image_lease_new(&p->lease, s, q->image) < 0)
		r = error_set(err, -ENOMEM, "push an image");
	if (r == 0)
		r = push_list_blobs(p, err);
	if (r == 0)
		r = push_start_helper(p, &q->auths, err);
	if (r < 0) {
		transfer_job_drop(&p->transfer_job);
		push_free(p);
		return r;
	}
	list_add_tail(&s->pushes, &p->link);
	s->n_pushes++;
	*ret = p;
	return 0;
}

void image_push_cancel(struct image_push *p)
{
	p->cancelled = true;
	helper_kill(&p->transfer_job.helper);
}

void push_free_all(struct image_store *s)
{
	while (!list_empty(&s->pushes))
		push_free(list_first(&s->pushes, struct image_push, link));
}
