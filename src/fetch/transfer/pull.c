/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a tag names is asked for once: the digest of that first answer is what the image is, and
 * everything below is asked for by digest, so a tag that moves meanwhile mixes nothing.
 */

#include "fetch/transfer/pull.h"

#include <errno.h>

#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "fetch/job/descriptor.h"
#include "fetch/job/oci.h"
#include "fetch/transfer/copying.h"
#include "fetch/transfer/download.h"
#include "fetch/transfer/referrers.h"
#include "fetch/transfer/remote.h"
#include "fetch/transfer/trust.h"
#include "fetch/unpack/reading.h"

struct pull {
	struct remote remote;
	uint32_t n_told; /* of a copy */
	struct downloads downloads;
};

static void pull_done(struct pull *p)
{
	downloads_done(&p->downloads);
	remote_done(&p->remote);
}

/* Each layer of the image is offered to the core by its LAYER message. */
static int pull_on_layer(struct reading *r, const char *digest, uint64_t size, struct error *err)
{
	struct pull *p = container_of(r, struct pull, remote.reading);

	return downloads_offer(&p->downloads, digest, size, err);
}

static int pull_check_platform(struct pull *p, struct error *err)
{
	const struct fetchmsg *q = &p->remote.network->request;

	if (!str_eq(q->pull.os, "linux"))
		return error_refuse(err, ERROR_PRECONDITION, "images for %.32s do not run here",
				    q->pull.os);
	if (str_copy(p->remote.reading.architecture, sizeof(p->remote.reading.architecture),
		     q->pull.architecture) < 0 ||
	    str_copy(p->remote.reading.variant, sizeof(p->remote.reading.variant),
		     q->pull.variant) < 0)
		return error_refuse(err, ERROR_INVALID, "the platform's name is too long");
	return 0;
}

static int pull_on_content(struct reading *r, const struct descriptor *d, struct error *err)
{
	struct pull *p = container_of(r, struct pull, remote.reading);
	struct fetchmsg m = { .type = FETCHMSG_CONTENT };
	size_t before = p->downloads.n_offers;
	int code;

	code = downloads_offer(&p->downloads, d->digest, d->size, err);
	if (code < 0 || p->downloads.n_offers == before)
		return code;
	p->n_told++;
	(void)str_copy(m.content.digest, sizeof(m.content.digest), d->digest);
	m.content.size = d->size;
	m.content.media_type = d->media_type;
	return channel_send(r->sock_fd, &m, err);
}

static int pull_take_copy(struct pull *p, const struct descriptor *root, struct error *err)
{
	static const struct copying_ops ops = { .on_blob = pull_on_content };
	struct fetchmsg end = { .type = FETCHMSG_CONTENT_END };
	int r;

	r = copying_run(&p->remote.reading, &ops, root, err);
	if (r < 0)
		return r;
	end.content_end.n_contents = p->n_told;
	return channel_send(p->remote.network->sock_fd, &end, err);
}

/* The name that the image gets: the reference without its digest. */
static int pull_take(struct pull *p, const struct descriptor *root, struct error *err)
{
	struct reference ref = p->remote.network->reference;
	char name[REFERENCE_SIZE] = "";
	char *names[] = { NULL, NULL };

	ref.digest[0] = '\0';
	if (*ref.tag) {
		reference_format(&ref, name);
		names[0] = name;
	}
	if (p->remote.network->request.pull.flags & FETCH_PULL_COPY)
		return pull_take_copy(p, root, err);
	return oci_take(&p->remote.reading, root, names, err);
}

static int pull_all(struct pull *p, struct error *err)
{
	struct fetchmsg done = { .type = FETCHMSG_DONE };
	struct descriptor root;
	int r;

	r = pull_check_platform(p, err);
	if (r == 0)
		r = remote_resolve(&p->remote, err);
	if (r == 0)
		r = trust_check(p->remote.network, &p->remote.root, err);
	if (r < 0)
		return r;
	root = remote_root(&p->remote);
	if (p->remote.network->request.pull.flags & FETCH_PULL_REFERRERS)
		r = referrers_tell(p->remote.network, p->remote.root.digest, FETCH_REFERRERS_MAX,
				   true, err);
	if (r == 0)
		r = remote_blame(&p->remote, pull_take(p, &root, err), err);
	if (r == 0)
		r = downloads_run(&p->downloads, err);
	if (r < 0)
		return r;
	done.done.n_images = p->remote.reading.n_images;
	return channel_send(p->remote.network->sock_fd, &done, err);
}

int pull_run(struct network *n, int dir_fd, struct error *err)
{
	_cleanup_(pull_done) struct pull p = { .n_told = 0 };
	int r;

	remote_init(&p.remote, n, dir_fd, n->request.pull.max_bytes);
	p.remote.reading.on_layer = pull_on_layer;
	r = downloads_init(&p.downloads, n, FETCH_CONTENTS_MAX, err);
	return r == 0 ? pull_all(&p, err) : r;
}
