/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/run_spec.h"

#include <errno.h>

#include "base/memory/arena.h"
#include "base/text/str.h"
#include "image/image.h"
#include "instance/choose.h"
#include "instance/instance.h"
#include "pod/restart/restart.h"
#include "pod/storage/image_mounts.h"
#include "pod/workload/model.h"
#include "pod/workload/order.h"
#include "runtime/core/check.h"
#include "runtime/networks/nics.h"
#include "runtime/networks/pod_join.h"
#include "runtime/networks/pod_metadata.h"
#include "runtime/networks/pod_network.h"
#include "runtime/services.h"
#include "runtime/start/container.h"
#include "runtime/start/remote.h"
#include "runtime/start/security.h"
#include "runtime/start/size.h"
#include "runtime/start/vendor_devices.h"
#include "runtime/workload/health.h"

/* ---- the containers ---- */

static int runtime_settings(struct arena *a, const struct run_what *what,
			    struct pod_container_spec *to, struct error *err)
{
	size_t n_used = 0;
	char field[64];
	int r;

	r = settings_check_volumes(what->whole.volumes, what->whole.n_volumes, err);
	for (size_t i = 0; i < what->n_containers && r == 0; i++) {
		(void)str_printf(field, sizeof(field), "containers[%zu]", i);
		r = settings_take(a, &to[i], what->containers[i], field, &what->whole, &n_used,
				  err);
	}
	return r;
}

static int runtime_containers(struct arena *a, const struct run_what *what,
			      struct workload_spec *spec, struct error *err)
{
	Aurae__Runtime__V0__Container **from = what->containers;
	size_t n = what->n_containers;
	struct pod_container_spec *to;
	int r;

	if (n == 0)
		return error_field(err, ERROR_INVALID, "containers", "required");
	if (n > WORKLOAD_CONTAINERS_MAX)
		return error_field(err, ERROR_INVALID, "containers",
				   "%zu are more than the limit of %d", n, WORKLOAD_CONTAINERS_MAX);
	to = arena_zalloc(a, n, sizeof(*to));
	for (size_t i = 0; i < n && to; i++) {
		r = container_take(a, from[i], i, n, &to[i], err);
		if (r < 0)
			return r;
	}
	if (!to)
		return error_set(err, -ENOMEM, "containers");
	spec->containers = to;
	spec->n_containers = n;
	r = runtime_settings(a, what, to, err);
	if (r == 0)
		r = vendor_devices_settle(a, from, n, to, err);
	return r < 0 ? r : settings_take_whole(a, spec, &what->whole, err);
}

int run_parent(const struct runtime_service *s, const char *field, const char *path,
	       struct instance **ret, struct error *err)
{
	int r = check_path(field, path, err);

	if (r < 0)
		return r;
	*ret = NULL;
	if (str_empty(path))
		return 0;
	*ret = instances_find(s->instances, path);
	return *ret ? 0 : error_field(err, ERROR_NOT_FOUND, field, "there is no instance %s", path);
}

int run_choose(const struct runtime_service *s, const struct instance *parent,
	       enum instance_kind wish, struct instance_choice *ret, struct error *err)
{
	struct error own = ERROR_INIT;

	if (instances_choose(s->instances, parent, wish, ret, &own) == 0)
		return 0;
	return error_field(err, own.kind, "kind", "%s", error_text(&own));
}

/* Each with a profile, also where it names none: what is kept of it names the one that it got. */
static int runtime_profiles(struct arena *a, struct run_what *what, const char *otherwise,
			    struct error *err)
{
	Aurae__Runtime__V0__Container **list;
	int r = 0;

	if (what->n_containers == 0 || what->n_containers > WORKLOAD_CONTAINERS_MAX)
		return 0;
	list = arena_memdup(a, what->containers, what->n_containers * sizeof(*list));
	for (size_t i = 0; list && i < what->n_containers && r == 0; i++)
		r = security_name_profile(a, &list[i], otherwise);
	if (!list || r < 0)
		return error_set(err, -ENOMEM, "containers");
	what->containers = list;
	return 0;
}

