/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/job/descriptor.h"

#include <errno.h>
#include <stdbool.h>

#include "base/text/str.h"
#include "fetch/job/json.h"
#include "wire/name/digest.h"

#define OCI "application/vnd.oci.image."
#define DOCKER "application/vnd.docker."

static const struct descriptor_type descriptor_types[] = {
	{ OCI "index.v1+json", DESCRIPTOR_INDEX, FETCH_PLAIN },
	{ DOCKER "distribution.manifest.list.v2+json", DESCRIPTOR_INDEX, FETCH_PLAIN },
	{ OCI "manifest.v1+json", DESCRIPTOR_MANIFEST, FETCH_PLAIN },
	{ DOCKER "distribution.manifest.v2+json", DESCRIPTOR_MANIFEST, FETCH_PLAIN },
	{ OCI "config.v1+json", DESCRIPTOR_CONFIG, FETCH_PLAIN },
	{ DOCKER "container.image.v1+json", DESCRIPTOR_CONFIG, FETCH_PLAIN },
	{ OCI "layer.v1.tar", DESCRIPTOR_LAYER, FETCH_PLAIN },
	{ OCI "layer.v1.tar+gzip", DESCRIPTOR_LAYER, FETCH_GZIP },
	{ OCI "layer.v1.tar+zstd", DESCRIPTOR_LAYER, FETCH_ZSTD },
	{ OCI "layer.nondistributable.v1.tar", DESCRIPTOR_LAYER, FETCH_PLAIN },
	{ OCI "layer.nondistributable.v1.tar+gzip", DESCRIPTOR_LAYER, FETCH_GZIP },
	{ OCI "layer.nondistributable.v1.tar+zstd", DESCRIPTOR_LAYER, FETCH_ZSTD },
	{ DOCKER "image.rootfs.diff.tar", DESCRIPTOR_LAYER, FETCH_PLAIN },
	{ DOCKER "image.rootfs.diff.tar.gzip", DESCRIPTOR_LAYER, FETCH_GZIP },
	{ DOCKER "image.rootfs.diff.tar.zstd", DESCRIPTOR_LAYER, FETCH_ZSTD },
};

struct descriptor_type descriptor_type_of(const char *media_type)
{
	for (size_t i = 0; i < ARRAY_SIZE(descriptor_types); i++)
		if (str_eq(descriptor_types[i].name, media_type))
			return descriptor_types[i];
	return (struct descriptor_type){ .role = DESCRIPTOR_OTHER };
}

int descriptor_read(struct descriptor *ret, json_t *node, struct error *err)
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
		r = json_get_array(node, "urls", DESCRIPTOR_LIST_MAX, &urls, err);
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
	ret->type = descriptor_type_of(ret->media_type);
	return 0;
}

static int descriptor_check(json_t *j, const char *media_type, const char *const *foreign,
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

int descriptor_check_index(json_t *document, const char *media_type, struct error *err)
{
	static const char *const foreign[] = { "config", "layers", "fsLayers", NULL };

	return descriptor_check(document, media_type, foreign, err);
}

int descriptor_check_manifest(json_t *document, const char *media_type, struct error *err)
{
	static const char *const foreign[] = { "manifests", "fsLayers", NULL };

	return descriptor_check(document, media_type, foreign, err);
}
