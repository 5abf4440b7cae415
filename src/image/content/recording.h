/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_RECORDING_H
#define NACRE_IMAGE_RECORDING_H

#include <stdbool.h>

#include "base/log/error.h"

/*
 * The last step of an import: its images go into the database, and from there into the list. Each
 * image is recorded whole or not at all; one that the store has already only gets the new names. A
 * value.
 */

struct image_store;
struct image_verdict;
struct incoming;

struct recording {
	struct image_store *store;
	const struct incoming *incoming;     /* every layer of which is held by the import */
	const char *name;                    /* full, in place of the archive's names; "": those */
	const char *source;                  /* where the images came from (image.h) */
	const char *origin;                  /* one of image.h's; "": none */
	const struct image_verdict *verdict; /* of the policy; NULL: it was not asked */
	bool cancelled; /* set at any time: images that come into the list are unwanted */
	void (*unwanted)(struct recording *r, const char *id);
	void (*done)(struct recording *r);
	struct error err; /* the first that went wrong */
	unsigned n_pending;
};

/* Whether anything was begun: then done() follows, else err says why not. */
bool recording_start(struct recording *r);

/* Somebody says now to which image a name belongs, or that it belongs to none: what is being
 * recorded does not take it. */
void recording_overtake(struct image_store *s, const char *name);

/* Whether an image of this id is being recorded as a new one. */
bool recording_is_under_way(const struct image_store *s, const char *id);

#endif
