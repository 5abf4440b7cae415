/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/machine_pod.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/text/str.h"
#include "pod/workload/failure.h"
#include "pod/workload/hosted.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/check.h"
#include "runtime/core/convert.h"
#include "runtime/core/labels.h"
#include "runtime/core/request.h"
#include "runtime/services.h"
#include "runtime/start/machine_call.h"
#include "runtime/start/settings.h"
#include "runtime/start/size.h"

#define DISK_SCHEME "disk://"

/* ---- what a machine can be told ---- */

static bool field_is_set(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	const uint8_t *at = (const uint8_t *)m + f->offset;

	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		return *(const size_t *)(const void *)((const uint8_t *)m + f->quantifier_offset);
	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		return !str_empty(*(char *const *)(const void *)at);
	case PROTOBUF_C_TYPE_MESSAGE:
		return *(void *const *)(const void *)at != NULL;
	case PROTOBUF_C_TYPE_BYTES:
		return ((const ProtobufCBinaryData *)(const void *)at)->len > 0;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return *(const uint64_t *)(const void *)at != 0;
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
	case PROTOBUF_C_TYPE_BOOL:
	case PROTOBUF_C_TYPE_ENUM:
	default:
		return *(const uint32_t *)(const void *)at != 0;
	}
}

/* Whatever is not among `known` is for a container, and nobody in the machine would hear of it. */
static int check_only(const ProtobufCMessage *m, const char *prefix, const char *const *known,
		      size_t n_known, struct error *err)
{
	const ProtobufCMessageDescriptor *d = m->descriptor;
	char field[ERROR_FIELD_MAX];

	for (unsigned i = 0; i < d->n_fields; i++) {
		bool is_known = false;

		for (size_t k = 0; k < n_known; k++)
			is_known = is_known || str_eq(d->fields[i].name, known[k]);
		if (is_known || !field_is_set(m, &d->fields[i]))
			continue;
		(void)str_printf(field, sizeof(field), "%s%s", prefix, d->fields[i].name);
		return error_field(err, ERROR_UNSUPPORTED, field,
				   "not for the image of a machine: what runs in there is its own");
	}
	return 0;
}

static const char *machine_pod_image(const Aurae__Runtime__V0__RunPodRequest *q)
{
	return q->n_containers > 0 && q->containers[0]->image ? q->containers[0]->image : "";
}

/* The kind that its image is for; NULL: it is the image of a container. */
static const char *machine_pod_kind(const Aurae__Runtime__V0__RunPodRequest *q)
{
	const char *image = machine_pod_image(q), *provider = NULL;

	if (str_has_prefix(image, DISK_SCHEME))
		return "vm";
	return hosted_cloud_image(image, &provider) ? provider : NULL;
}

bool machine_pod_is(const Aurae__Runtime__V0__RunPodRequest *q)
{
	return machine_pod_kind(q) != NULL;
}

static int machine_pod_check(const Aurae__Runtime__V0__RunPodRequest *q, struct error *err)
{
	static const char *const of_pod[] = { "meta",          "kind",       "containers",
					      "network",       "request_id", "auto_remove",
					      "remove_failed", "resources" };
	static const char *const of_container[] = { "name", "image", "resources", "hold_output" };
	static const char *const of_limits[] = { "memory", "cpu_quota", "cpu_period" };
	const char *kind = machine_pod_kind(q);
	const Aurae__Runtime__V0__Container *c = q->containers[0];
	int r;

	if (q->n_containers > 1)
		return error_field(err, ERROR_INVALID, "containers",
				   "the image of a machine is the whole pod, without others");
	if (!str_empty(q->parent))
		return error_field(err, ERROR_UNSUPPORTED, "parent",
				   "the image of a machine is a pod of the node");
	r = check_only(&q->base, "", of_pod, ARRAY_SIZE(of_pod), err);
	if (r == 0)
		r = check_only(&c->base, "containers[0].", of_container, ARRAY_SIZE(of_container),
			       err);
	if (r == 0 && q->resources)
		r = check_only(&q->resources->base, "resources.", of_limits, ARRAY_SIZE(of_limits),
			       err);
	if (r == 0 && c->resources)
		r = check_only(&c->resources->base, "containers[0].resources.", of_limits,
			       ARRAY_SIZE(of_limits), err);
	if (r == 0 && !str_empty(q->kind) && !str_eq(q->kind, "auto") && !str_eq(q->kind, kind))
		r = error_field(err, ERROR_INVALID, "kind",
				"\"%.32s\" with the image of a machine of kind %s", q->kind, kind);
	if (r == 0)
		r = check_name("meta.name", q->meta ? q->meta->name : "", err);
	return r == 0 ? labels_check(q->meta, err) : r;
}

static struct instance_size machine_pod_size(const Aurae__Runtime__V0__RunPodRequest *q)
{
	struct instance_size size = size_of(q->resources, q->containers, q->n_containers);

