/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/transfer/remote.h"

#include <errno.h>

#include "base/text/str.h"

static int remote_load_blob(struct remote *m, const struct descriptor *d,
			    struct network_document *ret, struct error *err)
{
	char path[sizeof("/blobs/") + DIGEST_SIZE], what[sizeof("blob ") + DIGEST_SIZE];

	(void)str_printf(path, sizeof(path), "/blobs/%s", d->digest);
	(void)str_printf(what, sizeof(what), "blob %s", d->digest);
	return network_get(m->network,
			   &(struct network_question){ .what = what,
						       .path = path,
						       .need = FETCH_CAN_PULL,
						       .digest = d->digest,
						       .max = READING_DOCUMENT_MAX },
			   ret, err);
}

/* A manifest must be sent as what the descriptor that names it says it is. */
static int remote_load_manifest(struct remote *m, const struct descriptor *d,
				struct network_document *ret, struct error *err)
{
	int r = network_get_manifest(m->network, d->digest, ret, err);

	if (r == 0 && !str_eq(ret->media_type, d->media_type))
		r = error_refuse(
			err, ERROR_INVALID,
			"manifest %s: its descriptor says \"%.100s\", the registry \"%.100s\"",
			d->digest, d->media_type, ret->media_type);
	return r;
}

static int remote_load(struct reading *r, const struct descriptor *d, struct buf *ret,
		       struct error *err)
{
	struct remote *m = container_of(r, struct remote, reading);
	_cleanup_(network_document_done) struct network_document got = { .data = BUF_INIT };
	const struct network_document *from = &got;
	int code;

	if (d->size > READING_DOCUMENT_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "blob %s: a document of %llu bytes",
				    d->digest, (unsigned long long)d->size);
	if (str_eq(d->digest, m->root.digest)) {
		from = &m->root;
		code = 0;
	} else if (d->type.role == DESCRIPTOR_INDEX || d->type.role == DESCRIPTOR_MANIFEST) {
		code = remote_load_manifest(m, d, &got, err);
	} else {
		code = remote_load_blob(m, d, &got, err);
	}
	m->named = code < 0;
	if (code == 0 && buf_add(ret, buf_data(&from->data), from->data.len) < 0)
		code = error_set(err, -ENOMEM, "keep a document");
	return code;
}

static const struct reading_ops remote_ops = { remote_load, NULL };

int remote_resolve(struct remote *m, struct error *err)
{
	const struct reference *ref = &m->network->reference;
	bool pinned = *ref->digest != '\0';
	int r;

	r = network_get_manifest(m->network, pinned ? ref->digest : ref->tag, &m->root, err);
	if (r == 0 && pinned && !str_eq(m->root.digest, ref->digest))
		r = error_refuse(err, ERROR_INVALID, "registry %s: manifest %s has the digest %s",
				 m->network->registry.host, ref->digest, m->root.digest);
	return r == 0 ? network_send_resolved(m->network, &m->root, err) : r;
}

void remote_init(struct remote *m, struct network *n, int dir_fd, uint64_t max_bytes)
{
	*m = (struct remote){
		.network = n,
		.reading = { .ops = &remote_ops,
			     .sock_fd = n->sock_fd,
			     .staging = { .dir_fd = dir_fd,
					  .sock_fd = n->sock_fd,
					  .max_bytes = max_bytes,
					  .blobs = MAP_INIT } },
		.root = { .data = BUF_INIT },
	};
}

void remote_done(struct remote *m)
{
	network_document_done(&m->root);
	staging_done(&m->reading.staging);
}

struct descriptor remote_root(const struct remote *m)
{
	return (struct descriptor){ .type = descriptor_type_of(m->root.media_type),
				    .media_type = m->root.media_type,
				    .digest = m->root.digest,
				    .size = m->root.data.len };
}

int remote_blame(const struct remote *m, int r, struct error *err)
{
	return r == 0 || m->named ? r
				  : error_wrap(err, r, "registry %s (%.150s)",
					       m->network->registry.host, m->root.origin);
}
