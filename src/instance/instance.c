/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/instance.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "instance/end.h"
#include "instance/link.h"
#include "instance/nested.h"
#include "instance/place.h"
#include "instance/provider_cell.h"
#include "instance/spare.h"
#include "instance/spawn.h"
#include "instance/upgrade.h"
#include "isolate/plan/plan.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/cgroup_name.h"

/* The keeper above has limits of its own, and cleans up before it answers. */
#define INSTANCE_NESTED_LIMIT (20 * NSEC_PER_SEC)
/* Of a machine that is emulated twice over. */
#define INSTANCE_NESTED_MACHINE_LIMIT (1800 * NSEC_PER_SEC)

const struct list *instances_list(const struct instances *all)
{
	return &all->list;
}

struct instance *instances_find(struct instances *all, const char *path)
{
	return map_get(&all->by_path, path);
}

struct instance *instances_find_id(struct instances *all, const char *id)
{
	return map_get(&all->by_id, id);
}

void instances_forget_waiter(struct instances *all, const void *userdata)
{
	struct instance *i;

	list_for_each (i, &all->list, struct instance, link)
		instance_forget_waiter(i, userdata);
}

/* ---- making ---- */

/* Nobody knows it yet, and it has no id. */
static struct instance *instance_alloc(struct instances *all, struct instance *parent,
				       const char *path)
{
	struct instance *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	*i = (struct instance){
		.all = all,
		.parent = parent,
		.provider = all->config.providers[INSTANCE_CELL],
		.dir_fd = -1,
		.pidfd = -1,
		.cgroup_fd = -1,
		.report_fd = -1,
	};
	list_init(&i->link);
	list_init(&i->waiters);
	instance_init_sources(i);
	(void)str_copy(i->path, sizeof(i->path), path);
	(void)str_copy(i->handle, sizeof(i->handle), name_last(path));
	i->created_at = clock_real();
	return i;
}

static int instance_add(struct instance *i, struct error *err)
{
	int r;

	r = map_add(&i->all->by_path, i->path, i);
	if (r == 0)
		r = map_add(&i->all->by_id, i->id, i);
	if (r == -EEXIST)
		return error_refuse(err, ERROR_EXISTS, "the name %s is taken", i->path);
	if (r < 0)
		return error_set(err, r, "instance %s", i->path);
	list_add_tail(&i->all->list, &i->link);
	return 0;
}

static int instance_spawn_own(struct instance *i, struct error *err)
{
	const struct provider_ops *ops = i->provider->ops;
	int r;

	r = ops->create(i, err);
	if (r < 0)
		return r;
	/* Of one that is READY already, the call itself has a limit. */
	if (!i->ahead)
		loop_timer_set(&i->timer, ops->hello_limit);
	return r > 0 ? 0 : instance_meet(i, err);
}

/* The keeper above has made one; it is reached through that. */
static int instance_connect_nested(struct instance *i, struct error *err)
{
	int r;

	r = i->parent->peer->ops->child(i->parent->peer, i->handle, &i->peer);
	if (r < 0)
		return error_set(err, r, "reach instance %s", i->path);
	r = place_open_cgroup(i, err);
	if (r < 0)
		return r;
	instance_open_peer(i);
	return 0;
}

static void instance_on_nested(struct instance *i, const struct error *err)
{
	struct error own = ERROR_INIT;

	i->n_asked--;
	loop_defer_schedule(&i->defer);
	if (err)
		instance_note_failure(i, err);
	/* What was told to end meanwhile needs no peer: the keeper above ends it. */
	else if (i->state == INSTANCE_SPAWNING && !i->broken && !i->told_end &&
		 instance_connect_nested(i, &own) < 0)
		instance_fail(i, &own);
}

static void instance_on_nested_cell(void *userdata, int64_t pid, const struct error *err)
{
	(void)pid;
	instance_on_nested(userdata, err);
}

