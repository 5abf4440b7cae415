/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_DOWNLOAD_H
#define NACRE_FETCH_DOWNLOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "fetch/transfer/network.h"

/*
 * Blobs on their way into files that the core handed in, some at once. The bytes in a file are
 * hashed again before more are put behind them; progress is told to the core, and to the reader of
 * the pipe where there is one.
 */

struct downloads {
	struct network *network;
	struct list queue; /* struct download, in the order in which the core asked */
	size_t n_expected; /* distinct digests that were offered to the core */
	size_t n_settled;  /* of these: skipped, or whole */
	size_t n_active;
	struct error err; /* the first that ends the job */
	struct download_offer *offers;
	size_t n_offers, n_offers_max;
	/* Where the file of a whole blob goes in place of being closed; or NULL. */
	void (*on_whole)(void *userdata, const char *digest, int fd);
	void *userdata;
};

/* Room for n_max distinct digests. */
int downloads_init(struct downloads *d, struct network *n, size_t n_max, struct error *err);
void downloads_done(struct downloads *d);
/* The core will be told of this blob, or has been. A digest counts once. */
int downloads_offer(struct downloads *d, const char *digest, uint64_t size, struct error *err);
/* Answers FETCH and SKIP until each offer is settled. */
int downloads_run(struct downloads *d, struct error *err);

/* The same in pieces, for who waits for more than this: what goes on without the network; for how
 * long nothing will, in milliseconds; what the core says, when its socket is readable. d->err is to
 * be looked at after each turn of the client. */
int downloads_step(struct downloads *d, struct error *err);
int downloads_wait(const struct downloads *d);
int downloads_receive(struct downloads *d, struct error *err);

#endif
