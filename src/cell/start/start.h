/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_START_H
#define NACRE_CELL_START_H

#include "cell/spec.h"
#include "isolate/spawn/prepared.h"

/* The arguments of a start, needed until the clone only. */
struct container_start {
	char **argv;
	struct container_fds fds;
	struct log_policy log;
	bool stdin_open;
	bool tty;
	struct terminal_size terminal;
	struct isolate_ids ids; /* of its cell, when it is cloned */
	bool hold_output;
	struct container_mount *mounts; /* fds.n_mounts of them */
	size_t n_mounts;
	bool read_only_root;
	bool new_proc;
	char **hidden, **read_only;       /* container_spec.masks; NULL: none */
	int pids_fd;                      /* the pid namespace that it joins; -1: none */
	struct isolate_prepared prepared; /* that its cell was made with */
	bool prefetched; /* its process waits for all that is its own: isolate/plan/rest.h */
	bool waited_for_prepared, waits_for_prepared;
	bool awaits;        /* the rest of fds */
	bool ahead;         /* all that the clone needs is there, but for the root */
	bool logged;        /* it has a log, or will have one */
	char *user, *image; /* as they were asked for; with `awaits` */
};

/* Takes the descriptors over, also on failure; NULL without memory. */
struct container_start *start_new(const struct container_spec *spec, struct container_fds *fds);
struct container_start *start_free(struct container_start *s);

#endif
