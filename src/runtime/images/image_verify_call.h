/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_IMAGE_VERIFY_CALL_H
#define NACRE_RUNTIME_IMAGE_VERIFY_CALL_H

#include "rpc/server/server.h"

/* nacre.v1.ImageService/Verify; userdata: struct image_service. */
void image_verify_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
