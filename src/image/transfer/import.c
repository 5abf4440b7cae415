/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An import goes through the states below, one after the other; each waits for one thing (a helper,
 * the pool, the database) and ends with import_step(). Whatever fails or is cancelled goes to
 * UNDOING: what the import held is released, which takes away what nobody else has, and its staging
 * directory goes.
 *
 * staging/ID/blobs    the reading helper writes here, and nowhere else
 * staging/ID/layer-N  an unpacking helper writes here (image/transfer/layering.h)
 *
 * Blobs and layers are moved to their places before there is a record of the image; a crash in
 * between leaves content without a record, which the next start removes.
 */

#include "image/transfer/import.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "image/content/platform.h"
#include "image/content/room.h"
#include "image/helper/detached.h"
#include "image/helper/helper.h"
#include "image/transfer/image_job.h"
#include "wire/name/reference.h"

/* Named limits of an import. */
#define IMPORT_BYTES_MAX (UINT64_C(64) << 30) /* of an archive */
#define IMPORTS_MAX 8                         /* at once */
#define IMPORT_SOURCE_MAX 4200                /* bytes of its origin */

/* What the helper needs until it has closed its sandbox, and what it keeps (fetch/job/sandbox.c).
 */
#define CAP(name) (UINT64_C(1) << (name))
#define IMPORT_CAPS (CAP(CAP_SYS_ADMIN) | CAP(CAP_SETPCAP) | CAP(CAP_DAC_READ_SEARCH))

enum import_state {
	IMPORT_READING,    /* the helper reads the archive into staging */
	IMPORT_COMMITTING, /* the pool moves the blobs to their places */
	IMPORT_UNPACKING,  /* blobs become layers */
	IMPORT_RECORDING,  /* the database writes */
	IMPORT_UNDOING,    /* the pool deletes staging, after success too */
	IMPORT_STATE_COUNT
};

static const bool edges[IMPORT_STATE_COUNT][IMPORT_STATE_COUNT] = {
	[IMPORT_READING] = { [IMPORT_COMMITTING] = true, [IMPORT_UNDOING] = true },
	[IMPORT_COMMITTING] = { [IMPORT_UNPACKING] = true, [IMPORT_UNDOING] = true },
	[IMPORT_UNPACKING] = { [IMPORT_RECORDING] = true, [IMPORT_UNDOING] = true },
	[IMPORT_RECORDING] = { [IMPORT_UNDOING] = true },
};

struct image_import {
	struct image_job image_job;
	enum import_state state;
	struct image_import_ops ops;
	void *userdata;
	char name[REFERENCE_SIZE];               /* "": those of the archive */
	char repository[REFERENCE_NAME_MAX + 1]; /* for a name that is a tag alone; "": none */
	char *source;
	struct helper helper;
};

static void import_enter(struct image_import *i, enum import_state state)
{
	assert(edges[i->state][state]);
	i->state = state;
}

static void _printf_(2, 3) import_tell(struct image_import *i, const char *fmt, ...)
{
	char text[256];
	va_list args;

	if (!i->ops.on_progress || i->image_job.cancelled)
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	i->ops.on_progress(i->userdata, text);
}

/* ---- the end ---- */

static void import_free(struct image_import *i)
{
	helper_done(&i->helper);
	free(i->source);
	if (!list_empty(&i->image_job.link))
		i->image_job.store->n_imports--;
	image_job_done(&i->image_job);
	free(i);
}

static bool import_is_again(const struct image_job *t, const struct incoming_image *image)
{
	const struct incoming_image *before;

	list_for_each (before, &t->incoming.images, struct incoming_image, link) {
		if (before == image)
			return false;
		if (str_eq(before->id, image->id))
			return true;
	}
	return false;
}

static void import_tell_images(struct image_import *i)
{
	struct image_job *t = &i->image_job;
	const struct incoming_image *incoming;

	list_for_each (incoming, &t->incoming.images, struct incoming_image, link) {
		struct image *image = image_store_by_id(t->store, incoming->id);

		if (image && !import_is_again(t, incoming))
			i->ops.on_image(i->userdata, image);
	}
}

static void import_ended(struct image_job *t, struct image *image)
{
	struct image_import *i = container_of(t, struct image_import, image_job);

	if (!t->cancelled && image && i->ops.on_image)
		import_tell_images(i);
	if (!t->cancelled && i->ops.on_done)
		i->ops.on_done(i->userdata, image, t->err.code ? &t->err : NULL);
	import_free(i);
}

static void import_undo(struct image_import *i, const struct error *err)
{
	image_job_fail(&i->image_job, err);
	import_enter(i, IMPORT_UNDOING);
	image_job_undo(&i->image_job);
}

/* Whether the step that has ended was the last one, because of an error or the caller. */
static bool import_stopped(struct image_import *i, const struct error *err)
{
	if (!err && !image_job_failed(&i->image_job))
		return false;
	import_undo(i, err);
	return true;
}

/* ---- recording ---- */

static void import_recorded(struct image_job *t)
{
	import_undo(container_of(t, struct image_import, image_job), NULL);
}

