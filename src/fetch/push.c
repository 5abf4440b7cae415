/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each blob is asked for (HEAD), then begun (POST), which mounts it where the registry has it in
 * another repository that we named, and else sent in one piece to where the answer says (PUT). A
 * piece that was cut leaves an upload of which nobody knows how far it came: it is begun anew.
 */

#include "fetch/push.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "fetch/channel.h"
#include "fetch/json.h"
#include "fetch/reading.h"
#include "registry/client.h"

#define PUSH_TURN_MS 100
#define PUSH_PROGRESS (UINT64_C(100) * 1000000)

struct push {
	struct network *network;
	const struct network_blob *blob;
	struct exchange exchange;
	struct url location;
	struct error err;
	bool ended;
	bool sends; /* this exchange has the blob as its body */
	nsec_t progress;
	char media_type[FETCH_TYPE_MAX + 1]; /* of the manifest that was sent last */
};

static void push_free(struct push **p)
{
	free(*p);
}

static int push_on_head(struct exchange *x, struct error *err)
{
	return 0;
}

static int push_on_data(struct exchange *x, const void *data, size_t len, struct error *err)
{
	return 0;
}

static void push_on_end(struct exchange *x, const struct error *err)
{
	struct push *p = container_of(x, struct push, exchange);

	(void)error_copy(&p->err, err);
	p->ended = true;
}

static const struct exchange_ops push_ops = { NULL, push_on_head, push_on_data, push_on_end };

static int push_tell_progress(struct push *p, uint64_t n_bytes, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_PROGRESS };

	(void)str_copy(m.progress.digest, sizeof(m.progress.digest), p->blob->digest);
	m.progress.n_bytes = n_bytes;
	p->progress = clock_mono();
	return channel_send(p->network->sock_fd, &m, err);
}

static int push_ask(struct push *p, const struct exchange_request *request, struct error *err)
{
	bool readable;
	int r;

	p->ended = false;
	p->err = (struct error)ERROR_INIT;
	p->sends = request->has_body && !p->blob->manifest;
	r = exchange_start(&p->exchange, &p->network->registry, request, &push_ops, err);
	while (r == 0 && !p->ended) {
		r = client_turn(&p->network->registry, -1, PUSH_TURN_MS, &readable, err);
		if (r == 0 && p->sends && !p->ended && clock_mono() - p->progress > PUSH_PROGRESS)
			r = push_tell_progress(p, p->exchange.transfer.n_sent, err);
	}
	exchange_stop(&p->exchange);
	return r == 0 && p->err.code ? error_copy(err, &p->err) : r;
}

static int push_tell(struct push *p, enum fetch_pushed how, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_PUSHED };

	(void)str_copy(m.pushed.digest, sizeof(m.pushed.digest), p->blob->digest);
	m.pushed.how = how;
	return channel_send(p->network->sock_fd, &m, err);
}

/* ---- blobs ---- */

/* 1: the registry has it. */
static int push_is_there(struct push *p, const char *what, struct error *err)
{
	char path[sizeof("/blobs/") + DIGEST_SIZE];
	int r;

	(void)str_printf(path, sizeof(path), "/blobs/%s", p->blob->digest);
	r = push_ask(p,
		     &(struct exchange_request){
			     .method = "HEAD", .what = what, .path = path, .need = FETCH_CAN_PUSH },
		     err);
	if (r == 0)
		return 1;
	return err->kind == ERROR_NOT_FOUND ? 0 : r;
}

/* Begins an upload, or with `from` asks for a mount: 1 where that was done. */
static int push_begin(struct push *p, const char *what, const char *from, struct error *err)
{
	char path[sizeof("/blobs/uploads/?mount=&from=") + DIGEST_SIZE + 3 * REFERENCE_NAME_MAX];
	char escaped[3 * REFERENCE_NAME_MAX + 1];
	int r;

	if (from) {
		url_escape(escaped, from);
		(void)str_printf(path, sizeof(path), "/blobs/uploads/?mount=%s&from=%s",
				 p->blob->digest, escaped);
	} else {
		(void)str_copy(path, sizeof(path), "/blobs/uploads/");
	}
	r = push_ask(p,
		     &(struct exchange_request){ .method = "POST",
						 .what = what,
						 .path = path,
						 .need = FETCH_CAN_PUSH,
						 .has_body = true,
						 .body_fd = -1,
						 .body = "" },
		     err);
	if (r < 0)
		return r;
	if (p->exchange.transfer.head.status == 201)
		return 1;
	r = url_join(&p->location, exchange_url(&p->exchange), p->exchange.transfer.head.location,
		     err);
	return r < 0 ? error_wrap(err, r, "registry %s: %s: where to send it",
				  p->network->registry.host, what)
		     : 0;
}

static int push_send(struct push *p, const char *what, struct error *err)
{
	size_t len = strlen(p->location.path);
	const char *mark = strchr(p->location.path, '?') ? "&" : "?";
	char digest[DIGEST_SIZE * 3];

	url_escape(digest, p->blob->digest);
	if (str_printf(p->location.path + len, sizeof(p->location.path) - len, "%sdigest=%s", mark,
		       digest) < 0)
		return error_refuse(err, ERROR_INVALID, "the URL of the upload is too long");
	return push_ask(p,
			&(struct exchange_request){ .method = "PUT",
						    .what = what,
						    .need = FETCH_CAN_PUSH,
						    .content_type = "application/octet-stream",
						    .is_long = true,
						    .once = true,
						    .has_body = true,
						    .body_fd = p->blob->fd,
						    .body_len = p->blob->size,
						    .at = &p->location,
						    .endpoint = p->exchange.endpoint },
			err);
}

