/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_RESOURCES_H
#define NACRE_CRI_RESOURCES_H

#include "api/cri.pb-c.h"
#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "base/memory/arena.h"

/*
 * Limits of a container as a kubelet counts them (shares, memory together with swap), as the own
 * API has them, and back. Files that the own API has no member for, those of huge pages and of
 * `unified`, are words (isolate/cgroup/limits_words.h).
 */

struct cri_limits {
	Aurae__Runtime__V0__Resources *resources; /* NULL: nothing of it is limited */
	char **more;                              /* NULL: nothing else is */
};

/*
 * The limits that `from` asks for, in the arena. base_fd: the node's group, whose controllers
 * count. field: "config.linux.resources". now: what holds already, for values that count together;
 * NULL where nothing does. ERROR_INVALID for what is wrong whatever the host, ERROR_PRECONDITION
 * for what this host cannot enforce; both name the field. The host's part of `resources` is checked
 * by runtime/start/resources.h, whose errors cri_limits_blame() brings to this field.
 */
int cri_limits_take(struct arena *a, const Runtime__V1__LinuxContainerResources *from, int base_fd,
		    const char *field, const Aurae__Runtime__V0__Resources *now,
		    struct cri_limits *ret, struct error *err);
/* An error about a member of the own API's limits, "containers[0].resources.memory", names the one
 * below `field` that it comes from; one about a file, "hugetlb.2MB.max", what had that file. */
void cri_limits_blame(struct error *err, const char *field);

/* Merges the limits of `with` into those of `to`, as they are kept; all in the arena. -ENOMEM. */
int cri_limits_merge(struct arena *a, Runtime__V1__LinuxContainerResources *to,
		     const Runtime__V1__LinuxContainerResources *with);
/* The limits in force: those that were asked for, with the values that `now` has. NULL without
 * memory. */
Runtime__V1__LinuxContainerResources *cri_limits_show(
	struct arena *a, const Runtime__V1__LinuxContainerResources *asked,
	const Aurae__Runtime__V0__Resources *now);

#endif