/* ---- all of it ---- */

/* field: that of the policy. */
static int run_take_rule(const Aurae__Runtime__V0__RestartPolicy *from, const char *field,
			 struct restart_rule *to, struct error *err)
{
	char name[ERROR_FIELD_MAX];

	if (!from)
		return 0;
	to->policy = str_empty(from->policy) ? RESTART_NO : restart_policy_of(from->policy);
	to->max = from->max_retries;
	(void)str_printf(name, sizeof(name), "%s.policy", field);
	if (to->policy == RESTART_POLICY_COUNT)
		return error_field(err, ERROR_INVALID, name,
				   "\"%.80s\" is none of no, on-failure, always and unless-stopped",
				   from->policy);
	(void)str_printf(name, sizeof(name), "%s.max_retries", field);
	if (to->max > RESTART_RETRIES_MAX)
		return error_field(err, ERROR_INVALID, name, "%u are more than the limit of %d",
				   to->max, RESTART_RETRIES_MAX);
	if (to->max && to->policy != RESTART_ON_FAILURE)
		return error_field(err, ERROR_INVALID, name,
				   "only the policy on-failure counts its restarts");
	return 0;
}

static int run_take_restart(const Aurae__Runtime__V0__RestartPolicy *from, bool auto_remove,
			    struct restart_rule *to, struct error *err)
{
	int r = run_take_rule(from, "restart", to, err);

	if (r < 0)
		return r;
	if (to->policy != RESTART_NO && auto_remove)
		return error_field(err, ERROR_INVALID, "restart",
				   "not with auto_remove: what is removed when it has ended cannot "
				   "be started again");
	return 0;
}

/* Of a cell. */
static int run_take_users(struct workload_spec *spec, const char *word, struct error *err)
{
	int r = security_take_users(spec, word, "userns", err);

	if (r == 0 && spec->users && spec->parent && instance_is_remote(spec->parent))
		return error_field(err, ERROR_UNSUPPORTED, "userns",
				   "not in an instance of kind vm, whose kernel is its wall");
	return r;
}

/* Where nothing is left of its files when it has ended. */
static int run_check_stays(const struct run_request *q, const struct workload_spec *spec,
			   struct error *err)
{
	const char *field = q->create_only ? "create_only" : "restart";

	if (!q->create_only && spec->restart.policy == RESTART_NO)
		return 0;
	if (!remote_will_be(spec->parent, spec->kind == WORKLOAD_POD ? &spec->choice : NULL))
		return 0;
	return error_field(err, ERROR_UNSUPPORTED, field,
			   "not of kind vm, or in an instance of that kind: its containers have "
			   "their files in the memory of the machine, which ends with them");
}

/* Its init containers, and what there is beside them. */
static int run_check_order(const struct run_what *what, bool remote, struct error *err)
{
	char field[ERROR_FIELD_MAX];
	size_t n = 0;

	for (size_t i = 0; i < what->n_containers; i++) {
		const Aurae__Runtime__V0__Container *c = what->containers[i];

		if (!c->init_container)
			continue;
		n++;
		(void)str_printf(field, sizeof(field), "containers[%zu].init_container", i);
		if (remote)
			return error_field(err, ERROR_UNSUPPORTED, field,
					   "not of kind vm, or in an instance of that kind");
		if (c->health && !(c->restart && str_eq(c->restart->policy, "always")))
			return error_field(err, ERROR_INVALID, field,
					   "not with health, unless it is a sidecar (restart: "
					   "always)");
	}
	return n == 0 || n < what->n_containers
		       ? 0
		       : error_field(err, ERROR_INVALID, field,
				     "no container is left that is none: it would never run");
}

static size_t run_find_container(const struct run_what *what, const char *name)
{
	size_t i = 0;

	for (; i < what->n_containers; i++) {
		const char *own = what->containers[i]->name;

		if (str_eq(str_empty(own) ? RUN_CONTAINER_NAME : own, name))
			break;
	}
	return i;
}

