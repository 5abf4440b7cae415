/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PLUGIN_RUN_H
#define NACRE_PLUGIN_RUN_H

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/time/clock.h"

/*
 * One run of a plugin: a child process that reads one document and writes another. It leads a
 * process group of its own, has three descriptors and no other, all signals as a fresh program has
 * them, and a limit of time and of output; where it keeps to neither its group is killed. A child
 * of it that holds its output open after it has ended is not waited for.
 *
 * The caller waits for it, so not in a loop thread, and ignores SIGPIPE. Several threads may run
 * plugins at once.
 */

#define PLUGIN_OUT_MAX ((size_t)1 << 20)
#define PLUGIN_STDERR_MAX ((size_t)64 << 10) /* the rest is read and dropped */

struct plugin_run {
	const char *path;
	char *const *env;
	const void *input;
	size_t input_len;
	nsec_t limit;
	int cancel_fd; /* readable: kill it; -1: nobody cancels */

	/* The result. */
	struct buf out, complaint; /* stdout, stderr */
	int status;                /* its exit code, or -1: a signal ended it */
	int signal;
	unsigned code; /* of the error that it told; for the caller (plugin/chain.h), 0 meanwhile */
};

#define PLUGIN_RUN_INIT                                                                            \
	{                                                                                          \
		.cancel_fd = -1, .out = BUF_INIT_LIMIT(PLUGIN_OUT_MAX), .complaint = BUF_INIT      \
	}

void plugin_run_done(struct plugin_run *p);

/* 0 whatever its exit code is. ERROR_DEADLINE: it took too long; ERROR_INVALID: too much output;
 * ERROR_CANCELLED; ERROR_PRECONDITION: it cannot be executed. All have the whole sentence. */
int plugin_run(struct plugin_run *p, struct error *err);

#endif
