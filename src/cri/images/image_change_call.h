/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_IMAGE_CHANGE_CALL_H
#define NACRE_CRI_IMAGE_CHANGE_CALL_H

#include <protobuf-c/protobuf-c.h>

/* PullImage, RemoveImage, ImageFsInfo of the CRI. */

struct rpc_call;

void cri_pull_image(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_remove_image(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_image_fs_info(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
