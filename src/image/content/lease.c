/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "store/root.h"
#include "wire/name/checksum.h"

/* Of one document: what nacre-fetch takes at most, too. */
#define LEASE_DOCUMENT_MAX (4U << 20)

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

static int lease_damaged(struct error *err, const char *digest, const char *how)
{
	return error_set(err, -EIO,
			 "the store is damaged, blob %s %s: pull or import the image again", digest,
			 how);
}

int image_lease_read(const struct image_lease *l, const char *digest, struct buf *ret,
		     struct error *err)
{
	_cleanup_fd_ int fd = image_lease_open(l, digest);
	struct checksum sum;
	char found[DIGEST_SIZE];
	int r = fd < 0 ? fd : fd_read_all(fd, LEASE_DOCUMENT_MAX, ret);

	if (r == -ENOENT)
		return lease_damaged(err, digest, "is missing");
	if (r == -EFBIG)
		return lease_damaged(err, digest, "has another length");
	if (r < 0)
		return error_set(err, r, "read blob %s", digest);
	checksum_start(&sum);
	checksum_add(&sum, buf_data(ret), ret->len);
	checksum_end(&sum, found);
	return str_eq(found, digest) ? 0 : lease_damaged(err, digest, "has another digest");
}

void lease_free_all(struct image_store *s)
{
	struct image_lease *l;

	list_for_each (l, &s->leases, struct image_lease, link) {
		l->store = NULL;
		list_remove(&l->link);
	}
}
