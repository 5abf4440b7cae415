/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_TOKENS_H
#define NACRE_KEEPER_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/list.h"
#include "loop/loop.h"

/*
 * The keeper's end of the channel for descriptors (architecture 9.2): accepts connections (of uid 0
 * only), holds what came until a message names its token, and passes on what is for an instance
 * below.
 *
 * At most TOKENS_HELD_MAX wait unclaimed: a further one closes the oldest. A sender therefore keeps
 * the number of its calls that are under way below that (client.c does). What came over a
 * connection that has ended is closed.
 */

#define TOKENS_HELD_MAX 96
#define TOKENS_CONNECTIONS_MAX 8

struct fdchan_packet;

struct tokens {
	struct loop *loop;
	int listen_fd; /* owned; looked at by tokens_drain() only */
	struct list connections;
	size_t n_connections;
	struct list held; /* the oldest first */
	size_t n_held;
	/* A packet with a target; its fd stays the caller's. */
	void (*forward)(void *userdata, const struct fdchan_packet *packet);
	/* One was taken in, or lost; may be NULL. */
	void (*arrived)(void *userdata);
	void *userdata;
	unsigned n_lost; /* so many did not come, or were let go unclaimed */
	/* Those that nobody will claim, and that have not come: a ring. */
	uint64_t refused[TOKENS_HELD_MAX];
	size_t n_refused;
};

/* Takes listen_fd over. */
void tokens_init(struct tokens *t, struct loop *l, int listen_fd,
		 void (*forward)(void *userdata, const struct fdchan_packet *packet),
		 void *userdata);
void tokens_done(struct tokens *t);

/*
 * Takes in all that waits in the sockets. A sender sends a descriptor before the message that names
 * it, so this comes before the handling and before the routing of every message.
 */
void tokens_drain(struct tokens *t);

/* Whether the descriptor of a token has come. Does not drain. */
bool tokens_have(const struct tokens *t, uint64_t token);
/* Closes the descriptor of a token, now or, up to TOKENS_HELD_MAX of them, when it comes. 0: none.
 */
void tokens_refuse(struct tokens *t, uint64_t token);

/* The descriptor of a token, now the caller's; -ENOENT where there is none. Drains where it
 * has not come. */
int tokens_take(struct tokens *t, uint64_t token);

#endif
