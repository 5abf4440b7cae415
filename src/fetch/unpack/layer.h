/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_LAYER_H
#define NACRE_FETCH_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "fetch/unpack/implied.h"
#include "fetch/unpack/later.h"
#include "fetch/unpack/notes.h"
#include "fetch/unpack/place.h"

/*
 * One layer of an image as a directory that an overlay (mounted with userxattr) can lie on: entries
 * of the archive as files, `.wh.NAME` as a character device 0:0, `.wh..wh..opq` as the attribute
 * user.overlay.opaque of its directory.
 */

struct archive;
struct archive_entry;

struct layer {
	int root_fd; /* not owned */
	uint64_t max_bytes;
	uint64_t max_entries;
	uint64_t n_bytes;
	uint64_t n_entries;
	uint64_t n_skipped;
	struct later later;
	struct notes whiteouts;
	struct implied implied;
	/* The directory that was used last: most entries lie beside the one before. Its path does
	 * not name it any more once anything was removed. */
	int dir_fd;
	bool dir_known;
	char dir_path[PLACE_PATH_MAX + 1];
};

#define LAYER_INIT(fd, bytes, entries)                                                             \
	{                                                                                          \
		.root_fd = (fd), .max_bytes = (bytes), .max_entries = (entries),                   \
		.later = LATER_INIT(fd), .whiteouts = NOTES_INIT(fd, "whiteouts"),                 \
		.implied = IMPLIED_INIT(fd), .dir_fd = -1                                          \
	}

/* Makes the entry that the archive stands at, with its data. */
int layer_add(struct layer *l, struct archive *a, struct archive_entry *entry, struct error *err);
/* After the last entry. */
int layer_finish(struct layer *l, struct error *err);
void layer_done(struct layer *l);

#endif