static int instance_spawn_nested(struct instance *i, struct error *err)
{
	struct peer *above = i->parent->peer;
	int r;

	if (i->parent->state != INSTANCE_READY)
		return error_refuse(err, ERROR_PRECONDITION, "the instance %s is %s",
				    i->parent->path, instance_state_word(i->parent->state));
	r = FAILPOINT("instance.nested");
	if (r < 0)
		return error_set(err, r, "make instance %s", i->path);
	if (instance_is_nested_machine(i)) {
		r = nested_begin(i, instance_on_nested, err);
		if (r < 0)
			return r;
		i->n_asked++;
		loop_timer_set(&i->timer, INSTANCE_NESTED_MACHINE_LIMIT);
	} else {
		loop_timer_set(&i->timer, INSTANCE_NESTED_LIMIT);
		i->n_asked++;
		above->ops->spawn(above, i->handle,
				  &(struct peer_shares){ .network = i->host_network,
							 .pids = i->host_pids,
							 .ipc = i->host_ipc,
							 .uts = i->host_uts },
				  instance_on_nested_cell, i);
	}
	FAILPOINT_AFTER("instance.nested");
	return 0;
}

static int instance_path(const struct instance *parent, const char *name, char *ret, size_t size,
			 struct error *err)
{
	const char *above = parent ? parent->path : "";

	if (name_depth(above) + 1 > NAME_DEPTH_MAX)
		return error_refuse(err, ERROR_INVALID, "%s/%s would be deeper than %d instances",
				    above, name, NAME_DEPTH_MAX);
	return str_printf(ret, size, "%s%s%s", above, *above ? "/" : "", name) < 0
		       ? error_refuse(err, ERROR_INVALID, "the path %s/%s is too long", above, name)
		       : 0;
}

static int instance_begin(struct instance *i, struct error *err)
{
	int r;

	r = i->cgroup[0] ? 0 : place_name_cgroup(i, err);
	if (r < 0)
		return r;
	r = FAILPOINT("instance.record");
	if (r < 0)
		return error_set(err, r, "record instance %s", i->path);
	r = i->all->config.save(i->all->config.userdata, i, err);
	if (r < 0)
		return r;
	FAILPOINT_AFTER("instance.record");
	i->all->config.on_state(i->all->config.userdata, i);
	/* Whom to tell that it is READY. */
	loop_defer_schedule(&i->defer);
	return 0;
}

static int instance_take_joins(struct instance *i, const int *joins)
{
	bool any = false;

	for (int k = 0; joins && k < ISOLATE_NS_COUNT; k++)
		any = any || joins[k] >= 0;
	if (!any)
		return 0;
	i->joins = malloc(ISOLATE_NS_COUNT * sizeof(*i->joins));
	if (!i->joins)
		return -ENOMEM;
	for (int k = 0; k < ISOLATE_NS_COUNT; k++)
		i->joins[k] = -1;
	for (int k = 0; k < ISOLATE_NS_COUNT; k++) {
		i->joins[k] = joins[k] >= 0 ? fd_copy(joins[k]) : -1;
		if (joins[k] >= 0 && i->joins[k] < 0)
			return i->joins[k];
	}
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): who it is for, and whom to tell */
/* 0, -ENOMEM, or -ENAMETOOLONG of its cgroup. */
static int instance_take(struct instance *i, const struct instance_spec *spec)
{
	(void)str_copy(i->owner, sizeof(i->owner), spec->owner ? spec->owner : "");
	(void)str_copy(i->request, sizeof(i->request), spec->request ? spec->request : "");
	i->host_network = spec->host_network;
	i->host_pids = spec->host_pids;
	i->host_ipc = spec->host_ipc;
	i->host_uts = spec->host_uts;
	i->ids = spec->ids;
	i->volumes = spec->volumes;
	if (!str_empty(spec->cgroup_parent) &&
	    str_printf(i->cgroup, sizeof(i->cgroup), "%s/inst.%s", spec->cgroup_parent, i->handle) <
		    0)
		return -ENAMETOOLONG;
	i->choice = spec->choice;
	if (spec->nic)
		i->nic = *spec->nic;
	if (spec->link)
		i->pod_link = *spec->link;
	if (instance_is_own(i) && !instance_is_node(i))
		i->provider = i->all->config.providers[i->choice.kind];
	i->size = spec->size;
	if (!str_empty(spec->settings))
		i->settings = strdup(spec->settings);
	if (spec->limits && instance_is_remote(i))
		i->limits = strv_copy(spec->limits);
	if (spec->sysctls)
		i->sysctls = strv_copy(spec->sysctls);
	if (instance_take_joins(i, spec->joins) < 0)
		return -ENOMEM;
	return (str_empty(spec->settings) || i->settings) &&
			       (!spec->limits || !instance_is_remote(i) || i->limits) &&
			       (!spec->sysctls || i->sysctls)
		       ? 0
		       : -ENOMEM;
}

