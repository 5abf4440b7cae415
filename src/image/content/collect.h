/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_COLLECT_H
#define NACRE_IMAGE_COLLECT_H

#include <stdbool.h>
#include <stdint.h>

#include "image/content/model.h"
#include "image/content/survey.h"

/*
 * The garbage collector. The parts of an image go with their last hold (model.h), at once; so there
 * is little to collect: files that could not be deleted for lack of memory, files that a person or
 * a crash of the machine left, and partial downloads that were abandoned. The start looks
 * (store.c), then this does each hour; `prune` does too.
 */

#define COLLECT_INTERVAL (3600 * NSEC_PER_SEC)

/* Looks from now on. */
void collect_begin(struct image_store *s);
void collect_done(struct image_store *s);

/* Takes the entry away where it is garbage (survey.h); `watch` may be NULL, as in trash_add().
 * Whether it was. */
bool collect_entry(const struct survey *s, const struct survey_entry *e, int64_t partial_seconds,
		   struct trash_watch *watch);

#endif
