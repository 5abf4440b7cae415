/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/images/image.h"

#include <errno.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "cri/sandbox/handler.h"

static char *image_text(const char *s)
{
	return (char *)(uintptr_t)s;
}

const char *cri_image_user(struct arena *a, const char *user, bool *ret_is_uid, int64_t *ret_uid)
{
	const char *name = arena_strndup(a, user, strcspn(user, ":"));
	uint64_t uid;

	*ret_is_uid = false;
	if (!name || parse_u64(name, 0, UINT32_MAX, &uid) < 0)
		return name;
	*ret_is_uid = true;
	*ret_uid = (int64_t)uid;
	return "";
}

/* Of a name the tag is what makes it one of these; all names have one. */
Runtime__V1__Image *cri_image_show(struct arena *a, const struct image *image)
{
	Runtime__V1__Image *m = arena_alloc(a, sizeof(*m));
	const char *name = NULL;
	bool is_uid = false;
	int64_t uid = 0;

	if (m)
		name = cri_image_user(a, image->config.user, &is_uid, &uid);
	if (!name)
		return NULL;
	runtime__v1__image__init(m);
	m->id = image_text(image->id);
	m->repo_tags = image->names;
	m->n_repo_tags = strv_len(image->names);
	m->repo_digests = image->origins;
	m->n_repo_digests = strv_len(image->origins);
	m->size = image->size;
	m->username = image_text(name);
	m->pinned = image->pinned;
	m->spec = arena_alloc(a, sizeof(*m->spec));
	m->uid = is_uid ? arena_alloc(a, sizeof(*m->uid)) : NULL;
	if (!m->spec || (is_uid && !m->uid))
		return NULL;
	runtime__v1__image_spec__init(m->spec);
	m->spec->image = m->id;
	if (!is_uid)
		return m;
	runtime__v1__int64_value__init(m->uid);
	m->uid->value = uid;
	return m;
}

int cri_image_find(struct image_store *images, const char *field,
		   const Runtime__V1__ImageSpec *spec, struct image **ret, struct error *err)
{
	const struct cri_handler *handler;
	struct error own = ERROR_INIT;
	char name[ERROR_FIELD_MAX];

	if (!spec || str_empty(spec->image))
		return error_field(err, ERROR_INVALID, field, "required");
	/* Every handler has the same images. */
	(void)str_printf(name, sizeof(name), "%.*sruntime_handler",
			 (int)(strlen(field) - strlen("image")), field);
	if (cri_handler_find(name, spec->runtime_handler, &handler, err) < 0)
		return err->code;
	*ret = image_store_find(images, spec->image, &own);
	if (*ret)
		return 1;
	if (own.kind == ERROR_NOT_FOUND)
		return 0;
	(void)error_copy(err, &own);
	return error_wrap_field(err, own.code, field);
}
