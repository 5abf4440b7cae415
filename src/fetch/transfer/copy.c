/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A copy is a push whose blobs are loaded when they are needed. All documents are read first, so
 * that what is to be there is known as a list; then each blob is looked for in the destination, and
 * where it is not there and cannot be mounted the core is asked for a file: the blob goes into that
 * from the one registry, is held against its digest, and goes out of it to the other. What is sent
 * is so what was verified, a cut upload can be gone on with, and at most as many blobs are on the
 * disk as there are connections. Manifests are sent byte by byte as they came.
 */

#include "fetch/transfer/copy.h"

#include <errno.h>
#include <fcntl.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "fetch/job/oci.h"
#include "fetch/transfer/copy_referrers.h"
#include "fetch/transfer/copying.h"
#include "fetch/transfer/download.h"
#include "fetch/transfer/push.h"
#include "fetch/transfer/remote.h"
#include "fetch/transfer/trust.h"
#include "registry/client.h"

struct copy {
	struct remote remote;
	struct network *to;
	struct downloads downloads;
	struct push push;
	struct copy_referrers referrers; /* while the list is made */
};

static struct network_blob *copy_find(const struct copy *c, const char *digest)
{
	for (size_t i = 0; i < c->to->n_blobs; i++)
		if (str_eq(c->to->blobs[i].digest, digest))
			return &c->to->blobs[i];
	return NULL;
}

/* ---- the list ---- */

static int copy_add(struct copy *c, const struct descriptor *d, bool manifest, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_CONTENT };
	struct network *to = c->to;
	struct network_blob *b = copy_find(c, d->digest);

	if (b && (b->size != d->size || b->manifest != manifest))
		return error_refuse(err, ERROR_INVALID,
				    "blob %s is said to be one thing and another", d->digest);
	if (b)
		return 0;
	if (to->n_blobs == FETCH_CONTENTS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "more than %d blobs", FETCH_CONTENTS_MAX);
	if (!to->blobs)
		to->blobs = arena_zalloc(&to->arena, FETCH_CONTENTS_MAX, sizeof(*to->blobs));
	if (!to->blobs)
		return error_set(err, -ENOMEM, "copy");
	b = &to->blobs[to->n_blobs++];
	*b = (struct network_blob){ .size = d->size, .manifest = manifest, .fd = -1 };
	(void)str_copy(b->digest, sizeof(b->digest), d->digest);
	(void)str_copy(m.content.digest, sizeof(m.content.digest), d->digest);
	m.content.size = d->size;
	m.content.media_type = d->media_type;
	return channel_send(to->sock_fd, &m, err);
}

static int copy_on_blob(struct reading *r, const struct descriptor *d, struct error *err)
{
	return copy_add(container_of(r, struct copy, remote.reading), d, false, err);
}

/* What refers to it stands in front of it, so that it is there when this gets its name. */
static int copy_on_manifest(struct reading *reading, const struct descriptor *d,
			    const char *subject, struct error *err)
{
	struct copy *c = container_of(reading, struct copy, remote.reading);
	int r = 0;

	if (c->remote.network->request.copy.referrers)
		r = copy_referrers_of(&c->referrers, d->digest, subject, err);
	c->remote.named = r < 0;
	if (r == 0)
		r = copy_add(c, d, true, err);
	if (r == 0)
		(void)str_copy(copy_find(c, d->digest)->subject, DIGEST_SIZE, subject);
	return r;
}

static const struct copying_ops copy_ops = { copy_on_blob, copy_on_manifest };

/* One more manifest with all below it, which may have a tag of its own. */
static int copy_take(void *userdata, const struct descriptor *d, const char *tag, struct error *err)
{
	struct copy *c = userdata;
	struct network_blob *b;
	int r = copying_run(&c->remote.reading, &copy_ops, d, err);

	b = r == 0 ? copy_find(c, d->digest) : NULL;
	if (b && *tag && !*b->tag)
		(void)str_copy(b->tag, sizeof(b->tag), tag);
	return r;
}

