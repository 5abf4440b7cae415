/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/tally.h"

#include "base/memory/tally.h"
#include "base/text/str.h"
#include "foreign/foreign.h"
#include "instance/place.h"
#include "instance/tally.h"
#include "isolate/cgroup/cgroup_name.h"
#include "network/attachment.h"
#include "network/driver.h"
#include "network/networks.h"
#include "pod/workload/life.h"
#include "store/store.h"

#define TALLY_PATH_MAX 1200

struct tally_walk {
	struct workloads *all;
	struct tally *tally;
};

/* ---- what they have ---- */

static void tally_container_groups(const struct workloads *all, const struct pod_container *c,
				   struct tally *t)
{
	const struct workload *w = c->workload;
	char group[TALLY_PATH_MAX];

	if (pod_container_has_ended(c) ||
	    pod_container_group(c, all->config.instances->config.cgroup_fd,
				instance_group(w->instance), group, sizeof(group)) < 0)
		return;
	/* What is below its own group is the container's affair. */
	tally_may_below(t, "cgroup", group);
	tally_may_below(t, "processes", group);
	if (w->state != WORKLOAD_RUNNING || c->status.state != CONTAINER_RUNNING)
		return;
	tally_must(t, "cgroup", group, c->id, w->path);
	tally_must(t, "processes", group, c->id, w->path);
}

/* Made before it runs, and gone with it. */
static void tally_machine_dir(const struct workload *w, struct tally *t)
{
	char dir[ID_SIZE + 16], socket[ID_SIZE + 32];

	(void)str_printf(dir, sizeof(dir), "machines/%s", w->id);
	(void)str_printf(socket, sizeof(socket), "%s/qmp.sock", dir);
	tally_may(t, "directory", dir);
	tally_may_below(t, "socket", dir);
	if (w->state != WORKLOAD_RUNNING)
		return;
	tally_must(t, "directory", dir, w->id, w->path);
	tally_must(t, "socket", socket, w->id, w->path);
}

static void tally_machine(const struct workload *w, struct tally *t)
{
	char name[TALLY_PATH_MAX];

	if (w->taken_down)
		return;
	(void)foreign_group(name, sizeof(name), w->handle);
	tally_may_below(t, "cgroup", name);
	tally_may_below(t, "processes", name);
	if (w->state == WORKLOAD_RUNNING)
		tally_must(t, "cgroup", name, w->id, w->path);
	tally_machine_dir(w, t);
}

static void tally_groups(const struct workloads *all, const struct workload *w, struct tally *t)
{
	char group[TALLY_PATH_MAX];

	if (w->kind == WORKLOAD_VM) {
		tally_machine(w, t);
		return;
	}

	if (!w->instance || w->instance->ended || w->taken_down ||
	    instance_is_remote(w->instance) || place_is_elsewhere(w->instance) ||
	    workload_group(w, all->config.instances->config.cgroup_fd, instance_group(w->instance),
			   group, sizeof(group)) < 0)
		return;
	tally_may(t, "cgroup", group);
	tally_may(t, "processes", group);
	for (size_t n = 0; n < w->n_containers; n++)
		tally_container_groups(all, w->containers[n], t);
}

static void tally_files(const struct workload *w, struct tally *t)
{
	tally_may(t, "log", w->id);
	for (size_t n = 0; n < w->n_containers; n++) {
		const struct pod_container *c = w->containers[n];

		if (c->status.started_at && w->kind != WORKLOAD_VM)
			tally_must(t, "log", w->id, w->id, w->path);
		if (!c->has_rootfs)
			continue;
		tally_may(t, "rootfs", c->id);
		if (c->status.state == CONTAINER_RUNNING)
			tally_must(t, "rootfs", c->id, c->id, w->path);
	}
}

/* What comes or goes just now is not asked for. */
static void tally_ports(const struct workload *w, struct tally *t)
{
	char thing[IF_NAMESIZE + 8];

	for (const struct attachment *a = w->attachment; a && w->state == WORKLOAD_RUNNING;
	     a = a->next) {
		/* Some devices have no end here. */
		if (a->state != ATTACHMENT_PLUGGED || a->is_half || a->network->plugins ||
		    !a->device[0])
			continue;
		(void)str_printf(thing, sizeof(thing), "ports/%s", a->device);
		tally_must(t, "port", thing, w->id, w->path);
	}
}

