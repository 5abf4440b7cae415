/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_GUEST_USAGE_H
#define NACRE_CRI_GUEST_USAGE_H

#include <stddef.h>

#include "instance/peer.h"

/*
 * The usage of groups that another kernel counts: the keepers of machines are asked for them, each
 * once. A value inside of what asks, which stays until ready().
 */

struct guest_question;
struct instance;

#define GUEST_USAGE_NONE SIZE_MAX /* no question */

struct guest_usage {
	/* Of the n-th question; none comes where its keeper tells nothing. */
	void (*told)(struct guest_usage *g, size_t n, const struct peer_group *group);
	/* All have answered, or could not. */
	void (*ready)(struct guest_usage *g);

	/* Private. */
	struct guest_question **questions;
	size_t n, size, n_pending;
};

/* Its number, the same for the same instance; or -ENOMEM. */
int guest_usage_add(struct guest_usage *g, struct instance *i, size_t *ret);
/* ready() comes once, maybe from within. */
void guest_usage_ask(struct guest_usage *g);
/* Before guest_usage_ask(), or from ready() on. */
void guest_usage_done(struct guest_usage *g);

#endif
