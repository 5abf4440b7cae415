/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_LATER_H
#define NACRE_FETCH_LATER_H

#include <stdint.h>
#include <time.h>

#include "base/log/error.h"
#include "fetch/unpack/notes.h"

/*
 * The attributes that directories get when everything in them is made: their times, which each new
 * entry changes, and their default access control lists, which each new entry would inherit.
 */

struct later {
	int root_fd; /* of the layer; not owned */
	struct notes notes;
};

#define LATER_INIT(fd)                                                                             \
	{                                                                                          \
		.root_fd = (fd), .notes = NOTES_INIT(fd, "directories")                            \
	}

/* path: of a directory, normalised (place.h). acl: of acl_len bytes, 0 for none. ERROR_EXHAUSTED
 * where there are too many. */
int later_add(struct later *l, const char *path, const struct timespec *mtime, const void *acl,
	      size_t acl_len, struct error *err);
/* Gives each directory what was noted, in order; what is no directory by now gets nothing. */
int later_run(struct later *l, struct error *err);
void later_done(struct later *l);

#endif