/* Requirement `at` of a container. */
static int run_take_requirement(const struct run_what *what, size_t at,
				const Aurae__Runtime__V0__Requirement *q, const char *field,
				struct pod_requires *to, struct error *err)
{
	size_t i = run_find_container(what, q->container);
	uint64_t bit = UINT64_C(1) << (i & 63);

	if (i == what->n_containers || i == at || what->containers[i]->init_container)
		return error_field(err, ERROR_INVALID, field,
				   "\"%.80s\" is no other container that is no init container",
				   q->container);
	if (str_empty(q->condition) || str_eq(q->condition, "started"))
		to->started |= bit;
	else if (str_eq(q->condition, "healthy"))
		to->healthy |= bit;
	else if (str_eq(q->condition, "completed"))
		to->completed |= bit;
	else
		return error_field(err, ERROR_INVALID, field,
				   "condition: \"%.40s\" is none of started, healthy and "
				   "completed",
				   q->condition);
	return 0;
}

/* What its containers require of each other. */
static int run_take_requires(const struct run_what *what, bool remote, struct workload_spec *spec,
			     struct error *err)
{
	struct pod_requires list[WORKLOAD_CONTAINERS_MAX] = { { 0, 0, 0 } };
	char field[ERROR_FIELD_MAX] = "containers";

	for (size_t i = 0; i < what->n_containers; i++) {
		const Aurae__Runtime__V0__Container *c = what->containers[i];

		for (size_t k = 0; k < c->n_requires; k++) {
			int r;

			(void)str_printf(field, sizeof(field), "containers[%zu].requires[%zu]", i,
					 k);
			if (remote)
				return error_field(err, ERROR_UNSUPPORTED, field,
						   "not of kind vm, or in an instance of that "
						   "kind");
			if (c->init_container)
				return error_field(err, ERROR_INVALID, field,
						   "init containers have an order already");
			r = run_take_requirement(what, i, c->requires[k], field, &list[i], err);
			if (r < 0)
				return r;
		}
		((struct pod_container_spec *)(uintptr_t)spec->containers)[i].requires = list[i];
	}
	return order_is_possible(list, what->n_containers)
		       ? 0
		       : error_field(err, ERROR_INVALID, field, "containers wait for each other");
}

/* The policies of single containers. */
static int run_take_restarts(const struct run_what *what, bool remote, struct workload_spec *spec,
			     struct error *err)
{
	char field[ERROR_FIELD_MAX];

	for (size_t i = 0; i < what->n_containers; i++) {
		const Aurae__Runtime__V0__Container *c = what->containers[i];
		struct restart_rule rule = { .policy = RESTART_NO };
		int r;

		(void)str_printf(field, sizeof(field), "containers[%zu].restart", i);
		r = run_take_rule(c->restart, field, &rule, err);
		if (r < 0)
			return r;
		if (rule.policy != RESTART_NO && remote)
			return error_field(err, ERROR_UNSUPPORTED, field,
					   "not of kind vm, or in an instance of that kind");
		if (c->init_container && rule.policy != RESTART_NO && rule.policy != RESTART_ALWAYS)
			return error_field(err, ERROR_INVALID, field,
					   "of an init container it is always (it is a sidecar "
					   "then) or no, not %s",
					   restart_policy_word(rule.policy));
		((struct pod_container_spec *)(uintptr_t)spec->containers)[i].restart = rule;
	}
	return 0;
}

int run_take_network(const struct run_request *q, struct workload_spec *spec, struct error *err)
{
	return spec->kind == WORKLOAD_POD ? pod_network_word(q->network, &spec->network, err)
					  : pod_network_cell_word(q->network, &spec->network, err);
}

static const char *run_profile(const struct runtime_service *s, const struct run_request *q)
{
	return q->security && !str_empty(q->security->profile) ? q->security->profile : s->profile;
}

