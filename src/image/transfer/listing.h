/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_LISTING_H
#define NACRE_IMAGE_LISTING_H

struct image_store;

/* Lists that registries are asked for (image/registry.h), for the store alone: kills those that run
 * without a word. */
void listings_free_all(struct image_store *s);

#endif
