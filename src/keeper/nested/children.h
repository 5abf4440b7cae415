/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CHILDREN_H
#define NACRE_KEEPER_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "keeper/nested/child.h"

/*
 * The instances nested in a keeper, by name. The record of one that ended without being told to is
 * kept until it is ended by name or its name is used again.
 */

#define CHILDREN_MAX 128
#define CHILDREN_ENDED_MAX 64

struct fdchan_packet;

struct children_config {
	struct child_config child; /* on_settled and userdata are filled in */
	/* One has ended without being told to; everything of it is cleaned up. */
	void (*on_end)(void *userdata, const char *name, const char *reason);
	void *userdata;
};

struct children {
	struct children_config config;
	struct list list;             /* in order of birth */
	void (*shut)(void *userdata); /* of children_shutdown() */
};

void children_init(struct children *all, const struct children_config *config);
/* Kills the keepers that are left, without waiting. No callback comes any more. */
void children_done(struct children *all);

/* As child_new(). Also ERROR_INVALID, ERROR_EXISTS, ERROR_EXHAUSTED (too many). */
int children_spawn(struct children *all, const struct child_spec *spec, child_spawned_fn done,
		   void *userdata, struct error *err);

/* Ends it with all that is in it, forgets it; done when nothing of it is left. It may be called
 * before this returns, where there was nothing to do. -ENOMEM, then done is not called. */
int children_end(struct children *all, const char *name, void (*done)(void *userdata),
		 void *userdata);
/* Ends all. done is called with the userdata of the configuration, at once where there is none. */
void children_shutdown(struct children *all, void (*done)(void *userdata));

/* The connection for a target "b/c": that of b; *ret_rest is "c". */
int children_route(struct children *all, const char *target, struct rpc_client **ret_client,
		   const char **ret_rest, struct error *err);
/* Passes a descriptor on to the first name of its target. */
void children_forward(struct children *all, const struct fdchan_packet *packet);

/* Those that run (reason NULL) and those that have ended. */
void children_each(struct children *all,
		   void (*fn)(void *userdata, const char *name, int64_t pid, const char *reason),
		   void *userdata);

struct handover_reader;
struct handover_writer;

/* Why they cannot be handed over to the next program now, or NULL. */
const char *children_busy(struct children *all);
/* While they are not busy: 0, -ENOMEM or -ENOBUFS. */
int children_write_state(struct children *all, struct handover_writer *w);
/* Into children that have none; takes them up, unless that is a trial. */
int children_read_state(struct children *all, struct handover_reader *r, struct error *err);

/* Whether a process is the keeper of one of them and is still to be reaped here. */
bool children_own(struct children *all, pid_t pid);

#endif
