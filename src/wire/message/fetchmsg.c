/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A packet is {magic, type, length of the whole, 0} of four bytes each, and then the members in the
 * order of the table: numbers as eight bytes, digests as 72 with their NUL, texts as a length of
 * four bytes and the text with its NUL. Numbers are in the order of this machine: both ends run on
 * it, and the magic has a version in it.
 */

#include "wire/message/fetchmsg.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/text/str.h"
#include "wire/name/reference.h"

#define FETCHMSG_MAGIC 0x6e636632U /* "ncf2" */
#define FETCHMSG_FIELDS_MAX 7

enum fetch_kind { FETCH_END, FETCH_U64, FETCH_U32, FETCH_DIGEST, FETCH_TEXT, FETCH_CLEAN };

struct fetch_field {
	enum fetch_kind kind;
	size_t offset;
	uint64_t max; /* value, or length of a text */
};

#define FIELD(member, k, m)                                                                        \
	{                                                                                          \
		k, offsetof(struct fetchmsg, member), m                                            \
	}

static bool fetch_word_fits(const struct fetchmsg *m)
{
	char full[REFERENCE_SIZE];

	switch ((enum fetch_list)m->word.list) {
	case FETCH_NAME:
		return reference_normalise(full, m->word.text, NULL) == 0 &&
		       str_eq(full, m->word.text) && !strchr(full, '@');
	case FETCH_ENV:
		return *m->word.text != '=' && strchr(m->word.text, '=');
	case FETCH_ENTRYPOINT:
	case FETCH_CMD:
	case FETCH_VOLUME:
	case FETCH_HEALTH:
		return true;
	case FETCH_LIST_COUNT:
		break;
	}
	return false;
}

static bool fetch_error_fits(const struct fetchmsg *m)
{
	return m->error.code > 0 && *m->error.text;
}

/* In the full form, so that both sides mean the same. */
static bool fetch_is_full(const char *text)
{
	char full[REFERENCE_SIZE];

	return reference_normalise(full, text, NULL) == 0 && str_eq(full, text);
}

static bool fetch_pull_fits(const struct fetchmsg *m)
{
	return fetch_is_full(m->pull.reference) && *m->pull.os && *m->pull.architecture;
}

static bool fetch_push_fits(const struct fetchmsg *m)
{
	return fetch_is_full(m->push.reference);
}

static bool fetch_copy_fits(const struct fetchmsg *m)
{
	return fetch_is_full(m->copy.reference) && fetch_is_full(m->copy.destination) &&
	       (*m->copy.architecture || !*m->copy.variant);
}

static bool fetch_list_fits(const struct fetchmsg *m)
{
	return fetch_is_full(m->list.reference);
}

static bool fetch_login_fits(const struct fetchmsg *m)
{
	return reference_is_registry(m->login.host);
}

static bool fetch_verify_fits(const struct fetchmsg *m)
{
	return fetch_is_full(m->verify.reference) &&
	       (!*m->verify.digest || digest_is_valid(m->verify.digest));
}

static bool fetch_signer_fits(const struct fetchmsg *m)
{
	return *m->signer.key && *m->signer.identity;
}

static bool fetch_annotation_fits(const struct fetchmsg *m)
{
	return *m->annotation.name;
}

static bool fetch_verdict_fits(const struct fetchmsg *m)
{
	uint32_t v = m->verdict.verdict;

	return (v == FETCH_VERDICT_REFUSED) == (*m->verdict.text != '\0') &&
	       (v == FETCH_VERDICT_SIGNED) == (m->verdict.n_signers > 0);
}

static bool fetch_dir_fits(const struct fetchmsg *m)
{
	return *m->registry_dir.path == '/';
}

static bool fetch_policy_fits(const struct fetchmsg *m)
{
	return *m->policy.path == '/';
}

static bool fetch_endpoint_fits(const struct fetchmsg *m)
{
	return *m->endpoint.host && *m->endpoint.url && m->endpoint.can;
}

static bool fetch_auth_fits(const struct fetchmsg *m)
{
	bool with_user = m->auth.kind == FETCH_AUTH_PASSWORD;

	/* A password may be empty; a token may not. */
	return *m->auth.host && (*m->auth.secret || with_user) &&
	       with_user == (*m->auth.user != '\0') && !strchr(m->auth.user, ':');
}

