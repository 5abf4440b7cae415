/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/images/images_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/nacre.pb-c.h"
#include "base/memory/hash.h"
#include "base/text/str.h"
#include "image/image.h"
#include "runtime/core/convert.h"
#include "runtime/core/shown.h"
#include "runtime/services.h"
#include "runtime/workload/list_call.h"
#include "wire/name/reference.h"

/* Where the clock gave two imports the same time, the first digits of their digests tell. */
static struct shown_place images_place(const struct image *image)
{
	struct shown_place p = { .created_at = image->created };
	const char *digits = strchr(image->id, ':');

	(void)str_printf(p.id, sizeof(p.id), "%.16s", digits ? digits + 1 : image->id);
	return p;
}

static int images_compare(const void *a, const void *b)
{
	struct shown_place x = images_place(*(const struct image *const *)a);
	struct shown_place y = images_place(*(const struct image *const *)b);

	return shown_compare(&x, &y);
}

/* People write "busybox" for "docker.io/library/busybox". */
static bool images_match(const struct image *image, const char *prefix)
{
	static const char *const hosts[] = { "", "docker.io/", "docker.io/library/" };

	if (str_empty(prefix))
		return true;
	for (char *const *name = image->names; name && *name; name++)
		for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
			if (str_has_prefix(*name, hosts[i]) &&
			    str_has_prefix(*name + strlen(hosts[i]), prefix))
				return true;
	return false;
}

/* Those of the prefix that lie behind `after`, in order; NULL without memory. */
static const struct image **images_collect(struct arena *a, const struct image_service *s,
					   const char *prefix, const struct shown_place *after,
					   size_t *ret_n)
{
	const struct image **found, *image;
	size_t n = 0;

	list_for_each (image, image_store_list(s->images), struct image, link)
		n++;
	found = arena_zalloc(a, n + 1, sizeof(const struct image *));
	if (!found)
		return NULL;
	n = 0;
	list_for_each (image, image_store_list(s->images), struct image, link) {
		struct shown_place place = images_place(image);

		if (images_match(image, prefix) && shown_compare(&place, after) > 0)
			found[n++] = image;
	}
	qsort(found, n, sizeof(const struct image *), images_compare);
	*ret_n = n;
	return found;
}

static int images_answer(struct rpc_call *call, const struct image_service *s,
			 const Nacre__V1__ListImagesRequest *q, struct error *err)
{
	Nacre__V1__ListImagesResponse m = NACRE__V1__LIST_IMAGES_RESPONSE__INIT;
	struct arena *a = rpc_call_arena(call);
	uint64_t question = hash_add_str(HASH_INIT, "ImageService.List");
	const struct image **found = NULL;
	struct shown_place place;
	char token[LIST_TOKEN_SIZE];
	size_t n = 0, n_page, bytes = 0;
	int r;

	if (strlen(q->name_prefix) >= REFERENCE_SIZE)
		return error_field(err, ERROR_INVALID, "name_prefix",
				   "no name is longer than %d bytes", REFERENCE_SIZE - 1);
	question = hash_add_str(question, q->name_prefix);
	r = list_page_size(q->page_size, &n_page, err);
	if (r == 0)
		r = list_token_read(q->page_token, question, &place, err);
	if (r < 0)
		return r;
	found = images_collect(a, s, q->name_prefix, &place, &n);
	m.images = found ? arena_zalloc(a, n + 1, sizeof(*m.images)) : NULL;
	if (!m.images)
		return error_set(err, -ENOMEM, "list images");
	while (m.n_images < MIN(n, n_page) && bytes < LIST_PAGE_BYTES) {
		Nacre__V1__Image *image = convert_image(a, found[m.n_images]);

		if (!image)
			return error_set(err, -ENOMEM, "list images");
		bytes += nacre__v1__image__get_packed_size(image);
		m.images[m.n_images++] = image;
	}
	if (m.n_images < n) {
		place = images_place(found[m.n_images - 1]);
		list_token_write(token, question, &place);
		m.next_page_token = token;
	}
	rpc_call_reply(call, &m.base);
	return 0;
}

void images_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;

	if (images_answer(call, userdata,
			  (const Nacre__V1__ListImagesRequest *)(const void *)request, &err) < 0)
		rpc_call_fail(call, &err);
}
