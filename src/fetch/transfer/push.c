/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blobs are sent as many at once as there are connections, then the manifests, one behind the
 * other. Each blob goes through steps, every one a question to the registry:
 *
 *   LOOKS    has it the blob (HEAD)?
 *   LOADS    (no question) until it is here; behind BEGINS where it might have been mounted
 *   BEGINS   an upload (POST); where there is a repository of the same registry that may have the
 *            blob, the registry is asked to mount it from there, and that is all
 *   SENDS    the whole to where the answer said (PUT)
 *   ASKS     what of a piece that was cut has arrived (GET)
 *   APPENDS  what is missing (PATCH)
 *   ENDS     the upload that was sent in pieces (PUT)
 *
 * A registry that does not tell how far an upload has come gets the blob from the beginning.
 */

#include "fetch/transfer/push.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/memory/list.h"
#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "fetch/job/json.h"
#include "fetch/unpack/reading.h"
#include "registry/client.h"
#include "registry/header.h"
#include "wire/name/checksum.h"

#define PUSH_PROGRESS (UINT64_C(100) * 1000000)
#define PUSH_GOT_ON (64 << 10) /* bytes: who got on so far is not at the end of his tries */
#define PUSH_MILLI UINT64_C(1000000)

enum push_step {
	PUSH_LOOKS,
	PUSH_LOADS,
	PUSH_BEGINS,
	PUSH_SENDS,
	PUSH_ASKS,
	PUSH_APPENDS,
	PUSH_ENDS,
	PUSH_NAMES, /* a manifest is put (PUT) */
	PUSH_DONE,
	PUSH_STEP_COUNT
};

/* A blob or manifest on its way. */
struct push_upload {
	struct list link;
	struct push *push;
	struct network_blob *blob;
	bool lent;             /* its file came when it was wanted */
	enum push_step behind; /* PUSH_LOADS */
	bool last;             /* the manifest that gets the reference's name */
	enum push_step step;
	bool waits, ended; /* the step is still to be asked; its answer is there */
	nsec_t due;
	struct exchange exchange;
	struct error err;
	struct url location; /* of the upload */
	struct url target;   /* the same with the digest, at which it ends */
	size_t endpoint;
	char *const *mounts; /* those that were not asked for yet */
	bool mounting;
	uint64_t from; /* bytes that the registry has */
	uint64_t best; /* the most of it that it ever had */
	unsigned n_tries;
	bool is_throttled;     /* the last answer was 429 */
	uint64_t throttled_ms; /* waited for that */
	nsec_t told;           /* when its progress was */
	struct buf text;
	char media_type[FETCH_TYPE_MAX + 1];
	char path[sizeof("/blobs/uploads/?mount=&from=") + DIGEST_SIZE + 3 * REFERENCE_NAME_MAX];
	char what[sizeof("manifest ") + REFERENCE_TAG_MAX + DIGEST_SIZE];
	char range[48];
};

/* ---- exchanges ---- */

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
	struct push_upload *f = container_of(x, struct push_upload, exchange);

	(void)error_copy(&f->err, err);
	f->is_throttled = err && x->transfer.head.status == 429;
	f->ended = true;
}

static const struct exchange_ops push_ops = { NULL, push_on_head, push_on_data, push_on_end };

static int push_start(struct push_upload *f, const struct exchange_request *request,
		      struct error *err)
{
	struct exchange_request q = *request;

	f->err = (struct error)ERROR_INIT;
	q.what = f->what;
	q.need = FETCH_CAN_PUSH;
	return exchange_start(&f->exchange, &f->push->network->registry, &q, &push_ops, err);
}

static const struct transfer_head *push_head(const struct push_upload *f)
{
	return &f->exchange.transfer.head;
}

static void push_go(struct push_upload *f, enum push_step step)
{
	f->step = step;
	f->waits = step != PUSH_DONE;
	f->due = 0;
}

/* ---- what the core hears ---- */

