/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_SOURCE_H
#define NACRE_FETCH_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * The files of an image archive by name, whether it is a directory or a tar: of a tar an index is
 * made in one pass, and each file is read again from its place. A compressed tar is first
 * decompressed into the staging directory.
 */

struct source;

/* fd (kept by the caller): the directory, or the file. */
int source_open(struct source **ret, int fd, int staging_fd, uint64_t max_bytes, struct error *err);
struct source *source_free(struct source *s);
static inline void source_freep(struct source **s)
{
	*s = source_free(*s);
}

bool source_has(struct source *s, const char *name);

/* Hands the content out in pieces; fn returns 0 to go on. ERROR_INVALID where the archive has no
 * such regular file. */
typedef int (*source_piece_fn)(void *userdata, const void *data, size_t len, struct error *err);
int source_each_piece(struct source *s, const char *name, source_piece_fn fn, void *userdata,
		      struct error *err);

/* A document as a whole, of at most max bytes. */
int source_load(struct source *s, const char *name, size_t max, struct buf *ret, struct error *err);

#endif
