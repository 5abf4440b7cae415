/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/model.h"

#include <assert.h>
#include <stdlib.h>

#include "base/text/str.h"
#include "instance/pids.h"
#include "isolate/cgroup/cgroup_name.h"
#include "isolate/cgroup/process.h"

/* Of a group below that of its instance. */
#define POD_GROUP_SIZE (2 * NAME_LABEL_MAX + 64)

static const char *const workload_states[] = {
	[WORKLOAD_STARTING] = "starting", [WORKLOAD_RUNNING] = "running",
	[WORKLOAD_STOPPING] = "stopping", [WORKLOAD_EXITED] = "exited",
	[WORKLOAD_FAILED] = "failed",     [WORKLOAD_REMOVING] = "removing",
	[WORKLOAD_CREATED] = "created",
};
static_assert(ARRAY_SIZE(workload_states) == WORKLOAD_STATE_COUNT, "one word for each state");

static const char *const workload_kinds[] = {
	[WORKLOAD_POD] = "pod",
	[WORKLOAD_CELL] = "cell",
	[WORKLOAD_EXECUTABLE] = "executable",
	[WORKLOAD_VM] = "vm",
};
static_assert(ARRAY_SIZE(workload_kinds) == WORKLOAD_KIND_COUNT, "one word for each kind");

static const char *const restart_policies[] = {
	[RESTART_NO] = "no",
	[RESTART_ON_FAILURE] = "on-failure",
	[RESTART_ALWAYS] = "always",
	[RESTART_UNLESS_STOPPED] = "unless-stopped",
};
static_assert(ARRAY_SIZE(restart_policies) == RESTART_POLICY_COUNT, "a word for each policy");

/* A container that drains runs for its users: its output is not complete yet. */
static const char *const container_states[] = {
	[CONTAINER_STARTING] = "starting", [CONTAINER_RUNNING] = "running",
	[CONTAINER_DRAINING] = "running",  [CONTAINER_EXITED] = "exited",
	[CONTAINER_FAILED] = "failed",
};
static_assert(ARRAY_SIZE(container_states) == CONTAINER_STATE_COUNT, "one word for each state");

const char *restart_policy_word(enum restart_policy policy)
{
	return restart_policies[policy];
}

enum restart_policy restart_policy_of(const char *word)
{
	for (int p = 0; p < RESTART_POLICY_COUNT; p++)
		if (str_eq(restart_policies[p], word))
			return (enum restart_policy)p;
	return RESTART_POLICY_COUNT;
}

static const char *const health_words[HEALTH_STATUS_COUNT] = {
	[HEALTH_NONE] = "",
	[HEALTH_STARTING] = "starting",
	[HEALTH_HEALTHY] = "healthy",
	[HEALTH_UNHEALTHY] = "unhealthy",
};

const char *health_word(enum health_status status)
{
	return health_words[status];
}

const char *workload_state_word(enum workload_state state)
{
	return workload_states[state];
}

const char *workload_kind_word(enum workload_kind kind)
{
	return workload_kinds[kind];
}

const char *pod_container_state_word(const struct pod_container *c)
{
	bool created = pod_container_is_created(c) || c->workload->state == WORKLOAD_CREATED;

	return created ? "created" : container_states[c->status.state];
}

int workload_exit_code(const struct workload *w)
{
	/* One that could not be started is why the others were stopped. */
	for (size_t i = 0; i < w->n_containers; i++)
		if (w->containers[i]->status.state == CONTAINER_FAILED &&
		    !w->containers[i]->is_debug)
			return w->containers[i]->status.exit_code;
	for (size_t i = 0; i < w->n_containers; i++)
		if (w->containers[i]->status.exit_code != 0 && !w->containers[i]->is_debug &&
		    !pod_container_is_sidecar(w->containers[i]))
			return w->containers[i]->status.exit_code;
	return 0;
}

bool pod_container_is_to_blame(const struct pod_container *c)
{
	const struct container_status *s = &c->status;

	return (s->state == CONTAINER_FAILED || (c->is_init && s->exit_code != 0)) &&
	       !str_eq(s->reason, c->workload->reason);
}

struct pod_container *workload_container(struct workload *w, const char *name, struct error *err)
{
	if (str_empty(name)) {
		size_t n = 0;

		/* The others are in front of those that look at them. */
		while (n < w->n_containers && !w->containers[n]->is_debug)
			n++;
		if (n == 1)
			return w->containers[0];
		(void)error_field(err, ERROR_INVALID, "container", "required, %s has %zu of them",
				  w->path, n);
		return NULL;
	}
	for (size_t i = 0; i < w->n_containers; i++)
		if (str_eq(w->containers[i]->name, name))
			return w->containers[i];
	(void)error_field(err, ERROR_NOT_FOUND, "container", "%s has no container %s", w->path,
			  name);
	return NULL;
}

