/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/text/str.h"
#include "instance/choose.h"
#include "isolate/cgroup/limits_words.h"
#include "pod/restart/restart.h"
#include "pod/workload/failure.h"
#include "pod/workload/workload.h"
#include "runtime/core/check.h"
#include "runtime/core/convert.h"
#include "runtime/core/labels.h"
#include "runtime/core/request.h"
#include "runtime/networks/nics.h"
#include "runtime/networks/pod_network.h"
#include "runtime/services.h"
#include "runtime/start/container.h"
#include "runtime/start/executable.h"
#include "runtime/start/kind.h"
#include "runtime/start/machine_call.h"
#include "runtime/start/remote.h"
#include "runtime/start/resources.h"
#include "runtime/start/run_spec.h"
#include "runtime/start/security.h"
#include "runtime/start/machine_pod.h"
#include "runtime/start/settings.h"
#include "runtime/start/size.h"
#include "runtime/start/vendor_devices.h"
#include "runtime/storage/implied.h"
#include "runtime/storage/volumes_call.h"
#include "runtime/storage/volumes_take.h"

/* ---- RunCell, RunPod ---- */

/*
 * Where no container says why it failed the instance did: that is an error of the call. Otherwise
 * the answer's statuses tell.
 */
static bool runtime_failed(struct rpc_call *call, struct workload *w, const struct error *err)
{
	struct error own = ERROR_INIT;

	if (w && !err && w->state != WORKLOAD_FAILED)
		return false;
	for (size_t i = 0; w && !err && i < w->n_containers; i++)
		if (pod_container_is_to_blame(w->containers[i]))
			return false;
	if (err)
		(void)error_copy(&own, err);
	else if (w)
		(void)failure_tell(w, &own);
	else
		(void)error_refuse(&own, ERROR_ABORTED, "it was removed while it started");
	resources_fail(call, &own);
	return true;
}

/* What RunCell and RunPod differ in. */
struct run_method {
	enum workload_kind kind;
	workload_fn done;
	void (*handle)(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
};

/* The statuses for an answer; NULL where the call has been failed instead. */
static Aurae__Runtime__V0__ContainerStatus **run_statuses(struct rpc_call *call, struct workload *w,
							  const struct error *err)
{
	Aurae__Runtime__V0__ContainerStatus **statuses;
	struct error own = ERROR_INIT;

	if (runtime_failed(call, w, err))
		return NULL;
	statuses = convert_statuses(rpc_call_arena(call), w);
	if (statuses)
		return statuses;
	(void)error_set(&own, -ENOMEM, "answer");
	rpc_call_fail(call, &own);
	return NULL;
}

/* A call that is made once more as soon as what is in its way is gone; in its arena. */
struct run_again {
	struct rpc_call *call;
	const ProtobufCMessage *message;
	struct runtime_service *service;
	void (*handle)(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
};

static struct run_again *run_again_new(
	struct rpc_call *call, const ProtobufCMessage *message, struct runtime_service *s,
	void (*handle)(struct rpc_call *call, const ProtobufCMessage *request, void *userdata),
	struct error *err)
{
	struct run_again *again = arena_zalloc(rpc_call_arena(call), 1, sizeof(*again));

	if (again)
		*again = (struct run_again){ call, message, s, handle };
	else
		(void)error_set(err, -ENOMEM, "wait for a removal");
	return again;
}

static void run_again_now(struct run_again *again, const struct error *err)
{
	struct error own = ERROR_INIT;

	if (!err && rpc_call_cancelled(again->call)) {
		(void)error_refuse(&own, ERROR_CANCELLED, "the call was cancelled");
		err = &own;
	}
	if (err)
		rpc_call_fail(again->call, err);
	else
		again->handle(again->call, again->message, again->service);
}

static void run_again_removed(void *userdata, struct workload *w, const struct error *err)
{
	(void)w;
	run_again_now(userdata, err);
}

static void run_again_gone(void *userdata, struct instance *i, const struct error *err)
{
	(void)i;
	run_again_now(userdata, err);
}

/* An instance that is FAILED for the last moment, or of a pod that is not there any more. */
static bool run_is_leaving(const struct runtime_service *s, const struct instance *i)
{
	return i->owner[0] ? !workloads_find_id(s->workloads, i->owner) : instance_is_leaving(i);
}

/* 1: what has the name is on its way out, and the call is made again when it is gone. */
static int run_clear_way(const struct run_again *call, const char *parent, const char *name,
			 struct error *err)
{
	char path[NAME_PATH_MAX + 1];
	struct run_again *again;
	struct workload *w;
	struct instance *i;
	int r;

