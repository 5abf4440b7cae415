/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_STORAGE_PROFILE_FILE_H
#define NACRE_RUNTIME_STORAGE_PROFILE_FILE_H

#include <stddef.h>

#include "base/log/error.h"

/* Seccomp profiles as JSON, as descriptors of copies in memory, which can be read without waiting.
 * Errors name the field. */

#define PROFILE_FILE_MAX ((size_t)1 << 20) /* bytes of one in a file */

int profile_file_seal(const void *data, size_t len, const char *field, struct error *err);
/* A regular file of the node; for a thread that may wait. */
int profile_file_open(const char *path, const char *field, struct error *err);

#endif
