/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_LAYOUT_H
#define NACRE_CLI_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * An OCI layout as a directory, from the tar that ImageService.Export gives. What comes is the
 * daemon's, but only the names of a layout are written: another one is ERROR_INVALID.
 */

#define LAYOUT_BLOCK 512

struct layout {
	int dir_fd;
	char *path;
	bool made; /* the directory was not there */
	int file_fd;
	uint64_t n_left; /* bytes of the file */
	uint64_t n_pad;  /* bytes behind it */
	unsigned char header[LAYOUT_BLOCK];
	size_t n_header;
	bool ended;
};

/* The directory must be empty, or is made. */
int layout_open(struct layout *l, const char *path, struct error *err);
/* The next bytes. */
int layout_add(struct layout *l, const void *data, size_t len, struct error *err);
/* Whether all came. */
int layout_finish(struct layout *l, struct error *err);
/* Takes away what was written, the directory too where it was made. */
void layout_undo(struct layout *l);
void layout_done(struct layout *l);

#endif
