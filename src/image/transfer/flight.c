/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/flight.h"

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
#include "image/content/model.h"
#include "image/content/storing.h"
#include "wire/message/fetchmsg.h"

static const bool edges[FLIGHT_STATE_COUNT][FLIGHT_STATE_COUNT] = {
	[FLIGHT_IDLE] = { [FLIGHT_LOADING] = true },
	[FLIGHT_LOADING] = { [FLIGHT_IDLE] = true, [FLIGHT_STORING] = true },
	[FLIGHT_STORING] = { [FLIGHT_LANDED] = true, [FLIGHT_FAILED] = true },
};

struct flight {
	struct image_store *store;
	char name[FLIGHT_NAME_SIZE]; /* the digest, with "-N" where another one has that */
	char digest[DIGEST_SIZE];
	char from[FETCH_HOST_MAX + 1];
	enum flight_state state;
	struct list wants;
	struct flight_want *pilot; /* who brings it; NULL: nobody */
	uint64_t size;             /* as he was told */
	int fd;                    /* partial/HEX, while LOADING or STORING */
	bool held;                 /* the blob */
	bool overtaken;            /* another flight has landed with it */
	struct pool_work work;
	struct error err;
};

static void flight_enter(struct flight *f, enum flight_state state)
{
	struct flight_want *w;

	assert(edges[f->state][state]);
	f->state = state;
	if (state != FLIGHT_LOADING)
		f->pilot = NULL;
	if (state != FLIGHT_LOADING && state != FLIGHT_STORING)
		f->fd = fd_close(f->fd);
	list_for_each (w, &f->wants, struct flight_want, link)
		w->ops->on_change(w);
}

static void flight_free(struct flight *f)
{
	if (f->held)
		blob_release(f->store, f->digest, NULL);
	(void)map_remove(&f->store->flights, f->name);
	(void)fd_close(f->fd);
	free(f);
}

static struct flight *flight_new(struct image_store *s, const char *name, const char *digest,
				 const char *from)
{
	struct flight *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	*f = (struct flight){ .store = s, .fd = -1, .err = ERROR_INIT };
	list_init(&f->wants);
	(void)str_copy(f->name, sizeof(f->name), name);
	if (str_copy(f->digest, sizeof(f->digest), digest) < 0 ||
	    str_copy(f->from, sizeof(f->from), from) < 0 || map_add(&s->flights, f->name, f) < 0) {
		free(f);
		return NULL;
	}
	return f;
}

static bool flight_is_for(const struct flight *f, const char *from)
{
	return f->state == FLIGHT_STORING || f->state == FLIGHT_LANDED || str_eq(f->from, from);
}

int flight_join(struct flight_want *w, struct image_store *s, const char *digest, uint64_t size,
		const char *from, const struct flight_ops *ops)
{
	char name[FLIGHT_NAME_SIZE];
	struct flight *f;
	unsigned n = 0;

	(void)str_copy(name, sizeof(name), digest);
	for (;;) {
		f = map_get(&s->flights, name);
		if (!f || flight_is_for(f, from))
			break;
		(void)str_printf(name, sizeof(name), "%s-%u", digest, ++n);
	}
	if (!f)
		f = flight_new(s, name, digest, from);
	if (!f)
		return -ENOMEM;
	*w = (struct flight_want){ .flight = f, .ops = ops, .size = size };
	list_init(&w->link);
	list_add_tail(&f->wants, &w->link);
	return 0;
}

static const char *flight_file_name(const struct flight *f)
{
	return f->name + strlen("sha256:");
}

/* A file in which nothing came is worth nothing, nor is one that nobody would look for. */
static void flight_tidy(const struct flight *f)
{
	struct stat st;

	if (!str_eq(f->name, f->digest) || (fstat(f->fd, &st) == 0 && st.st_size == 0))
		(void)sysio_unlinkat(f->store->partial_fd, flight_file_name(f), 0);
}

void flight_leave(struct flight_want *w)
{
	struct flight *f = w->flight;

	if (!f)
		return;
	w->flight = NULL;
	list_remove(&w->link);
	if (f->state == FLIGHT_LOADING && f->pilot == w) {
		flight_tidy(f);
		flight_enter(f, FLIGHT_IDLE);
	}
	if (list_empty(&f->wants) && f->state != FLIGHT_STORING)
		flight_free(f);
}

enum flight_state flight_state(const struct flight_want *w)
{
	return w->flight->state;
}

const struct error *flight_error(const struct flight_want *w)
{
	return &w->flight->err;
}

