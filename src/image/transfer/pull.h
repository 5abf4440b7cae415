/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_PULL_H
#define NACRE_IMAGE_PULL_H

struct image_store;
struct tally;

/* As import_free_all(). */
void pull_free_all(struct image_store *s);
/* Names the staging directories of the pulls that run. */
void pull_tally(const struct image_store *s, struct tally *t);

#endif