static void import_record(struct image_import *i)
{
	import_enter(i, IMPORT_RECORDING);
	if (image_job_record(&i->image_job, i->name, i->source, "", NULL) < 0)
		import_undo(i, NULL);
}

/* ---- unpacking ---- */

static int import_open_layer(struct layering *l, const struct incoming_layer *layer, bool whole,
			     struct layer_source *ret, struct error *err)
{
	struct image_import *i = container_of(l, struct image_import, image_job.layering);
	int fd = sysio_openat(i->image_job.store->blobs_fd, digest_hex(layer->digest),
			      O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd < 0)
		return error_set(err, -errno, "open blob %s", layer->digest);
	ret->blob_fd = fd;
	return 0;
}

static void import_on_layer(struct layering *l, const struct incoming_image *image,
			    unsigned position, const struct incoming_layer *layer, bool fresh)
{
	import_tell(container_of(l, struct image_import, image_job.layering),
		    "layer %u of %u: %s, %.1f MB", position, image->n_layers,
		    fresh ? "unpacked" : "there already", (double)layer->layer->size / 1e6);
}

static void import_layered(struct layering *l, const struct error *err)
{
	struct image_import *i = container_of(l, struct image_import, image_job.layering);

	if (!import_stopped(i, err))
		import_record(i);
}

static const struct layering_ops import_layering_ops = { .open = import_open_layer,
							 .on_layer = import_on_layer,
							 .on_end = import_layered };

static void import_unpack(struct image_import *i)
{
	struct error err = ERROR_INIT;

	import_enter(i, IMPORT_UNPACKING);
	if (layering_start(&i->image_job.layering, i->image_job.store, &i->image_job.incoming,
			   i->image_job.dir_fd, "", &import_layering_ops, &err) < 0)
		import_undo(i, &err);
}

/* ---- storing ---- */

static void import_stored(struct image_job *t)
{
	struct image_import *i = container_of(t, struct image_import, image_job);

	if (!import_stopped(i, NULL))
		import_unpack(i);
}

static void import_store(struct image_import *i)
{
	struct error err = ERROR_INIT;

	import_enter(i, IMPORT_COMMITTING);
	if (image_job_store(&i->image_job, &err) < 0)
		import_undo(i, &err);
}

static const struct image_job_ops import_image_job_ops = { .was = "imported",
							   .clean = "import.clean",
							   .stored = import_stored,
							   .recorded = import_recorded,
							   .ended = import_ended };

/* ---- reading ---- */

static int import_read_message(struct helper *h, const struct fetchmsg *m, struct error *err)
{
	struct image_import *i = container_of(h, struct image_import, helper);
	int r;

	r = incoming_take(&i->image_job.incoming, m, err);
	if (r == 0 && m->type == FETCHMSG_BLOB)
		import_tell(i, "blob %.19s: read, %.1f MB", m->blob.digest,
			    (double)m->blob.size / 1e6);
	return r;
}

static void import_read_end(struct helper *h, const struct error *err)
{
	struct image_import *i = container_of(h, struct image_import, helper);
	struct error fault = ERROR_INIT;

	if (err)
		fault = *err;
	else if (incoming_check(&i->image_job.incoming, &fault) == 0 && *i->name &&
		 i->image_job.incoming.n_images > 1)
		(void)error_refuse(&fault, ERROR_INVALID,
				   "the archive has %zu images, a name can be given to one only: "
				   "choose it by its ref",
				   i->image_job.incoming.n_images);
	if (!import_stopped(i, fault.code ? &fault : NULL))
		import_store(i);
}

static const struct helper_ops import_read_ops = { .on_message = import_read_message,
						   .on_end = import_read_end };

static int import_start_reading(struct image_import *i, int source_fd,
				const struct image_import_what *what, struct error *err)
{
	struct fetchmsg request = { .type = FETCHMSG_READ,
				    .read = { .max_bytes = IMPORT_BYTES_MAX,
					      .config = what->config,
					      .ref = what->ref,
					      .repository = i->repository } };
	_cleanup_fd_ int detached_fd = -1;
	struct utsname u;
	int r;

	if (uname(&u) < 0)
		return error_set(err, -errno, "uname");
	request.read.architecture = platform_architecture(&u);
	r = FAILPOINT("import.start");
	if (r < 0)
		return error_set(err, r, "start the helper");
	detached_fd = detached_open(i->image_job.dir_fd, "blobs", 0, err);
	if (detached_fd < 0)
		return detached_fd;
	r = helper_start(&i->helper,
			 &(struct helper_config){ .loop = i->image_job.store->config.loop,
						  .path = i->image_job.store->fetch_path,
						  .command = "read",
						  .caps = IMPORT_CAPS,
						  .from_fd = source_fd,
						  .to_fd = detached_fd,
						  .more_fd = -1,
						  .net_ns_fd = -1,
						  .mount_ns_fd = -1,
						  .request = &request },
			 &import_read_ops, err);
	FAILPOINT_AFTER("import.start");
	return r;
}

