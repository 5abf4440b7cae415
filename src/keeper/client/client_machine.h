/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CLIENT_MACHINE_H
#define NACRE_KEEPER_CLIENT_MACHINE_H

#include "instance/peer.h"

/* Of the table of keeper/client/client.h. */

void client_spawn_machine(struct peer *p, const struct peer_machine *machine, peer_machine_fn done,
			  void *userdata);

#endif
