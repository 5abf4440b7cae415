/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/transfer/network.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "fetch/job/descriptor.h"
#include "fetch/unpack/reading.h"
#include "registry/client.h"
#include "registry/header.h"
#include "registry/limits.h"
#include "wire/name/checksum.h"

#define NETWORK_TURN_MS 1000

static int network_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "read the request");
}

static void network_note(void *userdata, const char *text)
{
	struct fetchmsg m = { .type = FETCHMSG_NOTE };
	struct network *n = userdata;
	char clean[ERROR_TEXT_MAX];

	(void)str_copy(clean, sizeof(clean), text);
	channel_clean(clean);
	m.note.text = clean;
	(void)channel_send(n->sock_fd, &m, NULL);
}

/* ---- the set-up ---- */

/* A copy of a message's text, which lives only until the next one; `*bad` where there is no
 * memory. */
static const char *network_keep(struct network *n, const char *text, bool *bad)
{
	const char *copy = arena_strdup(&n->arena, text);

	*bad = *bad || !copy;
	return copy;
}

static void *network_grow(struct network *n, void *list, size_t n_old, size_t size)
{
	char *more = arena_zalloc(&n->arena, n_old + 1, size);

	if (more && n_old)
		memcpy(more, list, n_old * size);
	return more;
}

static int network_add_word(struct network *n, char ***list, const char *text)
{
	size_t len = strv_len(*list);
	char **more = arena_zalloc(&n->arena, len + 2, sizeof(*more));
	char *copy = arena_strdup(&n->arena, text);

	if (!more || !copy)
		return -ENOMEM;
	if (len)
		memcpy(more, *list, len * sizeof(*more));
	more[len] = copy;
	*list = more;
	return 0;
}

static int network_take_network(struct network *n, const struct fetchmsg *m, struct error *err)
{
	n->config.settings = (struct registry_settings){
		.connections = m->network.connections,
		.stall_ms = m->network.stall_ms,
		.min_rate = m->network.min_rate,
		.n_retries = m->network.n_retries,
		.retry_ms = m->network.retry_ms,
		.retry_max_ms = m->network.retry_max_ms,
		.connect_ms = m->network.connect_ms,
	};
	return 0;
}

static int network_take_proxy(struct network *n, const struct fetchmsg *m, struct error *err)
{
	bool bad = false;

	n->config.http_proxy = network_keep(n, m->proxy.http, &bad);
	n->config.https_proxy = network_keep(n, m->proxy.https, &bad);
	n->config.no_proxy = network_keep(n, m->proxy.no_proxy, &bad);
	return bad ? network_memory(err) : 0;
}

static int network_take_dir(struct network *n, const struct fetchmsg *m, struct error *err)
{
	return network_add_word(n, &n->dirs, m->registry_dir.path) < 0 ? network_memory(err) : 0;
}

static int network_take_policy(struct network *n, const struct fetchmsg *m, struct error *err)
{
	struct error why = ERROR_INIT;

	if (n->policy)
		return error_refuse(err, ERROR_INVALID, "more than one policy");
	if (policy_open(&n->policy, m->policy.path, &why) == 0)
		return 0;
	/* Nothing is had where it cannot be known what may be had. */
	return error_refuse(err, ERROR_PRECONDITION, "SignatureValidationFailed: %.500s",
			    error_text(&why));
}

static int network_take_mount(struct network *n, const struct fetchmsg *m, struct error *err)
{
	const char *slash = strchr(m->mount.name, '/');
	size_t len = slash ? (size_t)(slash - m->mount.name) : 0;

	/* Only what is in the same registry. */
	if (!slash || strncmp(n->reference.name, m->mount.name, len + 1) != 0)
		return 0;
	return network_add_word(n, &n->mounts, slash + 1) < 0 ? network_memory(err) : 0;
}

static int network_take_endpoint(struct network *n, const struct fetchmsg *m, struct error *err)
{
	struct endpoint_mirror *list =
		network_grow(n, n->mirrors, n->config.endpoints.n_mirrors, sizeof(*list));
	struct endpoint_mirror *e;
	bool bad = false;

	if (!list)
		return network_memory(err);
	n->mirrors = list;
	e = &list[n->config.endpoints.n_mirrors++];
	e->host = network_keep(n, m->endpoint.host, &bad);
	e->url = network_keep(n, m->endpoint.url, &bad);
	e->can = m->endpoint.can;
	e->flags = m->endpoint.flags;
	return bad ? network_memory(err) : 0;
}

