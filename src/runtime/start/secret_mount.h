/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_SECRET_MOUNT_H
#define NACRE_RUNTIME_SECRET_MOUNT_H

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "base/memory/arena.h"
#include "pod/storage/volume.h"

/* A mount of secrets, of which runtime/storage/implied.h has drawn the id of the set. ERROR_INVALID
 * names the field below `field`. */
int secret_mount_take(struct arena *a, struct pod_mount_spec *to,
		      const Aurae__Runtime__V0__Mount *m, const char *field, struct error *err);
/* In what is shown: the id of a set is nobody's business. */
void secret_mount_hide(Aurae__Runtime__V0__Mount **mounts, size_t n);

#endif
