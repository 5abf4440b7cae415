/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_FRAME_H
#define NACRE_RPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time/clock.h"

/*
 * The texts and prefixes of "gRPC over HTTP/2": pure functions.
 */

/* A message on the wire, either way. */
#define RPC_MESSAGE_MAX (16U * 1024 * 1024)
/* Metadata that names the instance below ours that a call is for: "b/c". Each hop takes its own
 * name off the front. */
#define RPC_TARGET_HEADER "nacre-target"

/* One byte that says whether the message is compressed, then its length, big-endian. */
#define FRAME_PREFIX 5

void frame_prefix_write(uint8_t to[FRAME_PREFIX], size_t len, bool compressed);
bool frame_prefix_read(const uint8_t from[FRAME_PREFIX], size_t *ret_len, bool *ret_compressed);

/* "application/grpc", also with "+proto" and parameters; no other message format. */
bool frame_content_type(const char *value);

/* The names of compressions: "identity" and "gzip". */
#define FRAME_ENCODINGS "identity,gzip"
#define FRAME_GZIP "gzip"
#define FRAME_IDENTITY "identity"
/* A list like FRAME_ENCODINGS, with or without spaces, names this one. */
bool frame_list_has(const char *list, const char *name);

/* "100m" and so on: at most eight digits and a unit (H M S m u n). 0 or -EINVAL; what is too long
 * for nsec_t is NSEC_NEVER. */
int frame_timeout_parse(const char *value, nsec_t *ret);
#define FRAME_TIMEOUT_SIZE 16
/* The shortest form that is not shorter than the timeout. */
void frame_timeout_format(char to[FRAME_TIMEOUT_SIZE], nsec_t timeout);

/* The percent form of grpc-message: printable ASCII without '%' stands for itself. Cut to fit. */
void frame_message_encode(char *to, size_t size, const char *message);
/* The opposite; bad escapes stand for themselves. */
void frame_message_decode(char *to, size_t size, const char *value);

#endif
