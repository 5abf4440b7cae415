/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_SPAWN_PARTS_H
#define NACRE_ISOLATE_SPAWN_PARTS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "isolate/steps/step.h"

/* Parts of a spawn that only some plans need, done by the spawner in its own view; private to this
 * area. Each does nothing for a plan that does not ask for it. */

/* Detached mounts of all that a tree binds, with their attributes. What a failure leaves in s is
 * undone by spawn_tree_done(). */
int spawn_tree_prepare(struct isolate_steps *s, struct error *err);
void spawn_tree_done(struct isolate_steps *s);

/* Whether sysctls of a joined namespace would be those of the spawner's own. proc_fd: its private
 * /proc. */
int spawn_sysctls_check(const struct isolate_plan *plan, int proc_fd, struct error *err);

/* Before the clone: hands the pipes of the streams to the program's user of a user namespace. */
int spawn_user_prepare(struct isolate_steps *s, struct error *err);
/* Behind the clone: maps the ids, does what only the spawner's privilege can do, and lets the child
 * go on. */
int spawn_user_map(const struct isolate_steps *s, pid_t pid, struct error *err);

/*
 * A clone into a user namespace that is joined, with others that are new and shall belong to it: a
 * helper, which shares the table of descriptors, enters it and clones from there, as a child of
 * this process. flags: all of the clone, without CLONE_PIDFD. run: what the child does, and does
 * not return from. The pid, or a negative errno.
 */
pid_t spawn_beside(struct isolate_steps *s, uint64_t flags, void (*run)(struct isolate_steps *s),
		   int *ret_pidfd);

#endif
