/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_IMAGES_CALL_H
#define NACRE_RUNTIME_IMAGES_CALL_H

#include "rpc/server/server.h"

/* ImageService.List: pages in order of import, as those of list_call.h. userdata: struct
 * image_service. For rpc_method. */
void images_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
