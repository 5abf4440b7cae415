/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_IMAGE_PULL_CALL_H
#define NACRE_RUNTIME_IMAGE_PULL_CALL_H

#include "rpc/server/server.h"

/* ImageService.Pull. userdata: struct image_service. For rpc_method. */
void image_pull_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
