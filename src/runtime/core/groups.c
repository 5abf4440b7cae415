/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/core/groups.h"

#include <errno.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "foreign/foreign.h"
#include "isolate/cgroup/cgroup_name.h"
#include "pod/workload/hosted.h"
#include "pod/workload/workload.h"
#include "runtime/services.h"

int group_of_instance(const struct workload_service *s, const struct instance *i,
		      char ret[GROUP_PATH_MAX])
{
	(void)s;
	if (!i || i->cgroup[0] != '/')
		return -ENOENT;
	return str_copy(ret, GROUP_PATH_MAX, i->cgroup + 1);
}

/* Of a foreign machine: the group that is named in the base group. */
static int group_in_base(const struct workload_service *s, const char *name,
			 char ret[GROUP_PATH_MAX])
{
	int r = str_printf(ret, GROUP_PATH_MAX, "%s/%s", s->base + 1, name);

	return MIN(r, 0);
}

/* Of an instance that has the groups of its cells on this host. */
static int group_with_cells(const struct workload_service *s, const struct instance *i,
			    char ret[GROUP_PATH_MAX])
{
	int r = group_of_instance(s, i, ret);

	if (r < 0)
		return r;
	return instance_is_remote(i) ? -ENOENT : 0;
}

int group_of_workload(const struct workload_service *s, const struct workload *w,
		      char ret[GROUP_PATH_MAX])
{
	char group[GROUP_PATH_MAX];
	int r;

	if (hosted_is_in_cloud(w))
		return -ENOENT;
	if (w->kind == WORKLOAD_VM) {
		r = foreign_group(group, sizeof(group), w->path);
		return r < 0 ? r : group_in_base(s, group, ret);
	}
	if (w->kind == WORKLOAD_POD)
		return group_of_instance(s, w->instance, ret);
	r = group_with_cells(s, w->instance, group);
	return r < 0 ? r : workload_group(w, s->top_fd, group, ret, GROUP_PATH_MAX);
}

int group_of_container(const struct workload_service *s, const struct pod_container *c,
		       char ret[GROUP_PATH_MAX])
{
	char group[GROUP_PATH_MAX];
	int r;

	if (hosted_is_in_cloud(c->workload))
		return -ENOENT;
	if (c->workload->kind == WORKLOAD_VM) {
		r = foreign_monitor_group(group, sizeof(group), c->workload->path);
		return r < 0 ? r : group_in_base(s, group, ret);
	}
	r = group_with_cells(s, c->workload->instance, group);
	return r < 0 ? r : pod_container_group(c, s->top_fd, group, ret, GROUP_PATH_MAX);
}

int group_of_keeper(const struct workload_service *s, const struct instance *i,
		    char ret[GROUP_PATH_MAX])
{
	char group[GROUP_PATH_MAX];
	int r = group_with_cells(s, i, group);

	if (r < 0)
		return r;
	r = str_printf(ret, GROUP_PATH_MAX, "%s/keeper", group);
	return r < 0 ? r : 0;
}

int group_of_machine(const struct workload_service *s, const struct instance *i, const char *leaf,
		     char ret[GROUP_PATH_MAX])
{
	char group[GROUP_PATH_MAX];
	int r = group_of_instance(s, i, group);

	if (r < 0)
		return r;
	if (!instance_is_remote(i) || !instance_is_own(i))
		return -ENOENT;
	r = str_printf(ret, GROUP_PATH_MAX, "%s/%s", group, leaf);
	return r < 0 ? r : 0;
}
