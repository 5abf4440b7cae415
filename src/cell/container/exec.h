/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_EXEC_H
#define NACRE_CELL_EXEC_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "cell/spec.h"

/*
 * A program beside that of a running container.
 *
 *   RUNNING    spawned. Its output is handed on.
 *   DRAINING   reaped; somebody still holds its output open, or nobody has read it yet.
 *              Others that hold it open are waited for 200 ms.
 *   CANCELLED  killed, nothing is handed on any more; waits to be reaped.
 *   OVER       the last callback runs, or (cancelled) it is freed before the loop waits again.
 *
 * It outlives its container where its output is read slowly.
 */

enum exec_state { EXEC_RUNNING, EXEC_DRAINING, EXEC_CANCELLED, EXEC_OVER, EXEC_STATE_COUNT };

struct container;
struct keeper_exec;

/* keeper_exec(); the exec is in the container's list afterwards. */
int exec_new(struct keeper_exec **ret, struct container *c, const struct keeper_exec_spec *spec,
	     const struct keeper_exec_ops *ops, void *userdata, struct error *err);
/* Neither kills nor waits, calls nothing back. */
struct keeper_exec *exec_free(struct keeper_exec *x);

void exec_pause(struct keeper_exec *x, bool paused);
void exec_cancel(struct keeper_exec *x);
/* keeper_exec_write(), keeper_exec_resize(), keeper_exec_signal(). */
int exec_write(struct keeper_exec *x, const void *data, size_t len, bool close,
	       void (*done)(void *userdata, const struct error *err), struct error *err);
int exec_resize(struct keeper_exec *x, const struct terminal_size *size, struct error *err);
int exec_signal(struct keeper_exec *x, int sig, struct error *err);

/* The first exec of a list (of a container's, or of those that exec_detach() made), or NULL. */
struct keeper_exec *exec_first(struct list *execs);
/* The container's program has ended: nothing lives on there. */
void exec_end_all(struct list *execs);
/* The container goes away: its execs, if any are left, move to `to`. */
void exec_detach_all(struct container *c, struct list *to);
bool exec_list_has_pid(struct list *execs, pid_t pid);

/* keeper_open_root(). */
int exec_open_root(const struct container *c, const char **ret_name, struct error *err);

#endif
