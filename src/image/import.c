/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An import goes through the states below, one after the other; each waits for one thing (a helper,
 * the pool, the database) and ends with import_step(). Whatever fails or is cancelled goes to
 * UNDOING: what the import held is released, which takes away what nobody else has, and its staging
 * directory goes.
 *
 * staging/ID/blobs  the reading helper writes here, and nowhere else
 * staging/ID/layer  the unpacking helper writes here; one layer at a time
 *
 * Blobs and layers are moved to their places before there is a record of the image; a crash in
 * between leaves content without a record, which the next start removes.
 */

#include "image/import.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "base/sysio.h"
#include "base/tally.h"
#include "image/cage.h"
#include "image/helper.h"
#include "image/incoming.h"
#include "image/model.h"
#include "image/recording.h"
#include "wire/reference.h"

/* Named limits of an import. */
#define IMPORT_BYTES_MAX (UINT64_C(64) << 30)       /* of an archive */
#define IMPORT_LAYER_BYTES_MAX (UINT64_C(20) << 30) /* of a layer's tar */
#define IMPORT_ENTRIES_MAX UINT64_C(2000000)        /* of a layer */
#define IMPORTS_MAX 8                               /* at once */

/* What the helper needs until it has closed its sandbox, and what it keeps (fetch/sandbox.c). */
#define CAP(name) (UINT64_C(1) << (name))
#define IMPORT_CAPS_SANDBOX (CAP(CAP_SYS_ADMIN) | CAP(CAP_SETPCAP))
#define IMPORT_CAPS_READ (IMPORT_CAPS_SANDBOX | CAP(CAP_DAC_READ_SEARCH))
#define IMPORT_CAPS_UNPACK                                                                         \
	(IMPORT_CAPS_SANDBOX | CAP(CAP_CHOWN) | CAP(CAP_DAC_OVERRIDE) | CAP(CAP_FOWNER) |          \
	 CAP(CAP_FSETID) | CAP(CAP_SETFCAP))

enum import_state {
	IMPORT_READING,   /* the helper reads the archive into staging */
	IMPORT_STORING,   /* the pool moves the blobs to their places */
	IMPORT_UNPACKING, /* a helper unpacks a layer, or the pool settles one */
	IMPORT_SETTLING,  /* the pool syncs the directory of the layers */
	IMPORT_RECORDING, /* the database writes */
	IMPORT_UNDOING,   /* the pool deletes staging, after success too */
	IMPORT_STATE_COUNT
};

static const bool edges[IMPORT_STATE_COUNT][IMPORT_STATE_COUNT] = {
	[IMPORT_READING] = { [IMPORT_STORING] = true, [IMPORT_UNDOING] = true },
	[IMPORT_STORING] = { [IMPORT_UNPACKING] = true, [IMPORT_UNDOING] = true },
	[IMPORT_UNPACKING] = { [IMPORT_SETTLING] = true, [IMPORT_UNDOING] = true },
	[IMPORT_SETTLING] = { [IMPORT_RECORDING] = true, [IMPORT_UNDOING] = true },
	[IMPORT_RECORDING] = { [IMPORT_UNDOING] = true },
};

struct image_import {
	struct list link;
	struct image_store *store;
	enum import_state state;
	struct image_import_ops ops;
	void *userdata;
	bool cancelled;
	char id[ID_SIZE];          /* of its directory in staging */
	char name[REFERENCE_SIZE]; /* "": those of the archive */
	int dir_fd;                /* staging/ID */
	struct helper helper;
	struct pool_work work;
	struct trash_watch watch;
	struct error err;
	struct incoming incoming;

	/* The layer in hand. */
	struct incoming_image *image;
	struct incoming_layer *layer;
	unsigned position; /* from 1 */
	int64_t parent;
	uint64_t layer_bytes;
	bool unpacked;

	struct recording recording;
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

	if (!i->ops.on_progress || i->cancelled)
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
	incoming_done(&i->incoming);
	if (!list_empty(&i->link))
		i->store->n_imports--;
	list_remove(&i->link);
	(void)fd_close(i->dir_fd);
	free(i);
}