static bool fetch_tag_fits(const struct fetchmsg *m)
{
	struct reference ref;
	char text[REFERENCE_SIZE];

	/* A tag is what stands as one behind a name. */
	return str_printf(text, sizeof(text), "x:%s", m->tag.name) >= 0 &&
	       reference_parse(&ref, text, NULL) == 0 && str_eq(ref.tag, m->tag.name);
}

static bool fetch_filter_fits(const struct fetchmsg *m)
{
	return m->filter.n_insns > 0;
}

static bool fetch_fetch_fits(const struct fetchmsg *m)
{
	return m->fetch.from <= m->fetch.size;
}

static const struct {
	const char *name;
	struct fetch_field fields[FETCHMSG_FIELDS_MAX + 1];
	bool (*fits)(const struct fetchmsg *m);
} fetch_types[] = {
	[FETCHMSG_READ] = { "read",
			    { FIELD(read.max_bytes, FETCH_U64, FETCH_BYTES_MAX),
			      FIELD(read.architecture, FETCH_CLEAN, 32),
			      FIELD(read.config, FETCH_TEXT, FETCH_WORD_MAX),
			      FIELD(read.ref, FETCH_CLEAN, FETCH_REF_MAX),
			      FIELD(read.repository, FETCH_CLEAN, 255) },
			    NULL },
	[FETCHMSG_UNPACK] = { "unpack",
			      { FIELD(unpack.digest, FETCH_DIGEST, 0),
				FIELD(unpack.diff_id, FETCH_DIGEST, 0),
				FIELD(unpack.size, FETCH_U64, FETCH_BYTES_MAX),
				FIELD(unpack.compression, FETCH_U32, FETCH_COMPRESSION_COUNT - 1),
				FIELD(unpack.max_bytes, FETCH_U64, FETCH_BYTES_MAX),
				FIELD(unpack.max_entries, FETCH_U64, FETCH_BYTES_MAX),
				FIELD(unpack.follow, FETCH_U32, 1) },
			      NULL },
	[FETCHMSG_BLOB] = { "blob",
			    { FIELD(blob.digest, FETCH_DIGEST, 0),
			      FIELD(blob.size, FETCH_U64, FETCH_BYTES_MAX) },
			    NULL },
	[FETCHMSG_IMAGE] = { "image",
			     { FIELD(image.id, FETCH_DIGEST, 0),
			       FIELD(image.digest, FETCH_DIGEST, 0),
			       FIELD(image.user, FETCH_CLEAN, 256),
			       FIELD(image.working_dir, FETCH_CLEAN, 4095),
			       FIELD(image.stop_signal, FETCH_CLEAN, 32) },
			     NULL },
	[FETCHMSG_WORD] = { "word",
			    { FIELD(word.list, FETCH_U32, FETCH_LIST_COUNT - 1),
			      FIELD(word.text, FETCH_TEXT, FETCH_WORD_MAX) },
			    fetch_word_fits },
	[FETCHMSG_LAYER] = { "layer",
			     { FIELD(layer.digest, FETCH_DIGEST, 0),
			       FIELD(layer.diff_id, FETCH_DIGEST, 0),
			       FIELD(layer.size, FETCH_U64, FETCH_BYTES_MAX),
			       FIELD(layer.compression, FETCH_U32, FETCH_COMPRESSION_COUNT - 1) },
			     NULL },
	[FETCHMSG_IMAGE_END] = { "image-end",
				 { FIELD(image_end.n_words, FETCH_U32, FETCH_WORDS_MAX),
				   FIELD(image_end.n_layers, FETCH_U32, FETCH_LAYERS_MAX) },
				 NULL },
	[FETCHMSG_DONE] = { "done", { FIELD(done.n_images, FETCH_U32, FETCH_IMAGES_MAX) }, NULL },
	[FETCHMSG_UNPACKED] = { "unpacked",
				{ FIELD(unpacked.n_bytes, FETCH_U64, FETCH_BYTES_MAX),
				  FIELD(unpacked.n_entries, FETCH_U64, FETCH_BYTES_MAX),
				  FIELD(unpacked.n_skipped, FETCH_U64, FETCH_BYTES_MAX) },
				NULL },
	[FETCHMSG_ERROR] = { "error",
			     { FIELD(error.kind, FETCH_U32, ERROR_KIND_COUNT - 1),
			       FIELD(error.code, FETCH_U32, 4095),
			       FIELD(error.text, FETCH_CLEAN, ERROR_TEXT_MAX - 1) },
			     fetch_error_fits },
	[FETCHMSG_PULL] = { "pull",
			    { FIELD(pull.reference, FETCH_CLEAN, REFERENCE_SIZE - 1),
			      FIELD(pull.os, FETCH_CLEAN, 32),
			      FIELD(pull.architecture, FETCH_CLEAN, 32),
			      FIELD(pull.variant, FETCH_CLEAN, 32),
			      FIELD(pull.max_bytes, FETCH_U64, FETCH_BYTES_MAX),
			      FIELD(pull.flags, FETCH_U32, FETCH_PULL_FLAGS),
			      FIELD(pull.host_flags, FETCH_U32, FETCH_HOST_FLAGS) },
			    fetch_pull_fits },
	[FETCHMSG_PUSH] = { "push",
			    { FIELD(push.reference, FETCH_CLEAN, REFERENCE_SIZE - 1),
			      FIELD(push.host_flags, FETCH_U32, FETCH_HOST_FLAGS) },
			    fetch_push_fits },
	[FETCHMSG_LIST] = { "list",
			    { FIELD(list.reference, FETCH_CLEAN, REFERENCE_SIZE - 1),
			      FIELD(list.what, FETCH_U32, FETCH_LISTING_COUNT - 1),
			      FIELD(list.max, FETCH_U32, FETCH_TAGS_MAX),
			      FIELD(list.host_flags, FETCH_U32, FETCH_HOST_FLAGS) },
			    fetch_list_fits },
	[FETCHMSG_NETWORK] = { "network",
			       { FIELD(network.connections, FETCH_U32, FETCH_CONNECTIONS_MAX),
				 FIELD(network.stall_ms, FETCH_U32, FETCH_MILLISECONDS_MAX),
				 FIELD(network.min_rate, FETCH_U32, UINT32_MAX),
				 FIELD(network.n_retries, FETCH_U32, 100),
				 FIELD(network.retry_ms, FETCH_U32, FETCH_MILLISECONDS_MAX),
				 FIELD(network.retry_max_ms, FETCH_U32, FETCH_MILLISECONDS_MAX),
				 FIELD(network.connect_ms, FETCH_U32, FETCH_MILLISECONDS_MAX) },
			       NULL },
	[FETCHMSG_PROXY] = { "proxy",
			     { FIELD(proxy.http, FETCH_CLEAN, FETCH_URL_MAX),
			       FIELD(proxy.https, FETCH_CLEAN, FETCH_URL_MAX),
			       FIELD(proxy.no_proxy, FETCH_CLEAN, FETCH_WORD_MAX) },
			     NULL },
	[FETCHMSG_REGISTRY_DIR] = { "registry-dir",
				    { FIELD(registry_dir.path, FETCH_CLEAN, 4095) },
				    fetch_dir_fits },
	[FETCHMSG_POLICY] = { "policy",
			      { FIELD(policy.path, FETCH_CLEAN, 4095) },
			      fetch_policy_fits },
	[FETCHMSG_ENDPOINT] = { "endpoint",
				{ FIELD(endpoint.host, FETCH_CLEAN, FETCH_HOST_MAX),
				  FIELD(endpoint.url, FETCH_CLEAN, FETCH_URL_MAX),
				  FIELD(endpoint.can, FETCH_U32, FETCH_CAN_FLAGS),
				  FIELD(endpoint.flags, FETCH_U32, FETCH_HOST_FLAGS) },
				fetch_endpoint_fits },
	[FETCHMSG_AUTH] = { "auth",
			    { FIELD(auth.host, FETCH_CLEAN, FETCH_HOST_MAX),
			      FIELD(auth.kind, FETCH_U32, FETCH_AUTH_COUNT - 1),
			      FIELD(auth.user, FETCH_CLEAN, 1024),
			      FIELD(auth.secret, FETCH_CLEAN, FETCH_SECRET_MAX) },
			    fetch_auth_fits },
	[FETCHMSG_MOUNT] = { "mount",
			     { FIELD(mount.name, FETCH_CLEAN, REFERENCE_NAME_MAX) },
			     NULL },
	[FETCHMSG_PUSH_BLOB] = { "push-blob",
				 { FIELD(push_blob.digest, FETCH_DIGEST, 0),
				   FIELD(push_blob.size, FETCH_U64, FETCH_BYTES_MAX),
				   FIELD(push_blob.manifest, FETCH_U32, 1) },
				 NULL },
	[FETCHMSG_GO] = { "go", { { FETCH_END, 0, 0 } }, NULL },
	[FETCHMSG_RESOLVED] = { "resolved",
				{ FIELD(resolved.digest, FETCH_DIGEST, 0),
				  FIELD(resolved.size, FETCH_U64, FETCH_BYTES_MAX),
				  FIELD(resolved.media_type, FETCH_CLEAN, FETCH_TYPE_MAX),
				  FIELD(resolved.origin, FETCH_CLEAN, FETCH_URL_MAX) },
				NULL },
	[FETCHMSG_REFERRER] = { "referrer",
				{ FIELD(referrer.digest, FETCH_DIGEST, 0),
				  FIELD(referrer.size, FETCH_U64, FETCH_BYTES_MAX),
				  FIELD(referrer.media_type, FETCH_CLEAN, FETCH_TYPE_MAX),
				  FIELD(referrer.artifact_type, FETCH_CLEAN, FETCH_TYPE_MAX),
				  FIELD(referrer.n_annotations, FETCH_U32,
					FETCH_REFERRER_ANNOTATIONS_MAX),
				  FIELD(referrer.n_left_out, FETCH_U32, UINT32_MAX) },
				NULL },
	[FETCHMSG_CONTENT] = { "content",
			       { FIELD(content.digest, FETCH_DIGEST, 0),
				 FIELD(content.size, FETCH_U64, FETCH_BYTES_MAX),
				 FIELD(content.media_type, FETCH_CLEAN, FETCH_TYPE_MAX) },
			       NULL },
	[FETCHMSG_CONTENT_END] = { "content-end",
				   { FIELD(content_end.n_contents, FETCH_U32, FETCH_CONTENTS_MAX) },
				   NULL },
	[FETCHMSG_FETCH] = { "fetch",
			     { FIELD(fetch.digest, FETCH_DIGEST, 0),
			       FIELD(fetch.size, FETCH_U64, FETCH_BYTES_MAX),
			       FIELD(fetch.from, FETCH_U64, FETCH_BYTES_MAX),
			       FIELD(fetch.follow, FETCH_U32, 1) },
			     fetch_fetch_fits },
	[FETCHMSG_SKIP] = { "skip", { FIELD(skip.digest, FETCH_DIGEST, 0) }, NULL },
	[FETCHMSG_PROGRESS] = { "progress",
				{ FIELD(progress.digest, FETCH_DIGEST, 0),
				  FIELD(progress.n_bytes, FETCH_U64, FETCH_BYTES_MAX) },
				NULL },
	[FETCHMSG_NOTE] = { "note", { FIELD(note.text, FETCH_CLEAN, ERROR_TEXT_MAX - 1) }, NULL },
	[FETCHMSG_RESTART] = { "restart",
			       { FIELD(restart.digest, FETCH_DIGEST, 0),
				 FIELD(restart.text, FETCH_CLEAN, ERROR_TEXT_MAX - 1) },
			       NULL },
	[FETCHMSG_PUSHED] = { "pushed",
			      { FIELD(pushed.digest, FETCH_DIGEST, 0),
				FIELD(pushed.how, FETCH_U32, FETCH_PUSHED_COUNT - 1) },
			      NULL },
	[FETCHMSG_TAG] = { "tag",
			   { FIELD(tag.name, FETCH_CLEAN, REFERENCE_TAG_MAX) },
			   fetch_tag_fits },
	[FETCHMSG_EXPORT] = { "export",
			      { FIELD(export.form, FETCH_U32, FETCH_EXPORT_COUNT - 1),
				FIELD(export.n_images, FETCH_U32, FETCH_IMAGES_MAX) },
			      NULL },
	[FETCHMSG_EXPORT_IMAGE] = { "export-image",
				    { FIELD(export_image.digest, FETCH_DIGEST, 0),
				      FIELD(export_image.id, FETCH_DIGEST, 0),
				      FIELD(export_image.names, FETCH_CLEAN, FETCH_NAMES_MAX) },
				    NULL },
	[FETCHMSG_PROFILE] = { "profile", { FIELD(profile.caps, FETCH_U64, UINT64_MAX) }, NULL },
	[FETCHMSG_FILTER] = { "filter",
			      { FIELD(filter.n_insns, FETCH_U32, FETCH_INSNS_MAX),
				FIELD(filter.flags, FETCH_U32, UINT32_MAX) },
			      fetch_filter_fits },
	[FETCHMSG_CDI] = { "cdi", { { FETCH_END, 0, 0 } }, NULL },
	[FETCHMSG_EDITS] = { "edits", { FIELD(edits.n_bytes, FETCH_U32, FETCH_EDITS_MAX) }, NULL },
	[FETCHMSG_COPY] = { "copy",
			    { FIELD(copy.reference, FETCH_CLEAN, REFERENCE_SIZE - 1),
			      FIELD(copy.destination, FETCH_CLEAN, REFERENCE_SIZE - 1),
			      FIELD(copy.architecture, FETCH_CLEAN, 32),
			      FIELD(copy.variant, FETCH_CLEAN, 32),
			      FIELD(copy.max_bytes, FETCH_U64, FETCH_BYTES_MAX),
			      FIELD(copy.referrers, FETCH_U32, 1) },
			    fetch_copy_fits },
	[FETCHMSG_WANT] = { "want",
			    { FIELD(want.digest, FETCH_DIGEST, 0),
			      FIELD(want.size, FETCH_U64, FETCH_BYTES_MAX) },
			    NULL },
	[FETCHMSG_MEMORY] = { "memory",
			      { FIELD(memory.n_bytes, FETCH_U64, FETCH_MEMORY_MAX) },
			      NULL },
	[FETCHMSG_VERIFY] = { "verify",
			      { FIELD(verify.reference, FETCH_CLEAN, REFERENCE_SIZE - 1),
				FIELD(verify.digest, FETCH_CLEAN, DIGEST_LEN),
				FIELD(verify.key, FETCH_TEXT, FETCH_WORD_MAX),
				FIELD(verify.host_flags, FETCH_U32, FETCH_HOST_FLAGS) },
			      fetch_verify_fits },
	[FETCHMSG_SIGNER] = { "signer",
			      { FIELD(signer.key, FETCH_CLEAN, 4095),
				FIELD(signer.fingerprint, FETCH_DIGEST, 0),
				FIELD(signer.identity, FETCH_CLEAN, REFERENCE_SIZE - 1) },
			      fetch_signer_fits },
	[FETCHMSG_ANNOTATION] = { "annotation",
				  { FIELD(annotation.name, FETCH_CLEAN, FETCH_ANNOTATION_NAME_MAX),
				    FIELD(annotation.value, FETCH_TEXT, FETCH_ANNOTATION_MAX) },
				  fetch_annotation_fits },
	[FETCHMSG_VERDICT] = { "verdict",
			       { FIELD(verdict.digest, FETCH_DIGEST, 0),
				 FIELD(verdict.verdict, FETCH_U32, FETCH_VERDICT_COUNT - 1),
				 FIELD(verdict.scope, FETCH_CLEAN, REFERENCE_SIZE - 1),
				 FIELD(verdict.text, FETCH_CLEAN, ERROR_TEXT_MAX - 1),
				 FIELD(verdict.n_signers, FETCH_U32, FETCH_SIGNERS_MAX) },
			       fetch_verdict_fits },
	[FETCHMSG_LOGIN] = { "login",
			     { FIELD(login.host, FETCH_CLEAN, FETCH_HOST_MAX) },
			     fetch_login_fits },
};
static_assert(ARRAY_SIZE(fetch_types) == FETCHMSG_TYPE_COUNT, "a row for each type");

