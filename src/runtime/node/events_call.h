/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_EVENTS_CALL_H
#define NACRE_RUNTIME_EVENTS_CALL_H

#include "rpc/server/server.h"

/* EventService.Events: a feed of the events themselves. For rpc_method. */
void events_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
