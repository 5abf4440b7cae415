/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_MOUNT_MANNER_H
#define NACRE_RUNTIME_MOUNT_MANNER_H

#include "api/runtime.pb-c.h"
#include "base/log/error.h"

struct pod_mount_spec;

/* How a mount is mounted, once it is known what: sub_path, no_copy, chown, propagation, relabel.
 * ERROR_INVALID with the member of `field`; ERROR_PRECONDITION for labels of SELinux. */
int mount_take_manner(struct pod_mount_spec *to, const Aurae__Runtime__V0__Mount *m,
		      const char *field, struct error *err);
/* ERROR_INVALID: what a member of the mount says, it cannot have. */
int mount_refuse(const char *field, const char *member, const char *reason, struct error *err);

#endif
