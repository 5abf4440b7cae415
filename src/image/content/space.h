/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_SPACE_H
#define NACRE_IMAGE_SPACE_H

struct image_store;

/* At the store's end, behind that of the pool; nobody is told. */
void space_free_all(struct image_store *s);

#endif
