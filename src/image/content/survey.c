/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content/survey.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/file/fd.h"
#include "base/memory/inventory.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/content/image_inventory.h"
#include "image/content/measure.h"
#include "image/content/model.h"

static const char *const survey_words[] = {
	[SURVEY_BLOB] = "blob",           [SURVEY_LAYER] = "layer",
	[SURVEY_EROFS] = "erofs",         [SURVEY_PARTIAL] = "partial",
	[SURVEY_CONTAINER] = "container", [SURVEY_STAGING] = "staging",
	[SURVEY_DATABASE] = "database",
};
static_assert(ARRAY_SIZE(survey_words) == SURVEY_KIND_COUNT, "a word for each kind");

/* The files of root.db. */
static const char *const survey_files[] = { "root.db", "root.db-wal", "root.db-shm",
					    "root.db-reserve" };

const char *survey_kind_word(enum survey_kind kind)
{
	return survey_words[kind];
}

static int survey_fd_of(const struct image_store *s, enum survey_kind kind)
{
	const int fds[] = {
		[SURVEY_BLOB] = s->blobs_fd,           [SURVEY_LAYER] = s->layers_fd,
		[SURVEY_EROFS] = s->erofs_fd,          [SURVEY_PARTIAL] = s->partial_fd,
		[SURVEY_CONTAINER] = s->containers_fd, [SURVEY_STAGING] = s->staging_fd,
		[SURVEY_DATABASE] = s->config.root_fd,
	};

	return fds[kind];
}

int survey_dir_fd(const struct survey *s, const struct survey_entry *e)
{
	return survey_fd_of(s->store, e->kind);
}

static void survey_free(struct survey *s)
{
	list_remove(&s->link);
	for (size_t i = 0; i < s->n; i++)
		free(s->entries[i].name);
	free(s->entries);
	free(s->memory);
	free(s);
}

/* ---- on the pool ---- */

static int survey_add(struct survey *s, enum survey_kind kind, const char *name)
{
	struct measure m = { .bytes = 0 };
	struct survey_entry *e;
	int r = 0;

	if (s->n == s->size) {
		size_t size = s->size ? s->size * 2 : 64;
		struct survey_entry *more = realloc(s->entries, size * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->entries = more;
		s->size = size;
	}
	if (s->sizes || kind == SURVEY_PARTIAL)
		r = measure_tree(&m, survey_fd_of(s->store, kind), name);
	if (r == -ENOENT)
		return 0;
	if (r == -ENOMEM)
		return r;
	e = &s->entries[s->n];
	*e = (struct survey_entry){ .kind = kind, .bytes = m.bytes, .changed = m.changed };
	e->name = strdup(name);
	if (!e->name)
		return -ENOMEM;
	s->n++;
	s->incomplete = s->incomplete || m.incomplete || r < 0;
	return 0;
}

static int survey_add_all(struct survey *s, enum survey_kind kind)
{
	_cleanup_strv_ char **names = NULL;
	int r;

	r = fd_list_dir(survey_fd_of(s->store, kind), &names);
	if (r < 0)
		return r;
	for (size_t i = 0; names && names[i] && r == 0; i++)
		r = survey_add(s, kind, names[i]);
	return r;
}

static void survey_run(struct pool_work *work)
{
	struct survey *s = container_of(work, struct survey, work);
	struct statvfs room;
	int r = 0;

	for (enum survey_kind k = 0; k < SURVEY_DATABASE && r == 0; k++)
		r = survey_add_all(s, k);
	for (size_t i = 0; i < ARRAY_SIZE(survey_files) && r == 0; i++)
		r = survey_add(s, SURVEY_DATABASE, survey_files[i]);
	if (r == 0 && fstatvfs(s->store->config.root_fd, &room) < 0)
		r = -errno;
	if (r < 0)
		(void)error_set(&s->err, r, "look at the files of the images");
	else
		s->free_bytes = (uint64_t)room.f_bavail * room.f_frsize;
}

static void survey_ran(struct pool_work *work)
{
	struct survey *s = container_of(work, struct survey, work);

	s->done(s, s->userdata);
	survey_free(s);
}

int survey_start(struct image_store *store, bool sizes,
		 void (*done)(struct survey *s, void *userdata), void *userdata, void *memory)
{
	struct survey *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct survey){ .store = store,
			      .work = { .run = survey_run, .done = survey_ran },
			      .sizes = sizes,
			      .err = ERROR_INIT,
			      .done = done,
			      .userdata = userdata,
			      .memory = memory };
	list_init(&s->link);
	list_add_tail(&store->surveys, &s->link);
	pool_submit(store->config.pool, &s->work);
	return 0;
}

void survey_free_all(struct image_store *store)
{
	while (!list_empty(&store->surveys))
		survey_free(list_first(&store->surveys, struct survey, link));
}

/* ---- what nobody needs ---- */

static bool survey_has_layer(const struct image_store *s, const char *name)
{
	uint64_t number;

	return str_eq(name, "0") ||
	       (parse_u64(name, 1, INT64_MAX, &number) == 0 && layer_by_number(s, (int64_t)number));
}

static bool survey_has_blob(const struct image_store *s, const char *name)
{
	char digest[DIGEST_SIZE];

	return str_printf(digest, sizeof(digest), "sha256:%s", name) >= 0 &&
	       map_get(&s->blobs, digest);
}

static bool survey_is_staged(const struct image_store *s, const char *name)
{
	bool there;
	struct inventory t;

	inventory_init(&t);
	image_store_inventory_staging(s, &t);
	there = t.incomplete || inventory_allows(&t, "staging", name);
	inventory_done(&t);
	return there;
}

static bool survey_is_unknown(const struct survey *survey, const struct survey_entry *e,
			      int64_t partial_seconds)
{
	const struct image_store *s = survey->store;

	switch (e->kind) {
	case SURVEY_BLOB:
		return !survey_has_blob(s, e->name);
	case SURVEY_LAYER:
	case SURVEY_EROFS:
		return !survey_has_layer(s, e->name);
	case SURVEY_PARTIAL:
		return !partial_is_held(s, e->name) &&
		       (int64_t)(clock_real() / NSEC_PER_SEC) - e->changed >= partial_seconds;
	case SURVEY_CONTAINER:
		return s->swept && !map_get(&s->containers, e->name);
	case SURVEY_STAGING:
		return !survey_is_staged(s, e->name);
	case SURVEY_DATABASE:
	case SURVEY_KIND_COUNT:
		break;
	}
	return false;
}

bool survey_is_garbage(const struct survey *survey, const struct survey_entry *e,
		       int64_t partial_seconds)
{
	struct stat st;

	/* What went since the look, with its record, is nobody's loss. */
	return survey_is_unknown(survey, e, partial_seconds) &&
	       fstatat(survey_dir_fd(survey, e), e->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}
