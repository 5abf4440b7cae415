/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_MEASURE_H
#define NACRE_IMAGE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The space that a tree takes on its disk, as du(1) counts it: the blocks of every inode once,
 * directories with them. Goes by descriptor, follows no link, enters no other file system, and
 * needs two descriptors however deep the tree is. An entry that changes meanwhile is counted as it
 * is met. Blocks: for a thread of the pool.
 */

#define MEASURE_PENDING_MAX                                                                        \
	(32U << 20)                   /* bytes of names of directories that are to be read still */
#define MEASURE_LINKS_MAX (1U << 20)  /* inodes with several names */
#define MEASURE_PATH_MAX (16U << 10)  /* bytes of the path of a directory, from the top */
#define MEASURE_OPENS_MAX (16U << 20) /* components of such paths, all together */

struct measure {
	uint64_t bytes;
	uint64_t n_inodes;
	int64_t changed; /* when the top was last written to: seconds since 1970 */
	bool incomplete; /* something could not be read, or was beyond a limit: it is not counted */
};

/* Adds dir_fd/name. -ENOENT where it is not there; -ENOMEM. */
int measure_tree(struct measure *m, int dir_fd, const char *name);

#endif
