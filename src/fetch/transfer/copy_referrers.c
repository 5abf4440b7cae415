/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/transfer/copy_referrers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "fetch/job/descriptor.h"
#include "fetch/job/json.h"
#include "fetch/transfer/referrers.h"
#include "fetch/unpack/reading.h"

#define COPY_INDEX "application/vnd.oci.image.index.v1+json"

/* ---- found ---- */

void copy_referrers_init(struct copy_referrers *c, struct network *from,
			 int (*take)(void *userdata, const struct descriptor *d, const char *tag,
				     struct error *err),
			 void *userdata)
{
	*c = (struct copy_referrers){ .from = from, .take = take, .userdata = userdata };
}

/* What is said about who is asked for next ends with him. */
static int copy_referrers_take(struct copy_referrers *c, const struct descriptor *d,
			       const char *subject, const char *tag, struct error *err)
{
	const char *wanted = c->wanted, *before = c->subject;
	int r;

	c->wanted = d->digest;
	c->subject = subject;
	r = c->take(c->userdata, d, tag, err);
	c->wanted = wanted;
	c->subject = before;
	return r;
}

struct copy_referrers_walk {
	struct copy_referrers *all;
	const char *digest;
};

static int copy_referrers_listed(struct network *n, const struct descriptor *d, void *userdata,
				 struct error *err)
{
	const struct copy_referrers_walk *w = userdata;
	char text[ERROR_TEXT_MAX];

	if (d->type.role == DESCRIPTOR_MANIFEST || d->type.role == DESCRIPTOR_INDEX)
		return copy_referrers_take(w->all, d, w->digest, "", err);
	(void)str_printf(text, sizeof(text),
			 "%s, which refers to %s, is of the type \"%.100s\", and not copied",
			 d->digest, w->digest, d->media_type);
	n->config.note(n->config.userdata, text);
	return 0;
}

/* These say in no document what they are about, but in their name alone. */
static int copy_referrers_tagged(struct copy_referrers *c, const char *digest, const char *suffix,
				 struct error *err)
{
	_cleanup_(network_document_done) struct network_document got = { .data = BUF_INIT };
	char tag[REFERRERS_TAG_SIZE + 8];
	struct error why = ERROR_INIT;
	struct descriptor d;

	(void)str_printf(tag, sizeof(tag), "sha256-%s.%s", digest_hex(digest), suffix);
	if (network_get_manifest(c->from, tag, &got, &why) < 0)
		return why.kind == ERROR_NOT_FOUND ? 0 : error_copy(err, &why);
	d = (struct descriptor){ .type = descriptor_type_of(got.media_type),
				 .media_type = got.media_type,
				 .digest = got.digest,
				 .size = got.data.len };
	return copy_referrers_take(c, &d, NULL, tag, err);
}

int copy_referrers_of(struct copy_referrers *c, const char *digest, const char *subject,
		      struct error *err)
{
	static const char *const suffixes[] = { "sig", "att", "sbom" };
	struct copy_referrers_walk walk = { c, digest };
	int r;

	/* A registry could list anything. */
	if (c->subject && str_eq(digest, c->wanted) && !str_eq(subject, c->subject))
		return error_refuse(err, ERROR_INVALID,
				    "registry %s: manifest %s is listed as one that refers to %s, "
				    "and does not",
				    c->from->registry.host, digest, c->subject);
	if (c->depth == COPY_REFERRERS_DEPTH)
		return 0;
	c->depth++;
	r = referrers_each(c->from, digest, FETCH_REFERRERS_MAX, copy_referrers_listed, &walk, err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(suffixes); i++)
		r = copy_referrers_tagged(c, digest, suffixes[i], err);
	c->depth--;
	return r;
}

/* ---- listed ---- */

static void copy_text_free(char **text)
{
	free(*text);
}

/* The list as it is there, or a new one. */
static int copy_list_read(struct network *to, const char *tag, json_t **ret, json_t **ret_list,
			  struct error *err)
{
	char path[sizeof("/manifests/") + REFERRERS_TAG_SIZE];
	_cleanup_(network_document_done) struct network_document got = { .data = BUF_INIT };
	struct error why = ERROR_INIT;
	int r;

