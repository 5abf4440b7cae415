/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_SHARE_H
#define NACRE_RPC_SHARE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "rpc/server/peer.h"

/*
 * Accounting of the connections, calls, and bytes of requests that the clients of one server hold,
 * with the share of each that a single peer may have. A peer is a user; of the user that the server
 * itself runs as it is a process, since that user's tools are many and must not wait for each
 * other. A remote peer is an id.
 *
 * A peer may take no more than what would still be free for the others. One greedy peer gets half
 * of the whole, two get a third each, and in every case a peer that holds nothing is served.
 */

enum share_kind {
	SHARE_CONNECTIONS,
	SHARE_CALLS,
	SHARE_BYTES, /* of requests */
	SHARE_KIND_COUNT
};

struct share_pool {
	size_t limit[SHARE_KIND_COUNT];
	size_t used[SHARE_KIND_COUNT];
	bool undivided; /* a peer may have all */
	struct list shares;
};

/* The resources that one peer holds. Shared by its connections and calls; freed with the last of
 * them. */
struct share {
	struct list member;
	struct share_pool *pool;
	struct rpc_peer peer;
	unsigned refs;
	size_t used[SHARE_KIND_COUNT];
};

void share_pool_init(struct share_pool *p);
/* The share of the peer, with one reference more. 0 or -ENOMEM. */
int share_new(struct share **ret, struct share_pool *p, const struct rpc_peer *peer);
struct share *share_ref(struct share *s);
/* Drops a reference; with the last one all must have been given back. NULL is fine. */
struct share *share_unref(struct share *s);

/* n more for the peer. False: it has its share, and nothing was taken. */
bool share_take(struct share *s, enum share_kind kind, size_t n);
void share_give(struct share *s, enum share_kind kind, size_t n);
/* All is taken, and a place that is made free would be for this peer. */
bool share_is_crowded_out(const struct share *s, enum share_kind kind);

/* How much more than `mine` may be taken by who holds that of a limit, where all hold `used`. */
static inline size_t share_left(size_t limit, size_t used, size_t mine)
{
	size_t free = limit - used;

	return free > mine ? free - mine : 0;
}

/* The refusal of one more: what the peer has, of how much (ERROR_EXHAUSTED). */
int share_refuse(const struct share_pool *p, const struct rpc_peer *peer, enum share_kind kind,
		 struct error *err);

#endif
