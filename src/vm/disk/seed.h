/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_SEED_H
#define NACRE_VM_SEED_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * A disk with a few small files for the first boot of somebody's image: a FAT file system with the
 * label that cloud-init looks for (NoCloud: "meta-data", "user-data", "network-config").
 */

#define SEED_LABEL "CIDATA"
#define SEED_BYTES (1024U * 1024U)
#define SEED_FILES_MAX 8
#define SEED_NAME_MAX 39
#define SEED_DATA_MAX (960U * 1024U) /* of all files together, each in whole sectors */

struct seed_file {
	const char *name; /* printable ASCII that FAT takes in a long name */
	const void *data;
	size_t len;
};

/* The whole image, SEED_BYTES, which the caller frees. Names differ also without regard to case.
 * ERROR_INVALID names the file that breaks a rule. */
int seed_make(uint8_t **ret, const struct seed_file *files, size_t n, struct error *err);

#endif
