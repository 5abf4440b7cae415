/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_DISK_H
#define NACRE_CELL_DISK_H

#include "base/log/error.h"
#include "cell/spec.h"

/* Checks of the parts of a request that name devices of the keeper's machine (struct
 * container_disk). */

/* The disk and the files of a spec, where it has them: ERROR_INVALID names `root_disk` or `files`.
 */
int disk_check(const struct container_spec *spec, struct error *err);
/* The name of a volume: a letter or digit, then those, '.', '_', '-'. ERROR_INVALID names `mounts`.
 */
int disk_check_share(const char *name, struct error *err);

#endif
