/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whoever names a blob gives its media type, digest and size in a descriptor. The digest and size
 * are verified before a byte of the blob is looked at, and the document must be what the descriptor
 * says: a document that could be read as an index and as a manifest is neither (CVE-2021-41190).
 */

#include "fetch/job/oci.h"

#include <errno.h>
#include <stdbool.h>

#include "base/text/str.h"
#include "fetch/job/descriptor.h"
#include "fetch/job/json.h"
#include "fetch/job/variant.h"
#include "fetch/unpack/reading.h"
#include "fetch/unpack/source.h"
#include "wire/name/digest.h"

#define OCI_BLOB_NAME_SIZE (DIGEST_SIZE + 16)

static void oci_blob_name(const char *digest, char ret[OCI_BLOB_NAME_SIZE])
{
	(void)str_printf(ret, OCI_BLOB_NAME_SIZE, "blobs/sha256/%s", digest_hex(digest));
}

static int oci_load_archived(struct reading *r, const struct descriptor *d, struct buf *ret,
			     struct error *err)
{
	char name[OCI_BLOB_NAME_SIZE];

	oci_blob_name(d->digest, name);
	return source_load(r->source, name, READING_DOCUMENT_MAX, ret, err);
}

static int oci_take_archived(struct reading *r, const struct descriptor *d, struct error *err)
{
	char name[OCI_BLOB_NAME_SIZE];

	oci_blob_name(d->digest, name);
	return staging_take(&r->staging, r->source, name, d->digest, d->size, err);
}

static const struct reading_ops oci_archive = { oci_load_archived, oci_take_archived };

/* A document, verified, and put into staging. */
static int oci_load(struct reading *r, const struct descriptor *d, struct buf *ret,
		    struct error *err)
{
	char digest[DIGEST_SIZE];
	int code;

	code = r->ops->load(r, d, ret, err);
	if (code < 0)
		return code;
	if (ret->len != d->size)
		return error_refuse(err, ERROR_INVALID, "blob %s has %zu bytes, not %llu",
				    d->digest, ret->len, (unsigned long long)d->size);
	return staging_put(&r->staging, buf_data(ret), ret->len, d->digest, digest, err);
}

/* ---- manifests ---- */

/* Signatures of cosign have the configuration of an image, and layers of a type of their own. */
static int oci_fail_layer(struct reading *r, const char *media_type, struct error *err)
{
	r->no_image = !str_has_prefix(media_type, "application/vnd.oci.image.") &&
		      !str_has_prefix(media_type, "application/vnd.docker.image.");
	if (str_has_suffix(media_type, "xz") || str_has_suffix(media_type, "bzip2"))
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "the type \"%.100s\" is compressed with %s, which is not read "
				    "here: plain tar, gzip and zstd are",
				    media_type, str_has_suffix(media_type, "xz") ? "xz" : "bzip2");
	return error_refuse(err, ERROR_UNSUPPORTED,
			    "the type \"%.100s\" cannot be unpacked: plain tar, gzip and zstd are",
			    media_type);
}

static int oci_take_layer(struct reading *r, json_t *node, struct reading_layer *ret,
			  struct error *err)
{
	struct descriptor d;
	int code;

	code = descriptor_read(&d, node, err);
	if (code < 0)
		return code;
	if (d.type.role != DESCRIPTOR_LAYER)
		return oci_fail_layer(r, d.media_type, err);
	ret->compression = d.type.compression;
	ret->size = d.size;
	(void)str_copy(ret->digest, sizeof(ret->digest), d.digest);
	return r->ops->take ? r->ops->take(r, &d, err) : 0;
}

static int oci_take_config(struct reading *r, json_t *manifest, struct buf *ret,
			   char ret_id[DIGEST_SIZE], struct error *err)
{
	struct descriptor d;
	json_t *node;
	int code;

	code = json_need_object(manifest, "config", &node, err);
	if (code == 0)
		code = descriptor_read(&d, node, err);
	if (code < 0)
		return code;
	r->no_image = d.type.role != DESCRIPTOR_CONFIG;
	if (r->no_image)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "it is no image: its configuration has the type \"%.100s\"",
				    d.media_type);
	(void)str_copy(ret_id, DIGEST_SIZE, d.digest);
	return oci_load(r, &d, ret, err);
}

static int oci_take_image(struct reading *r, json_t *manifest, struct reading_image *image,
			  struct error *err)
{
	_cleanup_(buf_done) struct buf config = BUF_INIT;
	_cleanup_(reading_layers_done) struct reading_layer *layers = reading_layers_new();
	json_t *list;
	int code;