static int run_take_containers(const struct runtime_service *s, struct arena *a,
			       const struct run_request *q, struct run_what *what,
			       struct workload_spec *spec, struct error *err)
{
	bool remote =
		remote_will_be(spec->parent, spec->kind == WORKLOAD_POD ? &spec->choice : NULL);
	int r = vendor_devices_check(what->containers, what->n_containers, remote, err);

	if (r == 0)
		r = runtime_profiles(a, what, run_profile(s, q), err);
	if (r == 0)
		r = vendor_devices_add(a, what->devices, what->containers, what->n_containers, err);
	if (r == 0)
		r = runtime_containers(a, what, spec, err);
	if (r < 0)
		vendor_devices_blame(what->containers, what->n_containers, err);
	if (r == 0)
		r = run_check_order(what, remote, err);
	if (r == 0)
		r = run_take_requires(what, remote, spec, err);
	if (r == 0)
		r = run_take_restarts(what, remote, spec, err);
	return r == 0 ? health_check_run(what->containers, what->n_containers, spec, remote,
					 s->images, err)
		      : r;
}

int run_specify(const struct runtime_service *s, struct arena *a, const struct run_request *q,
		struct workload_spec *spec, struct instance_nic *nic, struct error *err)
{
	struct run_what what = q->what;
	bool is_pod = spec->kind == WORKLOAD_POD, shared = false;
	int r;

	what.whole.init = s->init;
	what.whole.security = q->security;
	spec->auto_remove = q->auto_remove;
	spec->drops_failed = q->remove_failed;
	spec->create_only = q->create_only;
	spec->nic = nic;
	r = run_take_restart(q->restart, q->auto_remove, &spec->restart, err);
	if (r == 0)
		r = run_parent(s, is_pod ? "parent" : "instance", q->parent, &spec->parent, err);
	if (r == 0 && is_pod)
		r = run_choose(s, spec->parent, q->wish, &spec->choice, err);
	spec->choice.cold = q->cold;
	if (r == 0)
		r = run_check_stays(q, spec, err);
	/* There the keeper asks its own kernel. */
	if (r == 0 && remote_will_be(spec->parent, is_pod ? &spec->choice : NULL))
		what.whole.base_fd = -1;
	if (r == 0)
		r = nics_take(spec->network, q->nics, q->n_nics, spec->parent, &spec->choice, nic,
			      err);
	if (r == 0)
		r = pod_join_take(s->workloads, a, q->network, q->security, spec, err);
	if (r == 0)
		r = security_take_pod(a, spec, q->security, s->cgroup, &shared, err);
	if (r == 0 && !is_pod)
		r = run_take_users(spec, q->userns, err);
	what.whole.host_ipc = spec->host_ipc;
	if (r == 0)
		r = run_take_containers(s, a, q, &what, spec, err);
	if (r == 0)
		r = security_share_pids(spec, shared, err);
	if (r == 0)
		r = pod_network_take(a, q->network, q->pod_network, is_pod && s->on_network, spec,
				     err);
	if (r == 0)
		r = pod_network_take_further(a, q->further, q->n_further, q->network, spec, err);
	if (r == 0)
		r = pod_metadata_check(q->pod_network, q->meta, spec, err);
	if (r == 0)
		r = settings_add_labels(a, &spec->settings, q->meta, err);
	if (r == 0)
		r = security_take_name(a, spec, err);
	if (r == 0)
		r = pod_join_name(s->workloads, a, spec, err);
	spec->size = size_of(what.whole.resources, what.containers, what.n_containers);
	if (r == 0)
		r = size_check_run(spec->parent, what.whole.resources, what.containers,
				   what.n_containers, err);
	return r == 0 ? remote_check_run(spec, err) : r;
}

/* ---- the requests ---- */

const char *run_meta_name(const Aurae__Runtime__V0__Meta *meta)
{
	return meta ? meta->name : "";
}

