/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_LOGS_H
#define NACRE_KEEPER_LOGS_H

#include "api/instance.pb-c.h"

struct keeper;
struct rpc_call;

/* Takes over a call of Logs, with its first message (NULL: it never came), and ends it. */
void logs_handle(struct keeper *k, struct rpc_call *call,
		 const Nacre__Instance__V1__LogsRequest *request);
/* Ends a call of ChangeLog; fd is taken over, -1: none came with it. */
void logs_change(struct keeper *k, struct rpc_call *call, const char *id, int fd);

#endif
