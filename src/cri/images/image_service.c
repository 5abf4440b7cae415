/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cri.pb-c.h"
#include "cri/images/image_change_call.h"
#include "cri/images/images_call.h"
#include "cri/services.h"

static const struct rpc_method cri_image_methods[] = {
	{ "ListImages", &runtime__v1__list_images_request__descriptor,
	  &runtime__v1__list_images_response__descriptor, false, cri_list_images },
	{ "StreamImages", &runtime__v1__stream_images_request__descriptor,
	  &runtime__v1__stream_images_response__descriptor, true, cri_stream_images },
	{ "ImageStatus", &runtime__v1__image_status_request__descriptor,
	  &runtime__v1__image_status_response__descriptor, false, cri_image_status },
	{ "PullImage", &runtime__v1__pull_image_request__descriptor,
	  &runtime__v1__pull_image_response__descriptor, false, cri_pull_image },
	{ "RemoveImage", &runtime__v1__remove_image_request__descriptor,
	  &runtime__v1__remove_image_response__descriptor, false, cri_remove_image },
	{ "ImageFsInfo", &runtime__v1__image_fs_info_request__descriptor,
	  &runtime__v1__image_fs_info_response__descriptor, false, cri_image_fs_info },
};

const struct rpc_service cri_image_service = {
	.name = "runtime.v1.ImageService",
	.methods = cri_image_methods,
	.n_methods = ARRAY_SIZE(cri_image_methods),
};
