/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whoever names a blob gives its media type, digest and size in a descriptor. The digest and size
 * are verified before a byte of the blob is looked at, and the document must be what the descriptor
 * says: a document that could be read as an index and as a manifest is neither (CVE-2021-41190).
 */

#include "fetch/oci.h"

#include <errno.h>
#include <stdbool.h>

#include "base/str.h"
#include "fetch/json.h"
#include "fetch/reading.h"
#include "fetch/source.h"
#include "wire/digest.h"

#define OCI_DEPTH_MAX 3
#define OCI_ENTRIES_MAX 256
#define OCI_BLOB_NAME_SIZE (DIGEST_SIZE + 16)

#define OCI "application/vnd.oci.image."
#define DOCKER "application/vnd.docker."

enum oci_role { OCI_OTHER, OCI_INDEX, OCI_MANIFEST, OCI_CONFIG, OCI_LAYER };

struct oci_type {
	const char *name;
	enum oci_role role;
	enum fetch_compression compression;
};

static const struct oci_type oci_types[] = {
	{ OCI "index.v1+json", OCI_INDEX, FETCH_PLAIN },
	{ DOCKER "distribution.manifest.list.v2+json", OCI_INDEX, FETCH_PLAIN },
	{ OCI "manifest.v1+json", OCI_MANIFEST, FETCH_PLAIN },
	{ DOCKER "distribution.manifest.v2+json", OCI_MANIFEST, FETCH_PLAIN },
	{ OCI "config.v1+json", OCI_CONFIG, FETCH_PLAIN },
	{ DOCKER "container.image.v1+json", OCI_CONFIG, FETCH_PLAIN },
	{ OCI "layer.v1.tar", OCI_LAYER, FETCH_PLAIN },
	{ OCI "layer.v1.tar+gzip", OCI_LAYER, FETCH_GZIP },
	{ OCI "layer.v1.tar+zstd", OCI_LAYER, FETCH_ZSTD },
	{ OCI "layer.nondistributable.v1.tar", OCI_LAYER, FETCH_PLAIN },
	{ OCI "layer.nondistributable.v1.tar+gzip", OCI_LAYER, FETCH_GZIP },
	{ OCI "layer.nondistributable.v1.tar+zstd", OCI_LAYER, FETCH_ZSTD },
	{ DOCKER "image.rootfs.diff.tar", OCI_LAYER, FETCH_PLAIN },
	{ DOCKER "image.rootfs.diff.tar.gzip", OCI_LAYER, FETCH_GZIP },
	{ DOCKER "image.rootfs.diff.tar.zstd", OCI_LAYER, FETCH_ZSTD },
};

static struct oci_type oci_type_of(const char *media_type)
{
	for (size_t i = 0; i < ARRAY_SIZE(oci_types); i++)
		if (str_eq(oci_types[i].name, media_type))
			return oci_types[i];
	return (struct oci_type){ .role = OCI_OTHER };
}

/* ---- descriptors ---- */

struct oci_descriptor {
	struct oci_type type;
	const char *media_type;
	const char *digest;
	uint64_t size;
	json_t *node;
};

static int oci_descriptor(json_t *node, struct oci_descriptor *ret, struct error *err)
{
	json_t *urls;
	int r;

	if (!json_is_object(node))
		return error_refuse(err, ERROR_INVALID, "a descriptor is no JSON object");
	ret->node = node;
	r = json_need_text(node, "mediaType", &ret->media_type, err);
	if (r == 0)
		r = json_need_text(node, "digest", &ret->digest, err);
	if (r == 0)
		r = json_need_number(node, "size", FETCH_BYTES_MAX, &ret->size, err);
	if (r == 0)
		r = json_get_array(node, "urls", OCI_ENTRIES_MAX, &urls, err);
	if (r < 0)
		return error_wrap(err, r, "descriptor");
	if (!digest_is_valid(ret->digest))
		return error_refuse(err, ERROR_INVALID,
				    "descriptor: member \"digest\" is no sha256 digest: \"%.100s\"",
				    ret->digest);
	if (json_array_size(urls))
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "blob %s is to be fetched from elsewhere (\"urls\")",
				    ret->digest);
	ret->type = oci_type_of(ret->media_type);
	return 0;
}