struct run_request run_cell_request(const struct runtime_service *s,
				    const Aurae__Runtime__V0__RunCellRequest *q)
{
	return (struct run_request){
		.message = &q->base,
		.meta = q->meta,
		.id = q->request_id,
		.name = run_meta_name(q->meta),
		.parent = q->instance,
		.network = q->network,
		.pod_network = q->pod_network,
		.further = q->further_networks,
		.n_further = q->n_further_networks,
		.restart = q->restart,
		.create_only = q->create_only,
		.userns = q->userns,
		.what = { q->containers,
			  q->n_containers,
			  { q->volumes, q->n_volumes, q->resources, s->cgroup_fd } },
	};
}

struct run_request run_pod_request(const struct runtime_service *s,
				   const Aurae__Runtime__V0__RunPodRequest *q)
{
	return (struct run_request){
		.message = &q->base,
		.meta = q->meta,
		.id = q->request_id,
		.name = run_meta_name(q->meta),
		.parent = q->parent,
		.network = q->network,
		.pod_network = q->pod_network,
		.further = q->further_networks,
		.n_further = q->n_further_networks,
		.security = q->security,
		.auto_remove = q->auto_remove,
		.remove_failed = q->remove_failed,
		.restart = q->restart,
		.create_only = q->create_only,
		.cold = q->cold,
		.nics = q->nics,
		.n_nics = q->n_nics,
		.what = { q->containers,
			  q->n_containers,
			  { q->volumes, q->n_volumes, q->resources, s->cgroup_fd } },
	};
}

/* ---- the request of one that is there ---- */

/* Without those of its devices, which are looked up anew. */
static void specify_mounts(Aurae__Runtime__V0__Container *c, const struct settings_kept *kept)
{
	c->mounts = kept->mounts;
	c->n_mounts = 0;
	for (size_t i = 0; i < kept->n_mounts; i++)
		if (!kept->mounts[i]->cdi)
			c->mounts[c->n_mounts++] = kept->mounts[i];
}

/* What has the name of an image that it mounts may be another one by now. */
static void specify_image_mounts(const struct pod_container *c, Aurae__Runtime__V0__Mount **mounts,
				 size_t n_mounts)
{
	size_t n = 0;

	for (size_t i = 0; i < n_mounts; i++) {
		const char *id = str_empty(mounts[i]->image) ? NULL : image_mounts_id(c, n++);

		if (id)
			mounts[i]->image = (char *)(uintptr_t)id;
	}
}

/* What was asked for, where that is what it has: its images by their ids, its limits as they were
 * changed since, its mounts with the volumes that it has. */
static int specify_containers(struct arena *a, const struct workload *w, struct run_what *what,
			      struct error *err)
{
	struct settings_kept kept;
	int r = settings_read(a, w->settings, &kept, err);

	what->whole.resources = kept.resources ?: what->whole.resources;
	for (size_t i = 0; i < MIN(what->n_containers, w->n_containers) && r == 0; i++) {
		Aurae__Runtime__V0__Container *c = what->containers[i];

		r = settings_read(a, w->containers[i]->settings, &kept, err);
		c->image = w->containers[i]->image_id;
		c->resources = kept.resources ?: c->resources;
		c->hold_output = false;
		if (r == 0 && kept.security &&
		    security_name_profile(a, &c, kept.security->profile) < 0)
			return error_set(err, -ENOMEM, "containers");
		what->containers[i] = c;
		if (kept.n_mounts == 0)
			continue;
		specify_mounts(c, &kept);
		specify_image_mounts(w->containers[i], c->mounts, c->n_mounts);
	}
	return r;
}

/* The networks of the node that it was on, with those that it came to later, and without those that
 * it was taken off. */
static int specify_networks(struct arena *a, const struct workload *w, struct run_request *q,
			    struct error *err)
{
	const Nacre__V1__WorkloadNetwork *on;
	struct settings_kept kept;
	int r = settings_read(a, w->settings, &kept, err);

