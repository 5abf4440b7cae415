/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/storage/image_mounts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "image/image.h"
#include "pod/storage/volume.h"
#include "pod/workload/model.h"

static struct image_mount *image_mounts_add(struct pod_container *c)
{
	struct image_mount *more =
		reallocarray(c->image_mounts, c->n_image_mounts + 1, sizeof(*more));

	if (!more)
		return NULL;
	c->image_mounts = more;
	more += c->n_image_mounts++;
	*more = (struct image_mount){ .image = NULL };
	return more;
}

int image_mounts_open(struct pod_container *c, struct image_store *images,
		      const struct pod_mount_spec *m, struct error *err)
{
	struct image *image = image_store_find(images, m->image, err);
	struct image_mount *held;
	int r;

	if (!image && err && err->kind == ERROR_NOT_FOUND)
		return error_field(err, ERROR_NOT_FOUND, m->field,
				   "there is no image \"%.150s\" on this node; `nacre image pull "
				   "%.150s` loads it",
				   m->image, m->image);
	if (!image)
		return error_wrap_field(err, -EINVAL, m->field);
	held = image_mounts_add(c);
	if (!held)
		return error_set(err, -ENOMEM, "%s", m->field);
	(void)str_copy(held->id, sizeof(held->id), image->id);
	held->image = image;
	image->n_users++;
	r = image_mount_open(images, image, &c->workload->ids, m->sub_path, m->no_exec, err);
	return r < 0 ? error_wrap_field(err, r, m->field) : r;
}

int image_mounts_recall(struct pod_container *c, const char *id, size_t len)
{
	struct image_mount *held = len < IMAGE_ID_SIZE ? image_mounts_add(c) : NULL;

	if (!held)
		return len < IMAGE_ID_SIZE ? -ENOMEM : -EBADMSG;
	(void)str_printf(held->id, sizeof(held->id), "%.*s", (int)len, id);
	return 0;
}

void image_mounts_adopt(struct pod_container *c, struct image_store *images)
{
	for (size_t i = 0; i < c->n_image_mounts; i++) {
		struct image_mount *held = &c->image_mounts[i];

		held->image = image_store_find(images, held->id, NULL);
		if (held->image)
			held->image->n_users++;
	}
}

const char *image_mounts_id(const struct pod_container *c, size_t n)
{
	return n < c->n_image_mounts ? c->image_mounts[n].id : NULL;
}

void image_mounts_drop(struct pod_container *c)
{
	for (size_t i = 0; i < c->n_image_mounts; i++)
		if (c->image_mounts[i].image)
			c->image_mounts[i].image->n_users--;
	image_mounts_forget(c);
}

void image_mounts_forget(struct pod_container *c)
{
	free(c->image_mounts);
	c->image_mounts = NULL;
	c->n_image_mounts = 0;
}
