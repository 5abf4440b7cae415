/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_HUSH_H
#define NACRE_IMAGE_HUSH_H

struct error;
struct image_store;

/*
 * A network namespace with nothing in it, which the helpers that unpack are in together. To make
 * and to end one costs more than to unpack a small layer. What is unpacked has no way into it: the
 * helpers can make no socket (fetch/sandbox.c), and everything else they have is each one's own.
 */

/* The store's, made where there is none; still the store's afterwards. */
int hush_open(struct image_store *s, struct error *err);
/* Who is in it stays. */
void hush_close(struct image_store *s);

#endif
