/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_IMAGE_JOB_H
#define NACRE_IMAGE_IMAGE_JOB_H

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

struct image_job;
struct inventory;

struct image_job_ops {
	const char *was;   /* "imported", "pulled" */
	const char *clean; /* failpoint around the beginning of the end */
	/* On the loop thread. image_job_failed() says whether to go on. */
	void (*stored)(struct image_job *t);
	void (*recorded)(struct image_job *t);
	/* Last and once: the first image, or NULL and t->err. Where it was cancelled, NULL. The
	 * owner frees itself. */
	void (*ended)(struct image_job *t, struct image *image);
};

struct image_job {
	const struct image_job_ops *ops;
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
 * image_job_drop() and image_job_done() are due. */
int image_job_begin(struct image_job *t, struct image_store *s, const struct image_job_ops *ops,
		    struct error *err);
void image_job_drop(struct image_job *t);
void image_job_done(struct image_job *t);

/* Keeps the first error; err may be NULL. */
void image_job_fail(struct image_job *t, const struct error *err);
bool image_job_failed(const struct image_job *t);

/* The pool moves what is incoming to its place; stored() follows. */
int image_job_store(struct image_job *t, struct error *err);
/* The database writes; recorded() follows, with its error kept. See struct recording. */
int image_job_record(struct image_job *t, const char *name, const char *source, const char *origin,
		     const struct image_verdict *verdict);
/* Lets go of everything: what the records hold by now stays, all else goes. ended() follows, maybe
 * from within. */
void image_job_undo(struct image_job *t);

void image_job_inventory(const struct list *all, struct inventory *inventory);

#endif
