/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_NOTES_H
#define NACRE_FETCH_NOTES_H

#include <stdint.h>
#include <sys/uio.h>

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * Notes that are taken while a layer is unpacked, for when all its entries are made. A layer may
 * have millions of them: past NOTES_MEMORY bytes, notes go to a file without a name in the layer's
 * own root. A value.
 */

#define NOTES_MEMORY (1 << 20)
#define NOTES_MAX (UINT64_C(1) << 30) /* bytes, in memory and in the file */

struct notes {
	int root_fd;      /* of the layer; not owned */
	const char *what; /* they are about, in the plural */
	int file_fd;
	uint64_t n_file; /* bytes in it */
	struct buf buf;
};

#define NOTES_INIT(fd, things)                                                                     \
	{                                                                                          \
		.root_fd = (fd), .what = (things), .file_fd = -1,                                  \
		.buf = BUF_INIT_LIMIT(2 * NOTES_MEMORY)                                            \
	}
void notes_done(struct notes *n);

/* One note, of these parts; far shorter than NOTES_MEMORY. ERROR_EXHAUSTED where there are too
 * many. */
int notes_add(struct notes *n, const struct iovec *parts, size_t n_parts, struct error *err);
/* Hands each note to fn, in order, until that fails. They stay. */
typedef int (*notes_fn)(void *userdata, const uint8_t *note, size_t len, struct error *err);
int notes_each(struct notes *n, notes_fn fn, void *userdata, struct error *err);

#endif