static int flight_open_file(const struct flight *f, struct error *err)
{
	int fd = sysio_openat(f->store->partial_fd, flight_file_name(f),
			      O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	return fd < 0 ? error_set(err, -errno, "open a file for blob %s", f->digest) : fd;
}

/* The file, locked. The lock is the helper's too, which has the same descriptor: one that has
 * outlived its daemon for a moment may write still, but no more into what is ours. */
static int flight_lock_file(const struct flight *f, struct error *err)
{
	_cleanup_fd_ int fd = flight_open_file(f, err);

	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return TAKE_FD(fd);
	if (errno == EWOULDBLOCK &&
	    sysio_unlinkat(f->store->partial_fd, flight_file_name(f), 0) == 0) {
		fd = fd_close(fd);
		fd = flight_open_file(f, err);
		if (fd < 0)
			return fd;
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return TAKE_FD(fd);
	}
	return error_set(err, -errno, "lock the file of blob %s", f->digest);
}

int flight_take(struct flight_want *w, int *ret_fd, uint64_t *ret_from, struct error *err)
{
	struct flight *f = w->flight;
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r;

	assert(f->state == FLIGHT_IDLE);
	r = FAILPOINT("pull.partial");
	if (r < 0)
		return error_set(err, r, "open a file for blob %s", f->digest);
	fd = flight_lock_file(f, err);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at the file of blob %s", f->digest);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EPROTO, "partial/%s is no file", flight_file_name(f));
	if ((uint64_t)st.st_size > w->size) {
		if (sysio_ftruncate(fd, 0) < 0)
			return error_set(err, -errno, "cut the file of blob %s", f->digest);
		st.st_size = 0;
	}
	f->fd = TAKE_FD(fd);
	f->size = w->size;
	f->pilot = w;
	flight_enter(f, FLIGHT_LOADING);
	*ret_fd = f->fd;
	*ret_from = (uint64_t)st.st_size;
	FAILPOINT_AFTER("pull.partial");
	return 0;
}

void flight_progress(struct flight_want *w, uint64_t n_bytes)
{
	const struct flight *f = w->flight;
	struct flight_want *other;

	assert(f->pilot == w);
	list_for_each (other, &f->wants, struct flight_want, link) {
		if (other != w)
			other->ops->on_progress(other, n_bytes);
	}
}

int flight_file(const struct flight_want *w)
{
	assert(w->flight->pilot == w);
	return w->flight->fd;
}

int flight_restart(struct flight_want *w, struct error *err)
{
	const struct flight *f = w->flight;

	assert(f->pilot == w);
	return sysio_ftruncate(f->fd, 0) < 0
		       ? error_set(err, -errno, "cut the file of blob %s", f->digest)
		       : 0;
}

static void flight_store_run(struct pool_work *work)
{
	struct flight *f = container_of(work, struct flight, work);
	const char *hex = digest_hex(f->digest), *name = flight_file_name(f);
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

static void flight_stored(struct pool_work *work)
{
	struct flight *f = container_of(work, struct flight, work);

	flight_enter(f, f->err.code ? FLIGHT_FAILED : FLIGHT_LANDED);
	if (list_empty(&f->wants))
		flight_free(f);
}

int flight_whole(struct flight_want *w, struct error *err)
{
	struct flight *f = w->flight;
	struct stat st;

	assert(f->pilot == w);
	if (fstat(f->fd, &st) < 0)
		return error_set(err, -errno, "look at the file of blob %s", f->digest);
	if ((uint64_t)st.st_size != f->size)
		return error_set(err, -EPROTO, "nacre-transfer: blob %s is not what it said",
				 f->digest);
	/* What lies there may be synced already, and what would replace it is not. */
	f->overtaken = storing_has(f->store, f->digest, f->size);
	/* Before it lies there, so that nobody takes it for one without an owner. */
	if (blob_hold(f->store, f->digest) < 0)
		return error_set(err, -ENOMEM, "store blob %s", f->digest);
	f->held = true;
	flight_enter(f, FLIGHT_STORING);
	f->work = (struct pool_work){ .run = flight_store_run, .done = flight_stored };
	pool_submit(f->store->config.pool, &f->work);
	return 0;
}

int flight_open(const struct flight_want *w, struct error *err)
{
	const struct flight *f = w->flight;
	int fd = sysio_openat(f->store->partial_fd, flight_file_name(f),
			      O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd < 0 && errno == ENOENT)
		return -EAGAIN;
	return fd < 0 ? error_set(err, -errno, "open the file of blob %s", f->digest) : fd;
}

int flight_pipe(int *ret_read_fd, int *ret_write_fd, struct error *err)
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

uint64_t flight_kept(const struct image_store *s, const char *digest)
{
	struct stat st;

	if (fstatat(s->partial_fd, digest_hex(digest), &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return 0;
	return (uint64_t)st.st_size;
}

void flight_free_all(struct image_store *s)
{
	size_t pos = 0;

	for (;;) {
		struct flight *f = map_next(&s->flights, &pos);

		if (!f)
			break;
		flight_free(f);
	}
	map_done(&s->flights);
}