	on = kept.network;
	if (r < 0 || !on || str_eq(on->name, "cni") || str_has_prefix(on->name, "cni:"))
		return r;
	q->pod_network = on->asked ?: q->pod_network;
	q->further = on->further;
	q->n_further = on->n_further;
	if (!str_empty(on->name))
		q->network = on->name;
	else if (!str_eq(q->network, "host") && !str_eq(q->network, "none") &&
		 !pod_join_is(q->network))
		q->network = w->kind == WORKLOAD_POD ? "pod" : "own";
	return 0;
}

static int specify_read(const struct runtime_service *s, struct arena *a, const struct workload *w,
			const char *wish, struct run_request *q, struct error *err)
{
	bool is_pod = w->kind == WORKLOAD_POD;
	const void *m = settings_message(a,
					 is_pod ? &aurae__runtime__v0__run_pod_request__descriptor
						: &aurae__runtime__v0__run_cell_request__descriptor,
					 wish);
	int r;

	if (!m)
		return error_set(err, -EBADMSG, "read the request that %s was made for", w->path);
	*q = is_pod ? run_pod_request(s, m) : run_cell_request(s, m);
	q->wish = w->choice.kind;
	q->create_only = false;
	r = specify_containers(a, w, &q->what, err);
	return r < 0 ? r : specify_networks(a, w, q, err);
}

int run_specify_again(const struct runtime_service *s, struct arena *a, const struct workload *w,
		      const char *wish, const struct cdi_changes *devices,
		      struct workload_spec *spec, struct instance_nic *nic, struct error *err)
{
	struct run_request q;
	int r = specify_read(s, a, w, wish, &q, err);

	if (r < 0)
		return r;
	q.what.devices = devices;
	*spec = (struct workload_spec){ .kind = w->kind,
					.name = name_last(w->path),
					.runs = w->state == WORKLOAD_RUNNING };
	r = run_take_network(&q, spec, err);
	return r < 0 ? r : run_specify(s, a, &q, spec, nic, err);
}

int run_wanted_containers(const struct runtime_service *s, struct arena *a,
			  const struct workload *w, const char *wish,
			  Aurae__Runtime__V0__Container ***ret, size_t *ret_n, struct error *err)
{
	struct run_request q;
	int r = specify_read(s, a, w, wish, &q, err);

	if (r < 0)
		return r;
	*ret = q.what.containers;
	*ret_n = q.what.n_containers;
	return 0;
}

/* ---- a debug container ---- */

/* What nobody needs in it. */
static int debug_check(const Aurae__Runtime__V0__Container *c, struct error *err)
{
	const char *field = c->init_container ? "spec.init_container"
			    : c->n_requires   ? "spec.requires"
			    : c->restart      ? "spec.restart"
			    : c->health       ? "spec.health"
					      : NULL;

	if (field)
		return error_field(err, ERROR_INVALID, field,
				   "not of a debug container, which runs once");
	if (c->n_cdi_devices > 0)
		return error_field(err, ERROR_UNSUPPORTED, "spec.cdi_devices",
				   "not of a debug container: name the device nodes in devices");
	for (size_t i = 0; i < c->n_mounts; i++)
		if (c->mounts[i]->anonymous)
			return error_field(err, ERROR_INVALID, "spec.mounts",
					   "[%zu].anonymous: a debug container has no volume of "
					   "its own: name one",
					   i);
	return 0;
}

/* "debug-N", the first that is free. NULL without memory. */
static char *debug_name(struct arena *a, const struct workload *w)
{
	for (unsigned n = 1;; n++) {
		char *name = arena_printf(a, "debug-%u", n);
		bool taken = false;

		for (size_t i = 0; name && i < w->n_containers; i++)
			taken = taken || str_eq(w->containers[i]->name, name);
		if (!taken)
			return name;
	}
}

