/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_WATCH_CALL_H
#define NACRE_RUNTIME_WATCH_CALL_H

#include "rpc/server/server.h"

/*
 * EventService.Watch: a feed that begins with everything that is there, in the order of List. An
 * event then stands for the object that it is of, which is sent as it is at that moment: a client
 * that lags sees later states earlier, and never an older one behind a newer. For rpc_method.
 */
void watch_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
