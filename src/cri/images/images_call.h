/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_IMAGES_CALL_H
#define NACRE_CRI_IMAGES_CALL_H

#include <protobuf-c/protobuf-c.h>

/* ListImages, StreamImages, ImageStatus of the CRI. */

struct rpc_call;

void cri_list_images(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_stream_images(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_image_status(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