static int network_take_auth(struct network *n, const struct fetchmsg *m, struct error *err)
{
	struct registry_credentials *list =
		network_grow(n, n->credentials, n->config.n_credentials, sizeof(*list));
	struct registry_credentials *c;
	bool bad = false;

	if (!list)
		return network_memory(err);
	n->credentials = list;
	c = &list[n->config.n_credentials++];
	c->host = network_keep(n, m->auth.host, &bad);
	c->user = network_keep(n, m->auth.user, &bad);
	c->secret = network_keep(n, m->auth.secret, &bad);
	c->kind = m->auth.kind;
	return bad ? network_memory(err) : 0;
}

static const struct {
	enum fetchmsg_type type;
	int (*take)(struct network *n, const struct fetchmsg *m, struct error *err);
} network_words[] = {
	{ FETCHMSG_NETWORK, network_take_network },  { FETCHMSG_PROXY, network_take_proxy },
	{ FETCHMSG_REGISTRY_DIR, network_take_dir }, { FETCHMSG_ENDPOINT, network_take_endpoint },
	{ FETCHMSG_POLICY, network_take_policy },    { FETCHMSG_AUTH, network_take_auth },
	{ FETCHMSG_MOUNT, network_take_mount },
};

static int network_take_blob(struct network *n, const struct fetchmsg *m, int *fd,
			     struct error *err)
{
	struct network_blob *b;

	if (*fd < 0 || n->n_blobs == FETCH_CONTENTS_MAX)
		return error_refuse(err, ERROR_INVALID, "a blob to push without its file");
	if (!n->blobs)
		n->blobs = arena_zalloc(&n->arena, FETCH_CONTENTS_MAX, sizeof(*n->blobs));
	if (!n->blobs)
		return network_memory(err);
	b = &n->blobs[n->n_blobs++];
	(void)str_copy(b->digest, sizeof(b->digest), m->push_blob.digest);
	b->size = m->push_blob.size;
	b->manifest = m->push_blob.manifest;
	b->fd = TAKE_FD(*fd);
	return 0;
}

static int network_take(struct network *n, const struct fetchmsg *m, int *fd, struct error *err)
{
	if (m->type == FETCHMSG_PUSH_BLOB)
		return network_take_blob(n, m, fd, err);
	for (size_t i = 0; i < ARRAY_SIZE(network_words); i++)
		if (network_words[i].type == m->type)
			return network_words[i].take(n, m, err);
	return error_refuse(err, ERROR_INVALID, "a message that does not belong in front of GO");
}

static int network_receive(struct network *n, struct error *err)
{
	for (unsigned i = 0; i < NETWORK_MESSAGES_MAX; i++) {
		int fds[CHANNEL_FDS_MAX] = { -1, -1 };
		struct fetchmsg m;
		size_t n_fds;
		int r;

		r = channel_receive_fds(n->sock_fd, &m, fds, &n_fds, err);
		if (r < 0)
			return r;
		if (m.type == FETCHMSG_GO)
			return 0;
		r = network_take(n, &m, &fds[0], err);
		(void)fd_close(fds[0]);
		(void)fd_close(fds[1]);
		if (r < 0)
			return r;
	}
	return error_refuse(err, ERROR_EXHAUSTED, "more than %d messages before GO",
			    NETWORK_MESSAGES_MAX);
}

static const char *network_reference(const struct fetchmsg *m, uint32_t *ret_flags)
{
	if (m->type == FETCHMSG_PUSH) {
		*ret_flags = m->push.host_flags;
		return m->push.reference;
	}
	*ret_flags = 0;
	if (m->type == FETCHMSG_COPY)
		return m->copy.reference;
	if (m->type == FETCHMSG_VERIFY) {
		*ret_flags = m->verify.host_flags;
		return m->verify.reference;
	}
	*ret_flags = m->type == FETCHMSG_PULL ? m->pull.host_flags : m->list.host_flags;
	return m->type == FETCHMSG_PULL ? m->pull.reference : m->list.reference;
}

/* What is asked about; of a LOGIN the registry itself. */
static int network_take_reference(struct network *n, const struct fetchmsg *request,
				  struct error *err)
{
	if (request->type == FETCHMSG_LOGIN)
		return str_printf(n->reference.name, sizeof(n->reference.name), "%s/",
				  request->login.host) < 0
			       ? error_refuse(err, ERROR_INVALID, "the host is too long")
			       : 0;
	return reference_parse(&n->reference,
			       network_reference(request, &n->config.endpoints.host_flags), err);
}

