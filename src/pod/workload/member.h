/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_MEMBER_H
#define NACRE_POD_MEMBER_H

#include "pod/workload/model.h"

/*
 * The containers of a sandbox, which come and go (pod/workload/sandbox.h), as its life moves them
 * on. Private to this area.
 */

/* Arms its timer, and stops it; called for each container of any workload. */
void member_join(struct pod_container *c);
void member_leave(struct pod_container *c);
/* Asks for the lower layers of its root file system. The image is held by c. */
int member_await_root(struct pod_container *c, struct error *err);
/* It is to end by that time, and is killed then. */
void member_end_by(struct pod_container *c, nsec_t stop_by);
/* Makes true what is wanted of each container of a sandbox, or of the debug containers of another
 * workload; some may be gone behind this. */
void members_settle(struct workload *w);
/* Debug containers are left. */
bool members_have_debug(const struct workload *w);
/* Kills them, as nothing else of their workload runs. */
void members_end_debug(struct workload *w);

#endif
