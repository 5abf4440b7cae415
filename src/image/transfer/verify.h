/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_VERIFY_H
#define NACRE_IMAGE_VERIFY_H

struct image_store;

/* Verdicts that are being asked for (image/registry.h): kills them without a word. */
void verifies_free_all(struct image_store *s);

#endif
