/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_UPGRADE_H
#define NACRE_KEEPER_UPGRADE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "isolate/spawn/spawn.h"
#include "loop/loop.h"

/*
 * The call Upgrade: the process goes on as another program, with the same pid, children and pipes.
 * The caller learns of it by the loss of the connection, connects again and sees another build.
 *
 * Any failure, that of execve() too, leaves the keeper as it was and is the answer to the call:
 * nothing is given up before. ERROR_ABORTED: something was half done for too long (an exec or
 * another stream is open, a container is starting, a cell is being removed); to be asked again.
 */

struct children;
struct handover_writer;
struct keeper;
struct rpc_call;
struct rpc_server;

struct upgrade_config {
	struct loop *loop;
	struct keeper *keeper;
	struct children *children;
	struct rpc_server *rpc;
	/* Executes the program with what was written; returns only where that fails, with
	 * everything as it was. */
	int (*execute)(void *userdata, int exe_fd, int state_fd, const struct handover_writer *w,
		       struct error *err);
	void *userdata;
};

/*
 *   IDLE     nothing was asked.
 *   WAITING  writing is held until nothing is half done; `timer` looks again.
 *   TRYING   the new program looks, as a child, whether it can read the state; everything goes on
 *            meanwhile, and `timer` is its patience.
 */
enum upgrade_state { UPGRADE_IDLE, UPGRADE_WAITING, UPGRADE_TRYING, UPGRADE_STATE_COUNT };

struct upgrade {
	struct upgrade_config config;
	enum upgrade_state state;
	struct rpc_call *call;
	int exe_fd;
	bool tried; /* the new program can read such a state */
	unsigned n_looks;
	struct loop_timer timer;
	struct isolate_child trial;
	struct loop_child watch;
	int words_fd; /* messages of the trial */
};

void upgrade_init(struct upgrade *u, const struct upgrade_config *config);
/* Ends the call, kills the trial. */
void upgrade_done(struct upgrade *u);

/* Takes exe_fd over; ends the call, unless the process goes on as another program. */
void upgrade_begin(struct upgrade *u, struct rpc_call *call, int exe_fd);
/* Whether this child is the trial. */
bool upgrade_owns(const struct upgrade *u, pid_t pid);

/* The beginning of the next program: reads the state into a new keeper and new children, and
 * resumes them. */
int upgrade_resume(struct keeper *k, struct children *children, int state_fd, struct error *err);
/* Only looks whether a state can be read. */
int upgrade_try(int state_fd, struct error *err);

/* The descriptors that the trial finds open. */
enum upgrade_fd { UPGRADE_FD_STATE = 3, UPGRADE_FD_WORDS };

#endif
