/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_LINK_H
#define NACRE_INSTANCE_LINK_H

#include "instance/state.h"

/*
 * The connection of an instance to its peer, and the peer's events; private to this area and to
 * providers.
 */

/* Says hello over i->peer, and listens from then on. */
void instance_open_peer(struct instance *i);
/* The same for one of this daemon's own, which is connected to first. ERROR_UNAVAILABLE where its
 * keeper has ended. */
int instance_connect_own(struct instance *i, struct error *err);
/* The same for one that was just made, and is recorded with its process before. */
int instance_meet(struct instance *i, struct error *err);
/* The work that create() of its provider could not do at once is done: the instance is met, or
 * broken. */
void instance_made(struct instance *i);
/* The processes that create() had made of an instance that is SPAWNING are gone, and are made anew:
 * instance_made() or instance_break() follow. Not from within an event of its peer. */
void instance_unmade(struct instance *i);

#endif
