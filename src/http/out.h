/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_HTTP_OUT_H
#define NACRE_HTTP_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/memory/buf.h"

/*
 * The bytes for one call of sendmsg(): bytes of its own (heads of frames, and parts so short that a
 * copy costs less than another entry) and, between them, bytes that are lent, which lie in memory
 * of another owner until the socket has them. A value for the time of one write.
 */

/* Parts of one write. */
#define HTTP_OUT_PARTS 24
/* Shorter runs of bytes are copied. */
#define HTTP_OUT_LEND_MIN 4096U

struct http_out {
	struct buf own;
	struct {
		const uint8_t *lent; /* NULL: the next of our own */
		size_t len;
	} parts[HTTP_OUT_PARTS];
	size_t n_parts;
	size_t len; /* of all parts */
};

#define HTTP_OUT_INIT                                                                              \
	{                                                                                          \
		.own = BUF_INIT, .n_parts = 0                                                      \
	}

void http_out_done(struct http_out *o);
/* Copies. 0 or -ENOMEM. */
int http_out_add(struct http_out *o, const void *data, size_t len) _must_check_;
/* Takes the bytes where they lie; copies them where that is cheaper. 0 or -ENOMEM. */
int http_out_lend(struct http_out *o, const uint8_t *data, size_t len) _must_check_;
/* Copies all that is lent: its memory is about to go. 0 or -ENOMEM. */
int http_out_own(struct http_out *o) _must_check_;
/* How many entries of `to` stand for all parts. */
size_t http_out_iov(const struct http_out *o, struct iovec to[HTTP_OUT_PARTS]);
/* Appends to `rest` what lies behind the first n bytes. 0 or -ENOMEM. */
int http_out_rest(const struct http_out *o, size_t n, struct buf *rest) _must_check_;

#endif