/* The texts of the request that are needed later. */
static int network_keep_request(struct network *n, const struct fetchmsg *request,
				struct error *err)
{
	bool bad = false;
	int r;

	n->request = *request;
	r = network_take_reference(n, request, err);
	if (request->type == FETCHMSG_PULL) {
		n->request.pull.reference = network_keep(n, request->pull.reference, &bad);
		n->request.pull.os = network_keep(n, request->pull.os, &bad);
		n->request.pull.architecture = network_keep(n, request->pull.architecture, &bad);
		n->request.pull.variant = network_keep(n, request->pull.variant, &bad);
	}
	if (request->type == FETCHMSG_COPY) {
		n->request.copy.reference = network_keep(n, request->copy.reference, &bad);
		n->request.copy.destination = network_keep(n, request->copy.destination, &bad);
		n->request.copy.architecture = network_keep(n, request->copy.architecture, &bad);
		n->request.copy.variant = network_keep(n, request->copy.variant, &bad);
	}
	if (request->type == FETCHMSG_VERIFY) {
		n->request.verify.reference = network_keep(n, request->verify.reference, &bad);
		n->request.verify.digest = network_keep(n, request->verify.digest, &bad);
		n->request.verify.key = network_keep(n, request->verify.key, &bad);
	}
	return bad ? network_memory(err) : r;
}

int network_open(struct network *n, int sock_fd, const struct fetchmsg *request, struct error *err)
{
	int r;

	*n = (struct network){ .sock_fd = sock_fd, .arena = ARENA_INIT_LIMIT(NETWORK_MEMORY_MAX) };
	r = network_keep_request(n, request, err);
	if (r == 0)
		r = network_receive(n, err);
	if (r < 0)
		return r;
	n->config.name = n->reference.name;
	n->config.endpoints.dirs = n->dirs;
	n->config.endpoints.mirrors = n->mirrors;
	n->config.credentials = n->credentials;
	n->config.mounts = n->mounts;
	n->config.note = network_note;
	n->config.userdata = n;
	n->open = true;
	return client_open(&n->registry, &n->config, request->type == FETCHMSG_PUSH, err);
}

/* What it is copied from may have the blobs for it. */
static int network_mount_source(struct network *to, const struct network *n, struct error *err)
{
	const struct fetchmsg m = { .type = FETCHMSG_MOUNT, .mount = { n->reference.name } };

	return str_eq(to->reference.name, n->reference.name) ? 0 : network_take_mount(to, &m, err);
}

int network_open_destination(struct network *to, struct network *n, struct error *err)
{
	int r;

	*to = (struct network){ .sock_fd = n->sock_fd,
				.arena = ARENA_INIT_LIMIT(NETWORK_MEMORY_MAX),
				.config = n->config };
	r = reference_parse(&to->reference, n->request.copy.destination, err);
	if (r == 0)
		r = network_mount_source(to, n, err);
	if (r < 0)
		return r;
	to->config.name = to->reference.name;
	to->config.mounts = to->mounts;
	to->config.userdata = to;
	to->open = true;
	r = client_open(&to->registry, &to->config, true, err);
	if (r == 0)
		client_join(&to->registry, &n->registry);
	return r;
}

void network_close(struct network *n)
{
	for (size_t i = 0; i < n->n_blobs; i++)
		n->blobs[i].fd = fd_close(n->blobs[i].fd);
	if (n->open)
		client_close(&n->registry);
	n->policy = policy_free(n->policy);
	arena_done(&n->arena);
}

/* ---- documents ---- */

struct network_getting {
	struct exchange exchange;
	struct network_document *to;
	bool manifest;
	struct error err;
	bool ended;
};

static void network_getting_free(struct network_getting **g)
{
	free(*g);
}

void network_document_done(struct network_document *d)
{
	buf_done(&d->data);
}

static void network_on_attempt(struct exchange *x)
{
	struct network_getting *g = container_of(x, struct network_getting, exchange);

	buf_clear(&g->to->data);
}

/* Of pages for people, say, with which a proxy or a portal answers in a registry's name. */
static int network_check_type(const char *media_type, struct error *err)
{
	enum descriptor_role role = descriptor_type_of(media_type).role;

	if (role == DESCRIPTOR_INDEX || role == DESCRIPTOR_MANIFEST)
		return 0;
	if (!*media_type)
		return error_refuse(err, ERROR_INVALID, "it does not say of which type it is");
	if (str_has_prefix(media_type, "application/vnd.docker.distribution.manifest.v1+"))
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "a manifest of Docker's schema 1, which nobody makes any more "
				    "and which cannot be verified");
	return error_refuse(err, ERROR_UNSUPPORTED, "it sends \"%.100s\", which is no manifest",
			    media_type);
}

