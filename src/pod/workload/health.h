/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_HEALTH_H
#define NACRE_POD_HEALTH_H

#include "pod/workload/health_record.h"

/*
 * Health of containers: probes that are repeated while one runs, what they said last, and what
 * follows. When the next one is due is known here; what a probe is, and how it is made, knows
 * whoever gave health_ops (runtime/workload/health.h).
 *
 * HEALTH_STARTING until a probe has succeeded: HEALTH_HEALTHY. So many failures in a row as its
 * rule says, without those of its start period: HEALTH_UNHEALTHY; then what the rule says for that
 * is done, once. The state is in the record of the container: a daemon that takes over goes on from
 * there, and does what its predecessor had not come to. So are the last results, which are shown
 * alone.
 *
 * A probe that could not be made, since its keeper could not be asked, counts for nothing.
 */

#define HEALTH_TIME_MIN (100 * NSEC_PER_MSEC)
#define HEALTH_TIME_MAX (24 * 3600 * NSEC_PER_SEC)
#define HEALTH_RETRIES_MAX 1000
#define HEALTH_TIME_OVER (-1) /* health_result.exit_code */

enum health_kind { HEALTH_COMMAND, HEALTH_SHELL, HEALTH_HTTP, HEALTH_TCP, HEALTH_GRPC };

enum health_action { HEALTH_DO_NOTHING, HEALTH_KILL, HEALTH_STOP, HEALTH_RESTART };

struct health_rule {
	enum health_kind kind;
	char **words; /* of HEALTH_COMMAND; the one of HEALTH_SHELL; a path or a service. Owned */
	uint16_t port;
	nsec_t interval, timeout, start_period, start_interval;
	unsigned retries;
	enum health_action action;
};

struct health {
	struct pod_container *container;
	struct health_rule rule;
	unsigned streak; /* failures in a row that count */
	bool acted;      /* the rule's action was taken since it became unhealthy */
	struct health_result results[HEALTH_RESULTS]; /* the oldest first */
	size_t n_results, place;                      /* place: of the next one in the store */
	struct health_probe *probe;                   /* under way; NULL: none is */
	uint64_t probe_at;                            /* clock_real() of when that began */
	struct loop_timer timer;                      /* until the next one */
	struct list waits; /* struct health_wait, for the end of the one under way */
};

/* The functions that probing needs, given by the runtime service. */
struct health_ops {
	/* 1: *ret is filled in, and owned by the caller; 0: it has no check. -ENOMEM. */
	int (*rule)(void *userdata, const struct pod_container *c, struct health_rule *ret);
	/* Begins one; health_tell() ends it, never from within. A failure counts for nothing. */
	int (*probe)(void *userdata, struct pod_container *c, struct health_probe **ret,
		     struct error *err);
	/* Nobody wants to know any more: what was begun is killed. */
	void (*cancel)(struct health_probe *p);
	/* It became unhealthy. May not free it. */
	void (*act)(void *userdata, struct pod_container *c, enum health_action action);
};

void health_rule_done(struct health_rule *r);

/* How a probe ended; the bytes are copied. err: it could not be made. */
void health_tell(struct pod_container *c, int exit_code, const void *output, size_t n_output,
		 const struct error *err);

/* Waits for the result of one that is made now, or is under way: a value of the caller's. */
struct health_wait {
	struct list link;
	/* It is out of the list. result NULL: err says why there is none. */
	void (*done)(struct health_wait *w, const struct health_result *result,
		     const struct error *err);
};
/* ERROR_PRECONDITION where it has no check, does not run, or is paused; and what a probe fails
 * with. done comes later. */
int health_run(struct pod_container *c, struct health_wait *w, struct error *err);
void health_forget(struct health_wait *w);

/* Whether all containers that have a check (or the one) are healthy, or one of them is unhealthy.
 * 1; 0: not (yet); -ENOENT: all run, and none has a check. */
int health_compare(const struct workload *w, const struct pod_container *c,
		   enum health_status wanted);

/* Private to this area. */

/* It runs: probes begin, where it has a check; also of one that was taken over. */
void health_begin(struct pod_container *c);
/* It does not any more. Its results stay. */
void health_end(struct pod_container *c);
/* All of it goes from memory; there may be none. */
void health_drop(struct pod_container *c);
/* Likewise, and from the store: it is to start again. */
void health_reset(struct pod_container *c);

#endif
