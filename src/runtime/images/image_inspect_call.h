/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_IMAGE_INSPECT_CALL_H
#define NACRE_RUNTIME_IMAGE_INSPECT_CALL_H

#include "rpc/server/server.h"

/* ImageService.Inspect. userdata: struct image_service. For rpc_method. */
void image_inspect_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
