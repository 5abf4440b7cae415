/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_LINK_H
#define NACRE_INSTANCE_LINK_H

#include "instance/state.h"

/*
 * What the peer of an instance tells; private to this area.
 */

/* Says hello over i->peer, and listens from then on. */
void instance_open_peer(struct instance *i);
/* The same for one of this daemon's own, which is connected to first. ERROR_UNAVAILABLE where its
 * keeper has ended. */
int instance_connect_own(struct instance *i, struct error *err);

#endif
