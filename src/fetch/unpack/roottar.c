/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/roottar.h"

#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "fetch/job/json.h"
#include "fetch/unpack/docker.h"
#include "fetch/unpack/inflate.h"
#include "fetch/unpack/reading.h"
#include "wire/name/checksum.h"

#define ROOTTAR_PIECE ((size_t)256 * 1024)

/* The digest of the tar within, which a configuration names: another one than the file's where that
 * is compressed. */
static int roottar_diff_id(const struct reading *r, int fd, const struct reading_layer *layer,
			   char ret[DIGEST_SIZE], struct error *err)
{
	static uint8_t piece[ROOTTAR_PIECE];
	_cleanup_(inflate_freep) struct inflate *i = NULL;
	struct checksum hash;
	ssize_t n;
	int code;

	if (layer->compression == FETCH_PLAIN) {
		(void)str_copy(ret, DIGEST_SIZE, layer->digest);
		return 0;
	}
	code = inflate_new(&i,
			   &(struct inflate_config){ .fd = fd,
						     .compression = layer->compression,
						     .max_out = r->staging.max_bytes },
			   err);
	if (code < 0)
		return code;
	checksum_start(&hash);
	do {
		n = inflate_read(i, piece, sizeof(piece), err);
		if (n > 0)
			checksum_add(&hash, piece, (size_t)n);
	} while (n > 0);
	if (n < 0)
		return error_wrap(err, (int)n, "decompress the tar");
	checksum_end(&hash, ret);
	return 0;
}

static json_t *roottar_config(const struct reading *r, const char *variant, json_t *config,
			      const char *diff_id)
{
	_cleanup_json_ json_t *empty = json_object();

	return json_pack("{s:s, s:s*, s:s, s:O, s:{s:s, s:[s]}, s:[{s:s}]}", "architecture",
			 r->architecture, "variant", *variant ? variant : NULL, "os", "linux",
			 "config", config ? config : empty, "rootfs", "type", "layers", "diff_ids",
			 diff_id, "history", "created_by", "nacre image import --root");
}

/* A configuration with the settings, into *ret and staging. */
static int roottar_put_config(struct reading *r, const char *text, const char *diff_id,
			      struct buf *ret, char ret_id[DIGEST_SIZE], struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_json_ json_t *settings = NULL;
	_cleanup_json_ json_t *document = NULL;
	_cleanup_str_ char *out = NULL;
	const char *architecture, *variant;
	json_t *config;
	int code;

	if (buf_add(&b, text, strlen(text)) < 0)
		return error_set(err, -ENOMEM, "read the settings");
	code = json_read(&settings, &b, "the settings", err);
	if (code == 0)
		code = json_get_text(settings, "architecture", &architecture, err);
	if (code == 0)
		code = json_get_text(settings, "variant", &variant, err);
	if (code == 0)
		code = json_get_object(settings, "config", &config, err);
	if (code < 0)
		return code;
	/* It may be for another machine: whoever says so means it. */
	if (*architecture && str_copy(r->architecture, sizeof(r->architecture), architecture) < 0)
		return error_refuse(err, ERROR_INVALID, "the name of the architecture is too long");
	document = roottar_config(r, variant, config, diff_id);
	out = document ? json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	if (!out || buf_add(ret, out, strlen(out)) < 0)
		return error_set(err, -ENOMEM, "write a configuration");
	return staging_put(&r->staging, buf_data(ret), ret->len, NULL, ret_id, err);
}

int roottar_read(struct reading *r, int fd, const char *settings, struct error *err)
{
	_cleanup_(buf_done) struct buf config = BUF_INIT;
	struct reading_layer layer = { .compression = FETCH_PLAIN };
	struct reading_image image = { .config = &config, .layers = &layer, .n_layers = 1 };
	char diff_id[DIGEST_SIZE];
	struct stat st;
	int code;

	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at the tar");
	if (!S_ISREG(st.st_mode))
		return error_refuse(err, ERROR_INVALID,
				    "a root file system is imported from a tar, not a directory");
	if (st.st_size == 0)
		return error_refuse(err, ERROR_INVALID, "the tar is empty");
	code = staging_take_file(&r->staging, fd, layer.digest, &layer.size, &layer.compression,
				 err);
	if (code == 0)
		code = roottar_diff_id(r, fd, &layer, diff_id, err);
	if (code == 0)
		code = roottar_put_config(r, settings, diff_id, &config, image.id, err);
	if (code == 0)
		code = docker_put_manifest(r, &image, err);
	return code == 0 ? reading_send(r, &image, err) : code;
}
