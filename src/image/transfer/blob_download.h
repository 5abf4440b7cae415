/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_BLOB_DOWNLOAD_H
#define NACRE_IMAGE_BLOB_DOWNLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/list.h"

/*
 * A blob on its way from a registry into the store: one object by digest, for all who want it from
 * that registry. One of them brings it, into partial/HEX of the root directory; the others wait and
 * are told how far it is. Where the one leaves before it is whole, another may take over, and goes
 * on behind what is there. The file survives a restart of the daemon, and a download of later goes
 * on with it.
 *
 * A request for it from another registry has a download of its own, in partial/HEX-N, which goes
 * with its download: a digest is no secret, and a registry that sends it a byte at a time must not
 * delay requests to other registries.
 */

struct blob_download;
struct blob_download_want;
struct image_store;

enum blob_download_state {
	BLOB_DOWNLOAD_IDLE,       /* nobody brings it: blob_download_take() may be called */
	BLOB_DOWNLOAD_LOADING,    /* somebody has taken it, and writes into the file */
	BLOB_DOWNLOAD_COMMITTING, /* whole: the pool moves it to its place */
	BLOB_DOWNLOAD_LANDED,     /* among the blobs, where the download holds it; not synced */
	BLOB_DOWNLOAD_FAILED,     /* it could not be moved: blob_download_error() */
	BLOB_DOWNLOAD_STATE_COUNT
};

struct blob_download_ops {
	/* Bytes that are there; not for who brings it himself. */
	void (*on_progress)(struct blob_download_want *w, uint64_t n_bytes);
	/* Another state: idle, landed or failed. Must only take a note of it. */
	void (*on_change)(struct blob_download_want *w);
};

/* Somebody's wish for a blob. A value; zeroed: none. */
struct blob_download_want {
	struct list link;
	struct blob_download *blob_download;
	const struct blob_download_ops *ops;
	uint64_t size; /* of the blob, as the waiter was told */
};

/* Joins the download of this digest, or makes one. `from`: the registry that is asked; one that
 * joins when it is whole need not ask. -ENOMEM. */
int blob_download_join(struct blob_download_want *w, struct image_store *s, const char *digest,
		       uint64_t size, const char *from, const struct blob_download_ops *ops);
/* Lets go: the one that loads it leaves its bytes to the others, or to the next one. The last takes
 * the download along, and its hold of the blob. Does nothing for one that wants nothing. */
void blob_download_leave(struct blob_download_want *w);

enum blob_download_state blob_download_state(const struct blob_download_want *w);
const struct error *blob_download_error(const struct blob_download_want *w);

/* Of an idle one: from here on w brings it. The file, open for reading and writing, stays the
 * download's; ret_from: bytes that it has already. */
int blob_download_take(struct blob_download_want *w, int *ret_fd, uint64_t *ret_from,
		       struct error *err);
/* The following are for the one that has taken it. */
void blob_download_progress(struct blob_download_want *w, uint64_t n_bytes);
int blob_download_file(const struct blob_download_want *w);
/* Discards the bytes that were loaded. */
int blob_download_restart(struct blob_download_want *w, struct error *err);
/* The file has the size and the digest. */
int blob_download_whole(struct blob_download_want *w, struct error *err);
/* Opens the file for reading while it is loaded; -EAGAIN where it is on its way to its place. */
int blob_download_open(const struct blob_download_want *w, struct error *err);

/* A pipe that tells an unpacker how far a file is. Writing never waits: an unpacker that is slow,
 * or never begins, holds up nobody, since each number says what all before it said. */
int blob_download_pipe(int *ret_read_fd, int *ret_write_fd, struct error *err);
/* Bytes of the file of a digest that nobody has begun to load again; 0 where there is none. */
uint64_t blob_download_kept(const struct image_store *s, const char *digest);
/* At the end of the store, when nobody wants any more, and behind the pool. */
void blob_download_free_all(struct image_store *s);

#endif