	if (!layers)
		return error_set(err, -ENOMEM, "read a manifest");
	code = json_need_array(manifest, "layers", FETCH_LAYERS_MAX, &list, err);
	if (code == 0)
		code = oci_take_config(r, manifest, &config, image->id, err);
	if (code < 0)
		return code;
	image->config = &config;
	image->layers = layers;
	image->n_layers = json_array_size(list);
	for (size_t i = 0; i < image->n_layers; i++) {
		code = oci_take_layer(r, json_array_get(list, i), &layers[i], err);
		if (code < 0)
			return error_wrap(err, code, "layer %zu", i + 1);
	}
	return reading_send(r, image, err);
}

static int oci_take_manifest(struct reading *r, const struct descriptor *d, char *const *names,
			     struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct reading_image image = { .names = names };
	_cleanup_json_ json_t *manifest = NULL;
	int code;

	code = oci_load(r, d, &b, err);
	if (code == 0)
		code = json_read(&manifest, &b, "the manifest", err);
	if (code == 0)
		code = descriptor_check_manifest(manifest, d->media_type, err);
	if (code == 0) {
		(void)str_copy(image.digest, sizeof(image.digest), d->digest);
		code = oci_take_image(r, manifest, &image, err);
	}
	return code < 0 ? error_wrap(err, code, "manifest %s", d->digest) : 0;
}

/* ---- indexes ---- */

/* Whether the entry of an index may be an image: SBOMs, signatures and other things that lie beside
 * images have media types of their own, or say what they are. */
static bool oci_may_be_image(json_t *node)
{
	const char *type = json_string_value(json_object_get(node, "mediaType"));
	const char *artifact = json_string_value(json_object_get(node, "artifactType"));
	enum descriptor_role role = descriptor_type_of(type ? type : "").role;

	if (!type)
		return true;
	if (!str_empty(artifact) && descriptor_type_of(artifact).role != DESCRIPTOR_CONFIG)
		return false;
	return role == DESCRIPTOR_INDEX || role == DESCRIPTOR_MANIFEST;
}

/* How well the entry of an index fits: 0 not at all. One without a platform is for any machine. */
static int oci_fits(const struct reading *r, json_t *node, struct error *err)
{
	const char *os, *architecture, *variant;
	json_t *platform;
	int code;

	code = json_get_object(node, "platform", &platform, err);
	if (code < 0 || !platform)
		return code < 0 ? code : 1;
	code = json_get_text(platform, "os", &os, err);
	if (code == 0)
		code = json_get_text(platform, "architecture", &architecture, err);
	if (code == 0)
		code = json_get_text(platform, "variant", &variant, err);
	if (code < 0)
		return error_wrap(err, code, "platform");
	return str_eq(os, "linux")
		       ? variant_rank(r->architecture, r->variant, architecture, variant)
		       : 0;
}

static int oci_read_index(const struct buf *b, const char *media_type, const char *what,
			  json_t **ret, json_t **ret_list, struct error *err)
{
	int code;

	code = json_read(ret, b, what, err);
	if (code == 0)
		code = descriptor_check_index(*ret, media_type, err);
	if (code == 0)
		code = json_need_array(*ret, "manifests", DESCRIPTOR_LIST_MAX, ret_list, err);
	return code < 0 ? error_wrap(err, code, "%s", what) : 0;
}

/* In an index with the same image for several machines: the entry for this one, which lives in
 * *keep. */
static int oci_choose(struct reading *r, const struct descriptor *d, struct descriptor *ret,
		      json_t **keep, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	json_t *list;
	int best = 0;
	int code;

	code = oci_load(r, d, &b, err);
	if (code == 0)
		code = oci_read_index(&b, d->media_type, "the index", keep, &list, err);
	if (code < 0)
		return code;
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct descriptor found;

		if (!oci_may_be_image(json_array_get(list, i)))
			continue;
		code = descriptor_read(&found, json_array_get(list, i), err);
		if (code == 0)
			code = oci_fits(r, found.node, err);
		if (code < 0)
			return code;
		if (code > best) {
			best = code;
			*ret = found;
		}
	}
	if (best > 0)
		return 0;
	return error_refuse(err, ERROR_PRECONDITION, "index %s has no image for linux/%s%s%s",
			    d->digest, r->architecture, *r->variant ? "/" : "", r->variant);
}

int oci_find(struct reading *r, const struct descriptor *entry, struct descriptor *ret,
	     struct oci_kept *keep, struct error *err)
{
	struct descriptor d = *entry;
	int code = 0;

	*keep = (struct oci_kept){ .indexes = { NULL } };
	for (int depth = 0; code == 0 && d.type.role == DESCRIPTOR_INDEX; depth++) {
		struct descriptor next = d;

		if (depth == DESCRIPTOR_DEPTH_MAX)
			code = error_refuse(err, ERROR_INVALID,
					    "indexes are nested more than %d deep",
					    DESCRIPTOR_DEPTH_MAX);
		else
			code = oci_choose(r, &d, &next, &keep->indexes[depth], err);
		d = next;
	}
	if (code == 0 && d.type.role != DESCRIPTOR_MANIFEST)
		code = error_refuse(err, ERROR_UNSUPPORTED,
				    "an entry of the index has the type \"%.100s\"", d.media_type);
	if (code == 0)
		*ret = d;
	return code;
}

