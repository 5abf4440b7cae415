/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_EXEC_SYNC_CALL_H
#define NACRE_CRI_EXEC_SYNC_CALL_H

#include <protobuf-c/protobuf-c.h>

/*
 * ExecSync: a command in a container, and what it wrote. Of each stream EXEC_SYNC_OUTPUT_MAX bytes
 * are kept; the rest is read and thrown away. A member of a table of methods: userdata is the
 * struct cri_runtime_service.
 */

/* Both streams and the rest of the answer fit the 16 MiB that a kubelet takes. */
#define EXEC_SYNC_OUTPUT_MAX ((size_t)16 * 1024 * 1024 - 4096)

struct rpc_call;

void cri_exec_sync(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
