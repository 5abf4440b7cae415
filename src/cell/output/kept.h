/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_KEPT_H
#define NACRE_CELL_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "cell/spec.h"
#include "loop/loop.h"

/*
 * The reader of a log that a container's pump keeps: told of the lines once, in order, up to as
 * many as are kept; they stay until it has taken them. There is one, the last. A value in its
 * container.
 */

struct keeper_log;
struct pump;

struct kept {
	struct pump *pump;
	struct keeper_log *reader; /* NULL: nobody */
	struct loop_defer turn;
};

void kept_init(struct kept *k, struct loop *l, struct pump *pump);
/* Tells the reader the end (err NULL), or the error that ends it. */
void kept_end(struct kept *k, const struct error *err);
/* The container is removed: the reader is told so. Or it is freed, and the reader is not told. */
void kept_done(struct kept *k);
void kept_drop(struct kept *k);

/* keeper_log_open(), for the container that this is in. over: nothing is kept any more. */
int kept_open(struct kept *k, uint64_t from, bool over, const struct keeper_log_ops *ops,
	      void *userdata, struct keeper_log **ret, struct error *err);

/* Forgets the lines before that place. ERROR_INVALID where no line that was told ends there. */
int kept_take(struct keeper_log *g, uint64_t at, struct error *err);
/* While paused nothing is told. */
void kept_pause(struct keeper_log *g, bool paused);
/* Lines that were not taken stay. No callback comes any more. */
void kept_close(struct keeper_log *g);

#endif
