/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_TARSCAN_H
#define NACRE_FETCH_TARSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * Follows the headers of a tar while libarchive reads it, for two things that libarchive does not
 * tell: how much padding the archive lacks behind the data of its last member, and the sparse maps
 * as they are written (GNU and PAX 0.0, 0.1, 1.0). It judges nothing else: at a header that it
 * cannot follow it stops, and libarchive decides alone.
 *
 * A value; no allocation, no descriptor. The bytes are handed to it in order, in any pieces.
 */

#define TARSCAN_BLOCK 512
#define TARSCAN_SPARSE_MAX 65536 /* pieces of one sparse map */
#define TARSCAN_KEY_MAX 32

enum tarscan_state {
	TARSCAN_HEADER,
	TARSCAN_EXTENSION, /* blocks of a GNU sparse map behind its header */
	TARSCAN_RECORDS,   /* the body of a PAX header */
	TARSCAN_MAP,       /* a PAX 1.0 sparse map, which begins the data */
	TARSCAN_DATA,
	TARSCAN_PADDING,
	TARSCAN_OFF, /* the end mark was seen, or what cannot be followed */
	TARSCAN_STATE_COUNT
};

/* Pieces of the current sparse map, as far as they are read. */
struct tarscan_map {
	uint64_t n;
	uint64_t begin, end; /* of the piece before */
	uint64_t offset;
	bool has_offset; /* the length of this piece follows */
};

/* A decimal number of which some digits are read. */
struct tarscan_number {
	uint64_t value;
	bool any, bad;
};

/* The record of a PAX header that is being read. */
struct tarscan_record {
	struct tarscan_number length; /* bytes that are left of it, once known */
	uint64_t n_read;
	char key[TARSCAN_KEY_MAX];
	size_t key_len;
	bool in_key, in_value;
	struct tarscan_number value;
};

struct tarscan {
	enum tarscan_state state;
	uint8_t block[TARSCAN_BLOCK];
	size_t n_block;
	char name[101];     /* of the member, as its header has it */
	uint64_t n_body;    /* bytes of it to come */
	unsigned n_padding; /* bytes to come behind it */
	bool is_member;     /* the body belongs to a member, not to a header of one */
	uint64_t size;      /* by the PAX header of the member, where has_size */
	bool has_size;
	bool map_in_data; /* PAX 1.0 */
	uint64_t n_map;   /* pieces that such a map announces */
	bool has_n_map;
	struct tarscan_map map;
	struct tarscan_record record;
	struct tarscan_number number;
};

#define TARSCAN_INIT                                                                               \
	{                                                                                          \
		.state = TARSCAN_HEADER                                                            \
	}

/* ERROR_INVALID for a sparse map whose pieces overlap or are not sorted, ERROR_EXHAUSTED for one of
 * more than TARSCAN_SPARSE_MAX pieces. */
int tarscan_feed(struct tarscan *t, const void *data, size_t len, struct error *err);
/* At the end of the archive: bytes of padding that it lacks behind a member whose data is whole;
 * else 0. */
size_t tarscan_n_missing(const struct tarscan *t);

#endif
