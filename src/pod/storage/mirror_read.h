/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_MIRROR_READ_H
#define NACRE_POD_MIRROR_READ_H

#include <stddef.h>

#include "base/file/tree_list.h"
#include "base/log/error.h"

/*
 * Reads a directory that may be mirrored (pod/storage/mirror.h) as it is at one moment, and has it
 * watched from before that moment on. On a thread. Private to this area.
 */

/* Of inotify, for directories that were read. */
struct mirror_watches {
	int *wds;
	size_t n;
};

void mirror_watches_done(struct mirror_watches *w);

/* It may be a regular file, which is read as the file SCRATCH_DIR_FILE in a directory of its own,
 * and not watched. */
#define MIRROR_ONE_FILE 1U

/*
 * dir_fd: the directory (O_PATH is enough). Both results are to be released, whatever this returns:
 * what was watched before a failure is watched. ERROR_EXHAUSTED: it has more than VOLUME_FILES_MAX
 * files or VOLUME_BYTES_MAX bytes. ERROR_PRECONDITION: it is not one that is mirrored, and err says
 * why. ERROR_NOT_FOUND: it is gone. Anything else: perhaps the next time.
 */
int mirror_read(int dir_fd, unsigned flags, int inotify_fd, struct tree_list *ret_files,
		struct mirror_watches *ret_watches, struct error *err);

#endif