struct fetch_header {
	uint32_t magic, type, len, zero;
};

/* ---- encoding ---- */

struct fetch_out {
	uint8_t *packet;
	size_t len;
};

static bool fetch_put(struct fetch_out *o, const void *data, size_t len)
{
	if (len > FETCHMSG_SIZE_MAX - o->len)
		return false;
	memcpy(o->packet + o->len, data, len);
	o->len += len;
	return true;
}

static bool fetch_put_number(struct fetch_out *o, uint64_t value, uint64_t max)
{
	return value <= max && fetch_put(o, &value, sizeof(value));
}

static bool fetch_text_fits(const char *text, size_t len, const struct fetch_field *f)
{
	return len <= f->max && str_is_utf8(text, len) &&
	       (f->kind != FETCH_CLEAN || str_is_clean(text));
}

static bool fetch_put_text(struct fetch_out *o, const char *text, const struct fetch_field *f)
{
	size_t len = strlen(text);
	uint32_t size = (uint32_t)len + 1;

	return fetch_text_fits(text, len, f) && fetch_put(o, &size, sizeof(size)) &&
	       fetch_put(o, text, size);
}

static bool fetch_put_field(struct fetch_out *o, const struct fetchmsg *m,
			    const struct fetch_field *f)
{
	const void *member = (const char *)m + f->offset;

	switch (f->kind) {
	case FETCH_U64:
		return fetch_put_number(o, *(const uint64_t *)member, f->max);
	case FETCH_U32:
		return fetch_put_number(o, *(const uint32_t *)member, f->max);
	case FETCH_DIGEST:
		return digest_is_valid(member) && fetch_put(o, member, DIGEST_SIZE);
	case FETCH_TEXT:
	case FETCH_CLEAN:
		return fetch_put_text(o, *(const char *const *)member, f);
	case FETCH_END:
		break;
	}
	return false;
}