static int push_tell_progress(struct push_upload *f, uint64_t n_bytes, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_PROGRESS };

	(void)str_copy(m.progress.digest, sizeof(m.progress.digest), f->blob->digest);
	m.progress.n_bytes = n_bytes;
	f->told = clock_mono();
	return channel_send(f->push->network->sock_fd, &m, err);
}

static int push_tell_done(struct push_upload *f, enum fetch_pushed how, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_PUSHED };
	int r = 0;

	push_go(f, PUSH_DONE);
	/* Its room is free when the core hears of it: another blob may wait for that. */
	if (f->lent)
		f->blob->fd = fd_close(f->blob->fd);
	(void)str_copy(m.pushed.digest, sizeof(m.pushed.digest), f->blob->digest);
	m.pushed.how = how;
	if (how == FETCH_PUSHED_UPLOADED && !f->blob->manifest)
		r = push_tell_progress(f, f->blob->size, err);
	return r == 0 ? channel_send(f->push->network->sock_fd, &m, err) : r;
}

/* What it says that it has now must be what was sent; other algorithms are not looked at. */
static int push_check_digest(const struct push_upload *f, struct error *err)
{
	const char *named = push_head(f)->digest;

	if (!str_has_prefix(named, "sha256:") || str_eq(named, f->blob->digest))
		return 0;
	return error_refuse(err, ERROR_INVALID,
			    "registry %s: %s: it was sent with the digest %s, and the registry "
			    "says that it has %.80s",
			    f->push->network->registry.host, f->what, f->blob->digest, named);
}

/* ---- what comes after a failure ---- */

static int push_fail(struct push_upload *f, struct error *err)
{
	return error_copy(err, &f->err);
}

/* The step is tried again, or another one in its place, a little later each time. */
static int push_again(struct push_upload *f, enum push_step step, struct error *err)
{
	const struct registry_settings *s = &f->push->network->registry.settings;
	uint64_t ms = s->retry_ms;
	char text[ERROR_TEXT_MAX];

	/* Of a registry that answers 429 the time counts, not the tries. */
	if (f->n_tries >= s->n_retries && !(f->is_throttled && f->throttled_ms < s->throttled_ms))
		return push_fail(f, err);
	for (unsigned i = 0; i < f->n_tries && ms < s->retry_max_ms; i++)
		ms *= 2;
	ms = MIN(ms, (uint64_t)s->retry_max_ms);
	f->n_tries++;
	f->throttled_ms += f->is_throttled ? ms : 0;
	(void)str_printf(text, sizeof(text), "%.400s; tried again in %llu ms", error_text(&f->err),
			 (unsigned long long)ms);
	f->push->network->config.note(f->push->network->config.userdata, text);
	push_go(f, step);
	f->due = clock_mono() + ms * PUSH_MILLI;
	return 0;
}

/* Whether the registry has said that it will not, whenever it is asked. */
static bool push_is_final(const struct push_upload *f)
{
	return f->err.kind != ERROR_UNAVAILABLE;
}

/* ---- blobs ---- */

/* `step`, for which the blob must be here. */
static void push_go_loaded(struct push_upload *f, enum push_step step)
{
	f->behind = step;
	push_go(f, f->blob->fd < 0 ? PUSH_LOADS : step);
}

static void push_go_begin(struct push_upload *f)
{
	if (f->mounts && *f->mounts)
		push_go(f, PUSH_BEGINS);
	else
		push_go_loaded(f, PUSH_BEGINS);
}

static int push_want(struct push_upload *f, struct error *err)
{
	struct push *p = f->push;

	if (!p->want)
		return error_refuse(err, ERROR_INVALID, "%s came without its file", f->what);
	f->err = (struct error)ERROR_INIT;
	f->lent = true;
	return p->want(p->userdata, f->blob, err);
}

static int push_good_loads(struct push_upload *f, struct error *err)
{
	push_go(f, f->behind);
	return 0;
}

static int push_ask_looks(struct push_upload *f, struct error *err)
{
	(void)str_printf(f->path, sizeof(f->path), "/blobs/%s", f->blob->digest);
	return push_start(f, &(struct exchange_request){ .method = "HEAD", .path = f->path }, err);
}

