/* SPDX-License-Identifier: Apache-2.0 */
#include "image/rootfs/lower.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "image/content/model.h"
#include "image/image.h"
#include "image/rootfs/closing.h"
#include "image/rootfs/erofs.h"
#include "isolate/disk/erofs_file.h"

struct lower {
	struct list link; /* of the store, while it has users */
	struct image_store *store;
	int64_t number; /* of the highest layer */
	int fd;
	unsigned n_users;
};

/* A job that waits for a file. */
struct lower_wait {
	struct list link; /* of the store */
	struct image_store *store;
	image_rootfs_fn done;
	void *userdata;
};

/* ---- whether the kernel can ---- */

/* 0, or why not. Tried once, unless that failed for another reason. */
static int lower_can(struct image_store *s, struct error *err)
{
	if (!s->tried_lower) {
		s->lower_fault = (struct error)ERROR_INIT;
		(void)erofs_file_try(s->staging_fd, &s->lower_fault);
		s->tried_lower = !s->lower_fault.code || s->lower_fault.kind == ERROR_PRECONDITION;
	}
	return s->lower_fault.code ? error_copy(err, &s->lower_fault) : 0;
}

static bool lower_is_wanted(const struct image_store *s, const struct image *image)
{
	/* There is no file of no layers. */
	return s->config.root != IMAGE_ROOT_OVERLAY && image->n_layers > 0;
}

/* ---- the mounts ---- */

static struct lower *lower_find(const struct image_store *s, int64_t number)
{
	struct lower *l;

	list_for_each (l, &s->lowers, struct lower, link)
		if (l->number == number)
			return l;
	return NULL;
}

static void lower_free(struct lower *l)
{
	list_remove(&l->link);
	(void)fd_close(l->fd);
	free(l);
}

static int lower_mount(struct image_store *s, const struct image *image, struct lower **ret,
		       struct error *err)
{
	_cleanup_fd_ int file_fd = -1, fd = -1;
	struct lower *l;
	int r;

	r = lower_can(s, err);
	if (r < 0)
		return r;
	file_fd = erofs_open_file(s, image);
	if (file_fd < 0)
		return error_set(err, file_fd, "open the file of its layers");
	fd = erofs_file_mount(file_fd, err);
	if (fd < 0)
		return error_wrap(err, fd, "the file of its layers");
	l = calloc(1, sizeof(*l));
	if (!l)
		return error_set(err, -ENOMEM, "mount the file of its layers");
	*l = (struct lower){ .store = s, .number = erofs_number(image), .fd = TAKE_FD(fd) };
	list_init(&l->link);
	list_add_tail(&s->lowers, &l->link);
	*ret = l;
	return 0;
}

int lower_take(struct image_store *s, const struct image *image, struct lower **ret,
	       struct error *err)
{
	struct error fault = ERROR_INIT;
	struct lower *l = NULL;

	if (lower_is_wanted(s, image))
		l = lower_find(s, erofs_number(image));
	if (!l && lower_is_wanted(s, image) && lower_mount(s, image, &l, &fault) < 0) {
		if (s->config.root == IMAGE_ROOT_EROFS)
			return error_wrap(err, error_copy(err, &fault), "images.root is erofs");
		log_debug("a root file system lies on directories", LOG_STR("image", image->id),
			  LOG_ERR(&fault));
	}
	if (l)
		l->n_users++;
	*ret = l;
	return 0;
}

int lower_fd(const struct lower *l)
{
	return l->fd;
}

struct lower *lower_drop(struct lower *l)
{
	if (!l || --l->n_users > 0)
		return NULL;
	/* The last close forgets all that was read of the file. */
	closing_add(&l->store->closings, l->store->config.pool, TAKE_FD(l->fd));
	lower_free(l);
	return NULL;
}

/* ---- who waits for a file ---- */

static void lower_wait_free(struct lower_wait *w)
{
	list_remove(&w->link);
	free(w);
}

static void lower_on_file(void *userdata, int fd, const struct error *err)
{
	struct lower_wait *w = userdata;
	image_rootfs_fn done = w->done;

	(void)fd_close(fd);
	userdata = w->userdata;
	lower_wait_free(w);
	done(userdata, err);
}

static int lower_wait_new(struct image_store *s, struct image *image, image_rootfs_fn done,
			  void *userdata, struct error *err)
{
	struct lower_wait *w = malloc(sizeof(*w));
	int r;

	if (!w)
		return error_set(err, -ENOMEM, "wait for the file of an image");
	*w = (struct lower_wait){ .store = s, .done = done, .userdata = userdata };
	list_init(&w->link);
	list_add_tail(&s->lower_waits, &w->link);
	r = image_erofs_open(s, image, lower_on_file, w, err);
	if (r < 0)
		lower_wait_free(w);
	return r < 0 ? r : 1;
}

int image_rootfs_await(struct image_store *s, struct image *image, image_rootfs_fn done,
		       void *userdata, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (s->config.root != IMAGE_ROOT_EROFS || !lower_is_wanted(s, image) ||
	    lower_find(s, erofs_number(image)))
		return 0;
	r = lower_can(s, err);
	if (r < 0)
		return error_wrap(err, r, "images.root is erofs");
	fd = erofs_open_file(s, image);
	return fd >= 0 ? 0 : lower_wait_new(s, image, done, userdata, err);
}

void image_rootfs_forget(struct image_store *s, void *userdata)
{
	struct lower_wait *w;

	list_for_each (w, &s->lower_waits, struct lower_wait, link) {
		if (w->userdata != userdata)
			continue;
		erofs_forget(s, w);
		lower_wait_free(w);
	}
}

void lower_free_all(struct image_store *s)
{
	struct lower_wait *w;
	struct lower *l;

	list_for_each (w, &s->lower_waits, struct lower_wait, link)
		lower_wait_free(w);
	list_for_each (l, &s->lowers, struct lower, link)
		lower_free(l);
}