/* Capabilities on top of those that it has otherwise. */
static int debug_take_caps(struct arena *a, Aurae__Runtime__V0__Container *c,
			   const Nacre__V1__DebugRequest *own, struct error *err)
{
	Aurae__Runtime__V0__Security *m = arena_alloc(a, sizeof(*m));
	size_t n = c->security ? c->security->n_cap_add : 0;
	char **all = arena_zalloc(a, n + own->n_cap_add + 1, sizeof(char *));

	if (own->n_cap_add == 0)
		return 0;
	if (!m || !all)
		return error_set(err, -ENOMEM, "cap_add");
	aurae__runtime__v0__security__init(m);
	if (c->security)
		*m = *c->security;
	for (size_t i = 0; i < n; i++)
		all[i] = m->cap_add[i];
	for (size_t i = 0; i < own->n_cap_add; i++)
		all[n++] = own->cap_add[i];
	m->cap_add = all;
	m->n_cap_add = n;
	c->security = m;
	return 0;
}

/* The image of the target, by its name where that is still the name of it. */
static char *debug_image(const struct runtime_service *s, const struct pod_container *target)
{
	const struct image *image = image_store_find(s->images, target->image_name, NULL);

	return image && str_eq(image->id, target->image_id) ? target->image_name : target->image_id;
}

/* of: what was asked for of the target. */
static int debug_complete(const struct runtime_service *s, struct arena *a,
			  struct pod_container *target, const Aurae__Runtime__V0__Container *of,
			  const Nacre__V1__DebugRequest *own, Aurae__Runtime__V0__Container *c,
			  struct error *err)
{
	const struct process_identity *id = pod_container_identity(target);

	if (str_empty(c->image))
		c->image = debug_image(s, target);
	if (str_empty(c->name))
		c->name = debug_name(a, target->workload);
	if (str_empty(c->user))
		c->user = id ? arena_printf(a, "%u:%u", id->uid, id->gid)
			     : arena_strdup(a, target->user);
	if (!c->security)
		c->security = of->security;
	if (!c->name || !c->user)
		return error_set(err, -ENOMEM, "debug container");
	return debug_take_caps(a, c, own, err);
}

void run_debug_blame(struct error *err)
{
	const char *rest = err->field + strlen("containers[0]");
	char field[ERROR_FIELD_MAX];

	if (!str_has_prefix(err->field, "containers[0]"))
		return;
	(void)str_printf(field, sizeof(field), "spec%.50s", rest);
	error_rename_field(err, field);
}

int run_specify_debug(const struct runtime_service *s, struct arena *a,
		      struct pod_container *target, const char *wish,
		      const Nacre__V1__DebugRequest *own, struct workload_spec *spec,
		      struct error *err)
{
	Aurae__Runtime__V0__Container *c = arena_alloc(a, sizeof(*c)), **list;
	const struct workload *w = target->workload;
	struct instance_nic nic;
	struct pod_container_spec *made;
	struct run_request q;
	size_t i;
	int r = specify_read(s, a, w, wish, &q, err);

	list = arena_zalloc(a, 1, sizeof(*list));
	if (r == 0 && (!c || !list))
		r = error_set(err, -ENOMEM, "debug container");
	if (r < 0)
		return r;
	aurae__runtime__v0__container__init(c);
	if (own->spec)
		*c = *own->spec;
	i = run_find_container(&q.what, target->name);
	if (i == q.what.n_containers)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the containers of %s are not those of its request", w->path);
	r = debug_check(c, err);
	if (r == 0)
		r = debug_complete(s, a, target, q.what.containers[i], own, c, err);
	list[0] = c;
	q.what.containers = list;
	q.what.n_containers = 1;
	*spec = (struct workload_spec){ .kind = w->kind,
					.name = name_last(w->path),
					.runs = w->state == WORKLOAD_RUNNING };
	if (r == 0)
		r = run_take_network(&q, spec, err);
	if (r == 0)
		r = run_specify(s, a, &q, spec, &nic, err);
	spec->nic = NULL;
	if (r < 0) {
		run_debug_blame(err);
		return r;
	}
	made = (struct pod_container_spec *)(uintptr_t)spec->containers;
	made->is_debug = true;
	made->security.pids = CONTAINER_PIDS_OTHER;
	return str_copy(made->security.pids_of, sizeof(made->security.pids_of), target->id);
}
