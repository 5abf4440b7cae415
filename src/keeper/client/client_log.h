/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CLIENT_LOG_H
#define NACRE_KEEPER_CLIENT_LOG_H

#include "keeper/client/client_model.h"

/* The operations of a peer for logs that its keeper keeps (instance/peer.h), over the call Logs. */

int client_log_open(struct keeper_client *client, const char *id, uint64_t from,
		    const struct peer_log_ops *ops, void *userdata, struct peer_log **ret);
int client_log_take(struct peer_log *log, uint64_t at);
void client_log_pause(struct peer_log *log, bool paused);
void client_log_close(struct peer_log *log);
/* All of a client that is freed. */
void client_log_forget(struct keeper_client *client);

#endif
