/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/nested.h"

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "instance/provider.h"

/* Of the disk in the outer machine: no image is called so. */
#define NESTED_TOOLS "-tools"

int nested_check(const struct instances *all, const struct instance *parent, struct error *err)
{
	struct provider *p = all->config.providers[INSTANCE_VM];
	_cleanup_fd_ int fd = -1;

	if (!instance_is_own(parent) || parent->choice.kind != INSTANCE_VM)
		return error_refuse(err, ERROR_PRECONDITION,
				    "one of kind \"vm\" can be made below the node, and below an "
				    "instance of kind \"vm\" of the node itself; %s is %s",
				    parent->path,
				    parent->choice.kind == INSTANCE_CELL ? "a cell"
									 : "in another one");
	fd = p->ops->open_tools(p, err);
	return MIN(fd, 0);
}

int nested_plan(struct instance *i, struct error *err)
{
	struct provider *p = i->all->config.providers[INSTANCE_VM];

	return p->ops->plan_nested(p, i->parent, &i->size, &i->machine, err);
}

static void nested_drop(struct instance *i)
{
	i->has_tools = false;
	if (i->parent && !i->parent->ended)
		i->parent->provider->ops->drop_disk(i->parent, NESTED_TOOLS);
}

static void nested_on_made(void *userdata, const char *kernel, const struct error *err)
{
	struct instance *i = userdata;

	if (!err)
		(void)str_copy(i->kernel, sizeof(i->kernel), kernel);
	i->nested_done(i, err);
}

static void nested_on_disk(void *userdata, const struct error *err)
{
	struct instance *i = userdata;
	struct error own = ERROR_INIT;
	struct peer_machine machine = { .name = i->handle,
					.tools = i->tools,
					.memory = i->machine.memory,
					.cpus = i->machine.cpus };
	struct peer *above = i->parent ? i->parent->peer : NULL;

	i->has_tools = !err;
	if (!err &&
	    (!above || i->ended || i->told_end || i->broken || i->state != INSTANCE_SPAWNING)) {
		(void)error_refuse(&own, ERROR_ABORTED, "instance %s was ended", i->path);
		err = &own;
	}
	if (i->ended && i->has_tools)
		nested_drop(i);
	if (err)
		i->nested_done(i, err);
	else
		above->ops->spawn_machine(above, &machine, nested_on_made, i);
}

int nested_begin(struct instance *i, void (*done)(struct instance *i, const struct error *err),
		 struct error *err)
{
	struct provider *p = i->all->config.providers[INSTANCE_VM];
	_cleanup_fd_ int fd = p->ops->open_tools(p, err);

	if (fd < 0)
		return fd;
	i->nested_done = done;
	return i->parent->provider->ops->put_disk(i->parent, NESTED_TOOLS, fd, i->tools,
						  nested_on_disk, i, err);
}

void nested_adopt(struct instance *i)
{
	struct error err = ERROR_INIT;

	if (!i->parent || i->parent->ended)
		return;
	i->has_tools = i->parent->provider->ops->claim_disk(i->parent, NESTED_TOOLS, &err) == 0;
	if (!i->has_tools)
		log_warn("a disk is not taken up again", LOG_STR("instance", i->path),
			 LOG_ERR(&err));
}

void nested_over(struct instance *i)
{
	if (i->has_tools)
		nested_drop(i);
}
