/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_TAGS_H
#define NACRE_IMAGE_TAGS_H

struct image_store;

/* Lists of tags (image/registry.h), for the store alone: kills those that run without a word. */
void tags_free_all(struct image_store *s);

#endif
