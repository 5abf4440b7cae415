/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/docker.h"

#include <assert.h>
#include <errno.h>

#include "base/text/str.h"
#include "fetch/job/json.h"
#include "fetch/unpack/reading.h"
#include "fetch/unpack/source.h"

static const char *const docker_layer_types[] = {
	[FETCH_PLAIN] = "application/vnd.oci.image.layer.v1.tar",
	[FETCH_GZIP] = "application/vnd.oci.image.layer.v1.tar+gzip",
	[FETCH_ZSTD] = "application/vnd.oci.image.layer.v1.tar+zstd",
};
static_assert(ARRAY_SIZE(docker_layer_types) == FETCH_COMPRESSION_COUNT, "a type for each");

static int docker_take_layers(struct reading *r, json_t *list, struct reading_layer *layers,
			      struct error *err)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));
		int code;

		if (!name)
			return error_refuse(err, ERROR_INVALID,
					    "member \"Layers\" is no list of strings");
		code = staging_take_any(&r->staging, r->source, name, layers[i].digest,
					&layers[i].size, &layers[i].compression, err);
		if (code < 0)
			return error_wrap(err, code, "layer %zu", i + 1);
	}
	return 0;
}

static json_t *docker_descriptor(const char *media_type, const char *digest, uint64_t size)
{
	return json_pack("{s:s, s:s, s:I}", "mediaType", media_type, "digest", digest, "size",
			 (json_int_t)size);
}

int docker_put_manifest(struct reading *r, struct reading_image *image, struct error *err)
{
	_cleanup_json_ json_t *layers = json_array();
	_cleanup_json_ json_t *manifest = NULL;
	_cleanup_str_ char *text = NULL;

	for (size_t i = 0; i < image->n_layers; i++) {
		const struct reading_layer *l = &image->layers[i];

		if (json_array_append_new(layers,
					  docker_descriptor(docker_layer_types[l->compression],
							    l->digest, l->size)) < 0)
			return error_set(err, -ENOMEM, "write a manifest");
	}
	manifest = json_pack("{s:i, s:s, s:o, s:O}", "schemaVersion", 2, "mediaType",
			     "application/vnd.oci.image.manifest.v1+json", "config",
			     docker_descriptor("application/vnd.oci.image.config.v1+json",
					       image->id, image->config->len),
			     "layers", layers);
	text = manifest ? json_dumps(manifest, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	if (!text)
		return error_set(err, -ENOMEM, "write a manifest");
	return staging_put(&r->staging, text, strlen(text), NULL, image->digest, err);
}

static int docker_said(json_t *entry, char ***ret, struct error *err)
{
	json_t *list;
	int r;

	r = json_get_array(entry, "RepoTags", FETCH_WORDS_MAX, &list, err);
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if (!text)
			r = error_refuse(err, ERROR_INVALID,
					 "member \"RepoTags\" is no list of strings");
		else if (strv_add(ret, text) < 0)
			r = error_set(err, -ENOMEM, "read the names");
	}
	return r;
}

/* A configuration that is named by its digest must have it. */
static int docker_check_name(const char *name, const char *digest, struct error *err)
{
	const char *base = strrchr(name, '/');
	char hex[DIGEST_HEX_LEN + 1];

	base = base ? base + 1 : name;
	(void)str_copy(hex, sizeof(hex), base);
	if (!digest_is_hex(hex) ||
	    (base[DIGEST_HEX_LEN] && !str_eq(base + DIGEST_HEX_LEN, ".json")))
		return 0;
	if (!str_eq(hex, digest_hex(digest)))
		return error_refuse(err, ERROR_INVALID,
				    "configuration \"%.200s\" has the digest %s", name, digest);
	return 0;
}

static int docker_take_image(struct reading *r, json_t *entry, struct error *err)
{
	_cleanup_(buf_done) struct buf config = BUF_INIT;
	_cleanup_(reading_layers_done) struct reading_layer *layers = reading_layers_new();
	struct reading_image image = { .config = &config, .layers = layers };
	_cleanup_strv_ char **said = NULL;
	_cleanup_strv_ char **names = NULL;
	const char *config_name;
	json_t *list;
	int code;

	if (!layers)
		return error_set(err, -ENOMEM, "read manifest.json");
	code = json_need_text(entry, "Config", &config_name, err);
	if (code == 0)
		code = json_need_array(entry, "Layers", FETCH_LAYERS_MAX, &list, err);
	if (code == 0)
		code = docker_said(entry, &said, err);
	if (code == 0 && !choice_takes(&r->choice, said))
		return 0;
	if (code == 0)
		code = choice_names(&r->choice, said, false, &names, err);
	if (code == 0)
		code = source_load(r->source, config_name, READING_DOCUMENT_MAX, &config, err);
	if (code == 0)
		code = staging_put(&r->staging, buf_data(&config), config.len, NULL, image.id, err);
	if (code == 0)
		code = docker_check_name(config_name, image.id, err);
	if (code == 0)
		code = docker_take_layers(r, list, layers, err);
	if (code < 0)
		return code;
	image.n_layers = json_array_size(list);
	image.names = names;
	code = docker_put_manifest(r, &image, err);
	return code == 0 ? reading_send(r, &image, err) : code;
}

int docker_read(struct reading *r, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_json_ json_t *manifest = NULL;
	int code;

	code = source_load(r->source, "manifest.json", READING_DOCUMENT_MAX, &b, err);
	if (code == 0)
		code = json_read_array(&manifest, &b, "manifest.json", err);
	if (code < 0)
		return code;
	if (!json_array_size(manifest))
		return error_refuse(err, ERROR_INVALID, "manifest.json names no image");
	for (size_t i = 0; i < json_array_size(manifest); i++) {
		json_t *entry = json_array_get(manifest, i);

		if (!json_is_object(entry))
			return error_refuse(err, ERROR_INVALID,
					    "manifest.json is no list of objects");
		code = docker_take_image(r, entry, err);
		if (code < 0)
			return error_wrap(err, code, "manifest.json, image %zu", i + 1);
	}
	return r->n_images ? 0 : choice_fail(&r->choice, err);
}
