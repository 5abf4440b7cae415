/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_KEYED_H
#define NACRE_WIRE_KEYED_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/buf.h"

/*
 * Packets that are a list of words "KEY=VALUE" with a NUL behind each, as daemon and helpers tell
 * them each other (cnimsg.h, cloudmsg.h). Only the keys of a table are taken; a value has no
 * control characters and is valid UTF-8, in both directions.
 */

struct keyed_keys {
	const char *const *keys;
	size_t n_keys;
	size_t size_max, words_max; /* bytes and words of a packet */
};

struct keyed {
	const char *words; /* in the packet */
	size_t len;
};

/* Appends a word; -EINVAL: no such key, or a value that none can be. Or -ENOMEM. */
int keyed_put(const struct keyed_keys *k, struct buf *b, const char *key, const char *fmt,
	      va_list args) _printf_(4, 0) _must_check_;
/* -EBADMSG: that is none. The packet stays where it is meanwhile. */
int keyed_read(const struct keyed_keys *k, struct keyed *ret, const void *data, size_t len);
/* The value; "" where there is none. */
const char *keyed_get(const struct keyed *m, const char *key);
/* The next value of a key behind *at, which begins with NULL. NULL: no more. */
const char *keyed_next(const struct keyed *m, const char *key, const char **at);

#endif
