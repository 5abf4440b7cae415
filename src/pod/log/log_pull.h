/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_LOG_PULL_H
#define NACRE_POD_LOG_PULL_H

#include "base/log/error.h"
#include "cell/spec.h"

/*
 * The log of a container whose keeper keeps it (container_spec.keep_log) into the files that any
 * other log has, ID/NAME.log and those beside it: the lines are taken from the keeper once they are
 * written. Where that stood is read from the files themselves, so that a daemon that comes later
 * goes on at the byte, whatever became of the one before. A connection that is lost is waited for.
 * The container has not ended before all is taken, so a reader of its log after its end reads the
 * whole.
 */

struct log_pull;
struct loop;
struct peer;
struct pool;

struct log_pull_config {
	struct loop *loop;
	struct pool *pool;
	struct peer *peer; /* lives as long as the pull */
	int logs_fd;       /* directory of all logs, not taken over */
	const char *dir;   /* the workload's, in there */
	const char *id;    /* of the container */
	const char *name;  /* the same, for its file */
	/* In place of that file: one of somebody else's, to append to and to read, which is taken
	 * over; -1: none. `fresh`: nothing of this log is in it yet. */
	int own_fd;
	bool fresh;
	struct log_policy log;
	/* Once: all that it wrote is in the files (err NULL), or they cannot be gone on with. The
	 * pull is to be freed, here or later. */
	void (*on_end)(void *userdata, const struct error *err);
	/* So many bytes of output more are not in the files since they could not be written
	 * (`log`); those that its keeper has lost are told by that. */
	void (*on_lost)(void *userdata, uint64_t n);
	void *userdata;
};

/* on_end is not called before this has returned. -ENOMEM. */
int log_pull_new(struct log_pull **ret, const struct log_pull_config *config);
/* Replaces own_fd by this file, which is taken over: output that follows goes there. done is called
 * when nothing more is written to the old file. One change at a time: -EBUSY. */
int log_pull_change(struct log_pull *p, int fd,
		    void (*done)(void *userdata, const struct error *err), void *userdata);
/* No callback comes any more. A write that a thread has begun is completed. */
struct log_pull *log_pull_free(struct log_pull *p);

#endif
