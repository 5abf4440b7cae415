/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_IMPORT_H
#define NACRE_IMAGE_IMPORT_H

struct image_store;
struct inventory;

/* Frees all imports of the store, at its end, without a word to anybody. */
void import_free_all(struct image_store *s);
/* Names the staging directories of the imports that run. */
void import_inventory(const struct image_store *s, struct inventory *t);

#endif
