/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_PUSH_H
#define NACRE_IMAGE_PUSH_H

struct image_store;

/* Pushes (image/registry.h), for the store alone: kills those that run without a word. Before the
 * leases end. */
void push_free_all(struct image_store *s);

#endif
