/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_KEEPER_H
#define NACRE_CELL_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "cell/layer/keeper_config.h"
#include "cell/spec.h"

/*
 * The owner of the workloads of one layer: their parent, reaper, log writer, keeper of their exit
 * statuses. Its state is in memory and lasts as long as the process. It knows nothing of gRPC, of
 * images or of other layers.
 *
 * A cell comes to be with its first container and lasts until keeper_remove_cell(). Its directory
 * in cgroup_fd is cell.NAME, that of a container below it NAME; where the first one's process was
 * made ahead of need (cell/start/spare_container.h), both have numbers, and these names as
 * attributes (isolate/cgroup/cgroup_name.h).
 */

struct keeper;
struct keeper_attach;
struct keeper_exec;
struct keeper_log;
struct process_identity;

/* The visible state of a container; valid during a callback or until the loop turns. */
struct container_view {
	const char *id;
	const char *cell;
	const char *name;
	const char *cell_dir, *dir; /* of their groups, below the layer's and the cell's */
	struct container_status status;
	const struct process_identity *user; /* NULL: not told */
};

/* Limits; past one of them the answer is ERROR_EXHAUSTED. */
#define KEEPER_CELLS_MAX 256
#define KEEPER_CONTAINERS_MAX 1024

int keeper_new(struct keeper **ret, const struct keeper_config *config);
/* Kills everything at once (cgroup.kill), waits for no process; calls nothing back. Not from within
 * a callback of the keeper. */
struct keeper *keeper_free(struct keeper *k);

/* The descriptors are taken over, also on failure (-1 where there is none: a container without log
 * writes to nowhere). `done` is called once, when the program runs or has failed (state FAILED);
 * never before this has returned. ERROR_EXISTS: id, or name in its cell, is taken. ERROR_INVALID
 * names the field. */
int keeper_start(struct keeper *k, const struct cell_spec *cell, const struct container_spec *spec,
		 struct container_fds *fds, keeper_started_fn done, void *userdata,
		 struct error *err);

/*
 * Gives the descriptors that a start with spec->late waits for: it goes on with these, which are
 * taken over. Nothing happens where it does not wait any more. A fault in them is told by state
 * FAILED.
 */
void keeper_supply(struct keeper *k, const char *id, struct container_fds *fds);
/* They will not come: FAILED, err says why. */
void keeper_withdraw(struct keeper *k, const char *id, const struct error *err);

/* ERROR_NOT_FOUND; success where it has ended. all: every process in the container's cgroup
 * (cgroup.kill, SIGKILL only). */
int keeper_signal(struct keeper *k, const char *id, int sig, bool all, struct error *err);
/* pump_change_log() of a container that has a log; fd is taken over. ERROR_NOT_FOUND,
 * ERROR_PRECONDITION, ERROR_ABORTED. */
int keeper_change_log(struct keeper *k, const char *id, int fd, void (*changed)(void *data),
		      void *data, struct error *err);
/* The root directory of a container's processes (O_PATH), and its name, valid until the loop turns.
 * ERROR_NOT_FOUND, ERROR_PRECONDITION where it does not run or has no root of its own. */
int keeper_open_root(struct keeper *k, const char *id, const char **ret_name, struct error *err);
/* Forgets a container that has ended: ERROR_PRECONDITION while it runs; unknown is success. */
int keeper_remove(struct keeper *k, const char *id, struct error *err);
/* Kills what runs in it, waits for the ends, forgets the containers, removes cgroups and
 * namespaces; then done. Unknown is success. */
void keeper_remove_cell(struct keeper *k, const char *name, void (*done)(void *userdata),
			void *userdata);
/* Calls fn for each container. */
void keeper_each(struct keeper *k, void (*fn)(void *userdata, const struct container_view *view),
		 void *userdata);
/* Kills everything; done when all have ended and their logs are written, and the cells are removed
 * as by keeper_remove_cell(). Nothing can be started any more. */
void keeper_shutdown(struct keeper *k, void (*done)(void *userdata), void *userdata);

/*
 * Reaps children that nobody watches: orphans that came to this process as pid 1 of its namespace
 * or as subreaper. To be called on the loop's thread at each SIGCHLD (and once after the handler is
 * armed). It never takes a process that a container, an exec or is_other_child() owns; where the
 * kernel shows such a one first, it comes back by a timer after its owner's turn.
 */
void keeper_reap_orphans(struct keeper *k);
/* Whether the keeper itself watches this child. */
bool keeper_owns_pid(struct keeper *k, pid_t pid);

/* ---- the next program of the process (architecture 9.4) ---- */