static int network_on_head(struct exchange *x, struct error *err)
{
	struct network_getting *g = container_of(x, struct network_getting, exchange);
	const struct transfer_head *h = &x->transfer.head;

	if (h->has_length && h->length > g->to->data.limit)
		return error_refuse(err, ERROR_EXHAUSTED, "the document has more than %zu bytes",
				    g->to->data.limit);
	header_media_type(h->content_type, g->to->media_type, sizeof(g->to->media_type));
	if (g->manifest) {
		int r = network_check_type(g->to->media_type, err);

		if (r < 0)
			return r;
	}
	(void)str_copy(g->to->next, sizeof(g->to->next), h->next);
	url_format_origin(exchange_url(x), g->to->origin);
	g->to->url = *exchange_url(x);
	g->to->endpoint = x->endpoint;
	return 0;
}

static int network_on_data(struct exchange *x, const void *data, size_t len, struct error *err)
{
	struct network_getting *g = container_of(x, struct network_getting, exchange);
	int r = buf_add(&g->to->data, data, len);

	if (r == -ENOBUFS)
		return error_refuse(err, ERROR_EXHAUSTED, "the document has more than %zu bytes",
				    g->to->data.limit);
	return r < 0 ? error_set(err, r, "keep a document") : 0;
}

static void network_on_end(struct exchange *x, const struct error *err)
{
	struct network_getting *g = container_of(x, struct network_getting, exchange);

	(void)error_copy(&g->err, err);
	g->ended = true;
}

static const struct exchange_ops network_document_ops = { network_on_attempt, network_on_head,
							  network_on_data, network_on_end };

static void network_digest(const struct buf *b, char ret[DIGEST_SIZE])
{
	struct checksum h;

	checksum_start(&h);
	if (b->len)
		checksum_add(&h, buf_data(b), b->len);
	checksum_end(&h, ret);
}

/* Waits until it has ended. */
static int network_run(struct network *n, struct network_getting *g,
		       const struct exchange_request *request, struct error *err)
{
	bool readable;
	int r;

	r = exchange_start(&g->exchange, &n->registry, request, &network_document_ops, err);
	while (r == 0 && !g->ended) {
		if (n->deadline && clock_mono() >= n->deadline)
			r = error_refuse(err, ERROR_DEADLINE, "registry %s: %s: it took too long",
					 n->registry.host, request->what);
		else
			r = client_turn(&n->registry, -1, NETWORK_TURN_MS, &readable, err);
	}
	exchange_stop(&g->exchange);
	return r == 0 && g->err.code ? error_copy(err, &g->err) : r;
}

/* What it says of itself must be so; other algorithms are not looked at. */
static int network_check_digest(struct network *n, const struct network_getting *g,
				const char *what, struct error *err)
{
	const char *named = g->exchange.transfer.head.digest;

	if (!str_has_prefix(named, "sha256:") || str_eq(named, g->to->digest))
		return 0;
	return error_refuse(err, ERROR_INVALID,
			    "registry %s: %s: it names the digest %.80s, and sends %s",
			    n->registry.host, what, named, g->to->digest);
}

static int network_get_page(const struct network_question *q, struct exchange_request *request,
			    struct url *next, struct error *err)
{
	int r;

	if (!q->before)
		return 0;
	r = url_join(next, &q->before->url, q->before->next, err);
	if (r == 0 && !url_same_origin(next, &q->before->url))
		r = error_refuse(err, ERROR_INVALID, "the next page is said to be elsewhere");
	request->at = next;
	request->endpoint = q->before->endpoint;
	return r;
}

/* Whether there is somebody else to ask, where this one has sent another document. */
static bool network_lies(struct network *n, const struct network_question *q,
			 const struct network_document *d)
{
	char text[URL_SIZE + 256];

	if (!q->digest || str_eq(q->digest, d->digest) ||
	    d->endpoint + 1 >= n->registry.endpoints.n)
		return false;
	(void)str_printf(text, sizeof(text), "%s: %.100s has the digest %s; the next one is asked",
			 d->origin, q->what, d->digest);
	network_note(n, text);
	return true;
}

