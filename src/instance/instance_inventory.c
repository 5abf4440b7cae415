/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/instance_inventory.h"

#include <fcntl.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/inventory.h"
#include "base/text/str.h"
#include "instance/place.h"
#include "instance/provider.h"
#include "instance/spare.h"
#include "isolate/cgroup/cgroup_name.h"

#define INVENTORY_PATH_MAX 1200

const char *instance_group(const struct instance *i)
{
	const char *below = i->cgroup + MIN(strlen(i->cgroup), strlen(i->all->config.cgroup));

	return below + strspn(below, "/");
}

static void inventory_path(struct inventory *t, const char *kind, const struct instance *i,
			   const char *above, const char *name)
{
	char path[INVENTORY_PATH_MAX];

	(void)str_printf(path, sizeof(path), "%s%s%s", above, *name ? "/" : "", name);
	if (i)
		inventory_must(t, kind, path, i->id, i->path);
	else
		inventory_may(t, kind, path);
}

/* live: the instance, where it must have them; NULL where it may. */
static void inventory_dir(struct inventory *t, const struct instance *live,
			  const struct provider *p, const char *dir)
{
	inventory_path(t, "directory", live, dir, "");
	for (const char *const *name = p->ops->sockets; *name; name++)
		inventory_path(t, "socket", live, dir, *name);
}

static void inventory_groups(struct inventory *t, const struct instance *live,
			     const struct provider *p, const char *group)
{
	inventory_path(t, "cgroup", live, group, "");
	inventory_path(t, "processes", NULL, group, "");
	for (const char *const *name = p->ops->leaves; *name; name++) {
		inventory_path(t, "cgroup", live, group, *name);
		inventory_path(t, "processes", live, group, *name);
	}
	for (const char *const *name = p->ops->more_leaves; name && *name; name++) {
		inventory_path(t, "cgroup", NULL, group, *name);
		inventory_path(t, "processes", NULL, group, *name);
	}
}

struct nameless_walk {
	struct inventory *inventory;
	const char *group;
};

static void nameless_inventory(void *userdata, const char *dir)
{
	const struct nameless_walk *walk = userdata;
	char path[INVENTORY_PATH_MAX];

	(void)str_printf(path, sizeof(path), "%s/%s", walk->group, dir);
	inventory_may_below(walk->inventory, "cgroup", path);
	inventory_may_below(walk->inventory, "processes", path);
}

/* A process that its keeper has made for the next cell (cell/start/spare_container.h). */
static void spare_container_inventory(const struct instance *i, struct inventory *t)
{
	struct nameless_walk walk = { t, instance_group(i) };
	_cleanup_fd_ int fd = -1;

	if (i->ended || instance_is_remote(i))
		return;
	fd = sysio_openat(i->all->config.cgroup_fd, walk.group,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd >= 0)
		(void)cgroup_each_nameless(fd, nameless_inventory, &walk);
}

static void instance_inventory(const struct instance *i, struct inventory *t)
{
	const struct instance *live = i->state == INSTANCE_READY && !i->ended ? i : NULL;
	char dir[ID_SIZE + 8];

	/* Of what has ended and was cleaned up nothing is to be left. */
	if (i->state == INSTANCE_GONE || (instance_has_ended(i) && i->clean_delay == 0))
		return;
	if (i->cgroup[0] && !place_is_elsewhere(i)) {
		inventory_groups(t, live, i->provider, instance_group(i));
		if (live)
			spare_container_inventory(i, t);
	}
	if (!instance_is_own(i))
		return;
	(void)str_printf(dir, sizeof(dir), instance_is_node(i) ? "node" : "i/%s", i->id);
	inventory_dir(t, live, i->provider, dir);
}

/* Made ahead of need: it may be there, with all that it has. */
static void warm_inventory(struct inventory *t, const struct provider *p, const char *id)
{
	char path[ID_SIZE + 16];

	(void)str_printf(path, sizeof(path), "i/%s", id);
	inventory_dir(t, NULL, p, path);
	(void)str_printf(path, sizeof(path), SPARE_GROUP_PREFIX "%s", id);
	inventory_groups(t, NULL, p, path);
}

void instances_inventory(const struct instances *all, struct inventory *t)
{
	struct provider *const *providers = all->config.providers;
	const char *spare = spare_id(all->spare), *id;
	const struct instance *i;

	list_for_each (i, &all->list, struct instance, link)
		instance_inventory(i, t);
	if (spare)
		warm_inventory(t, providers[INSTANCE_CELL], spare);
	for (size_t k = 0; k < INSTANCE_KIND_COUNT; k++)
		for (size_t n = 0; providers[k] && providers[k]->ops->ahead; n++) {
			id = providers[k]->ops->ahead(providers[k], n);
			if (!id)
				break;
			warm_inventory(t, providers[k], id);
		}
}
