/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A helper reads the blobs and writes the archive into a pipe; what comes out of it is handed on as
 * fast as it is wanted. The end is told when the helper has ended well and the pipe is empty, or at
 * once where it has not.
 */

#include "image/transfer/export.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "image/helper/detached.h"
#include "image/helper/helper.h"
#include "wire/name/reference.h"

/* Named limits of exports. */
#define EXPORTS_MAX 8            /* at once */
#define EXPORT_PIECE (256 << 10) /* bytes that are handed on at once */

/* What the helper needs until it has closed its sandbox, and what it keeps (fetch/job/sandbox.c).
 */
#define CAP(name) (UINT64_C(1) << (name))
#define EXPORT_CAPS (CAP(CAP_SYS_ADMIN) | CAP(CAP_SETPCAP) | CAP(CAP_DAC_READ_SEARCH))

struct export_image {
	struct image_lease *lease;
	char **names; /* that it has in the archive */
};

struct image_export {
	struct list link;
	struct image_store *store;
	struct image_export_ops ops;
	void *userdata;
	struct helper helper;
	int pipe_fd;
	struct loop_fd pipe;
	bool said;  /* that all is written */
	bool ended; /* the helper, and well */
	bool drained;
	size_t n_told;
	struct export_image *images;
	size_t n_images;
};

static void export_free(struct image_export *x)
{
	helper_done(&x->helper);
	if (x->pipe_fd >= 0)
		loop_fd_done(&x->pipe);
	x->pipe_fd = fd_close(x->pipe_fd);
	for (size_t i = 0; i < x->n_images; i++) {
		(void)image_lease_free(x->images[i].lease);
		strv_free(x->images[i].names);
	}
	free(x->images);
	if (!list_empty(&x->link))
		x->store->n_exports--;
	list_remove(&x->link);
	free(x);
}

static void export_end(struct image_export *x, const struct error *err)
{
	struct image_export_ops ops = x->ops;
	void *userdata = x->userdata;

	export_free(x);
	ops.on_end(userdata, err);
}

/* ---- what comes out ---- */

static void export_pipe_event(struct loop_fd *source, unsigned events)
{
	struct image_export *x = container_of(source, struct image_export, pipe);
	static uint8_t piece[EXPORT_PIECE];
	struct error err = ERROR_INIT;
	ssize_t n = sysio_read(x->pipe_fd, piece, sizeof(piece));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		x->ops.on_data(x->userdata, piece, (size_t)n);
		return;
	}
	if (n < 0) {
		(void)error_set(&err, -errno, "read what nacre-fetch writes");
		export_end(x, &err);
		return;
	}
	loop_fd_set(&x->pipe, 0);
	x->drained = true;
	/* Else the helper's end comes yet, and says why. */
	if (x->ended)
		export_end(x, NULL);
}

static int export_tell_image(struct image_export *x, const struct fetchmsg *m, struct error *err)
{
	for (size_t i = 0; i < x->n_images; i++) {
		const struct image *image = image_lease_image(x->images[i].lease);

		if (!str_eq(image->id, m->image.id))
			continue;
		x->n_told++;
		x->ops.on_image(x->userdata, image->id, m->image.digest, x->images[i].names);
		return 0;
	}
	return error_set(err, -EPROTO, "nacre-fetch: an image that was not asked for");
}

static int export_message(struct helper *h, const struct fetchmsg *m, struct error *err)
{
	struct image_export *x = container_of(h, struct image_export, helper);

	if (m->type == FETCHMSG_IMAGE && x->n_told < x->n_images && !x->said)
		return export_tell_image(x, m, err);
	if (m->type != FETCHMSG_DONE || x->said || m->done.n_images != x->n_images)
		return error_set(err, -EPROTO, "nacre-fetch: a message that does not belong here");
	x->said = true;
	return 0;
}

static void export_helper_end(struct helper *h, const struct error *err)
{
	struct image_export *x = container_of(h, struct image_export, helper);
	struct error own = ERROR_INIT;

	if (!err && !x->said)
		(void)error_set(&own, -EPROTO, "nacre-fetch: it ended too early");
	if (err || own.code) {
		export_end(x, err ?: &own);
		return;
	}
	x->ended = true;
	if (x->drained)
		export_end(x, NULL);
}

static const struct helper_ops export_helper_ops = { .on_message = export_message,
						     .on_end = export_helper_end };

/* ---- the beginning ---- */