	if (str_empty(name) || str_printf(path, sizeof(path), "%s%s%s", parent,
					  str_empty(parent) ? "" : "/", name) < 0)
		return 0;
	w = workloads_find(call->service->workloads, path);
	i = instances_find(call->service->instances, path);
	if (w ? !workload_is_leaving(w) : !i || !run_is_leaving(call->service, i))
		return 0;
	again = run_again_new(call->call, call->message, call->service, call->handle, err);
	if (!again)
		return -ENOMEM;
	if (w) {
		r = workload_remove(w, true, run_again_removed, again, err);
		return r < 0 ? r : 1;
	}
	instance_stop(i, run_again_gone, again);
	return 1;
}

/* The object of this request is there: answers for it, or makes it anew where it is on its way
 * out. */
static int run_repeat(struct rpc_call *call, struct runtime_service *s,
		      const struct run_method *method, const struct run_request *q,
		      struct workload *w, struct error *err)
{
	struct run_again *again;

	if (!workload_is_leaving(w)) {
		workload_wait_started(w, method->done, call);
		return 0;
	}
	again = run_again_new(call, q->message, s, method->handle, err);
	return again ? workload_remove(w, true, run_again_removed, again, err) : -ENOMEM;
}

/* A request in hand; in the arena of its call. */
struct run_hand {
	struct rpc_call *call;
	struct runtime_service *service;
	const struct run_method *method;
	struct run_request request;
	struct workload_spec spec;
	struct instance_nic nic;
	struct vendor_devices devices;
	char key[REQUEST_KEY_SIZE];
};

/* 0: the specification is there. 1: the call is answered, or made again, by others. */
static int run_check(struct run_hand *h, struct error *err)
{
	const struct run_method *method = h->method;
	const struct run_request *q = &h->request;
	const struct run_again again = { h->call, q->message, h->service, method->handle };
	struct arena *a = rpc_call_arena(h->call);
	struct workload_spec *spec = &h->spec;
	struct target found;
	int r;

	*spec = (struct workload_spec){ .kind = method->kind, .name = q->name, .request = h->key };
	r = check_name("meta.name", spec->name, err);
	if (r == 0)
		r = labels_check(q->meta, err);
	if (r == 0)
		r = run_take_network(q, spec, err);
	if (r == 0)
		r = request_find(h->service, q->message, q->id, h->key, &found, err);
	if (r > 0) {
		r = run_repeat(h->call, h->service, method, q, found.workload, err);
		return r < 0 ? r : 1;
	}
	if (r == 0)
		r = run_specify(h->service, a, q, spec, &h->nic, err);
	if (r < 0)
		return r;
	spec->wish = settings_text(a, q->message);
	if (!spec->wish)
		return error_set(err, -ENOMEM, "keep the request");
	return run_clear_way(&again, q->parent, spec->name, err);
}

static int run_now(struct run_hand *h, struct error *err)
{
	struct workload *w;
	int r = workload_run(h->service->workloads, &h->spec, h->method->done, h->call, &w, err);

	if (r < 0)
		pod_network_blame(h->request.pod_network, err);
	return r;
}

/* What was right before its volumes were opened may have changed meanwhile. */
static void run_opened(void *userdata, const struct volumes_opened *opened)
{
	struct error err = ERROR_INIT;
	struct run_hand *h = userdata;
	int r = run_check(h, &err);

	if (r == 0) {
		volumes_call_take(&h->spec, opened);
		r = run_now(h, &err);
	}
	if (r < 0)
		rpc_call_fail(h->call, &err);
}

/* The containers with what is mounted of itself: what their images have as volumes. Cells of an
 * instance with a kernel of its own get nothing of the node. */
static int run_imply(struct run_hand *h, struct error *err)
{
	struct run_what *what = &h->request.what;
	const struct instance *parent = instances_find(h->service->instances, h->request.parent);
	bool takes = h->method->kind == WORKLOAD_POD || !parent || !instance_is_remote(parent);

	return implied_take(rpc_call_arena(h->call), takes ? h->service->images : NULL,
			    &what->containers, what->n_containers, err);
}

/* Before its volumes are made: they are for nothing where there is an image missing. */
static int run_check_images(const struct run_hand *h, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < h->spec.n_containers && r == 0; i++)
		if (h->spec.containers[i].n_mounts > 0)
			r = workload_check_image(h->service->images, h->spec.containers[i].image, i,
						 err);
	return r;
}

/* All that it names is known but the volumes. */
static int run_open(struct run_hand *h, struct error *err)
{
	int r = run_check_images(h, err);

	if (r < 0)
		return r;
	r = volumes_call_start(&h->service->volumes, h->call, &h->spec, run_opened, h, err);
	return r > 0 ? run_now(h, err) : r;
}

/* As run_opened(). */
static void run_looked_up(void *userdata)
{
	struct error err = ERROR_INIT;
	struct run_hand *h = userdata;
	int r;

	h->request.what.devices = h->devices.changes;
	r = run_check(h, &err);
	if (r == 0)
		r = run_open(h, &err);
	if (r < 0)
		rpc_call_fail(h->call, &err);
}

/* 1: it names none. 0: later. */
static int run_look_up(struct run_hand *h, struct error *err)
{
	h->devices = (struct vendor_devices){ .all = &h->service->devices,
					      .call = h->call,
					      .arena = rpc_call_arena(h->call),
					      .containers = h->request.what.containers,
					      .n = h->request.what.n_containers,
					      .go_on = run_looked_up,
					      .userdata = h };
	return vendor_devices_start(&h->devices, err);
}

static int run(struct rpc_call *call, struct runtime_service *s, const struct run_method *method,
	       const struct run_request *q, struct error *err)
{
	struct run_hand *h = arena_zalloc(rpc_call_arena(call), 1, sizeof(*h));
	int r;

	if (!h)
		return error_set(err, -ENOMEM, "take the request up");
	h->call = call;
	h->service = s;
	h->method = method;
	h->request = *q;
	r = run_imply(h, err);
	if (r == 0)
		r = run_check(h, err);
	if (r != 0)
		return MIN(r, 0);
	r = run_look_up(h, err);
	return r > 0 ? run_open(h, err) : r;
}

static void run_cell_done(void *userdata, struct workload *w, const struct error *err)
{
	struct rpc_call *call = userdata;
	Aurae__Runtime__V0__RunCellResponse m = AURAE__RUNTIME__V0__RUN_CELL_RESPONSE__INIT;

	m.containers = run_statuses(call, w, err);
	if (!m.containers)
		return;
	m.n_containers = w->n_containers;
	m.id = w->id;
	m.name = w->path;
	rpc_call_reply(call, &m.base);
}

static void run_cell(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	static const struct run_method method = { WORKLOAD_CELL, run_cell_done, run_cell };
	const struct run_request common = run_cell_request(
		userdata, (const Aurae__Runtime__V0__RunCellRequest *)(const void *)request);
	struct error err = ERROR_INIT;

	if (run(call, userdata, &method, &common, &err) < 0)
		rpc_call_fail(call, &err);
}

static void run_pod_done(void *userdata, struct workload *w, const struct error *err)
{
	struct rpc_call *call = userdata;
	Aurae__Runtime__V0__RunPodResponse m = AURAE__RUNTIME__V0__RUN_POD_RESPONSE__INIT;

	m.containers = run_statuses(call, w, err);
	if (!m.containers)
		return;
	m.n_containers = w->n_containers;
	m.id = w->id;
	m.name = w->path;
	m.kind = (char *)(uintptr_t)instance_kind_word(w->choice.kind);
	m.kind_reason = w->choice.reason;
	rpc_call_reply(call, &m.base);
}

static void run_pod(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	static const struct run_method method = { WORKLOAD_POD, run_pod_done, run_pod };
	const Aurae__Runtime__V0__RunPodRequest *q =
		(const Aurae__Runtime__V0__RunPodRequest *)(const void *)request;
	const struct runtime_service *s = userdata;
	struct run_request common = run_pod_request(s, q);
	struct error err = ERROR_INIT;
	int r;

	if (machine_pod_is(q)) {
		machine_pod_run(call, q, userdata);
		return;
	}
	r = kind_take(q->kind, s->pod_kind, &common.wish, &err);
	if (r == 0)
		r = check_unset("ports", q->n_ports > 0, &err);
	if (r == 0)
		r = run(call, userdata, &method, &common, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- Spawn ---- */

static const char *const spawn_networks[] = { "own", "host" };

static void spawn_removed(struct instance *i)
{
	/* A spawn that failed leaves no record: the answer is all there is to know. */
	if (i->state == INSTANCE_FAILED)
		instance_remove(i);
}

static void spawn_answer(struct rpc_call *call, struct instance *i)
{
	Aurae__Runtime__V0__SpawnResponse m = AURAE__RUNTIME__V0__SPAWN_RESPONSE__INIT;

	m.id = i->id;
	m.name = i->path;
	m.kind = (char *)(uintptr_t)instance_kind_word(i->choice.kind);
	m.kind_reason = i->choice.reason;
	m.pid = i->pid;
	rpc_call_reply(call, &m.base);
}

/* Its limits, as its record has them; again and again does no harm. */
static int spawn_limit(struct rpc_call *call, struct instance *i, struct error *err)
{
	struct arena *a = rpc_call_arena(call);
	char **words;
	int r;

	/* Its keeper has done that before it was ready. */
	if (instance_is_remote(i))
		return 0;
	r = resources_words(a, settings_resources(a, i->settings), i->cgroup_fd, "resources",
			    &words, err);
	if (r < 0 || !words)
		return r;
	r = limits_words_apply(i->cgroup_fd, words, err);
	if (r < 0 && err)
		resources_blame(err);
	return r;
}

/* A spawn that was refused, until nothing is left of it; in the arena of its call. */
struct spawn_refused {
	struct rpc_call *call;
	struct error err;
};

static void spawn_refused_gone(void *userdata, struct instance *i, const struct error *err)
{
	struct spawn_refused *refused = userdata;

	(void)i;
	(void)err;
	rpc_call_fail(refused->call, &refused->err);
}

/* None is better than one without the limits that it should have. */
static void spawn_ready(struct rpc_call *call, struct instance *i)
{
	struct spawn_refused *refused;
	struct error err = ERROR_INIT;

	if (spawn_limit(call, i, &err) == 0) {
		spawn_answer(call, i);
		return;
	}
	refused = arena_zalloc(rpc_call_arena(call), 1, sizeof(*refused));
	if (refused) {
		*refused = (struct spawn_refused){ call, err };
		instance_stop(i, spawn_refused_gone, refused);
		return;
	}
	rpc_call_fail(call, &err);
	instance_stop(i, NULL, NULL);
}

static void spawn_done(void *userdata, struct instance *i, const struct error *err)
{
	if (err) {
		resources_fail(userdata, err);
		spawn_removed(i);
		return;
	}
	spawn_ready(userdata, i);
}

/* The same for a call that was made again: a record of a failure stays for whoever looks. */
static void spawn_done_again(void *userdata, struct instance *i, const struct error *err)
{
	struct rpc_call *call = userdata;

	if (err)
		resources_fail(call, err);
	else
		spawn_ready(call, i);
}

static int spawn_repeat(struct rpc_call *call, const ProtobufCMessage *request,
			struct runtime_service *s, struct instance *i,
			void (*handle)(struct rpc_call *call, const ProtobufCMessage *request,
				       void *userdata),
			struct error *err)
{
	struct run_again *again;

	if (!instance_is_leaving(i)) {
		instance_wait_ready(i, spawn_done_again, call);
		return 0;
	}
	again = run_again_new(call, request, s, handle, err);
	if (!again)
		return -ENOMEM;
	instance_stop(i, run_again_gone, again);
	return 0;
}

/* What a request for an instance says, checked. */
struct spawn_plan {
	struct instance *parent;
	const char *network;
	struct instance_choice choice;
	struct instance_nic nic;
	struct instance_size size;
	char **limits;
};

static int spawn_check(struct runtime_service *s, struct arena *a,
		       const Aurae__Runtime__V0__SpawnRequest *q, struct spawn_plan *ret,
		       struct error *err)
{
	enum instance_kind wish = INSTANCE_KIND_COUNT;
	int r;

	r = check_name("meta.name", run_meta_name(q->meta), err);
	if (r == 0)
		r = kind_take(q->kind, INSTANCE_KIND_COUNT, &wish, err);
	if (r == 0)
		r = check_word("network", q->network, spawn_networks, ARRAY_SIZE(spawn_networks),
			       &ret->network, err);
	if (r == 0)
		r = check_unset("image", !str_empty(q->image), err);
	if (r == 0)
		r = check_unset("devices", q->n_devices > 0, err);
	if (r == 0)
		r = run_parent(s, "parent", q->parent, &ret->parent, err);
	if (r == 0 && name_depth(q->parent) >= NAME_DEPTH_MAX)
		r = error_field(err, ERROR_INVALID, "parent",
				"%s is %d instances deep, nothing can be deeper", q->parent,
				NAME_DEPTH_MAX);
	if (r == 0)
		r = run_choose(s, ret->parent, wish, &ret->choice, err);
	ret->choice.cold = q->cold;
	if (r == 0)
		r = nics_take(ret->network, q->nics, q->n_nics, ret->parent, &ret->choice,
			      &ret->nic, err);
	if (r == 0)
		r = resources_words(a, q->resources,
				    remote_will_be(ret->parent, &ret->choice) ? -1 : s->cgroup_fd,
				    "resources", &ret->limits, err);
	if (r != 0)
		return r;
	ret->size = size_of(q->resources, NULL, 0);
	return size_check(ret->parent, q->resources, "resources", err);
}

static int spawn_create(struct rpc_call *call, const Aurae__Runtime__V0__SpawnRequest *q,
			struct instances *all, struct instance *parent, struct instance_spec *spec,
			struct error *err)
{
	struct instance *i;
	int r;

	if (q->resources) {
		spec->settings = settings_of_resources(rpc_call_arena(call), q->resources);
		if (!spec->settings)
			return error_set(err, -ENOMEM, "resources");
	}
	r = settings_add_labels(rpc_call_arena(call), &spec->settings, q->meta, err);
	if (r < 0)
		return r;
	r = instance_create(all, parent, spec, spawn_done, call, &i, err);
	/* Where the group is there already, its limits hold before anything lives in it. What fails
	 * here is told when the instance is ready. */
	if (r == 0 && i->cgroup_fd >= 0)
		(void)spawn_limit(call, i, NULL);
	return r;
}

static void spawn(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Aurae__Runtime__V0__SpawnRequest *q =
		(const Aurae__Runtime__V0__SpawnRequest *)(const void *)request;
	struct runtime_service *s = userdata;
	const struct run_again again = { call, request, s, spawn };
	struct spawn_plan plan = { .parent = NULL };
	char name[NAME_LABEL_MAX + 1], path[NAME_PATH_MAX + 1], id[ID_SIZE];
	char key[REQUEST_KEY_SIZE];
	struct target found;
	struct error err = ERROR_INIT;
	int r;

	r = labels_check(q->meta, &err);
	if (r == 0)
		r = request_find(s, request, q->request_id, key, &found, &err);
	if (r > 0) {
		if (spawn_repeat(call, request, s, found.instance, spawn, &err) < 0)
			rpc_call_fail(call, &err);
		return;
	}
	if (r == 0)
		r = spawn_check(s, rpc_call_arena(call), q, &plan, &err);
	if (r == 0)
		r = run_clear_way(&again, q->parent, run_meta_name(q->meta), &err);
	if (r > 0)
		return;
	if (r == 0 && str_empty(run_meta_name(q->meta))) {
		r = id_new(id);
		if (r < 0)
			(void)error_set(&err, r, "draw a name");
		else
			(void)str_printf(name, sizeof(name), "instance-%.8s", id);
	} else if (r == 0) {
		(void)str_copy(name, sizeof(name), run_meta_name(q->meta));
	}
	if (r == 0 && plan.parent && plan.parent->state != INSTANCE_READY)
		r = error_field(&err, ERROR_PRECONDITION, "parent", "the instance %s is %s",
				plan.parent->path, instance_state_word(plan.parent->state));
	if (r == 0 &&
	    str_printf(path, sizeof(path), "%s%s%s", plan.parent ? plan.parent->path : "",
		       plan.parent ? "/" : "", name) > 0 &&
	    workloads_find(s->workloads, path))
		r = error_refuse(&err, ERROR_EXISTS, "the name %s is taken by a workload", path);
	if (r == 0)
		r = spawn_create(
			call, q, s->instances, plan.parent,
			&(struct instance_spec){ .name = name,
						 .request = key,
						 .host_network = str_eq(plan.network, "host"),
						 .size = plan.size,
						 .limits = plan.limits,
						 .choice = plan.choice,
						 .nic = &plan.nic },
			&err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

static void run_executable(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Aurae__Runtime__V0__RunExecutableRequest *q =
		(const Aurae__Runtime__V0__RunExecutableRequest *)(const void *)request;

	executable_run(call, q, userdata);
}

static const struct rpc_method runtime_methods[] = {
	{ "RunExecutable", &aurae__runtime__v0__run_executable_request__descriptor,
	  &aurae__runtime__v0__run_executable_response__descriptor, false, run_executable },
	{ "RunCell", &aurae__runtime__v0__run_cell_request__descriptor,
	  &aurae__runtime__v0__run_cell_response__descriptor, false, run_cell },
	{ "Spawn", &aurae__runtime__v0__spawn_request__descriptor,
	  &aurae__runtime__v0__spawn_response__descriptor, false, spawn },
	{ "RunPod", &aurae__runtime__v0__run_pod_request__descriptor,
	  &aurae__runtime__v0__run_pod_response__descriptor, false, run_pod },
	{ "RunVirtualMachine", &aurae__runtime__v0__run_virtual_machine_request__descriptor,
	  &aurae__runtime__v0__run_virtual_machine_response__descriptor, false, machine_call_run },
};

const struct rpc_service runtime_service = {
	.name = "aurae.runtime.v0.RuntimeService",
	.methods = runtime_methods,
	.n_methods = ARRAY_SIZE(runtime_methods),
};