int fetchmsg_encode(const struct fetchmsg *m, uint8_t *packet, struct error *err)
{
	struct fetch_header h = { .magic = FETCHMSG_MAGIC, .type = m->type };
	struct fetch_out o = { .packet = packet, .len = sizeof(h) };
	const struct fetch_field *f = fetch_types[m->type].fields;

	for (size_t i = 0; f[i].kind != FETCH_END; i++)
		if (!fetch_put_field(&o, m, &f[i]))
			return error_refuse(err, ERROR_INVALID,
					    "member %zu of a message \"%s\" is out of bounds",
					    i + 1, fetch_types[m->type].name);
	if (fetch_types[m->type].fits && !fetch_types[m->type].fits(m))
		return error_refuse(err, ERROR_INVALID, "a message \"%s\" does not hold together",
				    fetch_types[m->type].name);
	h.len = (uint32_t)o.len;
	memcpy(packet, &h, sizeof(h));
	return (int)o.len;
}

/* ---- decoding ---- */

struct fetch_in {
	const uint8_t *p, *end;
};

static bool fetch_get(struct fetch_in *in, void *to, size_t len)
{
	if ((size_t)(in->end - in->p) < len)
		return false;
	memcpy(to, in->p, len);
	in->p += len;
	return true;
}

static bool fetch_get_digest(struct fetch_in *in, char *to)
{
	return fetch_get(in, to, DIGEST_SIZE) && memchr(to, '\0', DIGEST_SIZE) == to + DIGEST_LEN &&
	       digest_is_valid(to);
}