static int push_good_looks(struct push_upload *f, struct error *err)
{
	return push_tell_done(f, FETCH_PUSHED_EXISTED, err);
}

static int push_bad_looks(struct push_upload *f, struct error *err)
{
	if (f->err.kind != ERROR_NOT_FOUND)
		return push_fail(f, err);
	push_go_begin(f);
	return 0;
}

static int push_ask_begins(struct push_upload *f, struct error *err)
{
	char escaped[3 * REFERENCE_NAME_MAX + 1];

	f->from = 0;
	f->mounting = f->mounts && *f->mounts;
	if (f->mounting) {
		url_escape(escaped, *f->mounts++);
		(void)str_printf(f->path, sizeof(f->path), "/blobs/uploads/?mount=%s&from=%s",
				 f->blob->digest, escaped);
	} else {
		(void)str_copy(f->path, sizeof(f->path), "/blobs/uploads/");
	}
	return push_start(f,
			  &(struct exchange_request){ .method = "POST",
						      .path = f->path,
						      .has_body = true,
						      .body_fd = -1,
						      .body = "" },
			  err);
}

/* Where the upload goes on. */
static int push_take_location(struct push_upload *f, struct error *err)
{
	int r;

	f->endpoint = f->exchange.endpoint;
	r = url_join(&f->location, exchange_url(&f->exchange), push_head(f)->location, err);
	return r < 0 ? error_wrap(err, r, "registry %s: %s: where to send it",
				  f->push->network->registry.host, f->what)
		     : 0;
}

static int push_good_begins(struct push_upload *f, struct error *err)
{
	int r;

	if (f->mounting && push_head(f)->status == 201) {
		r = push_check_digest(f, err);
		return r == 0 ? push_tell_done(f, FETCH_PUSHED_MOUNTED, err) : r;
	}
	if (f->mounting && *f->mounts) {
		push_go(f, PUSH_BEGINS);
		return 0;
	}
	r = push_take_location(f, err);
	push_go_loaded(f, PUSH_SENDS);
	return r;
}

/* A registry that does not mount may still take the blob. */
static int push_bad_begins(struct push_upload *f, struct error *err)
{
	if (!f->mounting || f->err.kind == ERROR_FAULT)
		return push_fail(f, err);
	push_go_begin(f);
	return 0;
}

static int push_set_target(struct push_upload *f, struct error *err)
{
	char digest[DIGEST_SIZE * 3];
	size_t len;

	f->target = f->location;
	len = strlen(f->target.path);
	url_escape(digest, f->blob->digest);
	if (str_printf(f->target.path + len, sizeof(f->target.path) - len, "%sdigest=%s",
		       strchr(f->location.path, '?') ? "&" : "?", digest) < 0)
		return error_refuse(err, ERROR_INVALID, "the URL of the upload is too long");
	return 0;
}

static int push_put(struct push_upload *f, int fd, uint64_t len, struct error *err)
{
	int r = push_set_target(f, err);

	return r == 0 ? push_start(f,
				   &(struct exchange_request){ .method = "PUT",
							       .content_type =
								       "application/octet-stream",
							       .is_long = true,
							       .once = true,
							       .has_body = true,
							       .body_fd = fd,
							       .body = "",
							       .body_len = len,
							       .at = &f->target,
							       .endpoint = f->endpoint },
				   err)
		      : r;
}

static int push_ask_sends(struct push_upload *f, struct error *err)
{
	return push_put(f, f->blob->fd, f->blob->size, err);
}

static int push_good_sends(struct push_upload *f, struct error *err)
{
	int r = push_check_digest(f, err);

	return r == 0 ? push_tell_done(f, FETCH_PUSHED_UPLOADED, err) : r;
}

static int push_bad_sends(struct push_upload *f, struct error *err)
{
	/* The upload has gone. */
	if (f->err.kind == ERROR_NOT_FOUND)
		return push_again(f, PUSH_BEGINS, err);
	return push_is_final(f) ? push_fail(f, err) : push_again(f, PUSH_ASKS, err);
}

