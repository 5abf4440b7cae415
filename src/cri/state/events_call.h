/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_EVENTS_CALL_H
#define NACRE_CRI_EVENTS_CALL_H

#include <protobuf-c/protobuf-c.h>

/* GetContainerEvents: what happens to sandboxes and their containers, in order, to each client. A
 * member of a table of methods: userdata is the struct cri_runtime_service. */

struct rpc_call;

void cri_get_container_events(struct rpc_call *call, const ProtobufCMessage *request,
			      void *userdata);

#endif
