/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/transfer/copying.h"

#include <errno.h>

#include "base/text/str.h"
#include "fetch/job/descriptor.h"
#include "fetch/job/json.h"
#include "fetch/unpack/reading.h"

struct copying {
	struct reading *reading;
	const struct copying_ops *ops;
};

static int copying_load(struct copying *c, const struct descriptor *d, struct buf *text,
			json_t **ret, struct error *err)
{
	char digest[DIGEST_SIZE];
	int r;

	r = c->reading->ops->load(c->reading, d, text, err);
	if (r == 0 && text->len != d->size)
		r = error_refuse(err, ERROR_INVALID, "it has %zu bytes, not %llu", text->len,
				 (unsigned long long)d->size);
	if (r == 0)
		r = staging_put(&c->reading->staging, buf_data(text), text->len, d->digest, digest,
				err);
	return r == 0 ? json_read(ret, text, "the document", err) : r;
}

static int copying_subject(json_t *document, char subject[DIGEST_SIZE], struct error *err)
{
	struct descriptor d;
	json_t *node = NULL;
	int r;

	*subject = '\0';
	r = json_get_object(document, "subject", &node, err);
	if (r < 0 || !node)
		return r;
	r = descriptor_read(&d, node, err);
	if (r == 0)
		(void)str_copy(subject, DIGEST_SIZE, d.digest);
	return r < 0 ? error_wrap(err, r, "subject") : 0;
}

static int copying_manifest(struct copying *c, const struct descriptor *d,
			    char subject[DIGEST_SIZE], struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	_cleanup_json_ json_t *manifest = NULL;
	json_t *config = NULL, *layers = NULL;
	struct descriptor blob;
	int r;

	r = copying_load(c, d, &text, &manifest, err);
	if (r == 0)
		r = descriptor_check_manifest(manifest, d->media_type, err);
	if (r == 0)
		r = copying_subject(manifest, subject, err);
	if (r == 0)
		r = json_need_object(manifest, "config", &config, err);
	if (r == 0)
		r = json_get_array(manifest, "layers", FETCH_LAYERS_MAX, &layers, err);
	if (r == 0)
		r = descriptor_read(&blob, config, err);
	if (r == 0)
		r = c->ops->on_blob(c->reading, &blob, err);
	for (size_t i = 0; r == 0 && i < json_array_size(layers); i++) {
		r = descriptor_read(&blob, json_array_get(layers, i), err);
		if (r == 0)
			r = c->ops->on_blob(c->reading, &blob, err);
	}
	return r;
}

static int copying_list(struct copying *c, const struct descriptor *d, char subject[DIGEST_SIZE],
			json_t **ret_index, json_t **ret_list, struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	int r;

	r = copying_load(c, d, &text, ret_index, err);
	if (r == 0)
		r = descriptor_check_index(*ret_index, d->media_type, err);
	if (r == 0)
		r = copying_subject(*ret_index, subject, err);
	if (r == 0)
		r = json_need_array(*ret_index, "manifests", DESCRIPTOR_LIST_MAX, ret_list, err);
	return r;
}

/* An index is followed to each of its entries, DESCRIPTOR_DEPTH_MAX deep. */
static int copying_entry(struct copying *c, const struct descriptor *d, int depth,
			 struct error *err)
{
	_cleanup_json_ json_t *index = NULL;
	char subject[DIGEST_SIZE] = "";
	json_t *list = NULL;
	int r;

	if (d->type.role == DESCRIPTOR_MANIFEST)
		r = copying_manifest(c, d, subject, err);
	else if (d->type.role != DESCRIPTOR_INDEX)
		r = error_refuse(err, ERROR_UNSUPPORTED, "the type \"%.100s\" cannot be copied",
				 d->media_type);
	else if (depth == DESCRIPTOR_DEPTH_MAX)
		r = error_refuse(err, ERROR_INVALID, "indexes are nested more than %d deep",
				 DESCRIPTOR_DEPTH_MAX);
	else
		r = copying_list(c, d, subject, &index, &list, err);
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		struct descriptor entry;

		r = descriptor_read(&entry, json_array_get(list, i), err);
		if (r == 0)
			r = copying_entry(c, &entry, depth + 1, err);
	}
	if (r == 0 && c->ops->on_manifest)
		r = c->ops->on_manifest(c->reading, d, subject, err);
	return r < 0 && depth == 0 ? error_wrap(err, r, "manifest %s", d->digest) : r;
}

int copying_run(struct reading *r, const struct copying_ops *ops, const struct descriptor *root,
		struct error *err)
{
	struct copying c = { .reading = r, .ops = ops };

	return copying_entry(&c, root, 0, err);
}