static void oci_blob_name(const char *digest, char ret[OCI_BLOB_NAME_SIZE])
{
	(void)str_printf(ret, OCI_BLOB_NAME_SIZE, "blobs/sha256/%s", digest_hex(digest));
}

/* A document, verified, and put into staging. */
static int oci_load(struct reading *r, const struct oci_descriptor *d, struct buf *ret,
		    struct error *err)
{
	char name[OCI_BLOB_NAME_SIZE], digest[DIGEST_SIZE];
	int code;

	oci_blob_name(d->digest, name);
	code = source_load(r->source, name, READING_DOCUMENT_MAX, ret, err);
	if (code < 0)
		return code;
	if (ret->len != d->size)
		return error_refuse(err, ERROR_INVALID, "blob %s has %zu bytes, not %llu",
				    d->digest, ret->len, (unsigned long long)d->size);
	return staging_put(&r->staging, buf_data(ret), ret->len, d->digest, digest, err);
}

static int oci_check_document(json_t *j, const char *media_type, const char *const *foreign,
			      struct error *err)
{
	const char *own;
	uint64_t version;
	int r;

	r = json_need_number(j, "schemaVersion", 2, &version, err);
	if (r == 0)
		r = json_get_text(j, "mediaType", &own, err);
	if (r < 0)
		return r;
	if (version != 2)
		return error_refuse(err, ERROR_INVALID, "member \"schemaVersion\" is not 2");
	if (*own && media_type && !str_eq(own, media_type))
		return error_refuse(
			err, ERROR_INVALID,
			"the document says it is \"%.100s\", its descriptor says \"%.100s\"", own,
			media_type);
	for (; *foreign; foreign++)
		if (json_object_get(j, *foreign))
			return error_refuse(err, ERROR_INVALID,
					    "the document mixes an index and a manifest (\"%s\")",
					    *foreign);
	return 0;
}

/* ---- manifests ---- */

static int oci_take_layer(struct reading *r, json_t *node, struct reading_layer *ret,
			  struct error *err)
{
	char name[OCI_BLOB_NAME_SIZE];
	struct oci_descriptor d;
	int code;

	code = oci_descriptor(node, &d, err);
	if (code < 0)
		return code;
	if (d.type.role != OCI_LAYER)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "the type \"%.100s\" cannot be unpacked", d.media_type);
	ret->compression = d.type.compression;
	ret->size = d.size;
	(void)str_copy(ret->digest, sizeof(ret->digest), d.digest);
	oci_blob_name(d.digest, name);
	return staging_take(&r->staging, r->source, name, d.digest, d.size, err);
}

