/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/steps_point.h"

#include <errno.h>
#include <sys/prctl.h>

static int steps_point(struct isolate_steps *s, enum isolate_point point, struct error *err)
{
	struct isolate_at at = { .point = point, .fd = s->at_fd, .data = s->plan->at_data };

	return s->plan->at ? s->plan->at(&at, err) : 0;
}

/*
 * Should: let the plan's owner act where all namespaces are there and ids are mapped.
 * Must not: come behind the first mount.
 */
int isolate_step_namespaces(struct isolate_steps *s, struct error *err)
{
	return steps_point(s, ISOLATE_POINT_NAMESPACES, err);
}

int isolate_steps_mounted(struct isolate_steps *s, struct error *err)
{
	return steps_point(s, ISOLATE_POINT_MOUNTED, err);
}

/*
 * Should: let the plan's owner hold the child back until the program may run, for as long as it
 * likes, as a process that cannot be traced by others in its namespaces; the exec sets that back.
 * Must not: come before the credentials and descriptors are the program's.
 */
int isolate_step_ready(struct isolate_steps *s, struct error *err)
{
	if (s->plan->at && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return error_set(err, -errno, "prctl");
	return steps_point(s, ISOLATE_POINT_READY, err);
}
