/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_LOG_FILE_H
#define NACRE_CELL_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/parse.h"
#include "cell/spec.h"
#include "wire/format/crilog.h"

/*
 * The files of a container's log: NAME.log is written, NAME.log.1 was before it, and so on up to
 * the number that the policy keeps. A file that would pass the policy's size with the next line is
 * followed by a new one, so each holds whole lines; all but the very first begin with a mark that
 * says which it is (wire/format/crilog.h), and have it before they have their name.
 *
 * The names are changed from the oldest on, and the new file takes its name last. So a reader from
 * the newest to the oldest sees each file at least once, though perhaps twice, and perhaps one name
 * missing.
 *
 * Used by one thread at a time.
 */
struct log_file {
	int fd, dir_fd; /* owned; dir_fd -1: never another file */
	char name[NAME_LABEL_MAX + 8];
	uint64_t max_bytes;
	uint32_t max_files;
	uint64_t size;
	uint64_t number; /* of files that were begun before this one */
	bool torn;       /* its last line is not whole: the disk was full */
	bool moving;     /* a change of names was begun and has failed */
	uint32_t hole;   /* while moving: the name that is to be filled next */
};

#define LOG_FILE_NONE                                                                              \
	{                                                                                          \
		.fd = -1, .dir_fd = -1                                                             \
	}

/* Takes both descriptors over; fd is NAME.log in dir_fd. */
void log_file_init(struct log_file *f, int fd, int dir_fd, const char *name,
		   const struct log_policy *policy);
/* The same for a log that was written before, or for a new one: opens NAME.log in dir_fd, which is
 * taken over, brings a change of names to its end, and cuts a line off that is not whole. *ret_at:
 * where the output stands behind it. Reads the file. 0, or an errno: then nothing is open. */
int log_file_resume(struct log_file *f, int dir_fd, const char *name,
		    const struct log_policy *policy, uint64_t *ret_at);
/* The same for a file of somebody else's, without names beside it: the descriptor, which is taken
 * over, can be read too. `fresh`: what is in it is none of this log's, which begins behind it. */
int log_file_take(struct log_file *f, int fd, const struct log_policy *policy, bool fresh,
		  uint64_t *ret_at);
void log_file_done(struct log_file *f);
/* Takes this file over: output that follows is written to it. Only where dir_fd is -1. */
void log_file_change(struct log_file *f, int fd);
/* Says in the file, between two lines, where the output stands: log_file_take() finds it there. */
int log_file_mark(struct log_file *f, uint64_t at);

/* Writes encoded lines, the first of which may be the rest of one that is torn. `end` is where the
 * container's output stands behind them. *ret_n is how many bytes were written, also where the rest
 * could not be: the next call goes on at that byte. */
int log_file_write(struct log_file *f, const uint8_t *data, size_t len, uint64_t end,
		   size_t *ret_n);

#endif
