/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content/commit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "image/content/room.h"
#include "image/transfer/incoming.h"

int commit_make_staging(struct image_store *s, char id[ID_SIZE], int *ret_fd, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	int r;

	r = id_new(id);
	if (r < 0)
		return error_set(err, r, "draw an id");
	if (sysio_mkdirat(s->staging_fd, id, 0700) < 0)
		return error_set(err, -errno, "make a staging directory");
	fd = sysio_openat(s->staging_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "open the staging directory");
	if (sysio_mkdirat(fd, "blobs", 0700) < 0)
		return error_set(err, -errno, "make a staging directory");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int commit_hold(struct image_store *s, struct incoming *in, struct error *err)
{
	struct incoming_blob *b;

	list_for_each (b, &in->blobs, struct incoming_blob, link) {
		if (!b->wanted || b->held)
			continue;
		if (blob_hold(s, b->digest) < 0)
			return error_set(err, -ENOMEM, "store the blobs");
		b->held = true;
		b->staged = true;
	}
	return 0;
}

static int commit_check(int staged_fd, const struct incoming_blob *b, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(staged_fd, digest_hex(b->digest),
					   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	struct stat st;

	if (fd < 0)
		return error_set(err, -errno, "open blob %s", b->digest);
	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at blob %s", b->digest);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != b->size || st.st_nlink != 1)
		return error_set(err, -EPROTO, "nacre-fetch: blob %s is not what it said",
				 b->digest);
	/* A helper with a network has a user of its own. */
	if (st.st_uid != geteuid() && fchown(fd, geteuid(), getegid()) < 0)
		return error_set(err, -errno, "own blob %s", b->digest);
	if (fchmod(fd, 0400) < 0)
		return error_set(err, -errno, "close blob %s to writing", b->digest);
	return 0;
}

static int commit_move(const struct image_store *s, int staged_fd, const struct incoming_blob *b,
		       struct error *err)
{
	const char *hex = digest_hex(b->digest);
	int r;

	r = FAILPOINT("import.blob");
	if (r < 0)
		return error_set(err, r, "store blob %s", b->digest);
	/* A file that is there already may have been damaged on the disk: this one was verified
	 * just now. */
	if (sysio_renameat(staged_fd, hex, s->blobs_fd, hex) < 0)
		return error_set(err, -errno, "move blob %s to its place", b->digest);
	FAILPOINT_AFTER("import.blob");
	return 0;
}

int commit_run(struct image_store *s, const struct incoming *in, int dir_fd, struct error *err)
{
	_cleanup_fd_ int staged_fd =
		sysio_openat(dir_fd, "blobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct incoming_blob *b;
	int r;

	if (staged_fd < 0)
		return error_set(err, -errno, "open the staged blobs");
	list_for_each (b, &in->blobs, struct incoming_blob, link) {
		r = b->staged ? commit_check(staged_fd, b, err) : 0;
		if (r < 0)
			return r;
	}
	/* Before they move, since one that they replace may be in use. Once for all of them: each
	 * sync of a file alone would wait for the disk's journal. */
	if (sysio_syncfs(dir_fd) < 0)
		return error_set(err, -errno, "sync the blobs");
	list_for_each (b, &in->blobs, struct incoming_blob, link) {
		r = b->staged ? commit_move(s, staged_fd, b, err) : 0;
		if (r < 0)
			return r;
	}
	if (sysio_fsync(s->blobs_fd) < 0)
		return error_set(err, -errno, "sync the directory of the blobs");
	return 0;
}

void commit_release(struct image_store *s, struct incoming *in, struct trash_watch *watch)
{
	struct incoming_image *image;
	struct incoming_blob *b;

	list_for_each (image, &in->images, struct incoming_image, link) {
		struct incoming_layer *l;

		list_for_each (l, &image->layers, struct incoming_layer, link) {
			if (l->layer)
				layer_release(s, TAKE_PTR(l->layer), watch);
		}
	}
	list_for_each (b, &in->blobs, struct incoming_blob, link) {
		if (b->held)
			blob_release(s, b->digest, watch);
		b->held = false;
	}
}

bool commit_has(const struct image_store *s, const char *digest, uint64_t size)
{
	struct stat st;

	return map_get(&s->blobs, digest) &&
	       fstatat(s->blobs_fd, digest_hex(digest), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && (uint64_t)st.st_size == size;
}

static uint64_t commit_estimate(const struct image_store *s, const struct incoming_image *image)
{
	const struct layer *found = NULL;
	const struct incoming_layer *l;
	uint64_t sum = 0;
	bool there = true;

	list_for_each (l, &image->layers, struct incoming_layer, link) {
		found = there ? layer_find(s, found ? found->number : 0, l->diff_id) : NULL;
		/* Another blob is unpacked, to see that it holds the same. */
		there = found && str_eq(found->blob, l->digest);
		if (!there)
			sum += l->size * (l->compression == FETCH_PLAIN ? 1 : COMMIT_ESTIMATE);
	}
	return sum;
}

int commit_check_room(struct image_store *s, const struct incoming_image *image, const char *name,
		      uint64_t load, struct error *err)
{
	uint64_t unpack = commit_estimate(s, image), have;
	bool enough;
	int r;

	r = room_find(s, load + unpack, &enough, &have, err);
	if (r < 0 || enough)
		return r;
	return error_refuse(err, ERROR_EXHAUSTED,
			    "there is no room for %.300s: it takes about %.1f MB (%.1f MB to load, "
			    "%.1f MB unpacked), and %.1f MB are free, of which %.1f MB stay so "
			    "(images.reserve)",
			    name, (double)(load + unpack) / 1e6, (double)load / 1e6,
			    (double)unpack / 1e6, (double)have / 1e6,
			    (double)room_reserve(s) / 1e6);
}