static int push_ask_asks(struct push_upload *f, struct error *err)
{
	return push_start(f,
			  &(struct exchange_request){ .method = "GET",
						      .once = true,
						      .at = &f->location,
						      .endpoint = f->endpoint },
			  err);
}

static int push_good_asks(struct push_upload *f, struct error *err)
{
	uint64_t n = 0;
	int r = 0;

	/* "0-0" is said of nothing, too. */
	if (!header_upload_range(push_head(f)->range, &n) || n <= 1 || n > f->blob->size) {
		push_go(f, PUSH_BEGINS);
		return 0;
	}
	if (n >= f->best + PUSH_GOT_ON)
		f->n_tries = 0;
	f->best = MAX(f->best, n);
	f->from = n;
	if (*push_head(f)->location)
		r = push_take_location(f, err);
	push_go(f, n == f->blob->size ? PUSH_ENDS : PUSH_APPENDS);
	return r;
}

static int push_bad_asks(struct push_upload *f, struct error *err)
{
	return f->err.kind == ERROR_FAULT ? push_fail(f, err) : push_again(f, PUSH_BEGINS, err);
}

static int push_ask_appends(struct push_upload *f, struct error *err)
{
	(void)str_printf(f->range, sizeof(f->range), "%llu-%llu", (unsigned long long)f->from,
			 (unsigned long long)(f->blob->size - 1));
	return push_start(f,
			  &(struct exchange_request){ .method = "PATCH",
						      .content_type = "application/octet-stream",
						      .content_range = f->range,
						      .is_long = true,
						      .once = true,
						      .has_body = true,
						      .body_fd = f->blob->fd,
						      .body_at = f->from,
						      .body_len = f->blob->size - f->from,
						      .at = &f->location,
						      .endpoint = f->endpoint },
			  err);
}

static int push_good_appends(struct push_upload *f, struct error *err)
{
	push_go(f, PUSH_ENDS);
	return *push_head(f)->location ? push_take_location(f, err) : 0;
}

/* A registry that does not take pieces gets the whole. */
static int push_bad_appends(struct push_upload *f, struct error *err)
{
	if (f->err.kind == ERROR_FAULT || f->err.kind == ERROR_DENIED)
		return push_fail(f, err);
	return push_again(f, push_is_final(f) ? PUSH_BEGINS : PUSH_ASKS, err);
}

static int push_ask_ends(struct push_upload *f, struct error *err)
{
	return push_put(f, -1, 0, err);
}

static int push_bad_ends(struct push_upload *f, struct error *err)
{
	if (f->err.kind == ERROR_FAULT || f->err.kind == ERROR_DENIED)
		return push_fail(f, err);
	return push_again(f, PUSH_BEGINS, err);
}

/* ---- manifests ---- */

/* What the document says that it is; of one that says nothing, what its members say. */
static int push_media_type(struct push_upload *f, struct error *err)
{
	_cleanup_json_ json_t *document = NULL;
	const char *type;
	int r;

	r = json_read(&document, &f->text, "the manifest", err);
	if (r == 0)
		r = json_get_text(document, "mediaType", &type, err);
	if (r < 0)
		return r;
	if (!*type)
		type = json_object_get(document, "manifests")
			       ? "application/vnd.oci.image.index.v1+json"
			       : "application/vnd.oci.image.manifest.v1+json";
	r = str_copy(f->media_type, sizeof(f->media_type), type);
	return r < 0 || !str_is_clean(type)
		       ? error_refuse(err, ERROR_INVALID, "the manifest's type is no media type")
		       : 0;
}

/* A registry takes whatever it gets behind a tag: the store's manifest is verified here. */
static int push_verify_manifest(const struct push_upload *f, struct error *err)
{
	struct checksum sum;
	char found[DIGEST_SIZE];

	checksum_start(&sum);
	checksum_add(&sum, buf_data(&f->text), f->text.len);
	checksum_end(&sum, found);
	return str_eq(found, f->blob->digest)
		       ? 0
		       : error_set(err, -EIO,
				   "the store is damaged, blob %s has another digest: pull or "
				   "import the image again",
				   f->blob->digest);
}

