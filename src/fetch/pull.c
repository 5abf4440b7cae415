/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a tag names is asked for once: the digest of that first answer is what the image is, and
 * everything below is asked for by digest, so a tag that moves meanwhile mixes nothing.
 */

#include "fetch/pull.h"

#include <errno.h>

#include "base/str.h"
#include "fetch/channel.h"
#include "fetch/copying.h"
#include "fetch/descriptor.h"
#include "fetch/download.h"
#include "fetch/oci.h"
#include "fetch/reading.h"
#include "fetch/referrers.h"
#include "fetch/trust.h"

struct pull {
	struct reading reading;
	struct network *network;
	struct network_document root; /* what the reference names */
	struct downloads downloads;
};

static void pull_done(struct pull *p)
{
	downloads_done(&p->downloads);
	network_document_done(&p->root);
	staging_done(&p->reading.staging);
}

static int pull_load_blob(struct pull *p, const struct descriptor *d, struct network_document *ret,
			  struct error *err)
{
	char path[sizeof("/blobs/") + DIGEST_SIZE], what[sizeof("blob ") + DIGEST_SIZE];

	(void)str_printf(path, sizeof(path), "/blobs/%s", d->digest);
	(void)str_printf(what, sizeof(what), "blob %s", d->digest);
	return network_get(p->network,
			   &(struct network_question){ .what = what,
						       .path = path,
						       .need = FETCH_CAN_PULL,
						       .digest = d->digest,
						       .max = READING_DOCUMENT_MAX },
			   ret, err);
}

/* A manifest must be sent as what the descriptor that names it says it is. */
static int pull_load_manifest(struct pull *p, const struct descriptor *d,
			      struct network_document *ret, struct error *err)
{
	int r = network_get_manifest(p->network, d->digest, ret, err);

	if (r == 0 && !str_eq(ret->media_type, d->media_type))
		r = error_refuse(
			err, ERROR_INVALID,
			"manifest %s: its descriptor says \"%.100s\", the registry \"%.100s\"",
			d->digest, d->media_type, ret->media_type);
	return r;
}

static int pull_load(struct reading *r, const struct descriptor *d, struct buf *ret,
		     struct error *err)
{
	struct pull *p = container_of(r, struct pull, reading);
	_cleanup_(network_document_done) struct network_document got = { .data = BUF_INIT };
	const struct network_document *from = &got;
	int code;

	if (d->size > READING_DOCUMENT_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "blob %s: a document of %llu bytes",
				    d->digest, (unsigned long long)d->size);
	if (str_eq(d->digest, p->root.digest)) {
		from = &p->root;
		code = 0;
	} else if (d->type.role == DESCRIPTOR_INDEX || d->type.role == DESCRIPTOR_MANIFEST) {
		code = pull_load_manifest(p, d, &got, err);
	} else {
		code = pull_load_blob(p, d, &got, err);
	}
	if (code == 0 && buf_add(ret, buf_data(&from->data), from->data.len) < 0)
		code = error_set(err, -ENOMEM, "keep a document");
	return code;
}

static const struct reading_ops pull_ops = { pull_load, NULL };

/* Each layer of the image is offered to the core by its LAYER message. */
static int pull_on_layer(struct reading *r, const char *digest, uint64_t size, struct error *err)
{
	struct pull *p = container_of(r, struct pull, reading);

	return downloads_offer(&p->downloads, digest, size, err);
}

static int pull_resolve(struct pull *p, struct error *err)
{
	const struct reference *ref = &p->network->reference;
	bool pinned = *ref->digest != '\0';
	int r;

	r = network_get_manifest(p->network, pinned ? ref->digest : ref->tag, &p->root, err);
	if (r == 0 && pinned && !str_eq(p->root.digest, ref->digest))
		r = error_refuse(err, ERROR_INVALID, "registry %s: manifest %s has the digest %s",
				 p->network->registry.host, ref->digest, p->root.digest);
	return r == 0 ? network_send_resolved(p->network, &p->root, err) : r;
}

static int pull_check_platform(struct pull *p, struct error *err)
{
	const struct fetchmsg *q = &p->network->request;

	if (!str_eq(q->pull.os, "linux"))
		return error_refuse(err, ERROR_PRECONDITION, "images for %.32s do not run here",
				    q->pull.os);
	if (str_copy(p->reading.architecture, sizeof(p->reading.architecture),
		     q->pull.architecture) < 0 ||
	    str_copy(p->reading.variant, sizeof(p->reading.variant), q->pull.variant) < 0)
		return error_refuse(err, ERROR_INVALID, "the platform's name is too long");
	return 0;
}

/* The name that the image gets: the reference without its digest. */
static int pull_take(struct pull *p, const struct descriptor *root, struct error *err)
{
	struct reference ref = p->network->reference;
	char name[REFERENCE_SIZE] = "";
	char *names[] = { NULL, NULL };

	ref.digest[0] = '\0';
	if (*ref.tag) {
		reference_format(&ref, name);
		names[0] = name;
	}
	if (p->network->request.pull.flags & FETCH_PULL_COPY)
		return copying_run(&p->reading, &p->downloads, root, err);
	return oci_take(&p->reading, root, names, err);
}

static int pull_all(struct pull *p, struct error *err)
{
	struct fetchmsg done = { .type = FETCHMSG_DONE };
	struct descriptor root;
	int r;

	r = pull_check_platform(p, err);
	if (r == 0)
		r = pull_resolve(p, err);
	if (r == 0)
		r = trust_check(p->network, &p->root, err);
	if (r < 0)
		return r;
	root = (struct descriptor){ .type = descriptor_type_of(p->root.media_type),
				    .media_type = p->root.media_type,
				    .digest = p->root.digest,
				    .size = p->root.data.len };
	if (p->network->request.pull.flags & FETCH_PULL_REFERRERS)
		r = referrers_tell(p->network, p->root.digest, FETCH_REFERRERS_MAX, true, err);
	if (r == 0)
		r = pull_take(p, &root, err);
	if (r == 0)
		r = downloads_run(&p->downloads, err);
	if (r < 0)
		return r;
	done.done.n_images = p->reading.n_images;
	return channel_send(p->network->sock_fd, &done, err);
}

int pull_run(struct network *n, int dir_fd, struct error *err)
{
	_cleanup_(pull_done) struct pull p = {
		.network = n,
		.reading = { .ops = &pull_ops,
			     .on_layer = pull_on_layer,
			     .sock_fd = n->sock_fd,
			     .staging = { .dir_fd = dir_fd,
					  .sock_fd = n->sock_fd,
					  .max_bytes = n->request.pull.max_bytes,
					  .blobs = MAP_INIT } },
		.root = { .data = BUF_INIT },
	};
	int r;

	r = downloads_init(&p.downloads, n, FETCH_CONTENTS_MAX, err);
	return r == 0 ? pull_all(&p, err) : r;
}
