/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_RESTART_H
#define NACRE_POD_RESTART_H

#include "pod/workload/model.h"

/*
 * Restart policies. A workload that came to run and has ended is started again by itself, all of
 * its containers together, as soon as the last of them has ended and nothing of it lives any more:
 *
 * no              never.
 * on-failure[:N]  where its exit code is not 0; at most N times in a row.
 * always          whatever it ended with.
 * unless-stopped  likewise.
 *
 * Somebody who stops or kills it ends that, until somebody starts it. The first restart comes after
 * RESTART_FIRST, each further one after twice the time of the one before, up to RESTART_LAST; one
 * that has run for RESTART_WELL begins anew. All that is counted is in its record: a daemon that
 * takes over goes on from there.
 */

#define RESTART_FIRST (100 * NSEC_PER_MSEC)
#define RESTART_LAST (60 * NSEC_PER_SEC)
#define RESTART_WELL (10 * NSEC_PER_SEC)
#define RESTART_RETRIES_MAX 1000000

/* Nothing could be started of one that was due; it is tried again, as its policy wants it. */
void restart_failed(struct workload *w, const struct error *err);

/* Somebody stops it: no policy starts it until somebody does. */
void restart_rest(struct workload *w);

/* Private to this area. */

/* Whether a rule wants a restart behind so many of them. */
bool restart_rule_wants(const struct restart_rule *rule, unsigned count, bool has_failed);
/* The time before the next one; delay: that before the last (0: there was none), and how long what
 * was started then has run. */
nsec_t restart_next_delay(nsec_t delay, nsec_t ran);

void restart_init(struct workload *w);
void restart_done(struct workload *w);
/* It is down: sets its timer, where it is to be started again. */
void restart_look(struct workload *w);
/* It is being started, by its policy or by somebody. */
void restart_begin(struct workload *w, bool by_policy);

#endif
