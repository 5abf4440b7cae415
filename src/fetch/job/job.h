/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_JOB_H
#define NACRE_FETCH_JOB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "wire/message/fetchmsg.h"

/*
 * The common frame of both programs: one job, named by a word, with descriptors at fixed numbers.
 * The program waits for its request (wire/message/fetchmsg.h), closes the sandbox around itself,
 * answers, and ends. The core checks its answers; all that it needs of the machine is in those
 * descriptors.
 */

enum { JOB_SOCK_FD = 3, JOB_FROM_FD = 4, JOB_TO_FD = 5, JOB_PIPE_FD = 6 };

/* Of a job that goes to a root that is there already: the pipe is behind it. */
enum { JOB_ROOT_FD = 6, JOB_ROOT_PIPE_FD = 7 };

struct job_command {
	const char *name;
	enum fetchmsg_type request; /* that must come for it */
	/* to_fd: the directory, open for reading. An error is sent to the core. */
	int (*run)(const struct fetchmsg *request, int to_fd, struct error *err);
	bool to_pipe; /* in place of the directory, and as it came */
};

struct job_program {
	const char *name;
	const struct job_command *commands;
	size_t n_commands;
};

/* All of main(). */
int job_main(const struct job_program *program, int argc, char **argv);

#endif