/* It was never recorded, or is not to be. */
static void instance_withdraw(struct instance *i)
{
	i->provider->ops->withdraw(i);
	(void)instance_free(i);
}

static bool instance_handle_is_taken(const struct instance *i)
{
	const struct instance *other;

	list_for_each (other, &i->all->list, struct instance, link)
		if (other != i && other->state != INSTANCE_GONE && other->parent == i->parent &&
		    str_eq(other->handle, i->handle))
			return true;
	return false;
}

static void instance_choose_handle(struct instance *i)
{
	for (unsigned n = 2; instance_handle_is_taken(i); n++)
		name_number(i->handle, name_last(i->path), n);
}

/* Known by its path and its id, with all that it was asked to be. */
static int instance_make(struct instances *all, struct instance *parent,
			 const struct instance_spec *spec, struct instance **ret, struct error *err)
{
	char path[NAME_PATH_MAX + 1];
	struct instance *i;
	int r;

	r = instance_path(parent, spec->name, path, sizeof(path), err);
	if (r < 0)
		return r;
	i = instance_alloc(all, parent, path);
	if (i && all->renamed)
		instance_choose_handle(i);
	r = i ? instance_take(i, spec) : -ENOMEM;
	if (r < 0) {
		(void)instance_free(i);
		return error_set(err, r, "instance %s", path);
	}
	if (instance_is_nested_machine(i)) {
		r = nested_plan(i, err);
		if (r < 0) {
			(void)instance_free(i);
			return r;
		}
	}
	r = i->provider->ops->draw(i);
	if (r < 0)
		(void)error_set(err, r, "draw an id");
	else
		r = instance_add(i, err);
	if (r < 0)
		instance_withdraw(i);
	else
		*ret = i;
	return r;
}

int instance_create(struct instances *all, struct instance *parent,
		    const struct instance_spec *spec, instance_done_fn done, void *userdata,
		    struct instance **ret, struct error *err)
{
	struct instance *i = NULL;
	struct error own = ERROR_INIT;
	int r;

	if (parent && instance_is_node(parent))
		parent = NULL;
	if (all->by_id.n >= INSTANCES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "this node has %d instances already, its limit", INSTANCES_MAX);
	r = instance_make(all, parent, spec, &i, err);
	if (r < 0)
		return r;
	r = instance_wait(i, false, done, userdata);
	if (r == 0)
		r = instance_begin(i, err);
	else
		(void)error_set(err, r, "instance %s", i->path);
	if (r < 0) {
		all->config.forget(all->config.userdata, i);
		instance_withdraw(i);
		return r;
	}

	/* From here on a failure is the instance's: it is FAILED, and `done` says so. */
	r = parent ? instance_spawn_nested(i, &own) : instance_spawn_own(i, &own);
	if (r < 0 && parent)
		instance_note_failure(i, &own);
	else if (r < 0)
		instance_fail(i, &own);
	*ret = i;
	return 0;
}

void instance_wait_ready(struct instance *i, instance_done_fn done, void *userdata)
{
	struct error err = ERROR_INIT;
	int r = instance_wait(i, false, done, userdata);

	if (r < 0) {
		(void)error_set(&err, r, "wait for %s", i->path);
		done(userdata, i, &err);
		return;
	}
	loop_defer_schedule(&i->defer);
}

/* ---- stopping ---- */

static void instance_on_shutdown(void *userdata, const struct error *err)
{
	struct instance *i = userdata;

	/* It ends with its process; if it did not understand, the timer kills it. */
	if (err)
		log_warn("a keeper does not shut down", LOG_STR("instance", i->path), LOG_ERR(err));
}

