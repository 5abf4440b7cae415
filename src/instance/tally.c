/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/tally.h"

#include <fcntl.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/tally.h"
#include "base/text/str.h"
#include "instance/place.h"
#include "instance/provider.h"
#include "instance/spare.h"
#include "isolate/cgroup/cgroup_name.h"

#define TALLY_PATH_MAX 1200

const char *instance_group(const struct instance *i)
{
	const char *below = i->cgroup + MIN(strlen(i->cgroup), strlen(i->all->config.cgroup));

	return below + strspn(below, "/");
}

static void tally_path(struct tally *t, const char *kind, const struct instance *i,
		       const char *above, const char *name)
{
	char path[TALLY_PATH_MAX];

	(void)str_printf(path, sizeof(path), "%s%s%s", above, *name ? "/" : "", name);
	if (i)
		tally_must(t, kind, path, i->id, i->path);
	else
		tally_may(t, kind, path);
}

/* live: the instance, where it must have them; NULL where it may. */
static void tally_dir(struct tally *t, const struct instance *live, const struct provider *p,
		      const char *dir)
{
	tally_path(t, "directory", live, dir, "");
	for (const char *const *name = p->ops->sockets; *name; name++)
		tally_path(t, "socket", live, dir, *name);
}

static void tally_groups(struct tally *t, const struct instance *live, const struct provider *p,
			 const char *group)
{
	tally_path(t, "cgroup", live, group, "");
	tally_path(t, "processes", NULL, group, "");
	for (const char *const *name = p->ops->leaves; *name; name++) {
		tally_path(t, "cgroup", live, group, *name);
		tally_path(t, "processes", live, group, *name);
	}
	for (const char *const *name = p->ops->more_leaves; name && *name; name++) {
		tally_path(t, "cgroup", NULL, group, *name);
		tally_path(t, "processes", NULL, group, *name);
	}
}

struct nameless_walk {
	struct tally *tally;
	const char *group;
};

static void nameless_tally(void *userdata, const char *dir)
{
	const struct nameless_walk *walk = userdata;
	char path[TALLY_PATH_MAX];

	(void)str_printf(path, sizeof(path), "%s/%s", walk->group, dir);
	tally_may_below(walk->tally, "cgroup", path);
	tally_may_below(walk->tally, "processes", path);
}

/* A process that its keeper has made for the next cell (cell/start/standby.h). */
static void standby_tally(const struct instance *i, struct tally *t)
{
	struct nameless_walk walk = { t, instance_group(i) };
	_cleanup_fd_ int fd = -1;

	if (i->ended || instance_is_remote(i))
		return;
	fd = sysio_openat(i->all->config.cgroup_fd, walk.group,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd >= 0)
		(void)cgroup_each_nameless(fd, nameless_tally, &walk);
}

static void instance_tally(const struct instance *i, struct tally *t)
{
	const struct instance *live = i->state == INSTANCE_READY && !i->ended ? i : NULL;
	char dir[ID_SIZE + 8];

	/* Of what has ended and was cleaned up nothing is to be left. */
	if (i->state == INSTANCE_GONE || (instance_has_ended(i) && i->clean_delay == 0))
		return;
	if (i->cgroup[0] && !place_is_elsewhere(i)) {
		tally_groups(t, live, i->provider, instance_group(i));
		if (live)
			standby_tally(i, t);
	}
	if (!instance_is_own(i))
		return;
	(void)str_printf(dir, sizeof(dir), instance_is_node(i) ? "node" : "i/%s", i->id);
	tally_dir(t, live, i->provider, dir);
}

/* Made ahead of need: it may be there, with all that it has. */
static void ahead_tally(struct tally *t, const struct provider *p, const char *id)
{
	char path[ID_SIZE + 16];

	(void)str_printf(path, sizeof(path), "i/%s", id);
	tally_dir(t, NULL, p, path);
	(void)str_printf(path, sizeof(path), SPARE_GROUP_PREFIX "%s", id);
	tally_groups(t, NULL, p, path);
}

void instances_tally(const struct instances *all, struct tally *t)
{
	struct provider *const *providers = all->config.providers;
	const char *spare = spare_id(all->spare), *id;
	const struct instance *i;

	list_for_each (i, &all->list, struct instance, link)
		instance_tally(i, t);
	if (spare)
		ahead_tally(t, providers[INSTANCE_CELL], spare);
	for (size_t k = 0; k < INSTANCE_KIND_COUNT; k++)
		for (size_t n = 0; providers[k] && providers[k]->ops->ahead; n++) {
			id = providers[k]->ops->ahead(providers[k], n);
			if (!id)
				break;
			ahead_tally(t, providers[k], id);
		}
}