static void import_end(struct trash_watch *w)
{
	struct image_import *i = container_of(w, struct image_import, watch);
	const struct incoming_image *first =
		list_first(&i->incoming.images, struct incoming_image, link);
	struct image *image = NULL;

	if (!i->err.code && !i->cancelled)
		image = image_store_by_id(i->store, first->id);
	if (!i->err.code && !image)
		(void)error_refuse(&i->err, ERROR_ABORTED,
				   "the image was removed while it was imported");
	if (!i->cancelled && i->ops.on_done)
		i->ops.on_done(i->userdata, image, i->err.code ? &i->err : NULL);
	import_free(i);
}

static void import_release(struct image_import *i)
{
	struct incoming_image *image;
	struct incoming_blob *b;

	list_for_each (image, &i->incoming.images, struct incoming_image, link) {
		struct incoming_layer *l;

		list_for_each (l, &image->layers, struct incoming_layer, link) {
			if (l->layer)
				layer_release(i->store, TAKE_PTR(l->layer), &i->watch);
		}
	}
	list_for_each (b, &i->incoming.blobs, struct incoming_blob, link) {
		if (b->held)
			blob_release(i->store, b->digest, &i->watch);
		b->held = false;
	}
}

/* Lets go of everything: what the image's record holds by now stays, all else goes. */
static void import_undo(struct image_import *i, const struct error *err)
{
	if (err && !i->err.code)
		i->err = *err;
	import_enter(i, IMPORT_UNDOING);
	i->watch.gone = import_end;
	i->watch.n_pending++;
	FAILPOINT_BEFORE("import.clean");
	import_release(i);
	trash_add(i->store, i->store->staging_fd, i->id, &i->watch);
	FAILPOINT_AFTER("import.clean");
	if (--i->watch.n_pending == 0)
		import_end(&i->watch);
}

/* Whether the step that has ended was the last one, because of an error or the caller. */
static bool import_stopped(struct image_import *i, const struct error *err)
{
	if (!err && !i->err.code && !i->cancelled)
		return false;
	import_undo(i, err);
	return true;
}

/* ---- recording ---- */

static void import_recorded(struct recording *r)
{
	struct image_import *i = container_of(r, struct image_import, recording);

	import_undo(i, r->err.code ? &r->err : NULL);
}

static void import_record(struct image_import *i)
{
	import_enter(i, IMPORT_RECORDING);
	i->recording = (struct recording){ .store = i->store,
					   .incoming = &i->incoming,
					   .name = i->name,
					   .done = import_recorded,
					   .err = ERROR_INIT };
	if (!recording_start(&i->recording))
		import_undo(i, &i->recording.err);
}

/* ---- settling ---- */

static void import_settle_run(struct pool_work *work)
{
	struct image_import *i = container_of(work, struct image_import, work);

	int r = FAILPOINT("import.sync");

	if (r < 0 || sysio_fsync(i->store->layers_fd) < 0)
		(void)error_set(&i->err, r < 0 ? r : -errno, "sync the directory of the layers");
	FAILPOINT_AFTER("import.sync");
}

static void import_settled(struct pool_work *work)
{
	struct image_import *i = container_of(work, struct image_import, work);

	if (!import_stopped(i, NULL))
		import_record(i);
}

static void import_settle(struct image_import *i)
{
	import_enter(i, IMPORT_SETTLING);
	i->work = (struct pool_work){ .run = import_settle_run, .done = import_settled };
	pool_submit(i->store->config.pool, &i->work);
}

/* ---- unpacking ---- */

static void import_use_layer(struct image_import *i, struct layer *l, const char *how)
{
	layer_hold(l);
	i->layer->layer = l;
	i->parent = l->number;
	import_tell(i, "layer %u of %u: %s, %.1f MB", i->position, i->image->n_layers, how,
		    (double)l->size / 1e6);
}

/* The unpacked directory becomes a layer, unless another import has made the same one meanwhile. */
static int import_take_layer(struct image_import *i, struct error *err)
{
	struct layer *l = layer_find(i->store, i->parent, i->layer->diff_id);
	int64_t number = i->store->last_layer + 1;
	char name[24];
	int r;

	if (l) {
		trash_add(i->store, i->dir_fd, "layer", NULL);
		import_use_layer(i, l, "there already");
		return 0;
	}
	r = FAILPOINT("import.layer");
	if (r < 0)
		return error_set(err, r, "take a layer");
	(void)str_printf(name, sizeof(name), "%" PRId64, number);
	if (sysio_renameat(i->dir_fd, "layer", i->store->layers_fd, name) < 0)
		return error_set(err, -errno, "move a layer to its place");
	l = layer_add(i->store, number, i->parent, i->layer->diff_id, i->layer_bytes);
	if (!l) {
		trash_add(i->store, i->store->layers_fd, name, NULL);
		return error_set(err, -ENOMEM, "take a layer");
	}
	import_use_layer(i, l, "unpacked");
	FAILPOINT_AFTER("import.layer");
	return 0;
}

