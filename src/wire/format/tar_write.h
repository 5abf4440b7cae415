/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_TAR_WRITE_H
#define NACRE_WIRE_TAR_WRITE_H

#include "base/file/tree.h"
#include "base/memory/buf.h"

/*
 * Entries of a tree as a tar archive: ustar, with pax headers for what does not fit into it (long
 * names, large numbers, times with a fraction, holes). The data of a file follow its head, then
 * tar_write_pad(), then the next entry; tar_write_end() ends it.
 */

/* Appends the head. -EINVAL for TREE_OTHER, -ENOMEM. */
int tar_write_head(struct buf *b, const struct tree_entry *e);
/* How many bytes of data follow a head: of a sparse file those of its map. */
uint64_t tar_write_due(const struct tree_entry *e);
/* Appends what fills the last block of so many bytes of data. -ENOMEM. */
int tar_write_pad(struct buf *b, uint64_t n_data);
int tar_write_end(struct buf *b);

#endif
