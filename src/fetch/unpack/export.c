/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two passes: the manifests are read first, since the archive begins with its table of contents and
 * each entry with its length; then everything is written in the order in which it was found.
 */

#include "fetch/unpack/export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/list.h"
#include "base/memory/map.h"
#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "fetch/job/descriptor.h"
#include "fetch/job/json.h"
#include "fetch/unpack/reading.h"
#include "fetch/unpack/tarball.h"
#include "wire/name/checksum.h"
#include "wire/name/reference.h"

#define EXPORT_PIECE ((size_t)256 * 1024)
#define EXPORT_NAME_SIZE (DIGEST_SIZE + 16)

#define OCI "application/vnd.oci.image."
#define DOCKER "application/vnd.docker."

struct export_blob {
	struct list link;
	char digest[DIGEST_SIZE];
	uint64_t size;
	char *text; /* a manifest that was written here; NULL: it is in the store */
};

struct export_image {
	char digest[DIGEST_SIZE];
	char id[DIGEST_SIZE];
	char *names;
};

struct export
{
	int sock_fd;
	int blobs_fd;
	bool docker;
	struct tarball tarball;
	struct export_image *images;
	size_t n_images;
	struct list blobs;    /* in the order of the archive */
	struct map by_digest; /* the same */
	struct map tags;      /* that the index has already: its strings */
	json_t *index;        /* entries of index.json */
	json_t *manifests;    /* entries of manifest.json */
};

static void export_done(struct export *x)
{
	map_done(&x->by_digest);
	map_done(&x->tags);
	while (!list_empty(&x->blobs)) {
		struct export_blob *b = list_first(&x->blobs, struct export_blob, link);

		list_remove(&b->link);
		free(b->text);
		free(b);
	}
	for (size_t i = 0; i < x->n_images; i++)
		free(x->images[i].names);
	free(x->images);
	json_decref(x->index);
	json_decref(x->manifests);
}

/* ---- reading the store ---- */

static int export_damaged(struct error *err, const char *digest, const char *how)
{
	return error_set(err, -EIO,
			 "the store is damaged, blob %s %s: pull or import the image again", digest,
			 how);
}