static int export_add_names(struct export_image *e, const struct image *image,
			    const char *reference)
{
	char full[REFERENCE_SIZE];
	char *one[] = { full, NULL };
	char *const *names = image->names;

	if (reference_normalise(full, reference, NULL) == 0 && image_has_name(image, full))
		names = one;
	for (; names && *names; names++) {
		bool there = false;

		for (char *const *n = e->names; n && *n; n++)
			there = there || str_eq(*n, *names);
		if (!there && strv_add(&e->names, *names) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The same image by two names is one image. */
static struct export_image *export_find(struct image_export *x, const struct image *image)
{
	for (size_t i = 0; i < x->n_images; i++)
		if (str_eq(image_lease_image(x->images[i].lease)->id, image->id))
			return &x->images[i];
	return NULL;
}

static int export_add_image(struct image_export *x, struct image_store *s, const char *reference,
			    struct error *err)
{
	const struct image *image = image_store_find(s, reference, err);
	struct export_image *e;

	if (!image)
		return err->code;
	e = export_find(x, image);
	if (!e) {
		e = &x->images[x->n_images];
		if (image_lease_new(&e->lease, s, image) < 0)
			return error_set(err, -ENOMEM, "hold an image");
		x->n_images++;
	}
	return export_add_names(e, image, reference) < 0 ? error_set(err, -ENOMEM, "export") : 0;
}

static int export_add_images(struct image_export *x, struct image_store *s, char *const *references,
			     size_t n, struct error *err)
{
	x->images = calloc(n, sizeof(*x->images));
	if (!x->images)
		return error_set(err, -ENOMEM, "export");
	for (size_t i = 0; i < n; i++) {
		char field[32];
		int r = export_add_image(x, s, references[i], err);

		(void)str_printf(field, sizeof(field), "images[%zu]", i);
		if (r < 0)
			return error_wrap_field(err, r, field);
	}
	return 0;
}

static int export_tell(struct image_export *x, const struct export_image *e, struct error *err)
{
	const struct image *image = image_lease_image(e->lease);
	struct fetchmsg m = { .type = FETCHMSG_EXPORT_IMAGE };
	_cleanup_(buf_done) struct buf names = BUF_INIT;
	int r = 0;

	for (char *const *name = e->names; r == 0 && name && *name; name++) {
		r = names.len ? buf_add_str(&names, " ") : 0;
		if (r == 0)
			r = buf_add_str(&names, *name);
	}
	if (r == 0)
		r = buf_add(&names, "", 1);
	if (r < 0)
		return error_set(err, r, "export");
	if (names.len > FETCH_NAMES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "image %s has more names than an archive takes", image->id);
	(void)str_copy(m.export_image.digest, sizeof(m.export_image.digest), image->digest);
	(void)str_copy(m.export_image.id, sizeof(m.export_image.id), image->id);
	m.export_image.names = (const char *)buf_data(&names);
	return helper_tell(&x->helper, &m, NULL, 0, err);
}

static int export_start_helper(struct image_export *x, struct image_store *s,
			       enum image_export_form form, struct error *err)
{
	const struct fetchmsg request = { .type = FETCHMSG_EXPORT,
					  .export = { .form = form == IMAGE_EXPORT_DOCKER
								      ? FETCH_EXPORT_DOCKER
								      : FETCH_EXPORT_OCI,
						      .n_images = (uint32_t)x->n_images } };
	_cleanup_fd_ int detached_fd = detached_open(s->blobs_fd, "", MOUNT_ATTR_RDONLY, err);
	_cleanup_fd_ int write_fd = -1;
	int pair[2], r;

	if (detached_fd < 0)
		return detached_fd;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make a pipe");
	x->pipe_fd = pair[0];
	write_fd = pair[1];
	loop_fd_init(&x->pipe, s->config.loop, x->pipe_fd, LOOP_READ, export_pipe_event);
	r = fd_set_nonblock(x->pipe_fd, true);
	if (r < 0)
		return error_set(err, r, "make a pipe");
	/* Fewer turns; where that is not allowed, it is as it is. */
	(void)fcntl(x->pipe_fd, F_SETPIPE_SZ, EXPORT_PIECE);
	r = helper_start(&x->helper,
			 &(struct helper_config){ .loop = s->config.loop,
						  .path = s->fetch_path,
						  .command = "export",
						  .caps = EXPORT_CAPS,
						  .from_fd = detached_fd,
						  .to_fd = write_fd,
						  .more_fd = -1,
						  .net_ns_fd = -1,
						  .mount_ns_fd = -1,
						  .request = &request },
			 &export_helper_ops, err);
	for (size_t i = 0; r == 0 && i < x->n_images; i++)
		r = export_tell(x, &x->images[i], err);
	return r;
}

int image_export_start(struct image_store *s, char *const *references, size_t n,
		       enum image_export_form form, const struct image_export_ops *ops,
		       void *userdata, struct image_export **ret, struct error *err)
{
	struct image_export *x;
	int r;

	if (n == 0)
		return error_field(err, ERROR_INVALID, "images", "required");
	if (n > FETCH_IMAGES_MAX)
		return error_field(err, ERROR_EXHAUSTED, "images", "at most %d go into an archive",
				   FETCH_IMAGES_MAX);
	if (s->n_exports >= EXPORTS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%u images are being exported already",
				    s->n_exports);
	x = calloc(1, sizeof(*x));
	if (!x)
		return error_set(err, -ENOMEM, "export");
	*x = (struct image_export){ .store = s, .ops = *ops, .userdata = userdata, .pipe_fd = -1 };
	list_init(&x->link);
	r = export_add_images(x, s, references, n, err);
	if (r == 0)
		r = export_start_helper(x, s, form, err);
	if (r < 0) {
		export_free(x);
		return r;
	}
	list_add_tail(&s->exports, &x->link);
	s->n_exports++;
	*ret = x;
	return 0;
}

void image_export_pause(struct image_export *x, bool paused)
{
	if (!x->drained)
		loop_fd_set(&x->pipe, paused ? 0 : LOOP_READ);
}

void image_export_cancel(struct image_export *x)
{
	if (x)
		export_free(x);
}

void export_free_all(struct image_store *s)
{
	while (!list_empty(&s->exports))
		export_free(list_first(&s->exports, struct image_export, link));
}
