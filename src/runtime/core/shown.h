/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_SHOWN_H
#define NACRE_RUNTIME_SHOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "base/text/id.h"
#include "base/text/parse.h"
#include "runtime/core/target.h"

/*
 * The objects that a node lists, in one order: workloads, and instances (one that was spawned for a
 * pod is shown as that pod). The order is that of creation, and where two were created in the same
 * instant that of their ids: it never changes, so that a client that has seen everything up to a
 * place can go on behind it, whatever has come and gone meanwhile.
 */

struct workload_service;

/* A place in the order: behind the object of this id. */
struct shown_place {
	uint64_t created_at;
	char id[ID_SIZE]; /* "": before the first */
};

/* Which objects; empty sets stand for all. */
struct shown_filter {
	unsigned kinds, states; /* sets of words, one bit each */
	bool ended;             /* also what has ended; `states` overrules it */
	char below[NAME_PATH_MAX + 1];
	char *const *labels; /* NAME or NAME=VALUE, of the request; all of them */
	size_t n_labels;
};

/* ERROR_INVALID names the word: "kinds[1]", "states[0]", "below". */
int shown_filter_set(struct shown_filter *f, char *const *kinds, size_t n_kinds,
		     char *const *states, size_t n_states, const char *below, struct error *err);
/* Those that have all these labels. ERROR_INVALID names the word: "labels[1]". */
int shown_filter_set_labels(struct shown_filter *f, char *const *labels, size_t n,
			    struct error *err);
bool shown_matches(const struct shown_filter *f, const struct target *t);
/* The part of it that an object which is gone can be asked: its kind and path. */
bool shown_covers(const struct shown_filter *f, const char *kind, const char *path);
/* Whether it is shown at all: the node's own keeper and the instance of a pod are not. */
bool shown_is(const struct target *t);

struct shown_place shown_place_of(const struct target *t);
/* Negative, 0 or positive, as strcmp(). */
int shown_compare(const struct shown_place *a, const struct shown_place *b);

/* All that match and lie behind `after`, in order; the array lies in the arena. 0 or -ENOMEM. */
int shown_collect(const struct workload_service *s, const struct shown_filter *f,
		  const struct shown_place *after, struct arena *a, struct target **ret,
		  size_t *ret_n);

#endif