/* Of an index with a platform asked for it is that platform's manifest alone. */
static int copy_list(struct copy *c, const struct descriptor *root, struct error *err)
{
	struct fetchmsg end = { .type = FETCHMSG_CONTENT_END };
	_cleanup_(oci_kept_done) struct oci_kept kept = { .indexes = { NULL } };
	struct descriptor d = *root;
	int r = 0;

	if (*c->remote.reading.architecture)
		r = oci_find(&c->remote.reading, root, &d, &kept, err);
	if (r == 0 && *c->to->reference.digest && !str_eq(c->to->reference.digest, d.digest))
		r = error_refuse(err, ERROR_INVALID,
				 "the image has the digest %s, and cannot be copied to %s",
				 d.digest, c->to->reference.digest);
	if (r == 0)
		r = copying_run(&c->remote.reading, &copy_ops, &d, err);
	if (r < 0)
		return r;
	if (!str_eq(c->to->blobs[c->to->n_blobs - 1].digest, d.digest))
		return error_refuse(err, ERROR_INVALID, "manifest %s is said to refer to itself",
				    d.digest);
	end.content_end.n_contents = (uint32_t)c->to->n_blobs;
	return channel_send(c->to->sock_fd, &end, err);
}

/* ---- files ---- */

static int copy_want(void *userdata, struct network_blob *b, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_WANT };
	struct copy *c = userdata;
	int r;

	if (b->manifest) {
		b->fd = sysio_openat(c->remote.reading.staging.dir_fd, digest_hex(b->digest),
				     O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
		return b->fd < 0 ? error_set(err, -errno, "open manifest %s", b->digest) : 0;
	}
	r = downloads_offer(&c->downloads, b->digest, b->size, err);
	if (r < 0)
		return r;
	(void)str_copy(m.want.digest, sizeof(m.want.digest), b->digest);
	m.want.size = b->size;
	return channel_send(c->to->sock_fd, &m, err);
}

static void copy_on_whole(void *userdata, const char *digest, int fd)
{
	struct network_blob *b = copy_find(userdata, digest);

	if (b && b->fd < 0)
		b->fd = fd;
	else
		(void)fd_close(fd);
}

/* ---- lists of referrers ---- */

/* A registry without that API has them behind a tag, which whoever puts one writes. */
static int copy_write_lists(void *userdata, struct error *err)
{
	struct copy *c = userdata;

	return copy_referrers_list(c->to, c->remote.reading.staging.dir_fd, err);
}

/* ---- the job ---- */

static int copy_turn(struct copy *c, struct error *err)
{
	bool more = false, readable = false;
	int r, wait;

	r = downloads_step(&c->downloads, err);
	if (r == 0)
		r = push_step(&c->push, &more, err);
	if (r < 0)
		return r;
	wait = more ? 0 : MIN(PUSH_TURN_MS, downloads_wait(&c->downloads));
	r = client_turn_both(&c->remote.network->registry, &c->to->registry, c->to->sock_fd, wait,
			     &readable, err);
	if (r == 0 && c->downloads.err.code)
		r = error_copy(err, &c->downloads.err);
	return r == 0 && readable ? downloads_receive(&c->downloads, err) : r;
}

static int copy_send(struct copy *c, struct error *err)
{
	int r;

	r = push_init(&c->push, c->to, err);
	c->push.want = copy_want;
	c->push.before_last = copy_write_lists;
	c->push.userdata = c;
	while (r == 0 && !push_is_over(&c->push))
		r = copy_turn(c, err);
	push_done(&c->push);
	/* The last may refer to something itself. */
	if (r == 0)
		r = copy_write_lists(c, err);
	return r == 0 ? push_end(&c->push, err) : r;
}

static int copy_all(struct copy *c, struct error *err)
{
	const struct fetchmsg *q = &c->remote.network->request;
	struct reading *reading = &c->remote.reading;
	struct descriptor root;
	int r;

	if (str_copy(reading->architecture, sizeof(reading->architecture), q->copy.architecture) <
		    0 ||
	    str_copy(reading->variant, sizeof(reading->variant), q->copy.variant) < 0)
		return error_refuse(err, ERROR_INVALID, "the platform's name is too long");
	r = remote_resolve(&c->remote, err);
	if (r == 0)
		r = trust_check(c->remote.network, &c->remote.root, err);
	if (r < 0)
		return r;
	root = remote_root(&c->remote);
	r = remote_blame(&c->remote, copy_list(c, &root, err), err);
	return r == 0 ? copy_send(c, err) : r;
}

int copy_run(struct network *from, struct network *to, int dir_fd, struct error *err)
{
	static struct copy c;
	int r;

	c = (struct copy){ .to = to };
	remote_init(&c.remote, from, dir_fd, from->request.copy.max_bytes);
	copy_referrers_init(&c.referrers, from, copy_take, &c);
	r = downloads_init(&c.downloads, from, FETCH_CONTENTS_MAX, err);
	c.downloads.on_whole = copy_on_whole;
	c.downloads.userdata = &c;
	if (r == 0)
		r = copy_all(&c, err);
	downloads_done(&c.downloads);
	remote_done(&c.remote);
	return r;
}
