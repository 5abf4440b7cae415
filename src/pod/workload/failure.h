/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_FAILURE_H
#define NACRE_POD_FAILURE_H

#include "pod/workload/model.h"

/*
 * The reason why a workload could not come to run, for its caller. Most failures are its state: it
 * is FAILED, with a reason, and so is the call. A refusal is that of the call alone: nothing of the
 * workload is left when the call fails.
 */

/* Records the error that kept it from running; the first one counts. Without memory for it only the
 * reason is told. */
void failure_keep(struct workload *w, const struct error *err);
/* The same for a container of a sandbox that could not be made or started. */
void failure_keep_member(struct pod_container *c, const struct error *err);
/* The reason of one that is FAILED, with the kind, code and field of the error that was kept, or of
 * the error that its instance failed with; else ERROR_UNAVAILABLE. Returns the error's code. */
int failure_tell(const struct workload *w, struct error *err);

/* The request cannot be met here: w->refused. Where there is no memory for it, false: it is told as
 * any other failure. One that has files of its own stays (workload.stays). */
bool failure_refuse(struct workload *w, const struct error *err);
/*
 * A limit that its group does not take, of a container or (c NULL) of the whole: that is a refusal,
 * with the field. Nothing for any other error.
 */
void failure_refuse_limit(struct workload *w, const struct pod_container *c,
			  const struct error *err);

#endif
