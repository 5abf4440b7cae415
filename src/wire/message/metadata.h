/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_METADATA_H
#define NACRE_WIRE_METADATA_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * How a machine in a cloud learns from there who it is: user-data that this node has written, read
 * over HTTP from the metadata service. No descriptors.
 *
 * The user-data are a first line METADATA_MARK, and the frame BOOT (wire/message/bootmsg.h) in
 * base64 behind it.
 */

#define METADATA_MARK "#nacre-boot"
#define METADATA_HEAD_MAX 8192 /* of an answer, in front of its body */
#define METADATA_BODY_MAX 16384
#define METADATA_USER_DATA_MAX 16384 /* as EC2 takes it, before its base64 */

struct metadata_answer {
	unsigned status;
	size_t body, len; /* where it is, and how long */
};

/*
 * The answer of a service that closes the connection behind it: 1, 0 while it is not there whole,
 * or -EBADMSG. Only a body of a told length is taken.
 */
int metadata_answer(struct metadata_answer *ret, const uint8_t *data, size_t len);

/* The user-data that have this frame, in base64 once more, as EC2's API takes them; -EMSGSIZE where
 * that is too much, or -ENOMEM. */
int metadata_user_data(const uint8_t *frame, size_t len, struct buf *ret);
/* The frame in user-data: appended to ret. -EBADMSG: they are not this node's, or damaged; -ENOMEM.
 */
int metadata_frame(const uint8_t *data, size_t len, struct buf *ret);

#endif
