/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_CPIO_H
#define NACRE_VM_CPIO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"

/*
 * Writes an archive in the form that Linux unpacks as its first root ("newc"), to a file from where
 * it stands. All members belong to root, at the beginning of time, so that the same contents are
 * the same bytes. Directories come before what is in them.
 */
struct cpio {
	int fd; /* not owned */
	uint64_t size;
	unsigned n;
};

#define CPIO_MEMBER_MAX (UINT32_MAX - 4096) /* bytes of one file */

#define CPIO_INIT(to)                                                                              \
	{                                                                                          \
		.fd = (to)                                                                         \
	}

int cpio_add_dir(struct cpio *c, const char *name, struct error *err);
int cpio_add_file(struct cpio *c, const char *name, mode_t mode, const void *data, size_t len,
		  struct error *err);
int cpio_add_char_device(struct cpio *c, const char *name, mode_t mode, unsigned major,
			 unsigned minor, struct error *err);
int cpio_end(struct cpio *c, struct error *err);

#endif