static int push_ask_names(struct push_upload *f, struct error *err)
{
	const struct reference *ref = &f->push->network->reference;
	const char *name = *f->blob->tag ? f->blob->tag : f->blob->digest;
	int r;

	if (f->last && *ref->tag)
		name = ref->tag;

	(void)str_printf(f->path, sizeof(f->path), "/manifests/%s", name);
	(void)str_printf(f->what, sizeof(f->what), "manifest %s", name);
	r = f->blob->fd < 0 ? push_want(f, err) : 0;
	if (r < 0)
		return r;
	r = fd_read_all(f->blob->fd, READING_DOCUMENT_MAX, &f->text);
	if (r < 0)
		return error_set(err, r, "read %s", f->what);
	r = push_verify_manifest(f, err);
	if (r == 0)
		r = push_media_type(f, err);
	return r == 0 ? push_start(f,
				   &(struct exchange_request){ .method = "PUT",
							       .path = f->path,
							       .content_type = f->media_type,
							       .has_body = true,
							       .body_fd = -1,
							       .body = buf_data(&f->text),
							       .body_len = f->text.len },
				   err)
		      : r;
}

static int push_good_names(struct push_upload *f, struct error *err)
{
	int r = push_check_digest(f, err);

	if (r < 0)
		return r;
	f->blob->unlisted = *f->blob->subject && !str_eq(push_head(f)->subject, f->blob->subject);
	(void)str_copy(f->push->media_type, sizeof(f->push->media_type), f->media_type);
	url_format_origin(exchange_url(&f->exchange), f->push->origin);
	return push_tell_done(f, FETCH_PUSHED_UPLOADED, err);
}

/* ---- flights ---- */

static const struct {
	int (*ask)(struct push_upload *f, struct error *err);
	int (*good)(struct push_upload *f, struct error *err);
	int (*bad)(struct push_upload *f, struct error *err);
} push_steps[PUSH_STEP_COUNT] = {
	[PUSH_LOOKS] = { push_ask_looks, push_good_looks, push_bad_looks },
	[PUSH_LOADS] = { push_want, push_good_loads, push_fail },
	[PUSH_BEGINS] = { push_ask_begins, push_good_begins, push_bad_begins },
	[PUSH_SENDS] = { push_ask_sends, push_good_sends, push_bad_sends },
	[PUSH_ASKS] = { push_ask_asks, push_good_asks, push_bad_asks },
	[PUSH_APPENDS] = { push_ask_appends, push_good_appends, push_bad_appends },
	[PUSH_ENDS] = { push_ask_ends, push_good_sends, push_bad_ends },
	[PUSH_NAMES] = { push_ask_names, push_good_names, push_fail },
};

static void push_upload_free(struct push_upload *f)
{
	exchange_stop(&f->exchange);
	if (f->lent)
		f->blob->fd = fd_close(f->blob->fd);
	buf_done(&f->text);
	f->push->n_uploads--;
	list_remove(&f->link);
	free(f);
}

static int push_upload_new(struct push *p, struct error *err)
{
	struct network_blob *b = &p->network->blobs[p->next];
	struct push_upload *f = calloc(1, sizeof(*f));

	if (!f)
		return error_set(err, -ENOMEM, "push");
	*f = (struct push_upload){ .push = p,
				   .blob = b,
				   .last = ++p->next == p->network->n_blobs,
				   .mounts = p->network->config.mounts,
				   .text = BUF_INIT };
	list_init(&f->link);
	list_add_tail(&p->blob_downloads, &f->link);
	p->n_uploads++;
	(void)str_printf(f->what, sizeof(f->what), "blob %s", b->digest);
	push_go(f, b->manifest ? PUSH_NAMES : PUSH_LOOKS);
	return 0;
}

