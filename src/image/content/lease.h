/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_LEASE_H
#define NACRE_IMAGE_LEASE_H

struct image_store;

/* Lets the leases (image.h) of a store that ends go without it: each is still its owner's to free.
 */
void lease_free_all(struct image_store *s);

#endif
