/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CLIENT_REOPEN_H
#define NACRE_KEEPER_CLIENT_REOPEN_H

#include "keeper/client/client_model.h"

/*
 * peer_ops.upgrade: asks a keeper to go on as another program, and opens its peer again, and those
 * below it, which never see the gap: their calls wait, and their watches begin anew. Other users of
 * the connection notice nothing.
 */

void reopen_init(struct connection *c);
/* Calls nothing back. */
void reopen_done(struct connection *c);
/* The client is about to be freed. */
void reopen_forget(struct keeper_client *client);

/* Whether what is asked of it now has to wait: its connection is not there, or it or a keeper above
 * it has not said hello again. Calls to others on the connection go on. */
bool reopen_holds(const struct keeper_client *client);

/* peer_ops.upgrade. */
int reopen_begin(struct keeper_client *client, const struct peer_upgrade *how, peer_done_fn done,
		 void *userdata, struct error *err);

#endif