	size.memory = size.memory ? size.memory : size.memory_of_parts;
	size.cpus = size.cpus ? size.cpus : size.cpus_of_parts;
	return size;
}

/* ---- the answer ---- */

static void machine_pod_done(void *userdata, struct workload *w, const struct error *err)
{
	struct rpc_call *call = userdata;
	Aurae__Runtime__V0__RunPodResponse m = AURAE__RUNTIME__V0__RUN_POD_RESPONSE__INIT;
	const char *kind = "vm";
	struct error own = ERROR_INIT;

	if (!err && !w)
		(void)error_refuse(&own, ERROR_ABORTED, "it was removed while it started");
	else if (!err && w->state == WORKLOAD_FAILED)
		(void)failure_tell(w, &own);
	if (!err && !own.code) {
		m.containers = convert_statuses(rpc_call_arena(call), w);
		if (!m.containers)
			(void)error_set(&own, -ENOMEM, "answer");
	}
	if (err || own.code) {
		rpc_call_fail(call, err ? err : &own);
		return;
	}
	m.n_containers = w->n_containers;
	m.id = w->id;
	m.name = w->path;
	(void)hosted_cloud_image(w->containers[0]->image_name ?: "", &kind);
	m.kind = (char *)(uintptr_t)kind;
	m.kind_reason = (char *)(uintptr_t) "its image is that of a machine";
	rpc_call_reply(call, &m.base);
}

/* ---- here ---- */

static void machine_pod_run_disk(struct rpc_call *call, const Aurae__Runtime__V0__RunPodRequest *q,
				 struct runtime_service *s)
{
	Aurae__Runtime__V0__RunVirtualMachineRequest m =
		AURAE__RUNTIME__V0__RUN_VIRTUAL_MACHINE_REQUEST__INIT;
	const char *disk = machine_pod_image(q) + strlen(DISK_SCHEME);
	const struct instance_size size = machine_pod_size(q);

	m.meta = q->meta;
	m.network = q->network;
	m.auto_remove = q->auto_remove;
	m.request_id = q->request_id;
	m.memory = size.memory;
	m.vcpus = size.cpus;
	m.image = *disk == '/' ? (char *)(uintptr_t)disk : q->containers[0]->image;
	if (*disk != '/')
		m.disk = (char *)(uintptr_t)disk;
	machine_call_run_as(call, &m, q->remove_failed, machine_pod_done, s);
}

/* ---- in a cloud ---- */

static int machine_pod_begin(struct rpc_call *call, const Aurae__Runtime__V0__RunPodRequest *q,
			     struct runtime_service *s, const char *key, struct error *err)
{
	/* What is shown as its command: where it boots. */
	char *command[] = { (char *)(uintptr_t)machine_pod_kind(q), NULL };
	const struct pod_container_spec container = { .name = HOSTED_CONTAINER,
						      .command = command,
						      .image = q->containers[0]->image };
	struct workload_spec spec = {
		.kind = WORKLOAD_VM,
		.name = q->meta ? q->meta->name : "",
		.network = "none",
		.auto_remove = q->auto_remove,
		.drops_failed = q->remove_failed,
		.request = key,
		.containers = &container,
		.n_containers = 1,
		.machine = hosted_wish_new(),
	};
	const struct instance_size size = machine_pod_size(q);
	struct workload *w;
	int r;

	if (!spec.machine)
		return error_set(err, -ENOMEM, "a machine");
	spec.machine->cpus = size.cpus;
	spec.machine->memory = size.memory;
	r = settings_add_labels(rpc_call_arena(call), &spec.settings, q->meta, err);
	if (r == 0)
		r = workload_run(s->workloads, &spec, machine_pod_done, call, &w, err);
	if (r < 0)
		spec.machine = hosted_wish_free(spec.machine);
	return r;
}

static int machine_pod_run_cloud(struct rpc_call *call, const Aurae__Runtime__V0__RunPodRequest *q,
				 struct runtime_service *s, struct error *err)
{
	char key[REQUEST_KEY_SIZE];
	struct target found;
	int r;

	if (!str_empty(q->network))
		return error_field(err, ERROR_UNSUPPORTED, "network",
				   "a machine in a cloud is on the network that its configuration "
				   "(cloud) names");
	r = request_find(s, &q->base, q->request_id, key, &found, err);
	if (r > 0) {
		workload_wait_started(found.workload, machine_pod_done, call);
		return 0;
	}
	return r == 0 ? machine_pod_begin(call, q, s, key, err) : r;
}

void machine_pod_run(struct rpc_call *call, const Aurae__Runtime__V0__RunPodRequest *q,
		     struct runtime_service *s)
{
	struct error err = ERROR_INIT;
	int r = machine_pod_check(q, &err);

	if (r == 0 && str_has_prefix(machine_pod_image(q), DISK_SCHEME))
		machine_pod_run_disk(call, q, s);
	else if (r == 0)
		r = machine_pod_run_cloud(call, q, s, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}