	(void)str_printf(path, sizeof(path), "/manifests/%s", tag);
	/* Of who takes it, and not of a mirror that may be late. */
	r = network_get(to,
			&(struct network_question){ .what = "the list of referrers",
						    .path = path,
						    .accept = COPY_INDEX,
						    .need = FETCH_CAN_RESOLVE | FETCH_CAN_PUSH,
						    .max = READING_DOCUMENT_MAX },
			&got, &why);
	if (r < 0 && why.kind != ERROR_NOT_FOUND)
		return error_copy(err, &why);
	if (r < 0) {
		*ret = json_pack("{s:i,s:s,s:[]}", "schemaVersion", 2, "mediaType", COPY_INDEX,
				 "manifests");
		if (!*ret)
			return error_set(err, -ENOMEM, "list the referrers");
	} else {
		r = json_read(ret, &got.data, "the list of referrers", err);
		if (r == 0)
			r = descriptor_check_index(*ret, COPY_INDEX, err);
		if (r < 0)
			return r;
	}
	return json_need_array(*ret, "manifests", FETCH_REFERRERS_MAX, ret_list, err);
}

static bool copy_list_has(json_t *list, const char *digest)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text =
			json_string_value(json_object_get(json_array_get(list, i), "digest"));

		if (text && str_eq(text, digest))
			return true;
	}
	return false;
}

/* As the specification has it: its type is its artifactType, or that of its configuration; and its
 * annotations. */
static int copy_list_describe(json_t *entry, json_t *manifest, struct error *err)
{
	json_t *config = NULL, *annotations = NULL;
	const char *type;
	int r;

	r = json_get_text(manifest, "artifactType", &type, err);
	if (r == 0)
		r = json_get_object(manifest, "config", &config, err);
	if (r == 0 && !*type && config)
		r = json_get_text(config, "mediaType", &type, err);
	if (r == 0)
		r = json_get_object(manifest, "annotations", &annotations, err);
	if (r < 0)
		return r;
	if ((*type && json_object_set_new(entry, "artifactType", json_string(type)) < 0) ||
	    (annotations && json_object_set(entry, "annotations", annotations) < 0))
		return error_set(err, -ENOMEM, "list the referrers");
	return 0;
}

static int copy_list_add(json_t *list, const struct network_blob *b, int dir_fd, struct error *err)
{
	_cleanup_fd_ int fd =
		sysio_openat(dir_fd, digest_hex(b->digest), O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	_cleanup_json_ json_t *manifest = NULL;
	const char *type;
	json_t *entry;
	int r;

	if (fd < 0)
		return error_set(err, -errno, "open manifest %s", b->digest);
	r = fd_read_all(fd, READING_DOCUMENT_MAX, &text);
	if (r < 0)
		return error_set(err, r, "read manifest %s", b->digest);
	r = json_read(&manifest, &text, "the manifest", err);
	if (r == 0)
		r = json_get_text(manifest, "mediaType", &type, err);
	if (r < 0)
		return r;
	if (!*type)
		type = json_object_get(manifest, "manifests")
			       ? COPY_INDEX
			       : "application/vnd.oci.image.manifest.v1+json";
	entry = json_pack("{s:s,s:s,s:I}", "mediaType", type, "digest", b->digest, "size",
			  (json_int_t)b->size);
	r = entry ? copy_list_describe(entry, manifest, err)
		  : error_set(err, -ENOMEM, "list the referrers");
	if (r < 0) {
		json_decref(entry);
		return r;
	}
	return json_array_append_new(list, entry) < 0
		       ? error_set(err, -ENOMEM, "list the referrers")
		       : 0;
}

/* All that refer to one. */
static int copy_list_write(struct network *to, const char *subject, int dir_fd, struct error *err)
{
	_cleanup_json_ json_t *index = NULL;
	_cleanup_(copy_text_free) char *text = NULL;
	char tag[REFERRERS_TAG_SIZE];
	json_t *list = NULL;
	size_t n_before;
	int r;

	referrers_tag(subject, tag);
	r = copy_list_read(to, tag, &index, &list, err);
	if (r < 0)
		return r;
	n_before = json_array_size(list);
	for (size_t i = 0; r == 0 && i < to->n_blobs; i++) {
		struct network_blob *b = &to->blobs[i];

		if (!b->unlisted || !str_eq(b->subject, subject))
			continue;
		b->unlisted = false;
		r = copy_list_has(list, b->digest) ? 0 : copy_list_add(list, b, dir_fd, err);
	}
	if (r < 0 || json_array_size(list) == n_before)
		return r;
	if (json_array_size(list) > FETCH_REFERRERS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "more than %d referrers of %s",
				    FETCH_REFERRERS_MAX, subject);
	text = json_dumps(index, JSON_COMPACT);
	if (!text)
		return error_set(err, -ENOMEM, "list the referrers");
	return network_put_index(to, tag, text, strlen(text), err);
}

int copy_referrers_list(struct network *to, int dir_fd, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < to->n_blobs; i++)
		if (to->blobs[i].unlisted)
			r = copy_list_write(to, to->blobs[i].subject, dir_fd, err);
	return r;
}