static int push_upload(struct push *p, const char *what, struct error *err)
{
	unsigned n_tries = p->network->registry.settings.n_retries + 1;
	int r;

	for (char *const *m = p->network->config.mounts; m && *m; m++) {
		r = push_begin(p, what, *m, err);
		if (r != 0)
			return r < 0 ? r : push_tell(p, FETCH_PUSHED_MOUNTED, err);
	}
	for (;;) {
		r = push_begin(p, what, NULL, err);
		if (r == 0)
			r = push_send(p, what, err);
		if (r >= 0 || err->kind != ERROR_UNAVAILABLE || --n_tries == 0)
			break;
		p->network->config.note(p->network->config.userdata, err->text);
		*err = (struct error)ERROR_INIT;
	}
	if (r == 0)
		r = push_tell_progress(p, p->blob->size, err);
	return r < 0 ? r : push_tell(p, FETCH_PUSHED_UPLOADED, err);
}

static int push_blob(struct push *p, struct error *err)
{
	char what[sizeof("blob ") + DIGEST_SIZE];
	int r;

	(void)str_printf(what, sizeof(what), "blob %s", p->blob->digest);
	r = push_is_there(p, what, err);
	if (r > 0)
		return push_tell(p, FETCH_PUSHED_EXISTED, err);
	if (r == 0) {
		*err = (struct error)ERROR_INIT;
		r = push_upload(p, what, err);
	}
	return r;
}

/* ---- manifests ---- */

/* What the document says that it is; of one that says nothing, what its members say. */
static int push_media_type(struct push *p, const struct buf *text, struct error *err)
{
	_cleanup_json_ json_t *document = NULL;
	const char *type;
	int r;

	r = json_read(&document, text, "the manifest", err);
	if (r == 0)
		r = json_get_text(document, "mediaType", &type, err);
	if (r < 0)
		return r;
	if (!*type)
		type = json_object_get(document, "manifests")
			       ? "application/vnd.oci.image.index.v1+json"
			       : "application/vnd.oci.image.manifest.v1+json";
	r = str_copy(p->media_type, sizeof(p->media_type), type);
	return r < 0 || !str_is_clean(type)
		       ? error_refuse(err, ERROR_INVALID, "the manifest's type is no media type")
		       : 0;
}

static int push_manifest(struct push *p, bool last, struct error *err)
{
	const struct reference *ref = &p->network->reference;
	const char *name = last && *ref->tag ? ref->tag : p->blob->digest;
	char path[sizeof("/manifests/") + REFERENCE_TAG_MAX + DIGEST_SIZE];
	char what[sizeof("manifest ") + REFERENCE_TAG_MAX + DIGEST_SIZE];
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	int r;

	(void)str_printf(path, sizeof(path), "/manifests/%s", name);
	(void)str_printf(what, sizeof(what), "manifest %s", name);
	r = fd_read_all(p->blob->fd, READING_DOCUMENT_MAX, &text);
	if (r < 0)
		return error_set(err, r, "read %s", what);
	r = push_media_type(p, &text, err);
	if (r == 0)
		r = push_ask(p,
			     &(struct exchange_request){ .method = "PUT",
							 .what = what,
							 .path = path,
							 .need = FETCH_CAN_PUSH,
							 .content_type = p->media_type,
							 .has_body = true,
							 .body_fd = -1,
							 .body = buf_data(&text),
							 .body_len = text.len },
			     err);
	return r == 0 ? push_tell(p, FETCH_PUSHED_UPLOADED, err) : r;
}

static int push_end(struct push *p, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_RESOLVED };
	struct fetchmsg done = { .type = FETCHMSG_DONE, .done = { .n_images = 1 } };
	char origin[URL_SIZE];
	int r;

	url_format_origin(exchange_url(&p->exchange), origin);
	(void)str_copy(m.resolved.digest, sizeof(m.resolved.digest), p->blob->digest);
	m.resolved.size = p->blob->size;
	m.resolved.media_type = p->media_type;
	m.resolved.origin = origin;
	r = channel_send(p->network->sock_fd, &m, err);
	return r == 0 ? channel_send(p->network->sock_fd, &done, err) : r;
}

int push_run(struct network *n, struct error *err)
{
	_cleanup_(push_free) struct push *p = calloc(1, sizeof(*p));
	int r = 0;

	if (!p)
		return error_set(err, -ENOMEM, "push");
	if (n->n_blobs == 0 || !n->blobs[n->n_blobs - 1].manifest)
		return error_refuse(err, ERROR_INVALID, "a push without a manifest");
	p->network = n;
	for (size_t i = 0; r == 0 && i < n->n_blobs; i++) {
		p->blob = &n->blobs[i];
		r = p->blob->manifest ? push_manifest(p, i + 1 == n->n_blobs, err)
				      : push_blob(p, err);
	}
	return r == 0 ? push_end(p, err) : r;
}
