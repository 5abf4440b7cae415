/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "clouds/clouds.h"
#include "rpc/server/server.h"
#include "runtime/services.h"
#include "wire/format/base64.h"

static void cloud_no_memory(struct rpc_call *call)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, -ENOMEM, "answer");
	rpc_call_fail(call, &err);
}

static void cloud_show(const struct cloud_vm *vm, Nacre__V1__CloudVm *ret)
{
	struct cloud_view v;

	cloud_vm_view(vm, &v);
	nacre__v1__cloud_vm__init(ret);
	ret->id = (char *)(uintptr_t)v.id;
	ret->name = (char *)(uintptr_t)v.name;
	ret->state = (char *)(uintptr_t)cloud_state_word(v.state);
	ret->provider = (char *)(uintptr_t)v.provider;
	ret->region = (char *)(uintptr_t)v.region;
	ret->instance = (char *)(uintptr_t)v.instance;
	ret->image = (char *)(uintptr_t)v.image;
	ret->type = (char *)(uintptr_t)v.type;
	ret->address = (char *)(uintptr_t)v.address;
	ret->zone = (char *)(uintptr_t)v.zone;
	ret->reason = (char *)(uintptr_t)v.reason;
	ret->created_at = v.created_at;
	ret->ended_at = v.ended_at;
	ret->lease_ends_at = v.lease * NSEC_PER_SEC;
}

/* ---- RunCloudVm ---- */

static void run_done(void *userdata, const struct cloud_vm *vm, const struct error *err)
{
	Nacre__V1__RunCloudVmResponse m = NACRE__V1__RUN_CLOUD_VM_RESPONSE__INIT;
	struct rpc_call *call = userdata;
	Nacre__V1__CloudVm shown;

	if (err) {
		rpc_call_fail(call, err);
		return;
	}
	if (vm) {
		cloud_show(vm, &shown);
		m.vm = &shown;
	}
	rpc_call_reply(call, &m.base);
}