/* A bridge is there once somebody is on a network, and stays. */
static void tally_bridges(const struct workloads *all, struct tally *t)
{
	char thing[IF_NAMESIZE + 8];
	struct bridge_plan bridge;
	const struct network *n;

	list_for_each (n, networks_list(all->config.networks), struct network, link) {
		if (n->driver != NETWORK_BRIDGE)
			continue;
		driver_plan_bridge(n, &bridge);
		(void)str_printf(thing, sizeof(thing), "ports/%s", bridge.name);
		tally_may(t, "port", thing);
		if (n->n_attached > 0)
			tally_must(t, "port", thing, n->name, n->name);
	}
}

/* ---- what the store says ---- */

static void tally_record(struct tally *t, const char *kind, const char *id, const char *path,
			 void (*note)(struct tally *t, const char *kind, const char *thing,
				      const char *id, const char *name))
{
	char thing[ID_SIZE + 16];

	(void)str_printf(thing, sizeof(thing), "%s %s", kind, id);
	note(t, "record", thing, id, path);
}

static void tally_note_seen(struct tally *t, const char *kind, const char *thing, const char *id,
			    const char *name)
{
	(void)id;
	(void)name;
	tally_seen(t, kind, thing);
}

static void tally_differs(struct tally *t, const char *kind, const char *id, const char *path,
			  const char *recorded, const char *is)
{
	char what[160];

	if (str_eq(recorded, is))
		return;
	(void)str_printf(what, sizeof(what), "the record says %s, and it is %s", recorded, is);
	tally_fault(t, kind, id, path, what);
}

static int tally_read_container(void *data, const struct run_container *r)
{
	const struct tally_walk *walk = data;
	const struct pod_container *c = map_get(&walk->all->containers, r->id);

	tally_record(walk->tally, "container", r->id, "", tally_note_seen);
	if (c)
		tally_differs(walk->tally, "container", c->id, c->workload->path, r->state_word,
			      pod_container_state_word(c));
	return 0;
}

static int tally_read_workload(void *data, const struct run_workload *r)
{
	const struct tally_walk *walk = data;
	const struct workload *w = map_get(&walk->all->by_id, r->id);

	tally_record(walk->tally, "workload", r->id, "", tally_note_seen);
	if (w)
		tally_differs(walk->tally, "workload", w->id, w->path, r->state_word,
			      workload_state_word(w->state));
	return 0;
}

static int tally_read_instance(void *data, const struct run_instance *r)
{
	const struct tally_walk *walk = data;
	const struct instance *i = instances_find_id(walk->all->config.instances, r->id);

	tally_record(walk->tally, "instance", r->id, "", tally_note_seen);
	if (i)
		tally_differs(walk->tally, "instance", i->id, i->path, r->state_word,
			      instance_state_word(i->state));
	return 0;
}

static int tally_store(struct workloads *all, struct tally *t, struct error *err)
{
	struct tally_walk walk = { .all = all, .tally = t };
	struct run_store *s = all->config.store;
	const struct workload *w;
	int r;

	r = run_store_each_instance(s, tally_read_instance, &walk, err);
	if (r == 0)
		r = run_store_each_workload(s, tally_read_workload, &walk, err);
	list_for_each (w, &all->list, struct workload, link)
		if (r == 0)
			r = run_store_each_container(s, w->id, tally_read_container, &walk, err);
	return r;
}

int workloads_tally(struct workloads *all, struct tally *t, struct error *err)
{
	const struct workload *w;
	const struct instance *i;

	list_for_each (w, &all->list, struct workload, link) {
		tally_groups(all, w, t);
		tally_files(w, t);
		tally_ports(w, t);
		tally_record(t, "workload", w->id, w->path, tally_must);
		for (size_t n = 0; n < w->n_containers; n++)
			tally_record(t, "container", w->containers[n]->id, w->path, tally_must);
	}
	tally_bridges(all, t);
	list_for_each (i, instances_list(all->config.instances), struct instance, link)
		if (i->state != INSTANCE_GONE)
			tally_record(t, "instance", i->id, i->path, tally_must);
	return tally_store(all, t, err);
}
