/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/workload_inventory.h"

#include "base/memory/inventory.h"
#include "base/text/str.h"
#include "foreign/foreign.h"
#include "instance/instance_inventory.h"
#include "instance/place.h"
#include "isolate/cgroup/cgroup_name.h"
#include "network/attachment.h"
#include "network/driver.h"
#include "network/networks.h"
#include "pod/workload/hosted.h"
#include "pod/workload/life.h"
#include "store/store.h"

#define INVENTORY_PATH_MAX 1200

struct inventory_walk {
	struct workloads *all;
	struct inventory *inventory;
};

/* ---- what they have ---- */

static void inventory_container_groups(const struct workloads *all, const struct pod_container *c,
				       struct inventory *t)
{
	const struct workload *w = c->workload;
	char group[INVENTORY_PATH_MAX];

	if (pod_container_has_ended(c) ||
	    pod_container_group(c, all->config.instances->config.cgroup_fd,
				instance_group(w->instance), group, sizeof(group)) < 0)
		return;
	/* What is below its own group is the container's affair. */
	inventory_may_below(t, "cgroup", group);
	inventory_may_below(t, "processes", group);
	if (w->state != WORKLOAD_RUNNING || c->status.state != CONTAINER_RUNNING)
		return;
	inventory_must(t, "cgroup", group, c->id, w->path);
	inventory_must(t, "processes", group, c->id, w->path);
}

/* Made before it runs, and gone with it. */
static void inventory_machine_dir(const struct workload *w, struct inventory *t)
{
	char dir[ID_SIZE + 16], socket[ID_SIZE + 32];

	(void)str_printf(dir, sizeof(dir), "machines/%s", w->id);
	(void)str_printf(socket, sizeof(socket), "%s/qmp.sock", dir);
	inventory_may(t, "directory", dir);
	inventory_may_below(t, "socket", dir);
	if (w->state != WORKLOAD_RUNNING)
		return;
	inventory_must(t, "directory", dir, w->id, w->path);
	inventory_must(t, "socket", socket, w->id, w->path);
}

static void inventory_machine(const struct workload *w, struct inventory *t)
{
	char name[INVENTORY_PATH_MAX];

	if (w->taken_down)
		return;
	(void)foreign_group(name, sizeof(name), w->handle);
	inventory_may_below(t, "cgroup", name);
	inventory_may_below(t, "processes", name);
	if (w->state == WORKLOAD_RUNNING)
		inventory_must(t, "cgroup", name, w->id, w->path);
	inventory_machine_dir(w, t);
}

static void inventory_groups(const struct workloads *all, const struct workload *w,
			     struct inventory *t)
{
	char group[INVENTORY_PATH_MAX];

	if (w->kind == WORKLOAD_VM) {
		if (!hosted_is_in_cloud(w))
			inventory_machine(w, t);
		return;
	}
	if (!w->instance || w->instance->ended || w->taken_down ||
	    instance_is_remote(w->instance) || place_is_elsewhere(w->instance) ||
	    workload_group(w, all->config.instances->config.cgroup_fd, instance_group(w->instance),
			   group, sizeof(group)) < 0)
		return;
	inventory_may(t, "cgroup", group);
	inventory_may(t, "processes", group);
	for (size_t n = 0; n < w->n_containers; n++)
		inventory_container_groups(all, w->containers[n], t);
}

static void inventory_files(const struct workload *w, struct inventory *t)
{
	inventory_may(t, "log", w->id);
	for (size_t n = 0; n < w->n_containers; n++) {
		const struct pod_container *c = w->containers[n];

		if (c->status.started_at && w->kind != WORKLOAD_VM)
			inventory_must(t, "log", w->id, w->id, w->path);
		if (!c->has_rootfs)
			continue;
		inventory_may(t, "rootfs", c->id);
		if (c->status.state == CONTAINER_RUNNING)
			inventory_must(t, "rootfs", c->id, c->id, w->path);
	}
}

/* What comes or goes just now is not asked for. */
static void inventory_ports(const struct workload *w, struct inventory *t)
{
	char thing[IF_NAMESIZE + 8];

	for (const struct attachment *a = w->attachment; a && w->state == WORKLOAD_RUNNING;
	     a = a->next) {
		/* Some devices have no end here. */
		if (a->state != ATTACHMENT_PLUGGED || a->is_half || a->network->plugins ||
		    !a->device[0])
			continue;
		(void)str_printf(thing, sizeof(thing), "ports/%s", a->device);
		inventory_must(t, "port", thing, w->id, w->path);
	}
}

