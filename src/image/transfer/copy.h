/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_COPY_H
#define NACRE_IMAGE_COPY_H

struct image_store;

/* Copies (image/registry.h), for the store alone: kills those that run without a word. */
void copy_free_all(struct image_store *s);

#endif
