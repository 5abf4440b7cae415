/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_TRUST_H
#define NACRE_GATE_TRUST_H

#include <stdbool.h>

#include "base/memory/buf.h"
#include "wire/message/gatemsg.h"

/*
 * The roots by which the node's end verifies a guest, as they change under it. Roots that have gone
 * are believed until the guest has a certificate of another one, since nobody else would bring it
 * that. A value.
 */
struct trust {
	struct buf bundle; /* what the guest is to have */
	struct buf gone;
	bool changed;        /* it is another one than the guest has booted with */
	bool pending_is_new; /* the certificate on its way is of `bundle` */
};

#define TRUST_INIT                                                                                 \
	{                                                                                          \
		.bundle = BUF_INIT, .gone = BUF_INIT                                               \
	}

/* The first bundle. 0, or -ENOMEM. */
int trust_begin(struct trust *t, const struct gate_bytes *bundle);
/* Another bundle: 1, 0 where it is the same, or -ENOMEM. */
int trust_change(struct trust *t, const struct gate_bytes *bundle);
/* All roots that verify the guest, behind what is in ret. */
int trust_all(const struct trust *t, struct buf *ret);
/* What is sent to the guest for its certificate: that, and behind it the bundle that it does not
 * know. -ENOBUFS where it is too much. */
int trust_give(struct trust *t, const struct gate_bytes *chain, struct buf *ret);
/* The guest has got it. Returns whether the roots that verify it are others now. */
bool trust_kept(struct trust *t);

#endif
