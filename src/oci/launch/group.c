/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/group.h"

#include <errno.h>

#include "base/file/fd.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/cgroup_path.h"
#include "isolate/cgroup/cgroup_watch.h"
#include "isolate/cgroup/devices.h"
#include "isolate/cgroup/limits.h"
#include "oci/config/convert.h"
#include "oci/launch/named.h"

#define GROUP_EMPTY_MS 10000

/* The root of the hierarchy: `run` needs it at the beginning and at the end. */
static int group_root(struct container *c, struct error *err)
{
	if (c->hierarchy_fd < 0)
		c->hierarchy_fd = cgroup_open_root(err);
	return c->hierarchy_fd;
}

static int group_path(const struct container *c, bool systemd, char *ret, size_t size,
		      struct error *err)
{
	const char *wanted = c->config->os->cgroups_path;
	char own[CGROUP_PATH_SIZE];
	int r;

	r = cgroup_own_path(own, sizeof(own), err);
	return r < 0 ? r
		     : cgroup_path_of_oci(ret, size, wanted ? wanted : "", systemd, own, c->id,
					  err);
}

int group_confine(struct container *c, int group_fd, struct error *err)
{
	const struct oci_linux *os = c->config->os;
	const struct device_rule *rules = NULL;
	size_t n_rules = 0;
	int r;

	r = convert_devices_check(os, err);
	if (r == 0)
		r = convert_device_rules(&rules, &n_rules, &c->arena, os, os->resources, err);
	return r < 0 ? r : devices_apply(group_fd, rules, n_rules, err);
}

int group_make(struct container *c, bool systemd, struct error *err)
{
	_cleanup_fd_ int group = -1;
	struct isolate_limits limits;
	char path[CGROUP_PATH_SIZE];
	int root, r;

	r = convert_limits(&limits, &c->arena, c->config->os->resources, err);
	if (r < 0)
		return r;
	convert_limits_of_new(&limits);
	root = group_root(c, err);
	if (root < 0)
		return root;
	r = group_path(c, systemd, path, sizeof(path), err);
	if (r < 0)
		return error_wrap(err, r, "linux.cgroupsPath");
	group = cgroup_open_path(root, path);
	if (group >= 0 && cgroup_populated(group) != 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "linux.cgroupsPath: processes are in the cgroup %s already",
				    path);
	group = fd_close(group);
	r = container_set_cgroup(c, path, err);
	if (r < 0)
		return r;
	group = cgroup_make_path(root, path, limits_controllers(&limits), CGROUP_CONTROLLERS_ALL,
				 err);
	if (group < 0)
		return error_wrap(err, group, "make the cgroup %s", path);
	r = limits_apply(group, &limits, err);
	return r < 0 ? r : TAKE_FD(group);
}

int group_remove(struct container *c, struct error *err)
{
	_cleanup_fd_ int group = -1;
	int root, r;

	if (!c->cgroup)
		return 0;
	root = group_root(c, err);
	if (root < 0)
		return root;
	group = cgroup_open_path(root, c->cgroup);
	if (group == -ENOENT)
		return named_remove(c, err);
	if (group < 0)
		return error_set(err, group, "open the cgroup %s", c->cgroup);
	if (cgroup_populated(group) > 0) {
		r = cgroup_kill(group);
		if (r == 0)
			r = cgroup_wait(group, "cgroup.events", "populated", 0, GROUP_EMPTY_MS);
		if (r < 0 && r != -ENODEV)
			return error_set(err, r, "end the processes of the cgroup %s", c->cgroup);
	}
	r = cgroup_remove_path(root, c->cgroup);
	return r < 0 ? error_set(err, r, "remove the cgroup %s", c->cgroup) : named_remove(c, err);
}