void oci_kept_done(struct oci_kept *k)
{
	for (int i = 0; i < DESCRIPTOR_DEPTH_MAX; i++)
		json_decref(k->indexes[i]);
}

int oci_take(struct reading *r, const struct descriptor *entry, char *const *names,
	     struct error *err)
{
	_cleanup_(oci_kept_done) struct oci_kept kept;
	struct descriptor d;
	int code;

	code = oci_find(r, entry, &d, &kept, err);
	return code == 0 ? oci_take_manifest(r, &d, names, err) : code;
}

/* The name is written by whoever made the archive (choice.h); containerd's and Docker's is
 * always in full. */
static int oci_said(json_t *node, char ***ret, struct error *err)
{
	const char *full, *reference;
	json_t *annotations;
	int r;

	r = json_get_object(node, "annotations", &annotations, err);
	if (r == 0)
		r = json_get_text(annotations, "io.containerd.image.name", &full, err);
	if (r == 0)
		r = json_get_text(annotations, "org.opencontainers.image.ref.name", &reference,
				  err);
	if (r < 0)
		return error_wrap(err, r, "annotations");
	if (*full && strv_add(ret, full) < 0)
		return error_set(err, -ENOMEM, "read the index");
	if (*reference && !str_eq(reference, full) && strv_add(ret, reference) < 0)
		return error_set(err, -ENOMEM, "read the index");
	return 0;
}

/* A full name leaves the other one only to be chosen by. */
static int oci_names(const struct reading *r, json_t *node, char *const *said, char ***ret,
		     struct error *err)
{
	json_t *annotations = json_object_get(node, "annotations");
	bool full = json_object_get(annotations, "io.containerd.image.name") != NULL;
	char *first[] = { said ? said[0] : NULL, NULL };

	return choice_names(&r->choice, first, !full, ret, err);
}

static int oci_check_layout(struct reading *r, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_json_ json_t *layout = NULL;
	const char *version;
	int code;

	code = source_load(r->source, "oci-layout", READING_DOCUMENT_MAX, &b, err);
	if (code == 0)
		code = json_read(&layout, &b, "oci-layout", err);
	if (code == 0)
		code = json_need_text(layout, "imageLayoutVersion", &version, err);
	if (code < 0)
		return code;
	if (!str_has_prefix(version, "1."))
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "oci-layout has version \"%.32s\", not 1", version);
	return 0;
}

/* What is no image is passed over, and *passed says why. */
static int oci_read_entry(struct reading *r, json_t *node, struct error *passed, struct error *err)
{
	_cleanup_strv_ char **said = NULL, **names = NULL;
	struct descriptor d;
	int code;

	if (!oci_may_be_image(node)) {
		(void)error_refuse(passed, ERROR_UNSUPPORTED,
				   "an entry of the index has the type \"%.100s\"",
				   json_string_value(json_object_get(node, "mediaType")));
		return 0;
	}
	code = descriptor_read(&d, node, err);
	if (code < 0)
		return code;
	code = oci_fits(r, node, err);
	if (code <= 0)
		return code;
	code = oci_said(node, &said, err);
	if (code == 0 && !choice_takes(&r->choice, said))
		return 0;
	if (code == 0)
		code = oci_names(r, node, said, &names, err);
	if (code == 0)
		code = oci_take(r, &d, names, err);
	if (code < 0 && r->no_image) {
		r->no_image = false;
		(void)error_copy(passed, err);
		*err = (struct error)ERROR_INIT;
		return 0;
	}
	return code;
}

int oci_read(struct reading *r, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_json_ json_t *index = NULL;
	struct error passed = ERROR_INIT;
	json_t *list;
	int code;

	r->ops = &oci_archive;
	code = oci_check_layout(r, err);
	if (code == 0)
		code = source_load(r->source, "index.json", READING_DOCUMENT_MAX, &b, err);
	if (code == 0)
		code = oci_read_index(&b, NULL, "index.json", &index, &list, err);
	if (code < 0)
		return code;
	for (size_t i = 0; i < json_array_size(list); i++) {
		code = oci_read_entry(r, json_array_get(list, i), &passed, err);
		if (code < 0)
			return code;
	}
	if (r->n_images == 0 && *r->choice.offers)
		return choice_fail(&r->choice, err);
	if (r->n_images == 0 && passed.code)
		return error_copy(err, &passed);
	if (r->n_images == 0 && *r->choice.ref)
		return choice_fail(&r->choice, err);
	if (r->n_images == 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the archive has no image for this machine (linux/%s)",
				    r->architecture);
	return 0;
}
