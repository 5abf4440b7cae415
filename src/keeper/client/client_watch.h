/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CLIENT_WATCH_H
#define NACRE_KEEPER_CLIENT_WATCH_H

#include <protobuf-c/protobuf-c.h>

#include "api/instance.pb-c.h"
#include "keeper/client/client_model.h"
#include "rpc/exchange/client.h"

/*
 * Hello, and the changes that a keeper tells: what a peer begins with, once or again.
 */

#define HELLO_TIMEOUT (5 * NSEC_PER_SEC)
/* Of one that no descriptor reaches: its machine may have to start first. Its waiters have limits
 * of their own. */
#define HELLO_REMOTE_TIMEOUT (1800 * NSEC_PER_SEC)

/* Fills the message; it points into the client. */
void client_make_hello(const struct keeper_client *client,
		       Nacre__Instance__V1__HelloRequest *request);
/* Takes the answer in. ERROR_PRECONDITION: this daemon and the keeper have no language in common,
 * so nothing may be asked of it; client->refusal says so from now on. */
int client_take_hello(struct keeper_client *client, const ProtobufCMessage *response,
		      const struct error *answer, struct error *err);
/* From now on events come. 0 or a negative errno. */
int client_watch(struct keeper_client *client);

#endif
