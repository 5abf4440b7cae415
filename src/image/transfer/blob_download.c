/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/blob_download.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "image/content/commit.h"
#include "image/content/model.h"
#include "wire/message/fetchmsg.h"

static const bool edges[BLOB_DOWNLOAD_STATE_COUNT][BLOB_DOWNLOAD_STATE_COUNT] = {
	[BLOB_DOWNLOAD_IDLE] = { [BLOB_DOWNLOAD_LOADING] = true },
	[BLOB_DOWNLOAD_LOADING] = { [BLOB_DOWNLOAD_IDLE] = true,
				    [BLOB_DOWNLOAD_COMMITTING] = true },
	[BLOB_DOWNLOAD_COMMITTING] = { [BLOB_DOWNLOAD_LANDED] = true,
				       [BLOB_DOWNLOAD_FAILED] = true },
};

struct blob_download {
	struct image_store *store;
	char name[BLOB_DOWNLOAD_NAME_SIZE]; /* the digest, with "-N" where another one has that */
	char digest[DIGEST_SIZE];
	char from[FETCH_HOST_MAX + 1];
	enum blob_download_state state;
	struct list wants;
	struct blob_download_want *pilot; /* who brings it; NULL: nobody */
	uint64_t size;                    /* as he was told */
	int fd;                           /* partial/HEX, while LOADING or COMMITTING */
	bool held;                        /* the blob */
	bool overtaken;                   /* another download has landed with it */
	struct pool_work work;
	struct error err;
};

static void blob_download_enter(struct blob_download *f, enum blob_download_state state)
{
	struct blob_download_want *w;

	assert(edges[f->state][state]);
	f->state = state;
	if (state != BLOB_DOWNLOAD_LOADING)
		f->pilot = NULL;
	if (state != BLOB_DOWNLOAD_LOADING && state != BLOB_DOWNLOAD_COMMITTING)
		f->fd = fd_close(f->fd);
	list_for_each (w, &f->wants, struct blob_download_want, link)
		w->ops->on_change(w);
}

static void blob_download_free(struct blob_download *f)
{
	if (f->held)
		blob_release(f->store, f->digest, NULL);
	(void)map_remove(&f->store->blob_downloads, f->name);
	(void)fd_close(f->fd);
	free(f);
}

static struct blob_download *blob_download_new(struct image_store *s, const char *name,
					       const char *digest, const char *from)
{
	struct blob_download *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	*f = (struct blob_download){ .store = s, .fd = -1, .err = ERROR_INIT };
	list_init(&f->wants);
	(void)str_copy(f->name, sizeof(f->name), name);
	if (str_copy(f->digest, sizeof(f->digest), digest) < 0 ||
	    str_copy(f->from, sizeof(f->from), from) < 0 ||
	    map_add(&s->blob_downloads, f->name, f) < 0) {
		free(f);
		return NULL;
	}
	return f;
}

static bool blob_download_is_for(const struct blob_download *f, const char *from)
{
	return f->state == BLOB_DOWNLOAD_COMMITTING || f->state == BLOB_DOWNLOAD_LANDED ||
	       str_eq(f->from, from);
}

int blob_download_join(struct blob_download_want *w, struct image_store *s, const char *digest,
		       uint64_t size, const char *from, const struct blob_download_ops *ops)
{
	char name[BLOB_DOWNLOAD_NAME_SIZE];
	struct blob_download *f;
	unsigned n = 0;

	(void)str_copy(name, sizeof(name), digest);
	for (;;) {
		f = map_get(&s->blob_downloads, name);
		if (!f || blob_download_is_for(f, from))
			break;
		(void)str_printf(name, sizeof(name), "%s-%u", digest, ++n);
	}
	if (!f)
		f = blob_download_new(s, name, digest, from);
	if (!f)
		return -ENOMEM;
	*w = (struct blob_download_want){ .blob_download = f, .ops = ops, .size = size };
	list_init(&w->link);
	list_add_tail(&f->wants, &w->link);
	return 0;
}

