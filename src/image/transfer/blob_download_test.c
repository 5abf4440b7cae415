/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/blob_download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "loop/wait_test.h"
#include "scratch.h"
#include "unit.h"

/* Of any content: who verifies it is not the download. */
#define HEX "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define DIGEST "sha256:" HEX

/* As much of a store as a download needs. */
struct sky {
	char path[64];
	int fd;
	struct image_store store;
};

struct wish {
	struct blob_download_want want;
	unsigned n_changes;
	uint64_t n_bytes;
};

static void wish_progress(struct blob_download_want *w, uint64_t n_bytes)
{
	container_of(w, struct wish, want)->n_bytes = n_bytes;
}

static void wish_change(struct blob_download_want *w)
{
	container_of(w, struct wish, want)->n_changes++;
}

static const struct blob_download_ops wish_ops = { wish_progress, wish_change };

static int sky_dir(const struct sky *s, const char *name)
{
	CHECK_INT(mkdirat(s->fd, name, 0700), 0);
	return openat(s->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool sky_init(struct sky *s)
{
	*s = (struct sky){ .fd = -1 };
	(void)str_copy(s->path, sizeof(s->path), "/tmp/nacre-download-XXXXXX");
	if (!mkdtemp(s->path))
		abort();
	s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s->store = (struct image_store){ .blob_downloads = MAP_INIT, .blobs = MAP_INIT };
	list_init(&s->store.trash);
	s->store.partial_fd = sky_dir(s, "partial");
	s->store.blobs_fd = sky_dir(s, "blobs");
	s->store.staging_fd = sky_dir(s, "staging");
	CHECK_INT(loop_new(&s->store.config.loop), 0);
	if (s->store.config.loop)
		CHECK_INT(pool_new(&s->store.config.pool, s->store.config.loop, 1), 0);
	return s->store.config.pool != NULL;
}

static void sky_done(struct sky *s)
{
	s->store.config.pool = pool_free(s->store.config.pool);
	blob_download_free_all(&s->store);
	trash_done(&s->store);
	map_done(&s->store.blobs);
	s->store.config.loop = loop_free(s->store.config.loop);
	(void)fd_close(s->store.partial_fd);
	(void)fd_close(s->store.blobs_fd);
	(void)fd_close(s->store.staging_fd);
	(void)fd_close(s->fd);
	(void)scratch_remove(s->path);
}

static bool sky_has(const struct sky *s, const char *path)
{
	struct stat st;

	return fstatat(s->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool wish_join_from(struct sky *s, struct wish *w, const char *from)
{
	int r;

	*w = (struct wish){ .n_changes = 0 };
	r = blob_download_join(&w->want, &s->store, DIGEST, 8, from, &wish_ops);
	CHECK_INT(r, 0);
	return r == 0;
}

static bool wish_join(struct sky *s, struct wish *w)
{
	return wish_join_from(s, w, "one.example");
}

/* Two want the same; not where memory is out before that. */
static void fly(void (*test)(struct sky *s, struct wish *a, struct wish *b))
{
	struct wish a = { .n_changes = 0 }, b = { .n_changes = 0 };
	struct sky s;

	if (sky_init(&s) && wish_join(&s, &a) && wish_join(&s, &b))
		test(&s, &a, &b);
	blob_download_leave(&a.want);
	blob_download_leave(&b.want);
	sky_done(&s);
}

/* The bytes that it has already, or what went wrong. */
static int64_t wish_take(struct wish *w, int *ret_fd)
{
	struct error err = ERROR_INIT;
	uint64_t from = 0;
	int r = blob_download_take(&w->want, ret_fd, &from, &err);

	return r < 0 ? r : (int64_t)from;
}

static void brings_it_for_all(struct sky *s, struct wish *a, struct wish *b)
{
	struct error err = ERROR_INIT;
	int fd = -1;

	CHECK_INT(wish_take(a, &fd), 0);
	CHECK_INT(blob_download_state(&b->want), BLOB_DOWNLOAD_LOADING);
	CHECK_INT(b->n_changes, 1);
	CHECK_INT(write(fd, "12345678", 8), 8);
	blob_download_progress(&a->want, 8);
	CHECK_INT(a->n_bytes, 0);
	CHECK_INT(b->n_bytes, 8);
	CHECK_INT(blob_download_whole(&a->want, &err), 0);
	LOOP_WAIT(s->store.config.loop, blob_download_state(&a->want) == BLOB_DOWNLOAD_LANDED);
	CHECK_INT(blob_download_state(&b->want), BLOB_DOWNLOAD_LANDED);
	CHECK(sky_has(s, "blobs/" HEX) && !sky_has(s, "partial/" HEX));
	/* The download holds the blob until the last has left. */
	CHECK(map_get(&s->store.blobs, DIGEST) != NULL);
	blob_download_leave(&a->want);
	blob_download_leave(&a->want);
	CHECK(map_get(&s->store.blobs, DIGEST) != NULL);
	blob_download_leave(&b->want);
	CHECK(!map_get(&s->store.blobs, DIGEST) && !map_get(&s->store.blob_downloads, DIGEST));
}

static void one_brings_it_for_all(void)
{
	fly(brings_it_for_all);
}

static void goes_on(struct sky *s, struct wish *a, struct wish *b)
{
	int fd = -1;

	CHECK_INT(wish_take(a, &fd), 0);
	CHECK_INT(write(fd, "123", 3), 3);
	blob_download_leave(&a->want);
	CHECK_INT(blob_download_state(&b->want), BLOB_DOWNLOAD_IDLE);
	CHECK_INT(b->n_changes, 2);
	CHECK_INT(wish_take(b, &fd), 3);
	blob_download_leave(&b->want);
	/* It stays for the next one; what is nothing does not. */
	CHECK_INT(blob_download_kept(&s->store, DIGEST), 3);
	if (!wish_join(s, a))
		return;
	CHECK_INT(wish_take(a, &fd), 3);
	CHECK_INT(ftruncate(fd, 0), 0);
	blob_download_leave(&a->want);
	CHECK(!sky_has(s, "partial/" HEX));
	CHECK_INT(blob_download_kept(&s->store, DIGEST), 0);
}

static void another_goes_on_where_one_leaves(void)
{
	fly(goes_on);
}

static void is_cut(struct sky *s, struct wish *a, struct wish *b _unused_)
{
	struct error err = ERROR_INIT;
	int fd = openat(s->store.partial_fd, HEX, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK_INT(write(fd, "more than eight", 15), 15);
	(void)close(fd);
	CHECK_INT(wish_take(a, &fd), 0);
	CHECK_INT(lseek(fd, 0, SEEK_END), 0);
	/* Less than the whole is none, and what is worthless goes. */
	CHECK_INT(write(fd, "1234", 4), 4);
	CHECK_INT(blob_download_whole(&a->want, &err), -EPROTO);
	CHECK_INT(blob_download_state(&a->want), BLOB_DOWNLOAD_LOADING);
	CHECK_INT(blob_download_restart(&a->want, &err), 0);
	CHECK_INT(lseek(blob_download_file(&a->want), 0, SEEK_END), 0);
}

static void a_file_that_fits_nothing_is_cut(void)
{
	fly(is_cut);
}

static void writes_elsewhere(struct sky *s, struct wish *a, struct wish *b)
{
	/* A helper that has outlived its daemon holds the lock. */
	int old = openat(s->store.partial_fd, HEX, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int fd = -1;

	CHECK_INT(write(old, "123", 3), 3);
	CHECK_INT(flock(old, LOCK_EX | LOCK_NB), 0);
	CHECK_INT(wish_take(a, &fd), 0);
	CHECK_INT(write(old, "456", 3), 3);
	CHECK_INT(lseek(fd, 0, SEEK_END), 0);
	(void)close(old);
	blob_download_leave(&a->want);
	/* And what is no file is none. */
	CHECK_INT(mkfifoat(s->store.partial_fd, HEX, 0600), 0);
	CHECK_INT(wish_take(b, &fd), -EPROTO);
	CHECK_INT(blob_download_state(&b->want), BLOB_DOWNLOAD_IDLE);
}

static void who_writes_still_writes_elsewhere(void)
{
	fly(writes_elsewhere);
}

static void fails_for_all(struct sky *s, struct wish *a, struct wish *b)
{
	struct error err = ERROR_INIT;
	int fd = -1;

	/* A directory lies where the blob belongs. */
	CHECK_INT(mkdirat(s->store.blobs_fd, HEX, 0700), 0);
	CHECK_INT(wish_take(a, &fd), 0);
	CHECK_INT(write(fd, "12345678", 8), 8);
	if (blob_download_whole(&a->want, &err) < 0)
		return;
	/* Who brought it may leave meanwhile. */
	blob_download_leave(&a->want);
	LOOP_WAIT(s->store.config.loop, blob_download_state(&b->want) == BLOB_DOWNLOAD_FAILED);
	CHECK(str_has_prefix(blob_download_error(&b->want)->text,
			     "move blob " DIGEST " to its place"));
	CHECK_INT(blob_download_error(&b->want)->code, -EISDIR);
}

static void what_cannot_be_moved_fails_for_all(void)
{
	fly(fails_for_all);
}

static void asks_another(struct sky *s, struct wish *a, struct wish *b)
{
	struct wish c = { .n_changes = 0 }, d = { .n_changes = 0 };
	struct error err = ERROR_INIT;
	int slow = -1, fd = -1;

	CHECK_INT(wish_take(a, &slow), 0);
	CHECK_INT(write(slow, "1", 1), 1);
	if (!wish_join_from(s, &c, "two.example") || !wish_join_from(s, &d, "two.example"))
		goto out;
	CHECK_INT(blob_download_state(&c.want), BLOB_DOWNLOAD_IDLE);
	CHECK_INT(wish_take(&c, &fd), 0);
	CHECK_INT(blob_download_state(&d.want), BLOB_DOWNLOAD_LOADING);
	CHECK(sky_has(s, "partial/" HEX "-1") && partial_is_held(&s->store, HEX "-1"));
	/* What is left of it is of no use; the first one's is. */
	blob_download_leave(&c.want);
	CHECK(!sky_has(s, "partial/" HEX "-1") && sky_has(s, "partial/" HEX));
	CHECK_INT(wish_take(&d, &fd), 0);
	CHECK_INT(write(fd, "12345678", 8), 8);
	CHECK_INT(blob_download_whole(&d.want, &err), 0);
	LOOP_WAIT(s->store.config.loop, blob_download_state(&d.want) == BLOB_DOWNLOAD_LANDED);
	CHECK(sky_has(s, "blobs/" HEX) && !sky_has(s, "partial/" HEX "-1"));
	CHECK_INT(blob_download_state(&a->want), BLOB_DOWNLOAD_LOADING);
	CHECK_INT(blob_download_state(&b->want), BLOB_DOWNLOAD_LOADING);
	/* Who is late lands too, and holds it as well. */
	CHECK_INT(write(slow, "2345678", 7), 7);
	CHECK_INT(blob_download_whole(&a->want, &err), 0);
	LOOP_WAIT(s->store.config.loop, blob_download_state(&b->want) == BLOB_DOWNLOAD_LANDED);
	CHECK(sky_has(s, "blobs/" HEX) && !sky_has(s, "partial/" HEX));
	blob_download_leave(&d.want);
	CHECK(map_get(&s->store.blobs, DIGEST) != NULL);
out:
	blob_download_leave(&c.want);
	blob_download_leave(&d.want);
}

static void who_asks_another_registry_does_not_wait(void)
{
	fly(asks_another);
}

UNIT_MAIN({ "one brings it for all", one_brings_it_for_all },
	  { "another goes on where one leaves", another_goes_on_where_one_leaves },
	  { "a file that fits nothing is cut", a_file_that_fits_nothing_is_cut },
	  { "who writes still writes elsewhere", who_writes_still_writes_elsewhere },
	  { "who asks another registry does not wait", who_asks_another_registry_does_not_wait },
	  { "what cannot be moved fails for all", what_cannot_be_moved_fails_for_all })