void instance_stop(struct instance *i, instance_done_fn done, void *userdata)
{
	struct error err = ERROR_INIT;
	int r;

	r = instance_wait(i, true, done, userdata);
	loop_defer_schedule(&i->defer);
	if (!instance_has_ended(i) && i->state != INSTANCE_STOPPING) {
		FAILPOINT_BEFORE("instance.stop");
		instance_event(i, INSTANCE_STOP);
		if (!instance_is_own(i)) {
			instance_end_nested(i);
		} else if (i->peer && !i->broken && !i->mute) {
			loop_timer_set(&i->timer, i->provider->ops->stop_grace);
			i->peer->ops->shutdown(i->peer, instance_on_shutdown, i);
			if (i->provider->ops->stopping)
				i->provider->ops->stopping(i);
		} else {
			instance_break(i, "it was stopped");
		}
		FAILPOINT_AFTER("instance.stop");
	}
	if (r < 0) {
		(void)error_set(&err, r, "wait for the end of instance %s", i->path);
		done(userdata, i, &err);
	}
}

void instance_remove(struct instance *i)
{
	assert(i->state == INSTANCE_FAILED);
	i->unwanted = true;
	if (i->clean_delay == 0)
		instance_event(i, INSTANCE_REMOVE);
}

int instance_kill_cell(struct instance *i, const char *cell)
{
	char name[NAME_LABEL_MAX + sizeof("cell.")], dir[CGROUP_DIR_SIZE];
	char path[CGROUP_DIR_SIZE + sizeof("/cgroup.kill")];
	int r;

	if (i->cgroup_fd < 0)
		return -ENOENT;
	(void)str_printf(name, sizeof(name), "cell.%s", cell);
	r = cgroup_find_name(i->cgroup_fd, name, dir);
	if (r < 0)
		return r;
	(void)str_printf(path, sizeof(path), "%s/cgroup.kill", dir);
	return fd_write_file(i->cgroup_fd, path, "1");
}

int instance_reserve_rename(struct instance *i)
{
	return map_reserve(&i->all->by_path, 2);
}

void instance_rename(struct instance *i, const char *path)
{
	struct map *by_path = &i->all->by_path;
	bool known = map_get(by_path, i->path) == i;
	int r = 0;

	if (known)
		(void)map_remove(by_path, i->path);
	(void)str_copy(i->path, sizeof(i->path), path);
	i->all->renamed = true;
	if (known)
		r = map_add(by_path, i->path, i);
	assert(r == 0);
}

int instance_save(struct instance *i, struct error *err)
{
	return i->all->config.save(i->all->config.userdata, i, err);
}

int instance_set_settings(struct instance *i, const char *settings, struct error *err)
{
	char *copy = strdup(settings);

	if (!copy)
		return error_set(err, -ENOMEM, "instance %s", i->path);
	free(i->settings);
	i->settings = copy;
	return i->all->config.save(i->all->config.userdata, i, err);
}

/* What its disks are put into. */
static struct instance *instance_with_disks(struct instance *i)
{
	while (!instance_is_own(i) && i->parent)
		i = i->parent;
	assert(i->provider->ops->put_disk);
	return i;
}

int instance_put_disk(struct instance *i, const char *name, int fd,
		      char ret_serial[INSTANCE_SERIAL_SIZE], peer_done_fn done, void *userdata,
		      struct error *err)
{
	i = instance_with_disks(i);
	return i->provider->ops->put_disk(i, name, fd, ret_serial, done, userdata, err);
}

int instance_claim_disk(struct instance *i, const char *name, struct error *err)
{
	i = instance_with_disks(i);
	return i->provider->ops->claim_disk(i, name, err);
}

void instance_drop_disk(struct instance *i, const char *name)
{
	i = instance_with_disks(i);
	i->provider->ops->drop_disk(i, name);
}

int instance_put_volume(struct instance *i, const char *name, int mount_fd, bool read_only,
			peer_done_fn done, void *userdata, struct error *err)
{
	i = instance_with_disks(i);
	return i->provider->ops->put_volume(i, name, mount_fd, read_only, done, userdata, err);
}

void instance_drop_volume(struct instance *i, const char *name)
{
	i = instance_with_disks(i);
	if (i->provider->ops->drop_volume)
		i->provider->ops->drop_volume(i, name);
}

bool instance_is_lost(const struct instance *i)
{
	return i->lost;
}

bool instance_is_leaving(const struct instance *i)
{
	return i->state == INSTANCE_FAILED && i->unwanted;
}

/* ---- an earlier life ---- */