static void run_cloud_vm(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__RunCloudVmRequest *q =
		(const Nacre__V1__RunCloudVmRequest *)(const void *)request;
	const struct cloud_service *s = userdata;
	const struct cloud_wish wish = { .name = q->name,
					 .image = q->image,
					 .type = q->type,
					 .cpus = q->cpus,
					 .memory = q->memory,
					 .dry_run = q->dry_run };
	struct error err = ERROR_INIT;

	if (clouds_run(s->clouds, &wish, run_done, call, &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- ListCloudVms ---- */

static void list_cloud_vms(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const struct cloud_service *s = userdata;
	Nacre__V1__ListCloudVmsResponse m = NACRE__V1__LIST_CLOUD_VMS_RESPONSE__INIT;
	struct arena *a = rpc_call_arena(call);
	const struct cloud_vm *vm;
	size_t n = 0;

	(void)request;
	for (vm = clouds_next(s->clouds, NULL); vm; vm = clouds_next(s->clouds, vm))
		n++;
	m.vms = arena_zalloc(a, n + 1, sizeof(struct Nacre__V1__CloudVm *));
	for (vm = clouds_next(s->clouds, NULL); vm; vm = clouds_next(s->clouds, vm)) {
		Nacre__V1__CloudVm *shown = arena_alloc(a, sizeof(*shown));

		if (!shown || !m.vms) {
			cloud_no_memory(call);
			return;
		}
		cloud_show(vm, shown);
		m.vms[m.n_vms++] = shown;
	}
	m.node = (char *)(uintptr_t)clouds_node(s->clouds);
	rpc_call_reply(call, &m.base);
}

/* ---- what is asked of one ---- */

static struct cloud_vm *cloud_target(const struct cloud_service *s, const char *target,
				     struct rpc_call *call)
{
	struct cloud_vm *vm = *target ? clouds_find(s->clouds, target) : NULL;
	struct error err = ERROR_INIT;

	if (vm)
		return vm;
	if (*target)
		(void)error_refuse(&err, ERROR_NOT_FOUND,
				   "no machine in the cloud has the name or id %.64s", target);
	else
		(void)error_field(&err, ERROR_INVALID, "target", "required: a name or an id");
	rpc_call_fail(call, &err);
	return NULL;
}

static void stop_done(void *userdata, const struct cloud_vm *vm, const struct error *err)
{
	Nacre__V1__StopCloudVmResponse m = NACRE__V1__STOP_CLOUD_VM_RESPONSE__INIT;
	struct rpc_call *call = userdata;
	Nacre__V1__CloudVm shown;

	if (err) {
		rpc_call_fail(call, err);
		return;
	}
	if (vm) {
		cloud_show(vm, &shown);
		m.vm = &shown;
	}
	rpc_call_reply(call, &m.base);
}

static void stop_cloud_vm(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__StopCloudVmRequest *q =
		(const Nacre__V1__StopCloudVmRequest *)(const void *)request;
	struct cloud_vm *vm = cloud_target(userdata, q->target, call);
	struct error err = ERROR_INIT;

	if (vm && cloud_vm_stop(vm, stop_done, call, &err) < 0)
		rpc_call_fail(call, &err);
}

static void remove_done(void *userdata, const struct cloud_vm *vm, const struct error *err)
{
	Nacre__V1__RemoveCloudVmResponse m = NACRE__V1__REMOVE_CLOUD_VM_RESPONSE__INIT;
	struct rpc_call *call = userdata;

	(void)vm;
	if (err)
		rpc_call_fail(call, err);
	else
		rpc_call_reply(call, &m.base);
}

static void remove_cloud_vm(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__RemoveCloudVmRequest *q =
		(const Nacre__V1__RemoveCloudVmRequest *)(const void *)request;
	struct cloud_vm *vm = cloud_target(userdata, q->target, call);
	struct error err = ERROR_INIT;

	if (vm && cloud_vm_remove(vm, q->force, remove_done, call, &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- CloudVmConsole ---- */

static void console_done(void *userdata, const char *base64, const char *time,
			 const struct error *err)
{
	Nacre__V1__CloudVmConsoleResponse m = NACRE__V1__CLOUD_VM_CONSOLE_RESPONSE__INIT;
	struct rpc_call *call = userdata;
	uint8_t *data;
	size_t len;

	if (err) {
		rpc_call_fail(call, err);
		return;
	}
	data = arena_alloc(rpc_call_arena(call), strlen(base64) + 1);
	if (!data || !base64_decode_lines(base64, data, &len)) {
		cloud_no_memory(call);
		return;
	}
	m.output = (ProtobufCBinaryData){ .data = data, .len = len };
	m.time = (char *)(uintptr_t)time;
	rpc_call_reply(call, &m.base);
}

static void cloud_vm_console_call(struct rpc_call *call, const ProtobufCMessage *request,
				  void *userdata)
{
	const Nacre__V1__CloudVmConsoleRequest *q =
		(const Nacre__V1__CloudVmConsoleRequest *)(const void *)request;
	struct cloud_vm *vm = cloud_target(userdata, q->target, call);
	struct error err = ERROR_INIT;

	if (vm && cloud_vm_console(vm, console_done, call, &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- CollectCloudVms ---- */

static void cloud_show_found(const struct cloud_found *f, Nacre__V1__CloudVm *ret)
{
	nacre__v1__cloud_vm__init(ret);
	ret->name = (char *)(uintptr_t)f->name;
	ret->state = (char *)(uintptr_t)f->state;
	ret->provider = (char *)(uintptr_t)f->provider;
	ret->instance = (char *)(uintptr_t)f->instance;
	ret->type = (char *)(uintptr_t)f->type;
	ret->address = (char *)(uintptr_t)f->address;
	ret->zone = (char *)(uintptr_t)f->zone;
	ret->reason = (char *)(uintptr_t)f->reason;
	ret->node = (char *)(uintptr_t)f->node;
	ret->lease_ends_at = f->lease < UINT32_MAX ? f->lease * NSEC_PER_SEC : 0;
}

static void collect_done(void *userdata, const struct cloud_found *found, size_t n,
			 const struct error *err)
{
	Nacre__V1__CollectCloudVmsResponse m = NACRE__V1__COLLECT_CLOUD_VMS_RESPONSE__INIT;
	struct rpc_call *call = userdata;
	struct arena *a = rpc_call_arena(call);

	if (err) {
		rpc_call_fail(call, err);
		return;
	}
	m.vms = arena_zalloc(a, n + 1, sizeof(struct Nacre__V1__CloudVm *));
	for (size_t i = 0; i < n; i++) {
		Nacre__V1__CloudVm *shown = arena_alloc(a, sizeof(*shown));

		if (!shown || !m.vms) {
			cloud_no_memory(call);
			return;
		}
		cloud_show_found(&found[i], shown);
		m.vms[m.n_vms++] = shown;
	}
	rpc_call_reply(call, &m.base);
}

static void collect_cloud_vms(struct rpc_call *call, const ProtobufCMessage *request,
			      void *userdata)
{
	const Nacre__V1__CollectCloudVmsRequest *q =
		(const Nacre__V1__CollectCloudVmsRequest *)(const void *)request;
	const struct cloud_service *s = userdata;
	const struct cloud_collect_wish wish = { .node = q->node,
						 .expired = q->expired,
						 .dry_run = q->dry_run };
	struct error err = ERROR_INIT;

	if (clouds_collect(s->clouds, &wish, collect_done, call, &err) < 0)
		rpc_call_fail(call, &err);
}

static const struct rpc_method cloud_methods[] = {
	{ "RunCloudVm", &nacre__v1__run_cloud_vm_request__descriptor,
	  &nacre__v1__run_cloud_vm_response__descriptor, false, run_cloud_vm },
	{ "ListCloudVms", &nacre__v1__list_cloud_vms_request__descriptor,
	  &nacre__v1__list_cloud_vms_response__descriptor, false, list_cloud_vms },
	{ "StopCloudVm", &nacre__v1__stop_cloud_vm_request__descriptor,
	  &nacre__v1__stop_cloud_vm_response__descriptor, false, stop_cloud_vm },
	{ "RemoveCloudVm", &nacre__v1__remove_cloud_vm_request__descriptor,
	  &nacre__v1__remove_cloud_vm_response__descriptor, false, remove_cloud_vm },
	{ "CloudVmConsole", &nacre__v1__cloud_vm_console_request__descriptor,
	  &nacre__v1__cloud_vm_console_response__descriptor, false, cloud_vm_console_call },
	{ "CollectCloudVms", &nacre__v1__collect_cloud_vms_request__descriptor,
	  &nacre__v1__collect_cloud_vms_response__descriptor, false, collect_cloud_vms },
};

const struct rpc_service cloud_service = {
	.name = "nacre.v1.CloudService",
	.methods = cloud_methods,
	.n_methods = ARRAY_SIZE(cloud_methods),
};