int network_get(struct network *n, const struct network_question *q, struct network_document *ret,
		struct error *err)
{
	struct exchange_request request = { .method = "GET",
					    .what = q->what,
					    .path = q->path,
					    .need = q->need,
					    .accept = q->accept };
	_cleanup_(network_getting_free) struct network_getting *g = calloc(1, sizeof(*g));
	struct url next;
	int r;

	*ret = (struct network_document){ .data = BUF_INIT_LIMIT(q->max) };
	if (!g)
		return error_set(err, -ENOMEM, "ask a registry");
	r = network_get_page(q, &request, &next, err);
	do {
		*g = (struct network_getting){ .to = ret, .manifest = q->manifest };
		if (r == 0)
			r = network_run(n, g, &request, err);
		if (r == 0)
			network_digest(&ret->data, ret->digest);
		request.first = ret->endpoint + 1;
	} while (r == 0 && network_lies(n, q, ret));
	return r == 0 ? network_check_digest(n, g, q->what, err) : r;
}

/* Puts the next page in the place of this one: 1, or 0 where it was the last. */
static int network_next_page(struct network *n, const struct network_question *q,
			     struct network_document *page, unsigned *n_pages, struct error *err)
{
	struct network_question next = *q;
	struct network_document *before;
	int r;

	if (!*page->next)
		return 0;
	if (++*n_pages == REGISTRY_PAGES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "registry %s: %s: more than %d pages",
				    n->registry.host, q->what, REGISTRY_PAGES_MAX);
	before = malloc(sizeof(*before));
	if (!before)
		return error_set(err, -ENOMEM, "ask a registry");
	*before = *page;
	next.before = before;
	r = network_get(n, &next, page, err);
	network_document_done(before);
	free(before);
	return r < 0 ? r : 1;
}

int network_each_page(struct network *n, const struct network_question *q,
		      struct network_document *page, network_page_fn fn, void *userdata,
		      struct error *err)
{
	unsigned n_pages = 0;
	int r;

	do {
		r = fn(n, page, userdata, err);
		if (r == 0)
			r = network_next_page(n, q, page, &n_pages, err);
	} while (r > 0);
	return r;
}

int network_get_manifest(struct network *n, const char *tag_or_digest, struct network_document *ret,
			 struct error *err)
{
	char path[sizeof("/manifests/") + REFERENCE_TAG_MAX + DIGEST_SIZE];
	char what[sizeof("manifest ") + REFERENCE_TAG_MAX + DIGEST_SIZE];
	bool pinned = digest_is_valid(tag_or_digest);

	(void)str_printf(path, sizeof(path), "/manifests/%s", tag_or_digest);
	(void)str_printf(what, sizeof(what), "manifest %s", tag_or_digest);
	return network_get(
		n,
		&(struct network_question){ .what = what,
					    .path = path,
					    .accept = NETWORK_ACCEPT,
					    .need = pinned ? FETCH_CAN_PULL : FETCH_CAN_RESOLVE,
					    .max = READING_DOCUMENT_MAX,
					    .digest = pinned ? tag_or_digest : NULL,
					    .manifest = true },
		ret, err);
}

int network_put_index(struct network *n, const char *tag, const char *text, size_t len,
		      struct error *err)
{
	char path[sizeof("/manifests/") + REFERENCE_TAG_MAX];
	char what[sizeof("manifest ") + REFERENCE_TAG_MAX];
	struct network_document answer = { .data = BUF_INIT_LIMIT(READING_DOCUMENT_MAX) };
	_cleanup_(network_getting_free) struct network_getting *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return error_set(err, -ENOMEM, "ask a registry");
	(void)str_printf(path, sizeof(path), "/manifests/%s", tag);
	(void)str_printf(what, sizeof(what), "manifest %s", tag);
	*g = (struct network_getting){ .to = &answer };
	r = network_run(n, g,
			&(struct exchange_request){
				.method = "PUT",
				.what = what,
				.path = path,
				.need = FETCH_CAN_PUSH,
				.content_type = "application/vnd.oci.image.index.v1+json",
				.has_body = true,
				.body_fd = -1,
				.body = text,
				.body_len = len },
			err);
	network_document_done(&answer);
	return r;
}

int network_send_resolved(struct network *n, const struct network_document *d, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_RESOLVED };

	(void)str_copy(m.resolved.digest, sizeof(m.resolved.digest), d->digest);
	m.resolved.size = d->data.len;
	m.resolved.media_type = d->media_type;
	m.resolved.origin = d->origin;
	return channel_send(n->sock_fd, &m, err);
}
