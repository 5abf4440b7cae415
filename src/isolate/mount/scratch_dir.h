/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_SCRATCH_DIR_H
#define NACRE_ISOLATE_SCRATCH_DIR_H

#include <stdbool.h>

#include "base/log/error.h"

/*
 * Directories and files of a machine's own, empty at first, that its containers write to: each has
 * a name, lies in own_fd as SCRATCH_DIR_PREFIX NAME, and stays until the machine ends. Everybody in
 * the machine may write there, as in an emptyDir of Kubernetes. All of this may block; two threads
 * may open the same one at a time.
 */

#define SCRATCH_DIR_PREFIX "scratch."
#define SCRATCH_DIR_NAME_MAX 64
/* The name of the one file of a volume that is mounted as a file. */
#define SCRATCH_DIR_FILE "file"

/* A descriptor (O_PATH) of the directory, or with is_file of a file; made where it is missing. */
int scratch_dir_open(int own_fd, const char *name, bool is_file, struct error *err);

#endif
