/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_GZIP_H
#define NACRE_RPC_GZIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory/buf.h"

/*
 * The one compression of messages beside none: gzip, whole messages at a time, over zlib. Nothing
 * is held between two messages.
 *
 * Both run in the loop, which serves nothing else meanwhile. The bounds for one message, as
 * measured on a core of an ordinary server: GZIP_MAX makes at most 40 ms of deflate (noise; text
 * takes a third), and RPC_MESSAGE_MAX at most 70 ms of inflate, for a client that sends 16 MiB that
 * are nearly noise. A peer that does so again and again gets one message after the other served in
 * a turn of the loop, no more than have come within its stream's window.
 */

/* A message shorter than this is sent as it is: its head alone would cost more than is won. */
#define GZIP_WORTH 256
/* So is a longer one: to compress an answer is a favour, not a duty, and nobody else shall wait for
 * it. */
#define GZIP_MAX (2U * 1024 * 1024)

/* Appends what data stands for. 0; -EBADMSG where it is not one whole gzip member and nothing else;
 * -EMSGSIZE for more than `max` bytes, found out before they are all made; -ENOMEM. */
int gzip_inflate(struct buf *out, const uint8_t *data, size_t len, size_t max) _must_check_;

/* Appends the compressed form. 0; -ENOBUFS where that is not shorter; -ENOMEM. */
int gzip_deflate(struct buf *out, const uint8_t *data, size_t len) _must_check_;

#endif
