/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_WALK_H
#define NACRE_RPC_WALK_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * Looks at the bytes of a message before protobuf-c decodes them, since protobuf-c 1.4 recurses as
 * deep as it is told to, cuts strings at NUL and takes any bytes for UTF-8 (architecture 9.9).
 *
 * Refused: what is cut short; varints of more than 64 bits; groups; a known field in another wire
 * type than its own; strings that are not UTF-8 or contain NUL; a singular message that occurs
 * twice (protobuf-c merges the two, again and again, at a cost that grows with the square); nesting
 * deeper than WALK_DEPTH_MAX; more than WALK_FIELDS_MAX fields and elements in all. Unknown fields
 * are fine.
 */

#define WALK_DEPTH_MAX 64
#define WALK_FIELDS_MAX 1000000U

/* 0; or ERROR_INVALID that names the field ("containers.image: ..."), ERROR_EXHAUSTED for too many.
 */
int walk_check(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len,
	       struct error *err);

/* Checks and decodes; NULL with err set. allocator may be NULL. */
ProtobufCMessage *walk_decode(const ProtobufCMessageDescriptor *type, const uint8_t *data,
			      size_t len, ProtobufCAllocator *allocator, struct error *err);

#endif
