/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_IMAGE_CHANGE_CALL_H
#define NACRE_RUNTIME_IMAGE_CHANGE_CALL_H

#include "rpc/server/server.h"

/* ImageService.Tag and Pin. userdata: struct image_service. For rpc_method. */
void image_tag_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void image_pin_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