struct handover_reader;
struct handover_writer;

/* While held no log is written, so that soon nothing is under way; programs go on until their pipes
 * are full. To be let go again, unless the process is gone. */
void keeper_hold(struct keeper *k, bool held);
/* Why the state cannot be handed over now (something is half done: it comes to an end by itself),
 * or NULL. */
const char *keeper_busy(struct keeper *k);
/* The cells with their containers: while held and not busy. 0, -ENOMEM or -ENOBUFS. */
int keeper_write_state(struct keeper *k, struct handover_writer *w);
/* Into a new keeper; and takes it up, unless that is a trial: then nothing is kept. An error leaves
 * a keeper that is good for keeper_free() only. */
int keeper_read_state(struct keeper *k, struct handover_reader *r, struct error *err);

/* ---- exec (struct keeper_exec_spec and keeper_exec_ops: spec.h) ---- */

/* The program joins all namespaces, the cgroup, the capabilities and the seccomp filter of its
 * container. No callback before this has returned. ERROR_NOT_FOUND, ERROR_PRECONDITION where it
 * does not run. A program that cannot be started ends with 127, 126 or 125 and the reason. */
int keeper_exec(struct keeper *k, const struct keeper_exec_spec *spec,
		const struct keeper_exec_ops *ops, void *userdata, struct keeper_exec **ret,
		struct error *err);
/* While paused no output is read, so the program blocks. */
void keeper_exec_pause(struct keeper_exec *x, bool paused);
/* To its standard input, as keeper_write_stdin(), where the spec had it open; `done` gets the
 * userdata of the exec, and does not come once that has ended or was cancelled. */
int keeper_exec_write(struct keeper_exec *x, const void *data, size_t len, bool close,
		      void (*done)(void *userdata, const struct error *err), struct error *err);
/* ERROR_INVALID where it has no terminal. */
int keeper_exec_resize(struct keeper_exec *x, const struct terminal_size *size, struct error *err);
int keeper_exec_signal(struct keeper_exec *x, int sig, struct error *err);
/* Kills the program and what it started as far as it is in its session; no callback comes any more.
 */
void keeper_exec_cancel(struct keeper_exec *x);

/* ---- attach (struct keeper_attach_spec and keeper_attach_ops: spec.h) ---- */

/*
 * To the first program of a container: its output from now on (or with what the ring still has),
 * its input, its end. Also to one that has ended, for its replay. An attached client is not
 * overtaken: rather the output waits for it, for ATTACH_PATIENCE at most. No callback before this
 * has returned. ERROR_NOT_FOUND; ERROR_PRECONDITION where it has not begun to run, or has no open
 * stdin.
 */
int keeper_attach(struct keeper *k, const struct keeper_attach_spec *spec,
		  const struct keeper_attach_ops *ops, void *userdata, struct keeper_attach **ret,
		  struct error *err);
/* While paused no output is told. */
void keeper_attach_pause(struct keeper_attach *a, bool paused);
/* As keeper_exec_write(), but waits behind the writes of others. */
int keeper_attach_write(struct keeper_attach *a, const void *data, size_t len, bool close,
			void (*done)(void *userdata, const struct error *err), struct error *err);
int keeper_attach_resize(struct keeper_attach *a, const struct terminal_size *size,
			 struct error *err);
int keeper_attach_signal(struct keeper_attach *a, int sig, struct error *err);
/* The container does not notice. No callback comes any more. */
void keeper_attach_leave(struct keeper_attach *a);

/* ---- a log that is kept (container_spec.keep_log, struct keeper_log_ops: spec.h) ---- */

/*
 * Its lines from the place `from` on, which lets go of those before; from where they begin, if that
 * is later. An earlier reader is told ERROR_ABORTED, as is the last one when the container is
 * removed. No callback before this has returned. ERROR_NOT_FOUND; ERROR_PRECONDITION where it is
 * not kept; ERROR_INVALID where no line begins there. *ret is for kept_take() and its kin
 * (cell/output/kept.h).
 */
int keeper_log_open(struct keeper *k, const char *id, uint64_t from,
		    const struct keeper_log_ops *ops, void *userdata, struct keeper_log **ret,
		    struct error *err);
/* ---- standard input ---- */

/* Copies data; done when it is in the pipe (err NULL), or cannot be any more. One at a time for a
 * container (ERROR_PRECONDITION). close: end of file behind it. */
int keeper_write_stdin(struct keeper *k, const char *id, const void *data, size_t len, bool close,
		       void (*done)(void *userdata, const struct error *err), void *userdata,
		       struct error *err);

#endif
