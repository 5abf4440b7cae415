/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_GUEST_H
#define NACRE_GATE_GUEST_H

#include "base/log/error.h"
#include "base/time/clock.h"

/*
 * The gate within a guest: the only thing that the node reaches. It is started by pid 1 with the
 * descriptors of wire/message/guestgate.h, makes its key, waits to be enrolled with the token of
 * BOOT, and from then on passes on what the one parent says to the keeper. Its certificate is
 * renewed by the parent, over a connection of the same two identities.
 */

/* Connections at a time, in whatever state. */
#define GUEST_CONNS_MAX 128

/* Runs until it fails. patience: for a handshake. lease: one in a cloud fails when its node has not
 * signed for it for so long. */
int guest_run(nsec_t patience, nsec_t lease, struct error *err);

#endif
