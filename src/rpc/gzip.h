/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_GZIP_H
#define NACRE_RPC_GZIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * The one compression of messages beside none: gzip, whole messages at a time, over zlib. Nothing
 * is held between two messages.
 */

/* A message shorter than this is sent as it is: its head alone would cost more than is won. */
#define GZIP_WORTH 256

/* Appends what data stands for. 0; -EBADMSG where it is not one whole gzip member and nothing else;
 * -EMSGSIZE for more than `max` bytes, found out before they are all made; -ENOMEM. */
int gzip_inflate(struct buf *out, const uint8_t *data, size_t len, size_t max) _must_check_;

/* Appends the compressed form. 0; -ENOBUFS where that is not shorter; -ENOMEM. */
int gzip_deflate(struct buf *out, const uint8_t *data, size_t len) _must_check_;

#endif