static int import_unpack_message(struct helper *h, const struct fetchmsg *m, struct error *err)
{
	struct image_import *i = container_of(h, struct image_import, helper);

	if (m->type != FETCHMSG_UNPACKED || i->unpacked)
		return error_set(err, -EPROTO, "nacre-fetch: a message that does not belong here");
	i->unpacked = true;
	i->layer_bytes = m->unpacked.n_bytes;
	return 0;
}

static int import_start_unpack(struct image_import *i, const struct helper_ops *ops,
			       struct error *err)
{
	const struct incoming_layer *l = i->layer;
	struct fetchmsg request = { .type = FETCHMSG_UNPACK,
				    .unpack = { .size = l->size,
						.compression = l->compression,
						.max_bytes = IMPORT_LAYER_BYTES_MAX,
						.max_entries = IMPORT_ENTRIES_MAX } };
	_cleanup_fd_ int blob_fd = sysio_openat(i->store->blobs_fd, digest_hex(l->digest),
						O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	_cleanup_fd_ int cage_fd = -1;

	if (blob_fd < 0)
		return error_set(err, -errno, "open blob %s", l->digest);
	if (sysio_mkdirat(i->dir_fd, "layer", 0755) < 0)
		return error_set(err, -errno, "make a directory for the layer");
	cage_fd = cage_open(i->dir_fd, "layer", 0, err);
	if (cage_fd < 0)
		return cage_fd;
	(void)str_copy(request.unpack.digest, sizeof(request.unpack.digest), l->digest);
	(void)str_copy(request.unpack.diff_id, sizeof(request.unpack.diff_id), l->diff_id);
	i->unpacked = false;
	return helper_start(&i->helper,
			    &(struct helper_config){ .loop = i->store->config.loop,
						     .path = i->store->fetch_path,
						     .command = "unpack",
						     .caps = IMPORT_CAPS_UNPACK,
						     .from_fd = blob_fd,
						     .to_fd = cage_fd,
						     .request = &request },
			    ops, err);
}

/* The next layer of the archive, over all its images. NULL at the end. */
static struct incoming_layer *import_next_layer(struct image_import *i)
{
	struct list *end = &i->incoming.images;
	struct list *next;

