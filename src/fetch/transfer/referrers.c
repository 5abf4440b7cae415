/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/transfer/referrers.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "fetch/job/descriptor.h"
#include "fetch/job/json.h"
#include "fetch/unpack/reading.h"

#define REFERRERS_TYPE "application/vnd.oci.image.index.v1+json"

/* The next annotation that is a text and for which there is room, from `it` on; NULL: no more. */
static void *referrers_next_annotation(json_t *all, void *it, size_t *room)
{
	for (; it; it = json_object_iter_next(all, it)) {
		const char *name = json_object_iter_key(it);
		const char *value = json_string_value(json_object_iter_value(it));
		size_t size = value ? strlen(name) + strlen(value) + 2 : SIZE_MAX;

		if (size > *room || !*name || strlen(name) > FETCH_ANNOTATION_NAME_MAX ||
		    !str_is_clean(name))
			continue;
		*room -= size;
		return it;
	}
	return NULL;
}

static void referrers_count_annotations(json_t *all, uint32_t *ret_n, uint32_t *ret_left_out)
{
	size_t room = FETCH_REFERRER_ANNOTATIONS_SIZE;
	void *it = referrers_next_annotation(all, json_object_iter(all), &room);

	*ret_n = 0;
	while (it && *ret_n < FETCH_REFERRER_ANNOTATIONS_MAX) {
		++*ret_n;
		it = referrers_next_annotation(all, json_object_iter_next(all, it), &room);
	}
	*ret_left_out = (uint32_t)(json_object_size(all) - *ret_n);
}

static int referrers_send_annotations(struct network *n, json_t *all, uint32_t count,
				      struct error *err)
{
	size_t room = FETCH_REFERRER_ANNOTATIONS_SIZE;
	void *it = referrers_next_annotation(all, json_object_iter(all), &room);
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < count; i++) {
		struct fetchmsg m = { .type = FETCHMSG_ANNOTATION };

		m.annotation.name = json_object_iter_key(it);
		m.annotation.value = json_string_value(json_object_iter_value(it));
		r = channel_send(n->sock_fd, &m, err);
		it = referrers_next_annotation(all, json_object_iter_next(all, it), &room);
	}
	return r;
}

static int referrers_send(struct network *n, const struct descriptor *d, void *userdata,
			  struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_REFERRER };
	json_t *annotations = NULL;
	int r;

	r = json_get_object(d->node, "annotations", &annotations, err);
	if (r == 0)
		r = json_get_text(d->node, "artifactType", &m.referrer.artifact_type, err);
	if (r < 0)
		return r;
	(void)str_copy(m.referrer.digest, sizeof(m.referrer.digest), d->digest);
	m.referrer.size = d->size;
	m.referrer.media_type = d->media_type;
	referrers_count_annotations(annotations, &m.referrer.n_annotations, &m.referrer.n_left_out);
	r = channel_send(n->sock_fd, &m, err);
	return r == 0 ? referrers_send_annotations(n, annotations, m.referrer.n_annotations, err)
		      : r;
}

struct referrers_walk {
	referrers_fn fn;
	void *userdata;
	size_t max, n_told;
};

static int referrers_page(struct network *n, const struct network_document *page, void *userdata,
			  struct error *err)
{
	struct referrers_walk *w = userdata;
	_cleanup_json_ json_t *index = NULL;
	struct descriptor d;
	json_t *list = NULL;
	int r;

	if (!str_eq(page->media_type, REFERRERS_TYPE))
		return error_refuse(err, ERROR_INVALID, "the referrers come as \"%.100s\"",
				    page->media_type);
	r = json_read(&index, &page->data, "the referrers", err);
	if (r == 0)
		r = descriptor_check_index(index, page->media_type, err);
	if (r == 0)
		r = json_need_array(index, "manifests", FETCH_REFERRERS_MAX, &list, err);
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		if (++w->n_told > w->max)
			return error_refuse(err, ERROR_EXHAUSTED, "more than %zu referrers",
					    w->max);
		r = descriptor_read(&d, json_array_get(list, i), err);
		if (r == 0)
			r = w->fn(n, &d, w->userdata, err);
	}
	return r;
}

void referrers_tag(const char *digest, char ret[REFERRERS_TAG_SIZE])
{
	(void)str_printf(ret, REFERRERS_TAG_SIZE, "sha256-%s", digest_hex(digest));
}

/* Where the registry has no such API, a tag may hold the list; 1: nothing has ever referred to it.
 */
static int referrers_by_tag(struct network *n, const char *digest, struct network_document *page,
			    struct error *err)
{
	char tag[REFERRERS_TAG_SIZE];
	int r;

	network_document_done(page);
	*err = (struct error)ERROR_INIT;
	referrers_tag(digest, tag);
	r = network_get_manifest(n, tag, page, err);
	return r < 0 && err->kind == ERROR_NOT_FOUND ? 1 : r;
}

int referrers_each(struct network *n, const char *digest, size_t max, referrers_fn fn,
		   void *userdata, struct error *err)
{
	char path[sizeof("/referrers/") + DIGEST_SIZE];
	const struct network_question q = { .what = "referrers",
					    .path = path,
					    .accept = REFERRERS_TYPE,
					    .need = FETCH_CAN_PULL,
					    .max = READING_DOCUMENT_MAX };
	_cleanup_(network_document_done) struct network_document page = { .data = BUF_INIT };
	struct referrers_walk walk = { .fn = fn, .userdata = userdata, .max = max };
	int r;

	(void)str_printf(path, sizeof(path), "/referrers/%s", digest);
	r = network_get(n, &q, &page, err);
	/* Some say of what they do not know that it is not there, others that it is not done. */
	if (r < 0 && (err->kind == ERROR_NOT_FOUND || err->kind == ERROR_PRECONDITION))
		r = referrers_by_tag(n, digest, &page, err);
	if (r != 0)
		return MIN(r, 0);
	return network_each_page(n, &q, &page, referrers_page, &walk, err);
}

int referrers_tell(struct network *n, const char *digest, size_t max, bool optional,
		   struct error *err)
{
	struct error why = ERROR_INIT;
	char text[ERROR_TEXT_MAX];
	int r;

	r = referrers_each(n, digest, max, referrers_send, NULL, &why);
	if (r == 0)
		return 0;
	if (!optional || why.kind == ERROR_FAULT)
		return error_copy(err, &why);
	(void)str_printf(text, sizeof(text), "what refers to the image is not known: %.400s",
			 why.text);
	n->config.note(n->config.userdata, text);
	return 0;
}
