/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_IMAGE_DISK_CALL_H
#define NACRE_RUNTIME_IMAGE_DISK_CALL_H

#include "rpc/server/server.h"

/* The longest lists of these answers. */
#define IMAGE_DISK_LIST_MAX 10000

/* ImageService.DiskUsage and Prune. userdata: struct image_service. For rpc_method. */
void image_usage_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void image_prune_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