	if (!i->image)
		i->image = list_first(end, struct incoming_image, link);
	next = i->layer ? i->layer->link.next : i->image->layers.next;
	while (next == &i->image->layers) {
		if (i->image->link.next == end)
			return NULL;
		i->image = list_entry(i->image->link.next, struct incoming_image, link);
		i->position = 0;
		i->parent = 0;
		next = i->image->layers.next;
	}
	i->layer = list_entry(next, struct incoming_layer, link);
	i->position++;
	return i->layer;
}

static void import_unpack(struct image_import *i, const struct helper_ops *ops)
{
	struct error err = ERROR_INIT;
	int r = 0;

	while (import_next_layer(i)) {
		struct layer *l = layer_find(i->store, i->parent, i->layer->diff_id);

		if (l) {
			import_use_layer(i, l, "there already");
			continue;
		}
		r = import_start_unpack(i, ops, &err);
		if (r == 0)
			return;
		(void)error_wrap(&err, r, "layer %u of %u", i->position, i->image->n_layers);
		import_undo(i, &err);
		return;
	}
	import_settle(i);
}

static void import_unpack_end(struct helper *h, const struct error *err)
{
	struct image_import *i = container_of(h, struct image_import, helper);
	struct error fault = ERROR_INIT;

	if (err)
		fault = *err;
	else if (!i->unpacked)
		(void)error_set(&fault, -EPROTO, "nacre-fetch: it ended too early");
	else if (!i->cancelled)
		(void)import_take_layer(i, &fault);
	if (fault.code)
		(void)error_wrap(&fault, fault.code, "layer %u of %u", i->position,
				 i->image->n_layers);
	if (!import_stopped(i, fault.code ? &fault : NULL))
		import_unpack(i, h->ops);
}

static const struct helper_ops import_unpack_ops = { .on_message = import_unpack_message,
						     .on_end = import_unpack_end };

/* ---- storing ---- */

static int import_store_blob(struct image_import *i, int staged_fd, const struct incoming_blob *b,
			     struct error *err)
{
	const char *hex = digest_hex(b->digest);
	_cleanup_fd_ int fd =
		sysio_openat(staged_fd, hex, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	struct stat st;
	int r;

	r = FAILPOINT("import.blob");
	if (r < 0)
		return error_set(err, r, "store blob %s", b->digest);
	if (fd < 0)
		return error_set(err, -errno, "open blob %s", b->digest);
	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at blob %s", b->digest);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != b->size || st.st_nlink != 1)
		return error_set(err, -EPROTO, "nacre-fetch: blob %s is not what it said",
				 b->digest);
	if (fchmod(fd, 0400) < 0 || sysio_fsync(fd) < 0)
		return error_set(err, -errno, "sync blob %s", b->digest);
	/* One that is there already may have been damaged on the disk: this one was verified just
	 * now. */
	if (sysio_renameat(staged_fd, hex, i->store->blobs_fd, hex) < 0)
		return error_set(err, -errno, "move blob %s to its place", b->digest);
	FAILPOINT_AFTER("import.blob");
	return 0;
}

static void import_store_run(struct pool_work *work)
{
	struct image_import *i = container_of(work, struct image_import, work);
	_cleanup_fd_ int staged_fd = sysio_openat(
		i->dir_fd, "blobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct incoming_blob *b;

	if (staged_fd < 0) {
		(void)error_set(&i->err, -errno, "open the staged blobs");
		return;
	}
	list_for_each (b, &i->incoming.blobs, struct incoming_blob, link) {
		if (b->held && import_store_blob(i, staged_fd, b, &i->err) < 0)
			return;
	}
	if (sysio_fsync(i->store->blobs_fd) < 0)
		(void)error_set(&i->err, -errno, "sync the directory of the blobs");
}

static void import_stored(struct pool_work *work)
{
	struct image_import *i = container_of(work, struct image_import, work);

	if (import_stopped(i, NULL))
		return;
	import_enter(i, IMPORT_UNPACKING);
	import_unpack(i, &import_unpack_ops);
}

static void import_store(struct image_import *i)
{
	struct error err = ERROR_INIT;
	struct incoming_blob *b;

	list_for_each (b, &i->incoming.blobs, struct incoming_blob, link) {
		if (!b->wanted)
			continue;
		if (blob_hold(i->store, b->digest) < 0) {
			(void)error_set(&err, -ENOMEM, "store the blobs");
			import_undo(i, &err);
			return;
		}
		b->held = true;
	}
	import_enter(i, IMPORT_STORING);
	i->work = (struct pool_work){ .run = import_store_run, .done = import_stored };
	pool_submit(i->store->config.pool, &i->work);
}

/* ---- reading ---- */

static int import_read_message(struct helper *h, const struct fetchmsg *m, struct error *err)
{
	struct image_import *i = container_of(h, struct image_import, helper);
	int r;

	r = incoming_take(&i->incoming, m, err);
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
	else if (incoming_check(&i->incoming, &fault) == 0 && *i->name && i->incoming.n_images > 1)
		(void)error_refuse(&fault, ERROR_INVALID,
				   "the archive has %zu images, a name can be given to one only",
				   i->incoming.n_images);
	if (!import_stopped(i, fault.code ? &fault : NULL))
		import_store(i);
}

static const struct helper_ops import_read_ops = { .on_message = import_read_message,
						   .on_end = import_read_end };

/* This machine as OCI names it. */
static const char *import_architecture(const struct utsname *u)
{
	static const struct {
		const char *machine, *name;
	} names[] = {
		{ "x86_64", "amd64" },    { "aarch64", "arm64" },       { "armv7l", "arm" },
		{ "riscv64", "riscv64" }, { "s390x", "s390x" },         { "ppc64le", "ppc64le" },
		{ "i686", "386" },        { "loongarch64", "loong64" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(names[i].machine, u->machine))
			return names[i].name;
	return u->machine;
}

static int import_start_reading(struct image_import *i, int source_fd, struct error *err)
{
	struct fetchmsg request = { .type = FETCHMSG_READ,
				    .read = { .max_bytes = IMPORT_BYTES_MAX } };
	_cleanup_fd_ int cage_fd = -1;
	struct utsname u;
	int r;

	if (uname(&u) < 0)
		return error_set(err, -errno, "uname");
	request.read.architecture = import_architecture(&u);
	r = FAILPOINT("import.start");
	if (r < 0)
		return error_set(err, r, "start the helper");
	cage_fd = cage_open(i->dir_fd, "blobs", 0, err);
	if (cage_fd < 0)
		return cage_fd;
	r = helper_start(&i->helper,
			 &(struct helper_config){ .loop = i->store->config.loop,
						  .path = i->store->fetch_path,
						  .command = "read",
						  .caps = IMPORT_CAPS_READ,
						  .from_fd = source_fd,
						  .to_fd = cage_fd,
						  .request = &request },
			 &import_read_ops, err);
	FAILPOINT_AFTER("import.start");
	return r;
}

static int import_make_staging(struct image_import *i, struct error *err)
{
	int r;

	r = id_new(i->id);
	if (r < 0)
		return error_set(err, r, "draw an id");
	if (sysio_mkdirat(i->store->staging_fd, i->id, 0700) < 0)
		return error_set(err, -errno, "make a staging directory");
	i->dir_fd = sysio_openat(i->store->staging_fd, i->id,
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (i->dir_fd < 0)
		return error_set(err, -errno, "open the staging directory");
	if (sysio_mkdirat(i->dir_fd, "blobs", 0700) < 0)
		return error_set(err, -errno, "make a staging directory");
	return 0;
}

static int import_check_start(struct image_store *s, const char *name, char ret[REFERENCE_SIZE],
			      struct error *err)
{
	struct reference ref;

	if (s->n_imports >= IMPORTS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%u images are being imported already",
				    s->n_imports);
	*ret = '\0';
	if (str_empty(name))
		return 0;
	if (reference_parse(&ref, name, err) < 0)
		return -EINVAL;
	if (*ref.digest)
		return error_refuse(err, ERROR_INVALID,
				    "the name of an image cannot have a digest: \"%.200s\"", name);
	reference_format(&ref, ret);
	return 0;
}

int image_import_start(struct image_store *s, const char *path, const char *name,
		       const struct image_import_ops *ops, void *userdata,
		       struct image_import **ret, struct error *err)
{
	_cleanup_fd_ int source_fd = -1;
	char full[REFERENCE_SIZE];
	struct image_import *i;
	int r;

	r = import_check_start(s, name, full, err);
	if (r < 0)
		return r;
	source_fd = cage_open_source(path, err);
	if (source_fd < 0)
		return source_fd;
	i = calloc(1, sizeof(*i));
	if (!i)
		return error_set(err, -ENOMEM, "import %.300s", path);
	*i = (struct image_import){ .store = s,
				    .state = IMPORT_READING,
				    .ops = *ops,
				    .userdata = userdata,
				    .dir_fd = -1,
				    .err = ERROR_INIT };
	list_init(&i->link);
	incoming_init(&i->incoming);
	(void)str_copy(i->name, sizeof(i->name), full);
	r = import_make_staging(i, err);
	if (r == 0)
		r = import_start_reading(i, source_fd, err);
	if (r < 0) {
		if (*i->id)
			trash_add(s, s->staging_fd, i->id, NULL);
		import_free(i);
		return error_wrap(err, r, "import %.300s", path);
	}
	list_add_tail(&s->imports, &i->link);
	s->n_imports++;
	*ret = i;
	return 0;
}

void image_import_cancel(struct image_import *i)
{
	/* What runs now ends first: the helper at once, the pool and the database when they are
	 * ready. */
	i->cancelled = true;
	i->recording.cancelled = true;
	helper_kill(&i->helper);
}

void import_free_all(struct image_store *s)
{
	while (!list_empty(&s->imports))
		import_free(list_first(&s->imports, struct image_import, link));
}

void import_tally(const struct image_store *s, struct tally *t)
{
	const struct image_import *i;

	list_for_each (i, &s->imports, struct image_import, link)
		tally_may(t, "staging", i->id);
}