static int export_open(const struct export *x, const char *digest, uint64_t size, struct error *err)
{
	_cleanup_fd_ int fd =
		sysio_openat(x->blobs_fd, digest_hex(digest), O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return export_damaged(err, digest, "is missing");
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set(err, -errno, "open blob %s", digest);
	if (!S_ISREG(st.st_mode) || (size != UINT64_MAX && (uint64_t)st.st_size != size))
		return export_damaged(err, digest, "has another length");
	return TAKE_FD(fd);
}

static int export_load(const struct export *x, const char *digest, struct buf *ret,
		       struct error *err)
{
	_cleanup_fd_ int fd = export_open(x, digest, UINT64_MAX, err);
	struct checksum hash;
	char found[DIGEST_SIZE];
	int r;

	if (fd < 0)
		return fd;
	r = fd_read_all(fd, READING_DOCUMENT_MAX, ret);
	if (r < 0)
		return error_set(err, r, "read blob %s", digest);
	checksum_start(&hash);
	checksum_add(&hash, buf_data(ret), ret->len);
	checksum_end(&hash, found);
	return str_eq(found, digest) ? 0 : export_damaged(err, digest, "has another digest");
}

/* ---- what is to be written ---- */

/* Each digest once. Takes the text. */
static int export_note(struct export *x, const char *digest, uint64_t size, char *text,
		       struct error *err)
{
	struct export_blob *b = map_get(&x->by_digest, digest);

	if (b) {
		free(text);
		return b->size == size ? 0 : export_damaged(err, digest, "has two lengths");
	}
	b = calloc(1, sizeof(*b));
	if (!b) {
		free(text);
		return error_set(err, -ENOMEM, "export");
	}
	(void)str_copy(b->digest, sizeof(b->digest), digest);
	b->size = size;
	b->text = text;
	list_init(&b->link);
	list_add_tail(&x->blobs, &b->link);
	return map_add(&x->by_digest, b->digest, b) < 0 ? error_set(err, -ENOMEM, "export") : 0;
}

/* OCI's name of a type that Docker has another name for; NULL: it needs none. */
static const char *export_type(const char *type)
{
	static const struct {
		const char *docker, *oci;
	} types[] = {
		{ DOCKER "distribution.manifest.v2+json", OCI "manifest.v1+json" },
		{ DOCKER "container.image.v1+json", OCI "config.v1+json" },
		{ DOCKER "image.rootfs.diff.tar", OCI "layer.v1.tar" },
		{ DOCKER "image.rootfs.diff.tar.gzip", OCI "layer.v1.tar+gzip" },
		{ DOCKER "image.rootfs.diff.tar.zstd", OCI "layer.v1.tar+zstd" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (str_eq(types[i].docker, type))
			return types[i].oci;
	return NULL;
}

/* 1: it has another name now. */
static int export_rename_type(json_t *node, const char *type, struct error *err)
{
	const char *oci = export_type(type);

	if (!oci)
		return 0;
	return json_object_set_new(node, "mediaType", json_string(oci)) < 0
		       ? error_set(err, -ENOMEM, "write a manifest")
		       : 1;
}

static int export_blob_name(const char *digest, char ret[EXPORT_NAME_SIZE])
{
	return str_printf(ret, EXPORT_NAME_SIZE, "blobs/sha256/%s", digest_hex(digest));
}

static json_t *export_blob_word(const char *digest)
{
	char name[EXPORT_NAME_SIZE];

	(void)export_blob_name(digest, name);
	return json_string(name);
}

/* A descriptor of the manifest. `paths` (may be NULL) gets its blob's name. 1: it was changed. */
static int export_descriptor(struct export *x, json_t *node, json_t *paths, struct error *err)
{
	struct descriptor d;
	int r;

	r = descriptor_read(&d, node, err);
	if (r == 0)
		r = export_note(x, d.digest, d.size, NULL, err);
	if (r == 0 && paths && json_array_append_new(paths, export_blob_word(d.digest)) < 0)
		r = error_set(err, -ENOMEM, "export");
	return r == 0 ? export_rename_type(node, d.media_type, err) : r;
}

/* All that the manifest names. 1: it was changed. */
static int export_manifest(struct export *x, json_t *manifest, json_t *paths, struct error *err)
{
	json_t *config, *layers;
	const char *type;
	int changed = 0, r;

	r = json_get_text(manifest, "mediaType", &type, err);
	if (r == 0)
		r = json_need_object(manifest, "config", &config, err);
	if (r == 0)
		r = json_need_array(manifest, "layers", FETCH_LAYERS_MAX, &layers, err);
	if (r == 0)
		r = export_rename_type(manifest, type, err);
	changed |= r;
	if (r >= 0)
		r = export_descriptor(x, config, NULL, err);
	changed |= r;
	for (size_t i = 0; r >= 0 && i < json_array_size(layers); i++) {
		r = export_descriptor(x, json_array_get(layers, i), paths, err);
		changed |= r;
	}
	return r < 0 ? r : changed;
}

/* The manifest as it goes into the archive: its digest and length. */
static int export_place(struct export *x, const struct export_image *image, json_t *manifest,
			bool changed, const struct buf *b, char ret_digest[DIGEST_SIZE],
			uint64_t *ret_size, struct error *err)
{
	struct checksum hash;
	char *text;

	(void)str_copy(ret_digest, DIGEST_SIZE, image->digest);
	*ret_size = b->len;
	if (!changed)
		return export_note(x, ret_digest, *ret_size, NULL, err);
	text = json_dumps(manifest, JSON_COMPACT);
	if (!text)
		return error_set(err, -ENOMEM, "write a manifest");
	*ret_size = strlen(text);
	checksum_start(&hash);
	checksum_add(&hash, text, strlen(text));
	checksum_end(&hash, ret_digest);
	return export_note(x, ret_digest, *ret_size, text, err);
}

/* ---- tables of contents ---- */

/*
 * What containerd and Docker read, and what skopeo and umoci do: the latter take a tag for a name
 * within the layout, so a second image with the same tag has all of its name there.
 */
static json_t *export_annotations(struct export *x, const char *name)
{
	json_t *node = json_object();
	struct reference ref;
	const char *tag = name;

	if (!*name || reference_parse(&ref, name, NULL) < 0)
		return node;
	if (*ref.tag && !map_get(&x->tags, ref.tag))
		tag = ref.tag;
	if (json_object_set_new(node, "io.containerd.image.name", json_string(name)) < 0 ||
	    json_object_set_new(node, "org.opencontainers.image.ref.name", json_string(tag)) < 0)
		goto fail;
	tag = json_string_value(json_object_get(node, "org.opencontainers.image.ref.name"));
	if (!map_get(&x->tags, tag) && map_add(&x->tags, tag, x) < 0)
		goto fail;
	return node;
fail:
	json_decref(node);
	return NULL;
}

static int export_list_one(struct export *x, const char *name, const char *digest, uint64_t size,
			   struct error *err)
{
	json_t *annotations = export_annotations(x, name);
	json_t *entry = NULL;

	if (annotations && json_object_size(annotations))
		entry = json_pack("{s:s, s:s, s:I, s:o}", "mediaType", OCI "manifest.v1+json",
				  "digest", digest, "size", (json_int_t)size, "annotations",
				  annotations);
	else if (annotations)
		entry = json_pack("{s:s, s:s, s:I}", "mediaType", OCI "manifest.v1+json", "digest",
				  digest, "size", (json_int_t)size);
	if (annotations && !json_object_size(annotations))
		json_decref(annotations);
	return json_array_append_new(x->index, entry) < 0
		       ? error_set(err, -ENOMEM, "write index.json")
		       : 0;
}

/* Each name is an entry of its own. Takes the paths. */
static int export_list(struct export *x, const struct export_image *image, const char *digest,
		       uint64_t size, json_t *paths, struct error *err)
{
	_cleanup_str_ char *names = strdup(image->names);
	json_t *tags = json_array(), *entry;
	char *rest = names;
	int r = names ? 0 : error_set(err, -ENOMEM, "export");

	if (r == 0 && !*names)
		r = export_list_one(x, "", digest, size, err);
	while (r == 0 && rest && *rest) {
		const char *name = strsep(&rest, " ");

		r = export_list_one(x, name, digest, size, err);
		if (r == 0 && json_array_append_new(tags, json_string(name)) < 0)
			r = error_set(err, -ENOMEM, "write manifest.json");
	}
	entry = json_pack("{s:o, s:o, s:O}", "Config", export_blob_word(image->id), "RepoTags",
			  tags, "Layers", paths);
	if (json_array_append_new(x->manifests, entry) < 0 && r == 0)
		r = error_set(err, -ENOMEM, "write manifest.json");
	return r;
}

static int export_tell(const struct export *x, const struct export_image *image, const char *digest,
		       struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_IMAGE,
			      .image = { .user = "", .working_dir = "", .stop_signal = "" } };

	(void)str_copy(m.image.id, sizeof(m.image.id), image->id);
	(void)str_copy(m.image.digest, sizeof(m.image.digest), digest);
	return channel_send(x->sock_fd, &m, err);
}

static int export_plan_one(struct export *x, const struct export_image *image, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_json_ json_t *manifest = NULL;
	_cleanup_json_ json_t *paths = json_array();
	char digest[DIGEST_SIZE];
	uint64_t size;
	int r;

	if (!paths)
		return error_set(err, -ENOMEM, "export");
	r = export_load(x, image->digest, &b, err);
	if (r == 0)
		r = json_read(&manifest, &b, "the manifest", err);
	if (r == 0)
		r = descriptor_check_manifest(manifest, NULL, err);
	if (r == 0)
		r = export_manifest(x, manifest, paths, err);
	if (r >= 0)
		r = export_place(x, image, manifest, r > 0, &b, digest, &size, err);
	if (r == 0)
		r = export_list(x, image, digest, size, paths, err);
	if (r == 0)
		r = export_tell(x, image, digest, err);
	return r < 0 ? error_wrap(err, r, "manifest %s", image->digest) : 0;
}

/* ---- writing ---- */

static int export_copy(struct export *x, const struct export_blob *b, int fd, struct error *err)
{
	static uint8_t piece[EXPORT_PIECE];
	struct checksum hash;
	char found[DIGEST_SIZE];
	uint64_t left = b->size;
	int r;

	checksum_start(&hash);
	while (left) {
		size_t len = (size_t)MIN(left, (uint64_t)sizeof(piece));

		r = fd_read_full(fd, piece, len);
		if (r < 0)
			return error_set(err, r, "read blob %s", b->digest);
		checksum_add(&hash, piece, len);
		left -= len;
		/* The last piece goes out when it is known to be the right one. */
		if (!left)
			checksum_end(&hash, found);
		if (!left && !str_eq(found, b->digest))
			return export_damaged(err, b->digest, "has another digest");
		r = tarball_add(&x->tarball, piece, len, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int export_blob(struct export *x, const struct export_blob *b, struct error *err)
{
	char name[EXPORT_NAME_SIZE];
	_cleanup_fd_ int fd = -1;
	int r;

	r = export_blob_name(b->digest, name);
	if (r >= 0 && b->text)
		return tarball_text(&x->tarball, name, b->text, b->size, err);
	fd = export_open(x, b->digest, b->size, err);
	if (fd < 0)
		return fd;
	r = tarball_file(&x->tarball, name, b->size, err);
	return r == 0 ? export_copy(x, b, fd, err) : r;
}

static int export_json(struct export *x, const char *name, const json_t *document,
		       struct error *err)
{
	_cleanup_str_ char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;

	return text ? tarball_text(&x->tarball, name, text, strlen(text), err)
		    : error_set(err, -ENOMEM, "write %s", name);
}

static int export_contents(struct export *x, struct error *err)
{
	_cleanup_json_ json_t *layout = json_pack("{s:s}", "imageLayoutVersion", "1.0.0");
	_cleanup_json_ json_t *index = json_pack("{s:i, s:s, s:O}", "schemaVersion", 2, "mediaType",
						 OCI "index.v1+json", "manifests", x->index);
	int r;

	r = export_json(x, "oci-layout", layout, err);
	if (r == 0)
		r = export_json(x, "index.json", index, err);
	if (r == 0 && x->docker)
		r = export_json(x, "manifest.json", x->manifests, err);
	if (r == 0)
		r = tarball_dir(&x->tarball, "blobs/", err);
	if (r == 0)
		r = tarball_dir(&x->tarball, "blobs/sha256/", err);
	return r;
}

static int export_write(struct export *x, struct error *err)
{
	const struct export_blob *b;
	int r = export_contents(x, err);

	list_for_each (b, &x->blobs, struct export_blob, link) {
		if (r == 0)
			r = export_blob(x, b, err);
	}
	return r == 0 ? tarball_end(&x->tarball, err) : r;
}

/* ---- */

static int export_receive(struct export *x, size_t n, struct error *err)
{
	x->images = calloc(n + 1, sizeof(*x->images));
	if (!x->images || !x->index || !x->manifests)
		return error_set(err, -ENOMEM, "export");
	while (x->n_images < n) {
		struct export_image *image = &x->images[x->n_images];
		struct fetchmsg m;
		int r;

		r = channel_receive(x->sock_fd, &m, err);
		if (r < 0)
			return r;
		if (m.type != FETCHMSG_EXPORT_IMAGE)
			return error_refuse(err, ERROR_INVALID, "an image was to come");
		(void)str_copy(image->digest, sizeof(image->digest), m.export_image.digest);
		(void)str_copy(image->id, sizeof(image->id), m.export_image.id);
		image->names = strdup(m.export_image.names);
		if (!image->names)
			return error_set(err, -ENOMEM, "export");
		x->n_images++;
	}
	return 0;
}

int export_run(int sock_fd, const struct fetchmsg *request, int blobs_fd, int out_fd,
	       struct error *err)
{
	_cleanup_(export_done) struct export x = { .sock_fd = sock_fd,
						   .blobs_fd = blobs_fd,
						   .docker = request->export.form ==
							     FETCH_EXPORT_DOCKER,
						   .tarball = { .fd = out_fd },
						   .by_digest = MAP_INIT,
						   .tags = MAP_INIT,
						   .index = json_array(),
						   .manifests = json_array() };
	struct fetchmsg done = { .type = FETCHMSG_DONE };
	int r;

	list_init(&x.blobs);
	r = export_receive(&x, request->export.n_images, err);
	for (size_t i = 0; r == 0 && i < x.n_images; i++)
		r = export_plan_one(&x, &x.images[i], err);
	if (r == 0)
		r = export_write(&x, err);
	if (r < 0)
		return r;
	done.done.n_images = (uint32_t)x.n_images;
	return channel_send(sock_fd, &done, err);
}
