/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_DISK_H
#define NACRE_CELL_DISK_H

#include "base/log/error.h"
#include "cell/spec.h"

/* What a keeper makes of its machine's devices for a container (struct container_disk), as a
 * request. */

/* The disk and the files of a spec, where it has them: ERROR_INVALID names `root_disk` or `files`.
 */
int disk_check(const struct container_spec *spec, struct error *err);
/* The name of a volume: a letter or digit, then those, '.', '_', '-'. ERROR_INVALID names `mounts`.
 */
int disk_check_share(const char *name, struct error *err);

#endif
