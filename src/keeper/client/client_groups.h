/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CLIENT_GROUPS_H
#define NACRE_KEEPER_CLIENT_GROUPS_H

#include "instance/peer.h"

/* The operations of a peer that are about its groups (peer_ops). */

void client_set_sysctls(struct peer *p, char *const *sysctls, peer_done_fn done, void *userdata);
void client_limit(struct peer *p, const char *id, const char *cell, char *const *words,
		  peer_done_fn done, void *userdata);
void client_usage(struct peer *p, peer_usage_fn done, void *userdata);
void client_processes(struct peer *p, peer_processes_fn done, void *userdata);

#endif
