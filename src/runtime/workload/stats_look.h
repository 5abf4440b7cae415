/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_STATS_LOOK_H
#define NACRE_RUNTIME_STATS_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "isolate/cgroup/usage.h"
#include "pod/workload/model.h"
#include "runtime/workload/machine_usage.h"

/*
 * One look at what workloads and instances use. The loop writes down which groups to read, asks the
 * keepers that have groups of another kernel, and when all of them have answered, or could not, a
 * thread reads those that are here. The contents of an entry are copied: its workload may be gone
 * by then.
 */

struct instance;
struct workload_service;

struct stats_entry {
	char *group; /* NULL: its keeper is asked */
	char *cell;  /* then: of a cell; "": of a container (by its id), or all that the keeper has
		      */
	char *id, *name;
	const char *kind; /* NULL: a container of the workload entry in front of it */
	size_t question;
	struct machine_usage machine;
	struct usage usage;
	struct disk_written files; /* at 0: they are not here, or not measured yet */
	uint64_t logs;
	int result; /* of usage_read() */
};

struct stats_question;

struct stats_look {
	struct arena arena;
	int top_fd;
	struct stats_entry *entries;
	size_t n, size;
	size_t n_workloads; /* entries that are no containers */
	uint64_t time;      /* of stats_look_read(): wall clock, nanoseconds */
	void (*ready)(void *userdata);
	void *userdata;

	/* Private. */
	struct stats_question *questions;
	size_t n_questions, questions_size;
	size_t question;  /* of what is added */
	size_t n_pending; /* of them, and one for who asks */
	bool is_closed;   /* no answer counts any more */
	bool is_freed;    /* and the last one frees it */
	unsigned *n_late; /* looks of the same owner that are freed and not answered; or NULL */
};

/* NULL without memory. n_late may be NULL, and must outlive the last answer. */
struct stats_look *stats_look_new(const struct workload_service *s, unsigned *n_late);
/* Not while a thread has it. Where answers are missing it is freed behind the last of them. NULL is
 * fine. */
struct stats_look *stats_look_free(struct stats_look *l);

/* A workload or an instance, with its containers behind it; nothing of one that has ended, or has
 * no group. 0 or -ENOMEM. */
int stats_look_add_workload(struct stats_look *l, struct workload_service *s, struct workload *w);
int stats_look_add_instance(struct stats_look *l, struct workload_service *s, struct instance *i);
/* All, in the order of their lists: instances that are no pod's, then workloads. */
int stats_look_add_all(struct stats_look *l, struct workload_service *s);

/* Asks the keepers; ready() comes once, maybe from within. */
void stats_look_ask(struct stats_look *l, void (*ready)(void *userdata), void *userdata);
/* Nobody waits for them any more: ready() does not come. */
void stats_look_close(struct stats_look *l);
/* For a thread: behind ready() or stats_look_close(). */
void stats_look_read(struct stats_look *l);

#endif