static int oci_take_config(struct reading *r, json_t *manifest, struct buf *ret,
			   char ret_id[DIGEST_SIZE], struct error *err)
{
	struct oci_descriptor d;
	json_t *node;
	int code;

	code = json_need_object(manifest, "config", &node, err);
	if (code == 0)
		code = oci_descriptor(node, &d, err);
	if (code < 0)
		return code;
	if (d.type.role != OCI_CONFIG)
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
	struct reading_layer layers[FETCH_LAYERS_MAX];
	json_t *list;
	int code;

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

static int oci_take_manifest(struct reading *r, const struct oci_descriptor *d, char *const *names,
			     struct error *err)
{
	static const char *const foreign[] = { "manifests", "fsLayers", NULL };
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct reading_image image = { .names = names };
	_cleanup_json_ json_t *manifest = NULL;
	int code;

	code = oci_load(r, d, &b, err);
	if (code == 0)
		code = json_read(&manifest, &b, "the manifest", err);
	if (code == 0)
		code = oci_check_document(manifest, d->media_type, foreign, err);
	if (code == 0) {
		(void)str_copy(image.digest, sizeof(image.digest), d->digest);
		code = oci_take_image(r, manifest, &image, err);
	}
	return code < 0 ? error_wrap(err, code, "manifest %s", d->digest) : 0;
}

/* ---- indexes ---- */

/* Whether the entry of an index is for this machine; one without a platform is. */
static int oci_fits(const struct reading *r, json_t *node, struct error *err)
{
	const char *os, *architecture;
	json_t *platform;
	int code;

	code = json_get_object(node, "platform", &platform, err);
	if (code < 0 || !platform)
		return code < 0 ? code : 1;
	code = json_get_text(platform, "os", &os, err);
	if (code == 0)
		code = json_get_text(platform, "architecture", &architecture, err);
	if (code < 0)
		return error_wrap(err, code, "platform");
	return str_eq(os, "linux") && str_eq(architecture, r->architecture);
}

static int oci_read_index(const struct buf *b, const char *media_type, const char *what,
			  json_t **ret, json_t **ret_list, struct error *err)
{
	static const char *const foreign[] = { "config", "layers", "fsLayers", NULL };
	int code;

	code = json_read(ret, b, what, err);
	if (code == 0)
		code = oci_check_document(*ret, media_type, foreign, err);
	if (code == 0)
		code = json_need_array(*ret, "manifests", OCI_ENTRIES_MAX, ret_list, err);
	return code < 0 ? error_wrap(err, code, "%s", what) : 0;
}

/* In an index with the same image for several machines: the entry for this one, which lives in
 * *keep. */
static int oci_choose(struct reading *r, const struct oci_descriptor *d, struct oci_descriptor *ret,
		      json_t **keep, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	json_t *list;
	int code;

	code = oci_load(r, d, &b, err);
	if (code == 0)
		code = oci_read_index(&b, d->media_type, "the index", keep, &list, err);
	if (code < 0)
		return code;
	for (size_t i = 0; i < json_array_size(list); i++) {
		code = oci_descriptor(json_array_get(list, i), ret, err);
		if (code == 0)
			code = oci_fits(r, ret->node, err);
		if (code != 0)
			return MIN(code, 0);
	}
	return error_refuse(err, ERROR_PRECONDITION,
			    "index %s has no image for this machine (linux/%s)", d->digest,
			    r->architecture);
}

/* The indexes on the way are kept, since a descriptor points into the document that it stands in.
 */
static int oci_take_entry(struct reading *r, const struct oci_descriptor *entry, char *const *names,
			  struct error *err)
{
	json_t *kept[OCI_DEPTH_MAX] = { NULL };
	struct oci_descriptor d = *entry;
	int code = 0;

	for (int depth = 0; code == 0 && d.type.role == OCI_INDEX; depth++) {
		struct oci_descriptor next = d;

		if (depth == OCI_DEPTH_MAX)
			code = error_refuse(err, ERROR_INVALID,
					    "indexes are nested more than %d deep", OCI_DEPTH_MAX);
		else
			code = oci_choose(r, &d, &next, &kept[depth], err);
		d = next;
	}
	if (code == 0 && d.type.role != OCI_MANIFEST)
		code = error_refuse(err, ERROR_UNSUPPORTED,
				    "an entry of the index has the type \"%.100s\"", d.media_type);
	if (code == 0)
		code = oci_take_manifest(r, &d, names, err);
	for (int i = 0; i < OCI_DEPTH_MAX; i++)
		json_decref(kept[i]);
	return code;
}

/*
 * The name is written by whoever made the archive: containerd and Docker write it in full; the
 * annotation of OCI is often a tag alone, which is no name by itself.
 */
static int oci_names(json_t *node, char ***ret, struct error *err)
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
	if (!*full && strpbrk(reference, ":/"))
		full = reference;
	if (*full && strv_add(ret, full) < 0)
		return error_set(err, -ENOMEM, "read the index");
	return 0;
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

static int oci_read_entry(struct reading *r, json_t *node, struct error *err)
{
	_cleanup_strv_ char **names = NULL;
	struct oci_descriptor d;
	int code;

	code = oci_descriptor(node, &d, err);
	if (code < 0)
		return code;
	code = oci_fits(r, node, err);
	if (code <= 0)
		return code;
	code = oci_names(node, &names, err);
	return code == 0 ? oci_take_entry(r, &d, names, err) : code;
}

int oci_read(struct reading *r, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_json_ json_t *index = NULL;
	json_t *list;
	int code;

	code = oci_check_layout(r, err);
	if (code == 0)
		code = source_load(r->source, "index.json", READING_DOCUMENT_MAX, &b, err);
	if (code == 0)
		code = oci_read_index(&b, NULL, "index.json", &index, &list, err);
	if (code < 0)
		return code;
	for (size_t i = 0; i < json_array_size(list); i++) {
		code = oci_read_entry(r, json_array_get(list, i), err);
		if (code < 0)
			return code;
	}
	if (r->n_images == 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the archive has no image for this machine (linux/%s)",
				    r->architecture);
	return 0;
}