static const char *blob_download_file_name(const struct blob_download *f)
{
	return f->name + strlen("sha256:");
}

/* A file in which nothing came is worth nothing, nor is one that nobody would look for. */
static void blob_download_tidy(const struct blob_download *f)
{
	struct stat st;

	if (!str_eq(f->name, f->digest) || (fstat(f->fd, &st) == 0 && st.st_size == 0))
		(void)sysio_unlinkat(f->store->partial_fd, blob_download_file_name(f), 0);
}

void blob_download_leave(struct blob_download_want *w)
{
	struct blob_download *f = w->blob_download;

	if (!f)
		return;
	w->blob_download = NULL;
	list_remove(&w->link);
	if (f->state == BLOB_DOWNLOAD_LOADING && f->pilot == w) {
		blob_download_tidy(f);
		blob_download_enter(f, BLOB_DOWNLOAD_IDLE);
	}
	if (list_empty(&f->wants) && f->state != BLOB_DOWNLOAD_COMMITTING)
		blob_download_free(f);
}

enum blob_download_state blob_download_state(const struct blob_download_want *w)
{
	return w->blob_download->state;
}

const struct error *blob_download_error(const struct blob_download_want *w)
{
	return &w->blob_download->err;
}

static int blob_download_open_file(const struct blob_download *f, struct error *err)
{
	int fd = sysio_openat(f->store->partial_fd, blob_download_file_name(f),
			      O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	return fd < 0 ? error_set(err, -errno, "open a file for blob %s", f->digest) : fd;
}

/* The file, locked. The lock is the helper's too, which has the same descriptor: one that has
 * outlived its daemon for a moment may write still, but no more into what is ours. */
static int blob_download_lock_file(const struct blob_download *f, struct error *err)
{
	_cleanup_fd_ int fd = blob_download_open_file(f, err);

	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return TAKE_FD(fd);
	if (errno == EWOULDBLOCK &&
	    sysio_unlinkat(f->store->partial_fd, blob_download_file_name(f), 0) == 0) {
		fd = fd_close(fd);
		fd = blob_download_open_file(f, err);
		if (fd < 0)
			return fd;
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return TAKE_FD(fd);
	}
	return error_set(err, -errno, "lock the file of blob %s", f->digest);
}

int blob_download_take(struct blob_download_want *w, int *ret_fd, uint64_t *ret_from,
		       struct error *err)
{
	struct blob_download *f = w->blob_download;
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r;

	assert(f->state == BLOB_DOWNLOAD_IDLE);
	r = FAILPOINT("pull.partial");
	if (r < 0)
		return error_set(err, r, "open a file for blob %s", f->digest);
	fd = blob_download_lock_file(f, err);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at the file of blob %s", f->digest);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EPROTO, "partial/%s is no file", blob_download_file_name(f));
	if ((uint64_t)st.st_size > w->size) {
		if (sysio_ftruncate(fd, 0) < 0)
			return error_set(err, -errno, "cut the file of blob %s", f->digest);
		st.st_size = 0;
	}
	f->fd = TAKE_FD(fd);
	f->size = w->size;
	f->pilot = w;
	blob_download_enter(f, BLOB_DOWNLOAD_LOADING);
	*ret_fd = f->fd;
	*ret_from = (uint64_t)st.st_size;
	FAILPOINT_AFTER("pull.partial");
	return 0;
}

void blob_download_progress(struct blob_download_want *w, uint64_t n_bytes)
{
	const struct blob_download *f = w->blob_download;
	struct blob_download_want *other;

	assert(f->pilot == w);
	list_for_each (other, &f->wants, struct blob_download_want, link) {
		if (other != w)
			other->ops->on_progress(other, n_bytes);
	}
}

int blob_download_file(const struct blob_download_want *w)
{
	assert(w->blob_download->pilot == w);
	return w->blob_download->fd;
}

int blob_download_restart(struct blob_download_want *w, struct error *err)
{
	const struct blob_download *f = w->blob_download;

	assert(f->pilot == w);
	return sysio_ftruncate(f->fd, 0) < 0
		       ? error_set(err, -errno, "cut the file of blob %s", f->digest)
		       : 0;
}

static void blob_download_store_run(struct pool_work *work)
{
	struct blob_download *f = container_of(work, struct blob_download, work);
	const char *hex = digest_hex(f->digest), *name = blob_download_file_name(f);
	int r = FAILPOINT("pull.blob");

	if (r < 0)
		(void)error_set(&f->err, r, "store blob %s", f->digest);
	else if (fchmod(f->fd, 0400) < 0)
		(void)error_set(&f->err, -errno, "close blob %s to writing", f->digest);
	else if (f->overtaken)
		(void)sysio_unlinkat(f->store->partial_fd, name, 0);
	else if (sysio_renameat(f->store->partial_fd, name, f->store->blobs_fd, hex) < 0)
		(void)error_set(&f->err, -errno, "move blob %s to its place", f->digest);
	FAILPOINT_AFTER("pull.blob");
}

static void blob_download_stored(struct pool_work *work)
{
	struct blob_download *f = container_of(work, struct blob_download, work);

	blob_download_enter(f, f->err.code ? BLOB_DOWNLOAD_FAILED : BLOB_DOWNLOAD_LANDED);
	if (list_empty(&f->wants))
		blob_download_free(f);
}

int blob_download_whole(struct blob_download_want *w, struct error *err)
{
	struct blob_download *f = w->blob_download;
	struct stat st;

	assert(f->pilot == w);
	if (fstat(f->fd, &st) < 0)
		return error_set(err, -errno, "look at the file of blob %s", f->digest);
	if ((uint64_t)st.st_size != f->size)
		return error_set(err, -EPROTO, "nacre-transfer: blob %s is not what it said",
				 f->digest);
	/* What lies there may be synced already, and what would replace it is not. */
	f->overtaken = commit_has(f->store, f->digest, f->size);
	/* Before it lies there, so that nobody takes it for one without an owner. */
	if (blob_hold(f->store, f->digest) < 0)
		return error_set(err, -ENOMEM, "store blob %s", f->digest);
	f->held = true;
	blob_download_enter(f, BLOB_DOWNLOAD_COMMITTING);
	f->work =
		(struct pool_work){ .run = blob_download_store_run, .done = blob_download_stored };
	pool_submit(f->store->config.pool, &f->work);
	return 0;
}

int blob_download_open(const struct blob_download_want *w, struct error *err)
{
	const struct blob_download *f = w->blob_download;
	int fd = sysio_openat(f->store->partial_fd, blob_download_file_name(f),
			      O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd < 0 && errno == ENOENT)
		return -EAGAIN;
	return fd < 0 ? error_set(err, -errno, "open the file of blob %s", f->digest) : fd;
}

int blob_download_pipe(int *ret_read_fd, int *ret_write_fd, struct error *err)
{
	_cleanup_fd_ int read_fd = -1;
	_cleanup_fd_ int write_fd = -1;
	int pair[2];
	int r;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make a pipe");
	read_fd = pair[0];
	write_fd = pair[1];
	r = fd_set_nonblock(write_fd, true);
	if (r < 0)
		return error_set(err, r, "make a pipe");
	*ret_read_fd = TAKE_FD(read_fd);
	*ret_write_fd = TAKE_FD(write_fd);
	return 0;
}

uint64_t blob_download_kept(const struct image_store *s, const char *digest)
{
	struct stat st;

	if (fstatat(s->partial_fd, digest_hex(digest), &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return 0;
	return (uint64_t)st.st_size;
}

void blob_download_free_all(struct image_store *s)
{
	size_t pos = 0;

	for (;;) {
		struct blob_download *f = map_next(&s->blob_downloads, &pos);

		if (!f)
			break;
		blob_download_free(f);
	}
	map_done(&s->blob_downloads);
}