/* Whether the last is next, and all before it is there. */
static int push_come_to_last(struct push *p, struct error *err)
{
	if (p->is_last || !p->before_last || p->next + 1 != p->network->n_blobs || p->n_uploads > 0)
		return 0;
	p->is_last = true;
	return p->before_last(p->userdata, err);
}

/* As many blobs as there are connections; a manifest alone, when all before it is there. */
static int push_begin_more(struct push *p, struct error *err)
{
	const struct network *n = p->network;
	int r = push_come_to_last(p, err);

	while (r == 0 && p->next < n->n_blobs && p->n_uploads < n->registry.settings.connections) {
		if ((n->blobs[p->next].manifest || !p->heard) && p->n_uploads > 0)
			break;
		r = push_upload_new(p, err);
		if (n->blobs[p->next - 1].manifest)
			break;
	}
	return r;
}

/* Whether the core has not heard for a while how far it is. */
static bool push_is_news(const struct push_upload *f)
{
	return f->exchange.running && !f->blob->manifest && f->exchange.transfer.n_sent &&
	       clock_mono() - f->told > PUSH_PROGRESS;
}

static int push_step_upload(struct push_upload *f, struct error *err)
{
	int r = 0;

	if (f->step == PUSH_LOADS && f->lent && f->blob->fd >= 0)
		f->ended = true;
	if (f->ended) {
		f->push->heard = true;
		f->ended = false;
		r = f->err.code ? push_steps[f->step].bad(f, err)
				: push_steps[f->step].good(f, err);
	}
	if (r == 0 && f->waits && f->due <= clock_mono()) {
		f->waits = false;
		return push_steps[f->step].ask(f, err);
	}
	if (r == 0 && push_is_news(f))
		r = push_tell_progress(f, f->from + f->exchange.transfer.n_sent, err);
	return r;
}

int push_step(struct push *p, bool *ret_more, struct error *err)
{
	struct push_upload *f;
	int r = push_begin_more(p, err);

	*ret_more = false;
	list_for_each (f, &p->blob_downloads, struct push_upload, link) {
		if (r == 0)
			r = push_step_upload(f, err);
		if (r == 0 && f->step == PUSH_DONE) {
			push_upload_free(f);
			/* There is room for another. */
			*ret_more = true;
		}
	}
	return r;
}

bool push_is_over(const struct push *p)
{
	return p->next == p->network->n_blobs && p->n_uploads == 0;
}

int push_end(struct push *p, struct error *err)
{
	const struct network_blob *b = &p->network->blobs[p->network->n_blobs - 1];
	struct fetchmsg m = { .type = FETCHMSG_RESOLVED };
	struct fetchmsg done = { .type = FETCHMSG_DONE, .done = { .n_images = 1 } };
	int r;

	(void)str_copy(m.resolved.digest, sizeof(m.resolved.digest), b->digest);
	m.resolved.size = b->size;
	m.resolved.media_type = p->media_type;
	m.resolved.origin = p->origin;
	r = channel_send(p->network->sock_fd, &m, err);
	return r == 0 ? channel_send(p->network->sock_fd, &done, err) : r;
}

int push_init(struct push *p, struct network *n, struct error *err)
{
	*p = (struct push){ .network = n };
	list_init(&p->blob_downloads);
	if (n->n_blobs == 0 || !n->blobs[n->n_blobs - 1].manifest)
		return error_refuse(err, ERROR_INVALID, "a push without a manifest");
	return 0;
}

void push_done(struct push *p)
{
	struct push_upload *f;

	list_for_each (f, &p->blob_downloads, struct push_upload, link) {
		push_upload_free(f);
	}
}

int push_run(struct network *n, struct error *err)
{
	static struct push p;
	int r = push_init(&p, n, err);

	while (r == 0 && !push_is_over(&p)) {
		bool more, readable;

		r = push_step(&p, &more, err);
		if (r == 0 && !more)
			r = client_turn(&n->registry, -1, PUSH_TURN_MS, &readable, err);
	}
	push_done(&p);
	return r == 0 ? push_end(&p, err) : r;
}
