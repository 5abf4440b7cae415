/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_FLIGHT_H
#define NACRE_IMAGE_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/list.h"

/*
 * A blob on its way from a registry into the store: one object by digest, for all who want it from
 * that registry. One of them brings it, into partial/HEX of the root directory; the others wait and
 * are told how far it is. Where the one leaves before it is whole, another may take over, and goes
 * on behind what is there. The file survives a restart of the daemon, and a flight of later goes on
 * with it.
 *
 * A request for it from another registry has a flight of its own, in partial/HEX-N, which goes with
 * its flight: a digest is no secret, and a registry that sends it a byte at a time must not delay
 * requests to other registries.
 */

struct flight;
struct flight_want;
struct image_store;

enum flight_state {
	FLIGHT_IDLE,    /* nobody brings it: flight_take() may be called */
	FLIGHT_LOADING, /* somebody has taken it, and writes into the file */
	FLIGHT_STORING, /* whole: the pool moves it to its place */
	FLIGHT_LANDED,  /* among the blobs, where the flight holds it; not synced */
	FLIGHT_FAILED,  /* it could not be moved: flight_error() */
	FLIGHT_STATE_COUNT
};

struct flight_ops {
	/* Bytes that are there; not for who brings it himself. */
	void (*on_progress)(struct flight_want *w, uint64_t n_bytes);
	/* Another state: idle, landed or failed. Must only take a note of it. */
	void (*on_change)(struct flight_want *w);
};

/* Somebody's wish for a blob. A value; zeroed: none. */
struct flight_want {
	struct list link;
	struct flight *flight;
	const struct flight_ops *ops;
	uint64_t size; /* of the blob, as the waiter was told */
};

/* Joins the flight of this digest, or makes one. `from`: the registry that is asked; one that joins
 * when it is whole need not ask. -ENOMEM. */
int flight_join(struct flight_want *w, struct image_store *s, const char *digest, uint64_t size,
		const char *from, const struct flight_ops *ops);
/* Lets go: the one that loads it leaves its bytes to the others, or to the next one. The last takes
 * the flight along, and its hold of the blob. Does nothing for one that wants nothing. */
void flight_leave(struct flight_want *w);

enum flight_state flight_state(const struct flight_want *w);
const struct error *flight_error(const struct flight_want *w);

/* Of an idle one: from here on w brings it. The file, open for reading and writing, stays the
 * flight's; ret_from: bytes that it has already. */
int flight_take(struct flight_want *w, int *ret_fd, uint64_t *ret_from, struct error *err);
/* The following are for the one that has taken it. */
void flight_progress(struct flight_want *w, uint64_t n_bytes);
int flight_file(const struct flight_want *w);
/* Discards the bytes that were loaded. */
int flight_restart(struct flight_want *w, struct error *err);
/* The file has the size and the digest. */
int flight_whole(struct flight_want *w, struct error *err);
/* Opens the file for reading while it is loaded; -EAGAIN where it is on its way to its place. */
int flight_open(const struct flight_want *w, struct error *err);

/* A pipe that tells an unpacker how far a file is. Writing never waits: an unpacker that is slow,
 * or never begins, holds up nobody, since each number says what all before it said. */
int flight_pipe(int *ret_read_fd, int *ret_write_fd, struct error *err);
/* Bytes of the file of a digest that nobody has begun to load again; 0 where there is none. */
uint64_t flight_kept(const struct image_store *s, const char *digest);
/* At the end of the store, when nobody wants any more, and behind the pool. */
void flight_free_all(struct image_store *s);

#endif