static int import_check_start(struct image_store *s, const struct image_import_what *what,
			      char ret[REFERENCE_SIZE], struct error *err)
{
	const char *name = what->name;
	struct reference ref;

	if (s->n_imports >= IMPORTS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%u images are being imported already",
				    s->n_imports);
	if (strlen(what->config) > FETCH_WORD_MAX)
		return error_field(err, ERROR_INVALID, "config", "more than %d bytes",
				   FETCH_WORD_MAX);
	if (strlen(what->source) > IMPORT_SOURCE_MAX || !str_is_clean(what->source))
		return error_field(err, ERROR_INVALID, "source", "no text of at most %d bytes",
				   IMPORT_SOURCE_MAX);
	if (strlen(what->ref) > FETCH_REF_MAX || !str_is_clean(what->ref))
		return error_field(err, ERROR_INVALID, "ref", "no name of at most %d bytes",
				   FETCH_REF_MAX);
	if (*what->ref && *what->config)
		return error_field(err, ERROR_INVALID, "ref",
				   "the tar of a root file system has no images to choose from");
	*ret = '\0';
	if (str_empty(name))
		return 0;
	if (reference_parse(&ref, name, err) < 0)
		return error_wrap_field(err, -EINVAL, "name");
	if (*ref.digest)
		return error_field(err, ERROR_INVALID, "name",
				   "the name of an image cannot have a digest: \"%.200s\"", name);
	reference_format(&ref, ret);
	return 0;
}

/* What the name of the file or directory says the repository is: "Nginx.oci.tar.gz" is nginx. ""
 * where that is no repository. */
static void import_repository(const char *path, char ret[REFERENCE_NAME_MAX + 1])
{
	static const char *const suffixes[] = { ".gz", ".zst", ".tgz", ".tar", ".oci", ".docker" };
	char text[REFERENCE_SIZE];
	struct reference ref;
	const char *slash;

	(void)str_copy(ret, REFERENCE_NAME_MAX + 1, "");
	slash = strrchr(path, '/');
	if (str_copy(ret, REFERENCE_NAME_MAX + 1, slash ? slash + 1 : path) < 0)
		return;
	for (char *p = ret; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	for (size_t k = 0; k < ARRAY_SIZE(suffixes); k++)
		if (str_has_suffix(ret, suffixes[k]))
			ret[strlen(ret) - strlen(suffixes[k])] = '\0';
	if (strpbrk(ret, ":@") || str_printf(text, sizeof(text), "%s:latest", ret) < 0 ||
	    reference_parse(&ref, text, NULL) < 0)
		ret[0] = '\0';
}

/* What is in the archive is written at least once. */
static int import_check_room(struct image_store *s, int source_fd, struct error *err)
{
	struct stat st;

	if (fstat(source_fd, &st) < 0)
		return error_set(err, -errno, "look at the archive");
	return room_check(s, S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0, err);
}

int image_import_start(struct image_store *s, const struct image_import_what *what,
		       const struct image_import_ops *ops, void *userdata,
		       struct image_import **ret, struct error *err)
{
	_cleanup_fd_ int source_fd = -1;
	char full[REFERENCE_SIZE];
	struct image_import *i;
	int r;

	r = import_check_start(s, what, full, err);
	if (r < 0)
		return r;
	source_fd = detached_open_source(what->path, err);
	if (source_fd < 0)
		return source_fd;
	r = import_check_room(s, source_fd, err);
	if (r < 0)
		return error_wrap(err, r, "import %.300s", what->path);
	i = calloc(1, sizeof(*i));
	if (!i)
		return error_set(err, -ENOMEM, "import %.300s", what->path);
	*i = (struct image_import){ .state = IMPORT_READING, .ops = *ops, .userdata = userdata };
	(void)str_copy(i->name, sizeof(i->name), full);
	if (!*what->source)
		import_repository(what->path, i->repository);
	i->source = *what->source ? strdup(what->source) : str_format("file:%s", what->path);
	r = image_job_begin(&i->image_job, s, &import_image_job_ops, err);
	if (r == 0 && !i->source)
		r = error_set(err, -ENOMEM, "copy a path");
	if (r == 0)
		r = import_start_reading(i, source_fd, what, err);
	if (r < 0) {
		image_job_drop(&i->image_job);
		import_free(i);
		return error_wrap(err, r, "import %.300s", what->path);
	}
	list_add_tail(&s->imports, &i->image_job.link);
	s->n_imports++;
	*ret = i;
	return 0;
}

void image_import_cancel(struct image_import *i)
{
	/* What runs now ends first: the helpers at once, the pool and the database when they are
	 * ready. */
	i->image_job.cancelled = true;
	i->image_job.recording.cancelled = true;
	helper_kill(&i->helper);
	layering_cancel(&i->image_job.layering);
}

void import_free_all(struct image_store *s)
{
	while (!list_empty(&s->imports))
		import_free(list_first(&s->imports, struct image_import, image_job.link));
}

void import_inventory(const struct image_store *s, struct inventory *t)
{
	image_job_inventory(&s->imports, t);
}
