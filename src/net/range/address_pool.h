/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_ADDRESS_POOL_H
#define NACRE_NET_ADDRESS_POOL_H

#include <stddef.h>

#include "base/log/error.h"
#include "net/range/prefix.h"

/*
 * The addresses of a network, each to be had by one. It hands out the next free one behind the one
 * that it handed out last, so that an address is not reused at once: connection tracking, for one,
 * has time to forget it. The pool remembers nothing across a restart: a daemon that starts again
 * takes those by name that are in use.
 */
struct address_pool;

/* Of a network with more addresses only so many are used, the lowest. */
#define ADDRESS_POOL_MAX 65536

/* The network of `network`. Its own address, and the last one of IPv4, are nobody's, unless there
 * are no others (/31, /32, /127, /128). -EINVAL for no prefix, or -ENOMEM. */
int address_pool_new(struct address_pool **ret, const struct prefix *network) _must_check_;
struct address_pool *address_pool_free(struct address_pool *p);
static inline void address_pool_freep(struct address_pool **p)
{
	*p = address_pool_free(*p);
}

/* How many there are in all, and how many of these are taken. */
size_t address_pool_size(const struct address_pool *p);
size_t address_pool_taken(const struct address_pool *p);

/* The next free one, with the length of the network. ERROR_EXHAUSTED where there is none. */
int address_pool_get(struct address_pool *p, struct prefix *ret, struct error *err) _must_check_;
/* That one, whatever length it says. ERROR_INVALID: it is not of this pool; ERROR_EXISTS: it is
 * taken. */
int address_pool_take(struct address_pool *p, const struct prefix *address,
		      struct error *err) _must_check_;
/* Back again. ERROR_INVALID: it is not of this pool; ERROR_NOT_FOUND: nobody has it. */
int address_pool_put(struct address_pool *p, const struct prefix *address, struct error *err);

#endif
