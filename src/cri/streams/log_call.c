/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/streams/log_call.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "cri/sandbox/find.h"
#include "cri/sandbox/record.h"
#include "cri/services.h"
#include "pod/workload/sandbox.h"
#include "pod/workload/workload.h"
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

/* ---- which file it is ---- */

static int log_name(struct arena *a, const struct pod_container *c, struct pod_container_spec *ret,
		    struct error *err)
{
	const Runtime__V1__RunPodSandboxRequest *pod = cri_record_of_sandbox(a, c->workload);
	const Runtime__V1__CreateContainerRequest *q = cri_record_of_container(a, c);

	if (!pod || !q || !c->has_own_log)
		return error_refuse(err, ERROR_PRECONDITION, "the container %s has no log_path",
				    c->id);
	ret->log_dir = pod->config->log_directory;
	ret->log_name = q->config->log_path;
	ret->log_field = "log_path";
	return 0;
}

/* ---- ReopenContainerLog ---- */

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
	if (c->status.state != CONTAINER_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION, "the container %s is %s, not running",
				    c->id, pod_container_state_word(c));
	return log_name(rpc_call_arena(h->call), c, &h->spec, err);
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

/* ---- after a restart ---- */

/* A log that is being opened for nobody's call. */
struct log_opening {
	struct list link; /* cri_runtime_service.logs */
	struct cri_runtime_service *service;
	struct arena arena; /* with what spec points to */
	struct pod_container_spec spec;
	char id[ID_SIZE];
};

static struct log_opening *log_opening_free(struct log_opening *o)
{
	list_remove(&o->link);
	arena_done(&o->arena);
	free(o);
	return NULL;
}

/* The container may be gone meanwhile. */
static void log_opening_tell(struct log_opening *o, int fd, const struct error *err)
{
	struct pod_container *c = workloads_find_container(o->service->workloads, o->id);

	(void)log_opening_free(o);
	if (c)
		sandbox_give_log(c, fd, err);
	else
		(void)fd_close(fd);
}

static void log_opening_done(void *userdata, const struct volumes_opened *opened)
{
	struct log_opening *o = userdata;
	struct workload_spec whole = { .containers = &o->spec, .n_containers = 1 };
	struct error err = ERROR_INIT;
	int fd;

	volumes_call_take(&whole, opened);
	fd = fd_copy(o->spec.log_fd);
	if (fd < 0)
		(void)error_set(&err, fd, "the log");
	log_opening_tell(o, fd, fd < 0 ? &err : NULL);
}

static void log_opening_failed(void *userdata, const struct error *err)
{
	log_opening_tell(userdata, -1, err);
}

static int log_opening_start(struct log_opening *o, const struct pod_container *c,
			     struct error *err)
{
	struct workload_spec whole = { .containers = &o->spec, .n_containers = 1 };
	int r = log_name(&o->arena, c, &o->spec, err);

	return r < 0 ? r
		     : volumes_open_start(o->service->volumes, &whole, log_opening_done,
					  log_opening_failed, o, err);
}

int cri_log_open(void *userdata, struct pod_container *c, struct error *err)
{
	struct cri_runtime_service *s = userdata;
	struct log_opening *o;
	int r;

	if (!s->volumes)
		return 0;
	o = calloc(1, sizeof(*o));
	if (!o)
		return error_set(err, -ENOMEM, "open the log of %s", c->name);
	o->service = s;
	o->arena = (struct arena)ARENA_INIT;
	(void)str_copy(o->id, sizeof(o->id), c->id);
	list_init(&o->link);
	list_add_tail(&s->logs, &o->link);
	r = log_opening_start(o, c, err);
	if (r < 0)
		(void)log_opening_free(o);
	return r;
}

void cri_logs_begin(struct cri_runtime_service *s)
{
	struct workload *w;

	list_for_each (w, workloads_list(s->workloads), struct workload, link) {
		for (size_t i = 0; i < w->n_containers; i++) {
			struct error err = ERROR_INIT;

			if (w->containers[i]->awaits_log &&
			    cri_log_open(s, w->containers[i], &err) < 0)
				sandbox_give_log(w->containers[i], -1, &err);
		}
	}
}

void cri_logs_end(struct cri_runtime_service *s)
{
	while (s->volumes && !list_empty(&s->logs))
		(void)log_opening_free(list_first(&s->logs, struct log_opening, link));
}
