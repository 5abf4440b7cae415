/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_IMAGE_LISTING_CALL_H
#define NACRE_RUNTIME_IMAGE_LISTING_CALL_H

#include "rpc/server/server.h"

/* nacre.v1.ImageService/Tags, /Referrers and /Login; userdata: struct image_service. */
void image_tags_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void image_referrers_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void image_login_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