static bool fetch_get_text(struct fetch_in *in, const char **ret, const struct fetch_field *f)
{
	const char *text;
	uint32_t size;

	if (!fetch_get(in, &size, sizeof(size)) || size == 0 || (size_t)(in->end - in->p) < size)
		return false;
	text = (const char *)in->p;
	in->p += size;
	if (memchr(text, '\0', size) != text + size - 1 || !fetch_text_fits(text, size - 1, f))
		return false;
	*ret = text;
	return true;
}

static bool fetch_get_number(struct fetch_in *in, uint64_t max, uint64_t *ret)
{
	return fetch_get(in, ret, sizeof(*ret)) && *ret <= max;
}

static bool fetch_get_field(struct fetch_in *in, struct fetchmsg *m, const struct fetch_field *f)
{
	void *member = (char *)m + f->offset;
	uint64_t value;

	switch (f->kind) {
	case FETCH_U64:
		return fetch_get_number(in, f->max, member);
	case FETCH_U32:
		if (!fetch_get_number(in, f->max, &value))
			return false;
		*(uint32_t *)member = (uint32_t)value;
		return true;
	case FETCH_DIGEST:
		return fetch_get_digest(in, member);
	case FETCH_TEXT:
	case FETCH_CLEAN:
		return fetch_get_text(in, member, f);
	case FETCH_END:
		break;
	}
	return false;
}

int fetchmsg_decode(struct fetchmsg *ret, const uint8_t *packet, size_t len, struct error *err)
{
	struct fetch_in in = { .p = packet, .end = packet + len };
	struct fetchmsg m = { .type = 0 };
	const struct fetch_field *f;
	struct fetch_header h;

	if (len > FETCHMSG_SIZE_MAX || !fetch_get(&in, &h, sizeof(h)) ||
	    h.magic != FETCHMSG_MAGIC || h.len != len || h.zero != 0 ||
	    h.type >= FETCHMSG_TYPE_COUNT)
		return error_set(err, -EBADMSG, "the header of a message");
	m.type = h.type;
	f = fetch_types[m.type].fields;
	for (size_t i = 0; f[i].kind != FETCH_END; i++)
		if (!fetch_get_field(&in, &m, &f[i]))
			return error_set(err, -EBADMSG, "member %zu of a message \"%s\"", i + 1,
					 fetch_types[m.type].name);
	if (in.p != in.end || (fetch_types[m.type].fits && !fetch_types[m.type].fits(&m)))
		return error_set(err, -EBADMSG, "a message \"%s\"", fetch_types[m.type].name);
	*ret = m;
	return 0;
}