/* The number of the group of its cell, by what the keeper told of any of its containers. */
static unsigned workload_group_number(const struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (w->containers[i]->status.cell_group)
			return w->containers[i]->status.cell_group;
	return 0;
}

static int group_below(const struct workload *w, const struct pod_container *c, int base_fd,
		       const char *group, char *ret, size_t size)
{
	unsigned number = workload_group_number(w);
	char name[NAME_LABEL_MAX + sizeof("cell.")];
	int r = 0;

	if (!number) {
		(void)str_printf(name, sizeof(name), "cell.%s", w->handle);
		return cgroup_find_below(base_fd, group, name, c ? c->name : NULL, ret, size);
	}
	if (!c)
		r = str_printf(ret, size, "%s/cell." CGROUP_NUMBERED "%u", group, number);
	else if (c->status.group)
		r = str_printf(ret, size, "%s/cell." CGROUP_NUMBERED "%u/" CGROUP_NUMBERED "%u",
			       group, number, c->status.group);
	else
		r = str_printf(ret, size, "%s/cell." CGROUP_NUMBERED "%u/%s", group, number,
			       c->name);
	return r < 0 ? r : 0;
}

int workload_group(const struct workload *w, int base_fd, const char *group, char *ret, size_t size)
{
	return group_below(w, NULL, base_fd, group, ret, size);
}

int pod_container_group(const struct pod_container *c, int base_fd, const char *group, char *ret,
			size_t size)
{
	return group_below(c->workload, c, base_fd, group, ret, size);
}

/* Its processes may have other numbers than here. */
static bool pod_is_walled(const struct workload *w)
{
	return w->kind != WORKLOAD_EXECUTABLE || !instance_is_node(w->instance);
}

pid_t pod_container_pid(struct pod_container *c)
{
	struct workload *w = c->workload;
	char group[POD_GROUP_SIZE];

	if (w->kind == WORKLOAD_VM)
		return c->status.state == CONTAINER_RUNNING ? (pid_t)c->status.pid : 0;
	if (c->status.state != CONTAINER_RUNNING || !w->instance)
		return 0;
	if (!c->host_pid &&
	    pod_container_group(c, w->instance->cgroup_fd, ".", group, sizeof(group)) == 0)
		c->host_pid = instance_container_pid(w->instance, group, (pid_t)c->status.pid,
						     pod_is_walled(w));
	return c->host_pid;
}

pid_t pod_container_pid_told(struct pod_container *c)
{
	struct workload *w = c->workload;
	pid_t pid;

	if (c->host_pid || c->status.state != CONTAINER_RUNNING || !w->instance)
		return pod_container_pid(c);
	pid = instance_container_pid_told(w->instance, (pid_t)c->status.pid, pod_is_walled(w));
	return pid ? pid : pod_container_pid(c);
}

struct peer *workload_peer(const struct workload *w)
{
	return w->instance && !w->instance->ended ? w->instance->peer : NULL;
}

char *pod_container_whole_group(const struct pod_container *c)
{
	const struct instance *i = c->workload->instance;
	char group[2 * NAME_LABEL_MAX + 64];

	if (i->cgroup[0] != '/' ||
	    pod_container_group(c, i->cgroup_fd, ".", group, sizeof(group)) < 0)
		return NULL;
	return str_format("%s%s", i->cgroup, group + 1);
}

/* As the user namespace has it. */
static unsigned identity_inside(const struct isolate_ids *ids, unsigned first, unsigned id)
{
	return isolate_ids_are_set(ids) && id - first < ids->count ? id - first : id;
}

void pod_container_tell_identity(struct pod_container *c, const struct process_identity *told)
{
	struct process_identity *identity = c->identity ?: malloc(sizeof(*identity));

	if (identity)
		*identity = *told;
	/* Without memory it is not known, as before. */
	c->identity = identity;
}

const struct process_identity *pod_container_identity(struct pod_container *c)
{
	pid_t pid = c->identity ? 0 : pod_container_pid(c);
	_cleanup_str_ char *group = pid > 0 ? pod_container_whole_group(c) : NULL;
	const struct isolate_ids *ids = &c->workload->ids;
	struct process_identity *identity = group ? malloc(sizeof(*identity)) : NULL;

	if (!identity)
		return c->identity;
	if (process_identity(pid, group, identity) < 0) {
		free(identity);
		return NULL;
	}
	identity->uid = identity_inside(ids, ids->uid, identity->uid);
	identity->gid = identity_inside(ids, ids->gid, identity->gid);
	for (size_t i = 0; i < identity->n_groups; i++)
		identity->groups[i] = identity_inside(ids, ids->gid, identity->groups[i]);
	c->identity = identity;
	return identity;
}
