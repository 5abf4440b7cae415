/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_RESIZE_H
#define NACRE_STREAM_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sizes of a terminal as a client sends them, one JSON object behind the other:
 * {"Width":80,"Height":24}. A codec.
 */

struct resize {
	char text[128]; /* of the object that is under way */
	size_t len;
};

/* Reads on from *used, which it moves: true with a size; false at the end of the data. What is no
 * such object, or is longer, is passed over. */
bool resize_take(struct resize *r, const uint8_t *data, size_t len, size_t *used, uint16_t *width,
		 uint16_t *height);

#endif
