/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_LOG_READER_H
#define NACRE_POD_LOG_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Reads a container's log from its beginning and gives back what the container wrote, byte for
 * byte. The disk is read on the pool, a piece at a time, so a reader that is paused costs one
 * piece.
 */

struct loop;
struct pool;
struct log_reader;

struct log_reader_ops {
	/* stream 1 or 2; time: wall clock, nanoseconds. */
	void (*on_data)(void *userdata, int stream, uint64_t time, const void *data, size_t len);
	/* Last, once: everything was given (err NULL), or the file cannot be read. The reader must
	 * be freed, here or later. */
	void (*on_end)(void *userdata, const struct error *err);
};

/* Takes fd over, also on failure. follow: waits at the end of the file for more, until
 * log_reader_finish(). No callback comes before this has returned. */
int log_reader_new(struct log_reader **ret, struct loop *l, struct pool *pool, int fd, bool follow,
		   const struct log_reader_ops *ops, void *userdata);
/* May be called from a callback. */
struct log_reader *log_reader_free(struct log_reader *r);
void log_reader_pause(struct log_reader *r, bool paused);
/* Nothing will be written any more: it ends at the end of the file. */
void log_reader_finish(struct log_reader *r);

#endif