static struct instance *instance_parent_of(struct instances *all, const char *path)
{
	char above[NAME_PATH_MAX + 1];
	char *slash;

	(void)str_copy(above, sizeof(above), path);
	slash = strrchr(above, '/');
	if (!slash)
		return NULL;
	*slash = '\0';
	return instances_find(all, above);
}

static int instance_adopt_nested(struct instance *i, struct error *err)
{
	if (!i->parent || !i->parent->peer)
		return error_refuse(err, ERROR_UNAVAILABLE, "the instance around it ended");
	return instance_connect_nested(i, err);
}

/* An instance that ended in that life, or is not to live on in this one. */
static void instance_adopt_end(struct instance *i, const struct error *err)
{
	log_info("an instance did not survive", LOG_STR("instance", i->path), LOG_ERR(err));
	i->state = INSTANCE_READY;
	instance_ended(i, error_text(err));
}

/* Whether its keeper was asked for, or told to end, in that life, and only the one above knows what
 * became of it: that may not even have read the request yet. */
static bool instance_is_half_done(const struct instance *i, const struct instance_record *r)
{
	return r->state != INSTANCE_READY && !instance_is_own(i) && i->parent && i->parent->peer;
}

/* The keeper above answers behind what it was asked before; then nothing of it is left. */
static void instance_adopt_half_done(struct instance *i, const struct instance_record *r)
{
	char reason[INSTANCE_REASON_MAX];

	(void)str_printf(reason, sizeof(reason), "the daemon was restarted while it was %s",
			 instance_state_word((enum instance_state)r->state));
	(void)place_open_cgroup(i, NULL);
	i->state = INSTANCE_READY;
	/* Whoever asked for it asks again. That of a workload goes with the workload. */
	i->unwanted = r->state == INSTANCE_SPAWNING && !i->owner[0];
	instance_break(i, reason);
}

static void instance_adopt_failed(struct instance *i)
{
	struct error err = ERROR_INIT;

	i->ended = true;
	if (!instance_is_own(i))
		return;
	if (place_open_cgroup(i, &err) < 0)
		log_warn("cannot clean up behind an instance", LOG_STR("instance", i->path),
			 LOG_ERR(&err));
	instance_clean(i);
}

int instance_adopt(struct instances *all, const struct instance_record *r, struct error *err)
{
	struct error own = ERROR_INIT;
	struct instance *i;
	int ret;

	if (!all->config.providers[r->choice.kind])
		return error_refuse(err, ERROR_PRECONDITION,
				    "instance \"%s\" is of kind \"%s\", which this build cannot "
				    "take up",
				    r->path, instance_kind_word(r->choice.kind));
	FAILPOINT_BEFORE("boot.instance");
	i = instance_alloc(all, instance_parent_of(all, r->path), r->path);
	if (!i)
		return error_set(err, -ENOMEM, "take up instance \"%s\"", r->path);
	(void)str_copy(i->id, sizeof(i->id), r->id);
	ret = instance_take(i, &(struct instance_spec){ .owner = r->owner,
							.request = r->request,
							.settings = r->settings,
							.host_network = r->host_network,
							.choice = r->choice });
	if (ret < 0)
		(void)error_set(err, ret, "take up instance \"%s\"", r->path);
	else
		ret = instance_add(i, err);
	if (ret < 0) {
		(void)instance_free(i);
		return ret;
	}
	if (!str_empty(r->handle))
		(void)str_copy(i->handle, sizeof(i->handle), r->handle);
	all->renamed = all->renamed || !str_eq(i->handle, name_last(i->path));
	(void)str_copy(i->reason, sizeof(i->reason), r->reason);
	(void)str_copy(i->cgroup, sizeof(i->cgroup), r->cgroup);
	(void)str_copy(i->kernel, sizeof(i->kernel), r->kernel ? r->kernel : "");
	i->machine = r->machine;
	i->created_at = r->created_at;
	i->state = (enum instance_state)r->state;
	if (i->state == INSTANCE_FAILED) {
		instance_adopt_failed(i);
		return 0;
	}

	if (instance_is_nested_machine(i))
		nested_adopt(i);
	if (instance_is_half_done(i, r)) {
		instance_adopt_half_done(i, r);
		FAILPOINT_AFTER("boot.instance");
		return 0;
	}
	ret = instance_is_own(i) ? i->provider->ops->adopt(i, r->pid, r->start_time, &own)
				 : instance_adopt_nested(i, &own);
	FAILPOINT_AFTER("boot.instance");
	if (ret == 0 && r->state == INSTANCE_READY)
		return 0;
	/* Nothing that lives is to end for want of, say, a descriptor: the next daemon tries again.
	 */
	if (ret < 0 && instance_is_own(i) && own.kind != ERROR_UNAVAILABLE) {
		(void)instance_free(i);
		(void)error_copy(err, &own);
		return error_wrap(err, ret, "take up instance \"%s\"", r->path);
	}
	if (ret == 0)
		(void)error_refuse(&own, ERROR_ABORTED, "the daemon was restarted while it was %s",
				   instance_state_word((enum instance_state)r->state));
	instance_adopt_end(i, &own);
	/* Whoever asked for it asks again. That of a workload goes with the workload. */
	if (!i->owner[0] && r->state == INSTANCE_SPAWNING && i->state == INSTANCE_FAILED)
		instance_remove(i);
	return 0;
}

