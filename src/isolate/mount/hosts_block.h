/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_HOSTS_BLOCK_H
#define NACRE_ISOLATE_HOSTS_BLOCK_H

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * The part of a container's /etc/hosts that names the pods of its network. Two comments enclose it,
 * so that it can be replaced while the container runs and writes lines of its own around it.
 */

/* A file that is larger is not touched. */
#define HOSTS_MAX ((size_t)1 << 20)

/* Begin and end of the block of a network; the lines stand between. -ENOMEM. */
int hosts_block_begin(struct buf *b, const char *network);
int hosts_block_end(struct buf *b);

/*
 * Replaces the block in etc/hosts below a root that somebody else controls, by another file of the
 * name: a reader finds the old or the new one. Owner and mode stay.
 *
 * 1: replaced; 0: it is as wanted already, or the file is its container's own affair: it has no
 * block, is no regular file, is larger than HOSTS_MAX, or lies on another mount than the root
 * (a volume), where it is never written. -EROFS: the root is read-only. Other errors leave the file
 * as it was.
 */
int hosts_block_put(int root_fd, const char *block);

#endif
