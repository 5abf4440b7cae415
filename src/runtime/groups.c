/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/groups.h"

#include <errno.h>

#include "base/parse.h"
#include "base/str.h"
#include "foreign/foreign.h"
#include "isolate/cgroup_name.h"
#include "pod/workload.h"
#include "runtime/services.h"

int group_of_instance(const struct workload_service *s, const struct instance *i,
		      char ret[GROUP_PATH_MAX])
{
	size_t len = strlen(s->cgroup);

	if (!i || strncmp(i->cgroup, s->cgroup, len) != 0 || i->cgroup[len] != '/')
		return -ENOENT;
	return str_copy(ret, GROUP_PATH_MAX, i->cgroup + len + 1);
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

	if (w->kind == WORKLOAD_VM)
		return foreign_group(ret, GROUP_PATH_MAX, w->path);
	if (w->kind == WORKLOAD_POD)
		return group_of_instance(s, w->instance, ret);
	r = group_with_cells(s, w->instance, group);
	return r < 0 ? r : workload_group(w, s->cgroup_fd, group, ret, GROUP_PATH_MAX);
}

int group_of_container(const struct workload_service *s, const struct pod_container *c,
		       char ret[GROUP_PATH_MAX])
{
	char group[GROUP_PATH_MAX];
	int r;

	if (c->workload->kind == WORKLOAD_VM)
		return foreign_monitor_group(ret, GROUP_PATH_MAX, c->workload->path);
	r = group_with_cells(s, c->workload->instance, group);
	return r < 0 ? r : pod_container_group(c, s->cgroup_fd, group, ret, GROUP_PATH_MAX);
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