bool instances_synced(struct instances *all)
{
	struct instance *i;

	list_for_each (i, &all->list, struct instance, link)
		if (!i->ended && (!i->synced || upgrade_pending(i)))
			return false;
	return true;
}

/* ---- all of them ---- */

int instances_new(struct instances **ret, const struct instances_config *config, struct error *err)
{
	struct instances *all = calloc(1, sizeof(*all));
	int r = 0;

	if (!all)
		return error_set(err, -ENOMEM, "instances");
	all->config = *config;
	all->config.providers[INSTANCE_CELL] = provider_cell();
	all->exe_fd = -1;
	list_init(&all->list);
	upgrades_init(all);
	if (sysio_mkdirat(config->run_fd, "i", 0700) < 0 && errno != EEXIST)
		r = error_set(err, -errno, "make the directory of keepers");
	all->keepers_fd = openat(config->run_fd, "i", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r == 0 && all->keepers_fd < 0)
		r = error_set(err, -errno, "open the directory of keepers");
	if (r == 0 && !config->no_cells) {
		all->exe_fd = instance_open_exe(err);
		r = all->exe_fd < 0 ? all->exe_fd : 0;
	}
	if (r < 0) {
		(void)instances_free(all);
		return r;
	}
	*ret = all;
	return 0;
}

int instances_open_spare(struct instances *all)
{
	int r = all->spare ? 0 : spare_new(&all->spare, all);

	if (r == 0)
		spare_order(all->spare);
	return r;
}

void instances_rest(struct instances *all)
{
	spare_hurry(all->spare);
}

void instances_close_spare(struct instances *all)
{
	all->spare = spare_free(all->spare);
}

struct instances *instances_free(struct instances *all)
{
	struct instance *i;

	if (!all)
		return NULL;
	instances_close_spare(all);
	upgrades_done(all);
	list_for_each (i, &all->list, struct instance, link)
		instance_tell_end(i);
	/* The deeper ones first: their peers live on the connections of the ones above. */
	for (size_t depth = NAME_DEPTH_MAX + 1; depth-- > 0;)
		list_for_each (i, &all->list, struct instance, link)
			if (name_depth(i->path) == depth)
				(void)instance_free(i);
	map_done(&all->by_path);
	map_done(&all->by_id);
	all->keepers_fd = fd_close(all->keepers_fd);
	all->exe_fd = fd_close(all->exe_fd);
	free(all);
	return NULL;
}

int instances_open_node(struct instances *all, struct error *err)
{
	struct instance *node = instances_find(all, "");
	int r;

	if (node && !node->ended)
		return 0;
	if (node)
		instance_remove(node);
	node = instance_alloc(all, NULL, "");
	if (!node)
		return error_set(err, -ENOMEM, "the keeper of the node");
	r = node->provider->ops->draw(node);
	if (r < 0)
		(void)error_set(err, r, "draw an id");
	else
		r = instance_add(node, err);
	if (r < 0) {
		instance_withdraw(node);
		return r;
	}
	r = instance_begin(node, err);
	return r < 0 ? r : instance_spawn_own(node, err);
}
