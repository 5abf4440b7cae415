/* SPDX-License-Identifier: Apache-2.0 */
#include "image/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/sysio.h"
#include "image/model.h"
#include "store/root.h"

struct image_lease {
	struct list link;
	struct image_store *store; /* NULL: it has ended */
	struct image_record *record;
};

int image_lease_new(struct image_lease **ret, struct image_store *s, const struct image *image)
{
	struct image_lease *l = calloc(1, sizeof(*l));
	struct root_image view;
	int r = -ENOMEM;

	if (!l)
		return -ENOMEM;
	list_init(&l->link);
	image_record_view(image_record_of((struct image *)(uintptr_t)image), &view);
	l->record = image_record_new(&view);
	if (l->record)
		r = image_record_hold(s, l->record);
	if (r < 0) {
		(void)image_record_free(l->record);
		free(l);
		return r;
	}
	l->store = s;
	list_add_tail(&s->leases, &l->link);
	*ret = l;
	return 0;
}

struct image_lease *image_lease_free(struct image_lease *l)
{
	if (!l)
		return NULL;
	if (l->store)
		image_record_release(l->store, l->record, NULL);
	list_remove(&l->link);
	(void)image_record_free(l->record);
	free(l);
	return NULL;
}

const struct image *image_lease_image(const struct image_lease *l)
{
	return &l->record->image;
}

char *const *image_lease_blobs(const struct image_lease *l)
{
	return l->record->blobs;
}

int image_lease_open(const struct image_lease *l, const char *digest)
{
	int fd = -1;

	if (!l->store)
		return -ESHUTDOWN;
	fd = sysio_openat(l->store->blobs_fd, digest_hex(digest),
			  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

void lease_free_all(struct image_store *s)
{
	struct image_lease *l;

	list_for_each (l, &s->leases, struct image_lease, link) {
		l->store = NULL;
		list_remove(&l->link);
	}
}