/* A bridge is there once somebody is on a network, and stays. */
static void inventory_bridges(const struct workloads *all, struct inventory *t)
{
	char thing[IF_NAMESIZE + 8];
	struct bridge_plan bridge;
	const struct network *n;

	list_for_each (n, networks_list(all->config.networks), struct network, link) {
		if (n->driver != NETWORK_BRIDGE)
			continue;
		driver_plan_bridge(n, &bridge);
		(void)str_printf(thing, sizeof(thing), "ports/%s", bridge.name);
		inventory_may(t, "port", thing);
		if (n->n_attached > 0)
			inventory_must(t, "port", thing, n->name, n->name);
	}
}

/* ---- what the store says ---- */

static void inventory_record(struct inventory *t, const char *kind, const char *id,
			     const char *path,
			     void (*note)(struct inventory *t, const char *kind, const char *thing,
					  const char *id, const char *name))
{
	char thing[ID_SIZE + 16];

	(void)str_printf(thing, sizeof(thing), "%s %s", kind, id);
	note(t, "record", thing, id, path);
}

static void inventory_note_seen(struct inventory *t, const char *kind, const char *thing,
				const char *id, const char *name)
{
	(void)id;
	(void)name;
	inventory_seen(t, kind, thing);
}

static void inventory_differs(struct inventory *t, const char *kind, const char *id,
			      const char *path, const char *recorded, const char *is)
{
	char what[160];

	if (str_eq(recorded, is))
		return;
	(void)str_printf(what, sizeof(what), "the record says %s, and it is %s", recorded, is);
	inventory_fault(t, kind, id, path, what);
}

static int inventory_read_container(void *data, const struct run_container *r)
{
	const struct inventory_walk *walk = data;
	const struct pod_container *c = map_get(&walk->all->containers, r->id);

	inventory_record(walk->inventory, "container", r->id, "", inventory_note_seen);
	if (c)
		inventory_differs(walk->inventory, "container", c->id, c->workload->path,
				  r->state_word, pod_container_state_word(c));
	return 0;
}

static int inventory_read_workload(void *data, const struct run_workload *r)
{
	const struct inventory_walk *walk = data;
	const struct workload *w = map_get(&walk->all->by_id, r->id);

	inventory_record(walk->inventory, "workload", r->id, "", inventory_note_seen);
	if (w)
		inventory_differs(walk->inventory, "workload", w->id, w->path, r->state_word,
				  workload_state_word(w->state));
	return 0;
}

static int inventory_read_instance(void *data, const struct run_instance *r)
{
	const struct inventory_walk *walk = data;
	const struct instance *i = instances_find_id(walk->all->config.instances, r->id);

	inventory_record(walk->inventory, "instance", r->id, "", inventory_note_seen);
	if (i)
		inventory_differs(walk->inventory, "instance", i->id, i->path, r->state_word,
				  instance_state_word(i->state));
	return 0;
}

static int inventory_store(struct workloads *all, struct inventory *t, struct error *err)
{
	struct inventory_walk walk = { .all = all, .inventory = t };
	struct run_store *s = all->config.store;
	const struct workload *w;
	int r;

	r = run_store_each_instance(s, inventory_read_instance, &walk, err);
	if (r == 0)
		r = run_store_each_workload(s, inventory_read_workload, &walk, err);
	list_for_each (w, &all->list, struct workload, link)
		if (r == 0)
			r = run_store_each_container(s, w->id, inventory_read_container, &walk,
						     err);
	return r;
}

int workloads_inventory(struct workloads *all, struct inventory *t, struct error *err)
{
	const struct workload *w;
	const struct instance *i;

	list_for_each (w, &all->list, struct workload, link) {
		inventory_groups(all, w, t);
		inventory_files(w, t);
		inventory_ports(w, t);
		inventory_record(t, "workload", w->id, w->path, inventory_must);
		for (size_t n = 0; n < w->n_containers; n++)
			inventory_record(t, "container", w->containers[n]->id, w->path,
					 inventory_must);
	}
	inventory_bridges(all, t);
	list_for_each (i, instances_list(all->config.instances), struct instance, link)
		if (i->state != INSTANCE_GONE)
			inventory_record(t, "instance", i->id, i->path, inventory_must);
	return inventory_store(all, t, err);
}
