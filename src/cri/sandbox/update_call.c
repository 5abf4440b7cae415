/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/update_call.h"

#include <errno.h>

#include "api/cri.pb-c.h"
#include "base/text/str.h"
#include "cri/sandbox/find.h"
#include "cri/sandbox/record.h"
#include "cri/sandbox/resources.h"
#include "cri/services.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/start/settings.h"
#include "runtime/workload/update_call.h"

static int update_no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "change limits");
}

/* ---- UpdateContainerResources ---- */

static void update_reply(struct rpc_call *call)
{
	Runtime__V1__UpdateContainerResourcesResponse m =
		RUNTIME__V1__UPDATE_CONTAINER_RESOURCES_RESPONSE__INIT;

	rpc_call_reply(call, &m.base);
}

/* The fields of the message that this was made of. */
static void update_blame(struct error *err)
{
	if (str_eq(err->field, "target"))
		error_rename_field(err, "container_id");
	else if (!str_has_prefix(err->field, "linux."))
		cri_limits_blame(err, "linux");
}

/* userdata: what was asked for. */
static char *update_keep(struct arena *a, const char *settings, void *userdata)
{
	Runtime__V1__CreateContainerRequest *q =
		settings_record(a, settings, &runtime__v1__create_container_request__descriptor);
	Runtime__V1__LinuxContainerConfig *own;

	if (!q || !q->config)
		return arena_strdup(a, settings);
	own = q->config->linux ?: arena_zalloc(a, 1, sizeof(*own));
	if (!own)
		return NULL;
	if (!q->config->linux)
		runtime__v1__linux_container_config__init(own);
	q->config->linux = own;
	if (!own->resources) {
		own->resources = arena_zalloc(a, 1, sizeof(*own->resources));
		if (!own->resources)
			return NULL;
		runtime__v1__linux_container_resources__init(own->resources);
	}
	return cri_limits_merge(a, own->resources, userdata) < 0
		       ? NULL
		       : settings_with_record(a, settings, &q->base);
}

/* What was asked for, which outlives the call. NULL without memory. */
static Runtime__V1__LinuxContainerResources *update_copy(
	struct arena *a, const Runtime__V1__LinuxContainerResources *from)
{
	char *text = settings_with_record(a, NULL, &from->base);

	return text ? settings_record(a, text, from->base.descriptor) : NULL;
}

static int update_take(const struct cri_runtime_service *s, struct pod_container *pc,
		       const Runtime__V1__LinuxContainerResources *asked, struct update_wish *wish,
		       struct error *err)
{
	static const Runtime__V1__LinuxContainerResources nothing =
		RUNTIME__V1__LINUX_CONTAINER_RESOURCES__INIT;
	struct arena *a = &wish->arena;
	Runtime__V1__LinuxContainerResources *copy = arena_alloc(a, sizeof(*copy));
	struct cri_limits limits;
	int r;

	if (!copy)
		return update_no_memory(err);
	*copy = nothing;
	/* A message in which nothing is said has no bytes to copy. */
	if (protobuf_c_message_get_packed_size(&asked->base) > 0)
		copy = update_copy(a, asked);
	if (!copy)
		return update_no_memory(err);
	r = cri_limits_take(a, copy, workload_is_remote(pc->workload) ? -1 : s->cgroup_fd, "linux",
			    settings_resources(a, pc->settings), &limits, err);
	wish->resources = limits.resources;
	wish->more = limits.more;
	wish->userdata = copy;
	return r;
}

static int update_start(struct rpc_call *call, const struct cri_runtime_service *s,
			const Runtime__V1__UpdateContainerResourcesRequest *q, struct error *err)
{
	struct update_wish wish = { .arena = ARENA_INIT,
				    .keep = update_keep,
				    .blame = update_blame,
				    .reply = update_reply };
	struct pod_container *pc;
	int r;

	r = cri_find_container(s, "container_id", q->container_id, &pc, err);
	if (r < 0)
		return r;
	if (!q->linux)
		return error_field(err, ERROR_INVALID, "linux", "required");
	r = update_take(s, pc, q->linux, &wish, err);
	if (r < 0)
		arena_done(&wish.arena);
	return r < 0 ? r : update_call_start_container(call, s->work, pc, &wish, err);
}

void cri_update_container_resources(struct rpc_call *call, const ProtobufCMessage *request,
				    void *userdata)
{
	struct error err = ERROR_INIT;

	if (update_start(
		    call, userdata,
		    (const Runtime__V1__UpdateContainerResourcesRequest *)(const void *)request,
		    &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- UpdatePodSandboxResources ---- */

/* The values of a sandbox, as a container has them; in the arena. */
static int update_merge(struct arena *a, Runtime__V1__LinuxContainerResources **to,
			Runtime__V1__LinuxContainerResources *with)
{
	if (!with)
		return 0;
	if (*to)
		return cri_limits_merge(a, *to, with);
	*to = with;
	return 0;
}

static int update_sandbox(struct workload *w, struct arena *a,
			  const Runtime__V1__UpdatePodSandboxResourcesRequest *q, struct error *err)
{
	Runtime__V1__RunPodSandboxRequest *made = cri_record_of_sandbox(a, w);
	Runtime__V1__LinuxPodSandboxConfig *own;
	char *next;

	if (!made)
		return error_refuse(err, ERROR_NOT_FOUND, "%s was not made by RunPodSandbox",
				    w->id);
	if (w->state != WORKLOAD_RUNNING)
		return error_field(err, ERROR_PRECONDITION, "pod_sandbox_id", "%s is %s", w->path,
				   workload_state_word(w->state));
	own = made->config->linux ?: arena_alloc(a, sizeof(*own));
	if (!own)
		return update_no_memory(err);
	if (!made->config->linux)
		runtime__v1__linux_pod_sandbox_config__init(own);
	made->config->linux = own;
	if (update_merge(a, &own->overhead, q->overhead) < 0 ||
	    update_merge(a, &own->resources, q->resources) < 0)
		return update_no_memory(err);
	next = cri_record_sandbox(a, w->settings, made);
	return next ? workload_set_settings(w, NULL, next, err) : update_no_memory(err);
}

void cri_update_pod_sandbox_resources(struct rpc_call *call, const ProtobufCMessage *request,
				      void *userdata)
{
	const Runtime__V1__UpdatePodSandboxResourcesRequest *q =
		(const Runtime__V1__UpdatePodSandboxResourcesRequest *)(const void *)request;
	Runtime__V1__UpdatePodSandboxResourcesResponse m =
		RUNTIME__V1__UPDATE_POD_SANDBOX_RESOURCES_RESPONSE__INIT;
	struct error err = ERROR_INIT;
	struct workload *w;
	int r;

	r = cri_find_sandbox(userdata, "pod_sandbox_id", q->pod_sandbox_id, &w, &err);
	if (r == 0)
		r = update_sandbox(w, rpc_call_arena(call), q, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
	else
		rpc_call_reply(call, &m.base);
}
