/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_TARBALL_H
#define NACRE_FETCH_TARBALL_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * A tar that is written: plain files and directories of root, from 1970, so that the same content
 * is the same archive. Names have at most 99 bytes.
 */

struct tarball {
	int fd;          /* not owned */
	uint64_t n_left; /* of the file that was begun */
	uint64_t n_pad;
};

int tarball_dir(struct tarball *t, const char *name, struct error *err);
/* A file of so many bytes, which tarball_add() gives; the last of them ends it. */
int tarball_file(struct tarball *t, const char *name, uint64_t size, struct error *err);
int tarball_add(struct tarball *t, const void *data, size_t len, struct error *err);
/* A file that is in memory. */
int tarball_text(struct tarball *t, const char *name, const void *data, size_t len,
		 struct error *err);
int tarball_end(struct tarball *t, struct error *err);

#endif
