/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_LOG_READER_H
#define NACRE_POD_LOG_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "pod/log/log_cursor.h"

/*
 * Reads containers' logs and gives back what they wrote, byte for byte, over all the files that are
 * kept and while these are rotated. The disk is read on the pool, a piece at a time. All readers of
 * a node share a few pieces of memory and one descriptor of inotify; a reader that is paused, or
 * waits for a log to grow, costs an open file and itself.
 */

struct loop;
struct pool;
struct log_readers;
struct log_reader;

/* The state that all readers of a node share. Neither the pool nor logs_fd (of the directory of all
 * logs) is taken over. */
int log_readers_new(struct log_readers **ret, struct loop *l, struct pool *pool, int logs_fd);
/* After its readers and the pool. */
struct log_readers *log_readers_free(struct log_readers *all);

struct log_reader_ops {
	/* stream 1 or 2; time: wall clock, nanoseconds. Lines that were read from the container at
	 * once come at once, up to some 64 KiB. */
	void (*on_data)(void *userdata, int stream, uint64_t time, const void *data, size_t len);
	/* So many bytes that were written here can be read no more: their file was rotated away, or
	 * they never came to the disk. */
	void (*on_skipped)(void *userdata, uint64_t n);
	/* Last, once: everything was given (err NULL), or the log cannot be read (-ENOENT: there is
	 * none). The reader must be freed, here or later. */
	void (*on_end)(void *userdata, const struct error *err);
};

/*
 * The log of container `name` of workload `id`. Without `follow` it ends where the log ended when
 * reading began; with it, log_reader_finish() lets it end. A tail counts the lines of both streams,
 * as they end; since leaves out lines that began before, until those that began then or later. The
 * files of a log are ordered in time: where the clock was set back, lines of an older file may be
 * left out that have a later time.
 *
 * No callback comes before this has returned. -EMFILE: the host has no inotify instance left.
 */
int log_reader_new(struct log_reader **ret, struct log_readers *all, const char *id,
		   const char *name, const struct log_wish *wish, const struct log_reader_ops *ops,
		   void *userdata);
/* May be called from a callback. */
struct log_reader *log_reader_free(struct log_reader *r);
void log_reader_pause(struct log_reader *r, bool paused);
/* Nothing will be written any more: it ends at the end of the log. */
void log_reader_finish(struct log_reader *r);

#endif
