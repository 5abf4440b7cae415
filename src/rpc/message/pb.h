/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_PB_H
#define NACRE_RPC_PB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/memory/buf.h"

/*
 * The wire form of protobuf, field by field, without descriptors: for the wire walker, and for the
 * few messages that rpc itself speaks (health, reflection).
 */

enum pb_wire {
	PB_VARINT = 0,
	PB_FIXED64 = 1,
	PB_BYTES = 2,
	PB_GROUP_START = 3,
	PB_GROUP_END = 4,
	PB_FIXED32 = 5,
};

#define PB_NUMBER_MAX 536870911U /* field numbers have 29 bits */

struct pb_reader {
	const uint8_t *at;
	const uint8_t *end;
};

struct pb_field {
	uint32_t number;
	enum pb_wire wire;
	uint64_t value;      /* PB_VARINT, PB_FIXED32, PB_FIXED64 */
	const uint8_t *data; /* PB_BYTES */
	size_t len;
};

static inline struct pb_reader pb_reader(const void *data, size_t len)
{
	const uint8_t *p = data;

	return (struct pb_reader){ .at = p, .end = p ? p + len : p };
}

/* 0, or -EBADMSG: cut short, or of more than 64 bits. */
int pb_read_varint(struct pb_reader *r, uint64_t *ret);
/* 1 with a field, 0 at the end, -EBADMSG where the bytes are none (also groups, which nobody uses).
 */
int pb_next(struct pb_reader *r, struct pb_field *ret);
/* The first PB_BYTES field of that number: 1, 0 where there is none, or -EBADMSG. */
int pb_find(const void *data, size_t len, uint32_t number, struct pb_field *ret);
bool pb_is(const struct pb_field *f, const char *text);

int pb_put_varint(struct buf *b, uint32_t number, uint64_t value) _must_check_;
int pb_put_bytes(struct buf *b, uint32_t number, const void *data, size_t len) _must_check_;
int pb_put_str(struct buf *b, uint32_t number, const char *s) _must_check_;

#endif
