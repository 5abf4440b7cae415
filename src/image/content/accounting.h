/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_ACCOUNTING_H
#define NACRE_IMAGE_ACCOUNTING_H

#include <stdbool.h>
#include <stdint.h>

#include "image/content/model.h"
#include "image/content/survey.h"

/* Accounting of the bytes that a survey found: used by one image, by several, or by none. */

/* Notes the bytes of each layer and blob in the model, and clears all marks. */
void accounting_begin(const struct survey *s);
/* Marks all that the image holds, once more. */
void accounting_mark(struct image_store *s, const struct image_record *r);
/* Of what the image holds, the bytes that have one mark, and those that have more. */
void accounting_split(struct image_store *s, const struct image_record *r, uint64_t *ret_own,
		      uint64_t *ret_shared);
/* Of what the image holds, the bytes that nobody else holds than those that were marked. What it
 * has counted it counts no more. */
uint64_t accounting_freed(struct image_store *s, const struct image_record *r);
/* Whether nothing keeps the image but itself. */
bool accounting_is_unused(const struct image *i, bool all);
/* The bytes that are freed with all unused images, all partial downloads that nobody holds, and
 * garbage. */
uint64_t accounting_reclaimable(const struct survey *s);

#endif
