/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_ROOM_H
#define NACRE_IMAGE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"

struct image_store;

/*
 * Whether `need` bytes can be written and the reserve (struct image_store_config) is still free
 * then. Partial downloads that nobody holds make room where that is enough. ret_free: bytes that
 * are free now, the reserve among them.
 */
int room_find(struct image_store *s, uint64_t need, bool *ret_enough, uint64_t *ret_free,
	      struct error *err);
/* Refuses where there is not; ERROR_EXHAUSTED names the sizes. A reserve of 0 asks for nothing: the
 * disk may be filled to its end. */
int room_check(struct image_store *s, uint64_t need, struct error *err);

/* How much is to stay free, as of now. */
uint64_t room_reserve(const struct image_store *s);

#endif
