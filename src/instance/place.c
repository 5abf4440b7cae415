/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/cgroup_path.h"

void place_group_name(const struct instance *i, char ret[NAME_LABEL_MAX + 8])
{
	if (i->cgroup[0])
		(void)str_copy(ret, NAME_LABEL_MAX + 8, name_last(i->cgroup));
	else if (instance_is_node(i))
		(void)str_copy(ret, NAME_LABEL_MAX + 8, "node");
	else
		(void)str_printf(ret, NAME_LABEL_MAX + 8, "inst.%s", i->handle);
}

int place_remove_dir(struct instance *i)
{
	if (!instance_is_own(i))
		return 0;
	i->dir_fd = fd_close(i->dir_fd);
	return instance_is_node(i) ? rootfd_remove_tree(i->all->config.run_fd, "node")
				   : rootfd_remove_tree(i->all->keepers_fd, i->id);
}

int place_name_cgroup(struct instance *i, struct error *err)
{
	char name[NAME_LABEL_MAX + 8];
	const char *above = i->parent ? i->parent->cgroup : i->all->config.cgroup;

	/* The groups of another kernel are its own matter. */
	if (!instance_is_own(i) && instance_is_remote(i))
		return 0;
	place_group_name(i, name);
	if (snprintf(i->cgroup, sizeof(i->cgroup), "%s/%s", above, name) >= (int)sizeof(i->cgroup))
		return error_refuse(err, ERROR_INVALID,
				    "instance %s: the path of its cgroup is too long", i->path);
	return 0;
}

bool place_is_elsewhere(const struct instance *i)
{
	const char *base = i->all->config.cgroup;
	size_t len = strlen(base);

	return i->cgroup[0] && (strncmp(i->cgroup, base, len) != 0 || i->cgroup[len] != '/');
}

static const char *place_path(const struct instance *i)
{
	return i->cgroup + strspn(i->cgroup, "/");
}

/* One of our own; the groups above it are somebody else's, and may be there already. */
static int place_make_elsewhere(struct instance *i, struct error *err)
{
	i->cgroup_fd = cgroup_make_path(i->all->config.top_fd, place_path(i), 0,
					CGROUP_CONTROLLERS_WORKLOAD, err);
	if (i->cgroup_fd < 0)
		return i->cgroup_fd;
	cgroup_enable_workload(i->cgroup_fd);
	return 0;
}

/* Opens the group of an instance: for one of our own it is made where it is missing. */
int place_open_cgroup(struct instance *i, struct error *err)
{
	const char *below = i->cgroup + MIN(strlen(i->cgroup), strlen(i->all->config.cgroup) + 1);
	bool elsewhere = place_is_elsewhere(i);
	char name[NAME_LABEL_MAX + 8];

	if (instance_is_own(i) && elsewhere)
		return place_make_elsewhere(i, err);
	if (instance_is_own(i)) {
		place_group_name(i, name);
		i->cgroup_fd = cgroup_make_inner(i->all->config.cgroup_fd, name, err);
		return i->cgroup_fd < 0 ? i->cgroup_fd : 0;
	}
	if (!i->cgroup[0])
		return 0;
	i->cgroup_fd = sysio_openat(elsewhere ? i->all->config.top_fd : i->all->config.cgroup_fd,
				    elsewhere ? place_path(i) : below,
				    O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return i->cgroup_fd < 0 ? error_set(err, -errno, "open the cgroup %s", i->cgroup) : 0;
}

int place_remove_group(struct instance *i)
{
	char name[NAME_LABEL_MAX + 8];

	if (!instance_is_own(i))
		return 0;
	if (place_is_elsewhere(i))
		return cgroup_remove_path(i->all->config.top_fd, place_path(i));
	place_group_name(i, name);
	return cgroup_remove(i->all->config.cgroup_fd, name);
}

int place_make_dir(struct instance *i, struct error *err)
{
	int at = instance_is_node(i) ? i->all->config.run_fd : i->all->keepers_fd;
	const char *name = instance_is_node(i) ? "node" : i->id;

	if (sysio_mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory of instance %s", i->path);
	i->dir_fd = sysio_openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return i->dir_fd < 0 ? error_set(err, -errno, "open the directory of instance %s", i->path)
			     : 0;
}

static int instance_sweep_dir(struct instances *all, const char *name)
{
	if (map_get(&all->by_id, name))
		return 0;
	log_info("the directory of an unknown keeper is removed", LOG_STR("id", name));
	return rootfd_remove_tree(all->keepers_fd, name);
}

static bool instance_has_group(struct instances *all, const char *name)
{
	const struct instance *i;

	list_for_each (i, &all->list, struct instance, link)
		if (instance_is_own(i) && str_eq(name_last(i->cgroup), name))
			return true;
	return false;
}

/* A killed process may need so long until its group is empty. */
#define PLACE_DEATH_MS 5000

static void instance_sweep_group(struct instances *all, const char *name)
{
	struct error err = ERROR_INIT;
	_cleanup_fd_ int fd = -1;
	int r = -EBUSY;

	if (!str_has_prefix(name, "inst.") || instance_has_group(all, name))
		return;
	log_info("the cgroup of an unknown instance is removed", LOG_STR("cgroup", name));
	fd = cgroup_make(all->config.cgroup_fd, name, &err);
	if (fd < 0)
		return;
	(void)cgroup_kill(fd);
	/* At start-up only: nothing is served yet. A machine that dies gives its memory back first.
	 */
	for (int i = 0; i < PLACE_DEATH_MS && r == -EBUSY; i++) {
		r = cgroup_remove(all->config.cgroup_fd, name);
		if (r == -EBUSY)
			(void)usleep(1000);
	}
	if (r < 0)
		log_warn("the cgroup of an unknown instance stays", LOG_STR("cgroup", name),
			 LOG_INT("errno", -r));
}

void instances_sweep(struct instances *all)
{
	_cleanup_strv_ char **dirs = NULL;
	_cleanup_strv_ char **groups = NULL;

	if (fd_list_dir(all->keepers_fd, &dirs) == 0)
		for (size_t n = 0; dirs && dirs[n]; n++)
			(void)instance_sweep_dir(all, dirs[n]);
	if (fd_list_dir(all->config.cgroup_fd, &groups) == 0)
		for (size_t n = 0; groups && groups[n]; n++)
			instance_sweep_group(all, groups[n]);
}
