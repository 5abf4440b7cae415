/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_SPAWN_H
#define NACRE_ISOLATE_SPAWN_H

#include <sys/types.h>

#include "base/log/error.h"
#include "isolate/plan/plan.h"
#include "isolate/plan/rest.h"
#include "isolate/spawn/ns.h"

/*
 * Carries out a plan: each program of the house is cloned here. The child goes through a table of
 * named steps (steps.c says what each should and must not do) and executes the program, or reports
 * the step that failed. The caller's loop goes on meanwhile.
 *
 * A new process in a joined pid namespace (exec into a container) is born there directly: the
 * spawner sets its pid_for_children for the length of the clone, so nothing forks twice.
 */

struct isolate_child {
	pid_t pid; /* as the spawner sees it */
	int pidfd;
	int report_fd; /* becomes readable when the program runs or a step has failed */
	int give_fd;   /* with root_later, until the root was given */
};

#define ISOLATE_CHILD_INIT                                                                         \
	{                                                                                          \
		.pid = -1, .pidfd = -1, .report_fd = -1, .give_fd = -1                             \
	}

/* Does the work that the first spawn of a process would do, ahead of it. A failure is not told: the
 * first spawn tries again. */
void isolate_spawn_begin(void);

/* The child is the caller's to reap, also where a step of it fails. The first spawn of a process
 * opens two descriptors that it keeps: a private /proc, and its own pid namespace. */
int isolate_spawn(const struct isolate_plan *plan, struct isolate_child *ret, struct error *err);

/*
 * Gives a child with root_later what its plan would have had as root_fd, once; the descriptor stays
 * the caller's. A child that is gone already is no error: its report and its end tell. One that
 * never gets it waits until it is killed, or nobody is left who could give it: then it fails.
 */
int isolate_child_give_root(struct isolate_child *c, int root_fd, struct error *err);

/* The same of one with rest_later, for all of that. ERROR_INVALID where it is too much for a
 * message (isolate_rest_fits()). */
int isolate_child_give_rest(struct isolate_child *c, const struct isolate_rest *rest,
			    struct error *err);

/* Closes the descriptors. Neither kills nor waits. */
void isolate_child_done(struct isolate_child *c);

/*
 * Reads what report_fd has to say; blocks where it has nothing yet. 0: the program was executed.
 * Otherwise the error of the step, and *ret_exit is what a shell would say: 127 where the program
 * does not exist, 126 where it cannot be executed, 125 for any other step. A child that was killed
 * while its steps ran reads as executed: its exit status tells.
 */
int isolate_child_report(struct isolate_child *c, int *ret_exit, struct error *err);

/* The same of its root, for ISOLATE_ROOT_OTHER: a directory (O_PATH). */
int isolate_root_open(int proc_fd, pid_t pid);
/* The spawner's /dev/null, seen to be that: what a plan without a descriptor for a stream gives. */
int isolate_null_open(struct error *err);

#endif
