/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_STORAGE_IMAGE_MOUNT_H
#define NACRE_RUNTIME_STORAGE_IMAGE_MOUNT_H

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "pod/storage/volume.h"

/* A mount of an image, whose target has been taken already. Which image it is the pod finds out
 * (pod/storage/image_mounts.h). `field` is the mount in the request. */
int image_mount_take(struct pod_mount_spec *to, const Aurae__Runtime__V0__Mount *m,
		     const char *field, struct error *err);

#endif
