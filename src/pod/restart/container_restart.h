/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_CONTAINER_RESTART_H
#define NACRE_POD_CONTAINER_RESTART_H

#include "pod/workload/model.h"

/*
 * Restart policies of single containers. While its workload runs, a container with a policy of its
 * own that has ended is started again alone, with the delays of pod/restart/restart.h; the others
 * know nothing of it. A workload does not end while one of its containers is to be started again.
 *
 * Somebody who stops or kills the container ends that, until somebody starts it, or all of its
 * workload. All that is counted is in its record. The workload's own policy, which starts all
 * containers together, begins where this ends.
 */

/* Nothing could be started of one that was due; it is tried again, as its policy wants it. */
void container_restart_failed(struct pod_container *c, const struct error *err);
/* Somebody stops it: no policy starts it until somebody does. */
void container_restart_rest(struct pod_container *c);

/* It has ended, and is not started again. */
bool container_is_over(const struct pod_container *c);

/* Private to this area. */

void container_restart_init(struct pod_container *c);
void container_restart_done(struct pod_container *c);
/* Sets the timers of those that have ended and are to be started again. */
void container_restart_look(struct workload *w);
/* No restart of it is due any more. */
void container_restart_cancel(struct pod_container *c);
/* It is being started, by its policy or by somebody. */
void container_restart_begin(struct pod_container *c, bool by_policy);

#endif
