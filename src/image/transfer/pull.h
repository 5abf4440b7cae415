/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_PULL_H
#define NACRE_IMAGE_PULL_H

struct image_store;
struct inventory;

/* As import_free_all(). */
void pull_free_all(struct image_store *s);
/* Names the staging directories of the pulls that run. */
void pull_inventory(const struct image_store *s, struct inventory *t);

#endif
