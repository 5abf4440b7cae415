/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CHILD_H
#define NACRE_KEEPER_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "base/text/parse.h"
#include "instance/peer.h"
#include "isolate/spawn/spawn.h"
#include "keeper/message/unary.h"
#include "keeper/nested/nest.h"
#include "loop/loop.h"

/*
 * One instance nested in a keeper: its keeper's process, the connection to it, its cgroup and the
 * directory of its sockets. Of one that has a kernel of its own that process is the one that keeps
 * its machine (keeper/nested/nest.h), and no descriptor can be passed on to it.
 *
 * STARTING  cloned; has not said hello. Nothing is routed to it.
 * RUNNING   said hello. Calls and descriptors are passed on while the connection stands.
 * ENDING    told to end, or killed because it could not be used; `timer` kills it.
 * CLEANING  its process is no more; cgroup and sockets are being removed.
 * ENDED     only the record of why it ended is left.
 *
 * A request for its end (End, or a Spawn that has failed) sets `unwanted`: then nothing stays
 * behind.
 */
enum child_state {
	CHILD_STARTING,
	CHILD_RUNNING,
	CHILD_ENDING,
	CHILD_CLEANING,
	CHILD_ENDED,
	CHILD_STATE_COUNT
};

#define CHILD_REASON_MAX 512
#define CHILD_KERNEL_MAX 65

struct child;
struct rpc_client;

struct child_config {
	struct loop *loop;
	int run_fd;    /* where the directories of sockets are made */
	int cgroup_fd; /* the parent's group: theirs are inst.NAME in it */
	int exe_fd;    /* the program */
	/* Of the guest that all of them are in, or NULL; in_guest: those that this process sees. */
	const struct disk_places *disks;
	bool in_guest;
	const char *path; /* the parent's own: "pod/web", "a/b"; "" for the keeper of the node */
	/* It is ENDED; to be freed where it is unwanted, and it may be in any case. */
	void (*on_settled)(void *userdata, struct child *c);
	void *userdata;
};

/* err NULL: it said hello; c has its process, and the release of a kernel of its own. */
typedef void (*child_spawned_fn)(void *userdata, const struct child *c, const struct error *err);

struct child {
	struct list link; /* its owner's */
	const struct child_config *config;
	char name[NAME_LABEL_MAX + 1];
	enum child_state state;
	bool unwanted;
	char reason[CHILD_REASON_MAX]; /* once ENDED */
	struct isolate_child process;
	struct rpc_client *rpc; /* NULL where there is no connection */
	int channel_fd;
	bool machine;
	char kernel[CHILD_KERNEL_MAX]; /* of its machine, once it has come up; else "" */

	/* Private to child.c. */
	bool killed;
	int dir_fd, cgroup_fd;
	struct loop_child watch;
	struct loop_fd report;
	int line_fd; /* of a machine */
	struct loop_fd line;
	struct loop_timer timer;
	nsec_t connected_at;
	bool lost; /* it could not be reached a moment ago */
	unsigned n_cleans;
	struct unary unary;       /* Hello, later Shutdown */
	child_spawned_fn spawned; /* NULL once it was told */
	void *spawned_userdata;
	struct error spawn_err;
	struct list waiters;
};

struct child_spec {
	const char *name;
	struct peer_shares shares;
	const struct nest *nest; /* NULL: it is a cell */
};

/* config must live as long. done is called once, later, when the new keeper has said hello or
 * everything of it is cleaned up again; not where this fails. ERROR_EXHAUSTED: too deep. */
int child_new(struct child **ret, const struct child_config *config, const struct child_spec *spec,
	      child_spawned_fn done, void *userdata, struct error *err);
/* Makes a child that is to be filled (keeper/nested/child_state.h): without a process, in no list.
 */
int child_alloc(struct child **ret, const struct child_config *config, const char *name,
		struct error *err);
/* Takes up what was filled: watches the process and connects to it again. */
void child_resume(struct child *c);
/* Why it cannot be handed over now, or NULL. */
const char *child_busy(const struct child *c);
/* Neither kills nor cleans up nor tells. */
struct child *child_free(struct child *c);

static inline bool child_alive(const struct child *c)
{
	return c->state != CHILD_ENDED;
}

/* Asks its keeper to shut down, kills it where that takes too long. Twice is once. */
void child_end(struct child *c);
void child_kill(struct child *c);
/* done is called once it is ENDED, after on_settled. */
int child_wait(struct child *c, void (*done)(void *userdata), void *userdata);

#endif
