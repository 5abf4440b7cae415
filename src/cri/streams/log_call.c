/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/streams/log_call.h"

#include <errno.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "cri/sandbox/find.h"
#include "cri/sandbox/record.h"
#include "cri/services.h"
#include "pod/workload/sandbox.h"
#include "runtime/storage/volumes_call.h"
#include "runtime/storage/volumes_take.h"

static void log_changed(void *userdata, const struct error *err)
{
	Runtime__V1__ReopenContainerLogResponse m =
		RUNTIME__V1__REOPEN_CONTAINER_LOG_RESPONSE__INIT;

	if (err)
		rpc_call_fail(userdata, err);
	else
		rpc_call_reply(userdata, &m.base);
}

/* A call in hand; in its arena. */
struct log_call {
	struct rpc_call *call;
	const struct cri_runtime_service *service;
	char id[ID_SIZE];
	struct pod_container_spec spec; /* of which the log alone is asked for */
};

/* No file is made for one that writes nothing any more. */
static int log_check(struct log_call *h, struct pod_container *c, struct error *err)
{
	struct arena *a = rpc_call_arena(h->call);
	const Runtime__V1__RunPodSandboxRequest *pod = cri_record_of_sandbox(a, c->workload);
	const Runtime__V1__CreateContainerRequest *q = cri_record_of_container(a, c);

	if (c->status.state != CONTAINER_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION, "the container %s is %s, not running",
				    c->id, pod_container_state_word(c));
	if (!pod || !q || !c->has_own_log)
		return error_refuse(err, ERROR_PRECONDITION, "the container %s has no log_path",
				    c->id);
	h->spec.log_dir = pod->config->log_directory;
	h->spec.log_name = q->config->log_path;
	h->spec.log_field = "log_path";
	return 0;
}

static void log_opened(void *userdata, const struct volumes_opened *opened)
{
	struct log_call *h = userdata;
	struct workload_spec whole = { .containers = &h->spec, .n_containers = 1 };
	struct error err = ERROR_INIT;
	struct pod_container *c;
	int r, fd;

	volumes_call_take(&whole, opened);
	fd = fd_copy(h->spec.log_fd);
	r = fd < 0 ? error_set(&err, fd, "the log")
		   : cri_find_container(h->service, "container_id", h->id, &c, &err);
	if (r < 0)
		(void)fd_close(fd);
	else
		r = sandbox_change_log(c, fd, log_changed, h->call, &err);
	if (r < 0)
		rpc_call_fail(h->call, &err);
}

static int log_reopen(struct rpc_call *call, struct cri_runtime_service *s, struct pod_container *c,
		      struct error *err)
{
	struct log_call *h = arena_zalloc(rpc_call_arena(call), 1, sizeof(*h));
	struct workload_spec whole = { .n_containers = 1 };
	int r;

	if (!h)
		return error_set(err, -ENOMEM, "open a log anew");
	h->call = call;
	h->service = s;
	(void)str_copy(h->id, sizeof(h->id), c->id);
	r = log_check(h, c, err);
	whole.containers = &h->spec;
	return r < 0 ? r : volumes_call_start(s->volumes, call, &whole, log_opened, h, err);
}

void cri_reopen_container_log(struct rpc_call *call, const ProtobufCMessage *request,
			      void *userdata)
{
	const Runtime__V1__ReopenContainerLogRequest *q =
		(const Runtime__V1__ReopenContainerLogRequest *)(const void *)request;
	struct error err = ERROR_INIT;
	struct pod_container *c;
	int r;

	r = cri_find_container(userdata, "container_id", q->container_id, &c, &err);
	if (r == 0)
		r = log_reopen(call, userdata, c, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}
