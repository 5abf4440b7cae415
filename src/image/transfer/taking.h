/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_TAKING_H
#define NACRE_IMAGE_TAKING_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/text/id.h"
#include "image/content/model.h"
#include "image/content/recording.h"
#include "image/image.h"
#include "image/transfer/incoming.h"
#include "image/transfer/layering.h"

/*
 * The common part of an import and a pull: images that come into the store through a directory of
 * their own in staging, are stored and recorded, and end by letting go of all that no record holds.
 * A value, part of its owner, which decides what comes when.
 */

struct taking;
struct tally;

struct taking_ops {
	const char *was;   /* "imported", "pulled" */
	const char *clean; /* failpoint around the beginning of the end */
	/* On the loop thread. taking_failed() says whether to go on. */
	void (*stored)(struct taking *t);
	void (*recorded)(struct taking *t);
	/* Last and once: the first image, or NULL and t->err. Where it was cancelled, NULL. The
	 * owner frees itself. */
	void (*ended)(struct taking *t, struct image *image);
};

struct taking {
	const struct taking_ops *ops;
	struct list link; /* of all imports, or pulls */
	struct image_store *store;
	char id[ID_SIZE]; /* of its directory in staging */
	int dir_fd;
	bool cancelled;
	struct error err; /* the first */
	struct incoming incoming;
	struct layering layering;
	struct recording recording;
	struct pool_work work;
	struct trash_watch watch;
};

/* With its directory. Where this fails, and where the owner gives up before it has begun anything,
 * taking_drop() and taking_done() are due. */
int taking_begin(struct taking *t, struct image_store *s, const struct taking_ops *ops,
		 struct error *err);
void taking_drop(struct taking *t);
void taking_done(struct taking *t);

/* Keeps the first error; err may be NULL. */
void taking_fail(struct taking *t, const struct error *err);
bool taking_failed(const struct taking *t);

/* The pool moves what is incoming to its place; stored() follows. */
int taking_store(struct taking *t, struct error *err);
/* The database writes; recorded() follows, with its error kept. See struct recording. */
int taking_record(struct taking *t, const char *name, const char *source, const char *origin,
		  const struct image_verdict *verdict);
/* Lets go of everything: what the records hold by now stays, all else goes. ended() follows, maybe
 * from within. */
void taking_undo(struct taking *t);

void taking_tally(const struct list *all, struct tally *t);

#endif
