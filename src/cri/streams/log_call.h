/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_LOG_CALL_H
#define NACRE_CRI_LOG_CALL_H

#include <protobuf-c/protobuf-c.h>

/* ReopenContainerLog: the log goes on in a new file of its name, which is there when the call is
 * answered. A member of a table of methods: userdata is the struct cri_runtime_service. */

struct rpc_call;

void cri_reopen_container_log(struct rpc_call *call, const ProtobufCMessage *request,
			      void *userdata);

#endif
