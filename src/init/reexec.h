/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_REEXEC_H
#define NACRE_INIT_REEXEC_H

#include <stdbool.h>

#include "base/log/error.h"

/*
 * Both ends of the execve() by which a keeper goes on as another program (keeper/server/upgrade.h):
 * the words on its command line, and which descriptors stay open.
 */

struct handover_writer;

struct reexec {
	int state_fd;         /* -1: a keeper that was just born */
	int host_mount_ns_fd; /* with a state: what the keeper of the node holds; -1: none */
};

#define REEXEC_INIT                                                                                \
	{                                                                                          \
		.state_fd = -1, .host_mount_ns_fd = -1                                             \
	}

/* Takes a word of the command line and its value: 1 where it was one of ours, else 0. ERROR_INVALID
 * for a value that is no open descriptor. */
int reexec_parse(struct reexec *r, const char *word, const char *value, struct error *err);

/*
 * Should: leave open exactly what a new keeper finds open (instance/spawn.h), with exe_fd as the
 * program to make further keepers from, and what the state names; say again what this process was
 * started with.
 * Must not: change anything where it fails.
 *
 * path: of the keeper, as its title says; node: whether it is that of the node.
 */
int reexec_execute(const char *path, bool node, int host_mount_ns_fd, int exe_fd, int state_fd,
		   const struct handover_writer *w, struct error *err);

/* `keeper --try`: whether the state can be read; the exit status of the process. */
int reexec_try(void);

#endif
