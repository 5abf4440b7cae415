/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_IMPLIED_H
#define NACRE_FETCH_IMPLIED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"

/* The unpacker's half of wire/message/implied.h: makes directories that no entry has named, marks
 * and lists them. */

struct implied {
	int root_fd; /* of the layer; not owned */
	int file_fd;
	uint64_t n_bytes; /* in the file */
	bool root_given;  /* the archive has an entry for the root */
};

#define IMPLIED_INIT(fd)                                                                           \
	{                                                                                          \
		.root_fd = (fd), .file_fd = -1                                                     \
	}
void implied_done(struct implied *i);

/* The reason for making it, which the mark records. */
enum implied_by { IMPLIED_BY_ENTRY, IMPLIED_BY_WHITEOUT };

/* Makes the directory of an entry with all above it. ERROR_EXHAUSTED where there are too many. */
int implied_make(struct implied *i, const char *path, enum implied_by by, struct error *err);
bool implied_is(int dir_fd, enum implied_by by);
/* An entry says what this directory is: it is implied no more. */
int implied_given(const struct implied *i, int dir_fd);
/* After the last entry. */
int implied_finish(struct implied *i, struct error *err);

#endif
