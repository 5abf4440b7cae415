/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "pod/workload/rename.h"
#include "pod/workload/hosted.h"
#include "pod/workload/workload.h"
#include "runtime/core/check.h"
#include "runtime/core/convert.h"
#include "runtime/core/target.h"
#include "runtime/services.h"
#include "runtime/start/debug_call.h"
#include "runtime/start/start_call.h"
#include "runtime/workload/cloud_logs.h"
#include "runtime/workload/copy_call.h"
#include "runtime/workload/diff_call.h"
#include "runtime/workload/exec_call.h"
#include "runtime/workload/health_call.h"
#include "runtime/workload/list_call.h"
#include "runtime/workload/logs_call.h"
#include "runtime/workload/pause_call.h"
#include "runtime/workload/processes_call.h"
#include "runtime/workload/stats_call.h"
#include "runtime/workload/stop_call.h"
#include "runtime/workload/update_call.h"
#include "runtime/workload/wait_call.h"

static void answer_memory(struct rpc_call *call)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, -ENOMEM, "answer");
	rpc_call_fail(call, &err);
}

/* ---- Inspect ---- */

static void inspect(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__InspectRequest *q =
		(const Nacre__V1__InspectRequest *)(const void *)request;
	Nacre__V1__InspectResponse m = NACRE__V1__INSPECT_RESPONSE__INIT;
	struct arena *a = rpc_call_arena(call);
	struct error err = ERROR_INIT;
	struct target t;

	if (target_find(userdata, q->target, &t, &err) < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	m.workload = t.workload ? convert_workload(a, t.workload) : convert_instance(a, t.instance);
	if (m.workload)
		rpc_call_reply(call, &m.base);
	else
		answer_memory(call);
}

/* ---- Stop ---- */

static void stop(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;

	if (stop_call_start(call, userdata, (const Nacre__V1__StopRequest *)(const void *)request,
			    &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- Start, Restart ---- */

static void start(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;

	if (start_call_start(call, userdata, (const Nacre__V1__StartRequest *)(const void *)request,
			     &err) < 0)
		rpc_call_fail(call, &err);
}

static void restart(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;

	if (start_call_restart(call, userdata,
			       (const Nacre__V1__RestartRequest *)(const void *)request, &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- Debug ---- */

static void debug(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;

	if (debug_call_start(call, userdata, (const Nacre__V1__DebugRequest *)(const void *)request,
			     &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- Rename ---- */

static void rename_target(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__RenameRequest *q = (const Nacre__V1__RenameRequest *)(const void *)request;
	Nacre__V1__RenameResponse m = NACRE__V1__RENAME_RESPONSE__INIT;
	struct error err = ERROR_INIT;
	struct target t;
	int r;

	r = target_find(userdata, q->target, &t, &err);
	if (r == 0 && !t.workload)
		r = error_field(
			&err, ERROR_UNSUPPORTED, "target",
			"%s is an instance, which keeps its name (a workload can be renamed)",
			t.instance->path);
	if (r == 0)
		r = workload_rename(t.workload, q->name, &err);
	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	m.workload = convert_workload(rpc_call_arena(call), t.workload);
	if (m.workload)
		rpc_call_reply(call, &m.base);
	else
		answer_memory(call);
}

/* ---- Remove ---- */

static void remove_answer(struct rpc_call *call)
{
	Nacre__V1__RemoveResponse m = NACRE__V1__REMOVE_RESPONSE__INIT;

	rpc_call_reply(call, &m.base);
}

static void remove_workload_done(void *userdata, struct workload *w, const struct error *err)
{
	(void)w;
	if (err)
		rpc_call_fail(userdata, err);
	else
		remove_answer(userdata);
}

/* An instance goes with all that is in it; in the call's arena. */
struct removal {
	struct rpc_call *call;
	size_t n_left;
	struct error err; /* the first */
};

static void removal_part_done(struct removal *r, const struct error *err)
{
	if (err && !r->err.code)
		r->err = *err;
	if (--r->n_left)
		return;
	if (r->err.code)
		rpc_call_fail(r->call, &r->err);
	else
		remove_answer(r->call);
}

static void removal_workload_done(void *userdata, struct workload *w, const struct error *err)
{
	(void)w;
	removal_part_done(userdata, err);
}

static void removal_instance_done(void *userdata, struct instance *i, const struct error *err)
{
	if (!err && i->state == INSTANCE_FAILED)
		instance_remove(i);
	removal_part_done(userdata, err);
}

static bool removal_covers(const struct instance *i, const char *path)
{
	size_t n = strlen(i->path);

	return strncmp(path, i->path, n) == 0 && path[n] == '/';
}

static int removal_check(struct workload_service *s, const struct instance *i, struct error *err)
{
	const struct instance *below;
	const struct workload *w;

	if (!instance_has_ended(i))
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s is %s: stop it first, or remove it with force", i->path,
				    instance_state_word(i->state));
	list_for_each (below, instances_list(s->instances), struct instance, link)
		if (below->state != INSTANCE_GONE && removal_covers(i, below->path))
			return error_refuse(err, ERROR_PRECONDITION,
					    "%s is around %s: remove that first, or use force",
					    i->path, below->path);
	list_for_each (w, workloads_list(s->workloads), struct workload, link)
		if (removal_covers(i, w->path))
			return error_refuse(err, ERROR_PRECONDITION,
					    "%s is around %s: remove that first, or use force",
					    i->path, w->path);
	return 0;
}

static void removal_start(struct removal *r, struct workload_service *s, struct instance *i)
{
	struct error err = ERROR_INIT;
	struct instance *below;
	struct workload *w;

	/* One for this function: a part may be done at once. */
	r->n_left = 1;
	list_for_each (w, workloads_list(s->workloads), struct workload, link) {
		if (!removal_covers(i, w->path))
			continue;
		r->n_left++;
		if (workload_remove(w, true, removal_workload_done, r, &err) < 0)
			removal_part_done(r, &err);
	}
	list_for_each (below, instances_list(s->instances), struct instance, link) {
		/* That of a pod goes with the pod. */
		if (below != i && (below->owner[0] || !removal_covers(i, below->path)))
			continue;
		r->n_left++;
		instance_stop(below, removal_instance_done, r);
	}
	removal_part_done(r, NULL);
}

static int remove_instance(struct workload_service *s, struct rpc_call *call, struct instance *i,
			   bool force, struct error *err)
{
	struct removal *removal = arena_zalloc(rpc_call_arena(call), 1, sizeof(*removal));
	int r;

	if (!removal)
		return error_set(err, -ENOMEM, "remove %s", i->path);
	if (i->owner[0])
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s is the instance of a pod: remove the pod", i->path);
	r = force ? 0 : removal_check(s, i, err);
	if (r < 0)
		return r;
	removal->call = call;
	removal_start(removal, s, i);
	return 0;
}

static void remove_target(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__RemoveRequest *q = (const Nacre__V1__RemoveRequest *)(const void *)request;
	struct error err = ERROR_INIT;
	struct target t;
	int r;

	r = target_find(userdata, q->target, &t, &err);
	if (r == 0 && t.workload && q->volumes && (q->force || workload_has_ended(t.workload)))
		t.workload->drops_volumes = true;
	if (r == 0)
		r = t.workload ? workload_remove(t.workload, q->force, remove_workload_done, call,
						 &err)
			       : remove_instance(userdata, call, t.instance, q->force, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- Wait ---- */

static void wait(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;

	if (wait_call_start(call, userdata, (const Nacre__V1__WaitRequest *)(const void *)request,
			    &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- HealthCheck ---- */

static void health_check(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;

	if (health_call_run(call, userdata,
			    (const Nacre__V1__HealthCheckRequest *)(const void *)request, &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- Logs ---- */

static void logs(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__LogsRequest *q = (const Nacre__V1__LogsRequest *)(const void *)request;
	struct workload_service *s = userdata;
	struct error err = ERROR_INIT;
	struct pod_container *c;
	int r;

	r = target_container(s, q->target, q->container, &c, &err);
	if (r == 0 && hosted_is_in_cloud(c->workload)) {
		cloud_logs_start(call, s, q, c->workload);
		return;
	}
	if (r == 0)
		r = target_refuse_machine(c->workload, "its console is not logged: attach to it",
					  &err);
	if (r == 0)
		r = logs_call_start(call, s, q, c, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- Stats, Processes ---- */

static void stats(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__StatsRequest *q = (const Nacre__V1__StatsRequest *)(const void *)request;
	struct error err = ERROR_INIT;

	if (stats_call_start(call, userdata, q->targets, q->n_targets, &err) < 0)
		rpc_call_fail(call, &err);
}

static void processes(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__ProcessesRequest *q =
		(const Nacre__V1__ProcessesRequest *)(const void *)request;
	struct error err = ERROR_INIT;

	if (processes_call_start(call, userdata, q->target, q->container, &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- CopyFrom, CopyTo ---- */

static void copy_from(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__CopyFromRequest *q =
		(const Nacre__V1__CopyFromRequest *)(const void *)request;
	struct error err = ERROR_INIT;
	struct pod_container *c;
	int r;

	r = target_container(userdata, q->target, q->container, &c, &err);
	if (r == 0)
		r = copy_from_start(call, userdata, c, q, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

static void copy_to(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	static const Nacre__V1__CopyToRequest none = NACRE__V1__COPY_TO_REQUEST__INIT;
	const Nacre__V1__CopyToRequest *q =
		request ? (const Nacre__V1__CopyToRequest *)(const void *)request : &none;
	struct error err = ERROR_INIT;
	struct pod_container *c;
	int r;

	r = target_container(userdata, q->target, q->container, &c, &err);
	if (r == 0)
		r = copy_to_start(call, userdata, c, q, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

static void update(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;

	if (update_call_start(call, userdata,
			      (const Nacre__V1__UpdateRequest *)(const void *)request, &err) < 0)
		rpc_call_fail(call, &err);
}

#define METHOD(name, type, stream, fn)                                                             \
	{                                                                                          \
		name, &nacre__v1__##type##_request__descriptor,                                    \
			&nacre__v1__##type##_response__descriptor, stream, fn                      \
	}

/* `input`, of Exec and Attach alike. */
#define INPUT_FIELD 12

#define BIDI(n, type, fn)                                                                          \
	{                                                                                          \
		.name = (n), .input = &nacre__v1__##type##_request__descriptor,                    \
		.output = &nacre__v1__##type##_response__descriptor, .server_streaming = true,     \
		.client_streaming = true, .handle = (fn), .later_field = INPUT_FIELD,              \
	}

static const struct rpc_method workload_methods[] = {
	METHOD("List", list, false, list_call),
	METHOD("Inspect", inspect, false, inspect),
	METHOD("Stop", stop, false, stop),
	METHOD("Start", start, false, start),
	METHOD("Restart", restart, false, restart),
	METHOD("Debug", debug, false, debug),
	METHOD("Rename", rename, false, rename_target),
	METHOD("Remove", remove, false, remove_target),
	METHOD("Wait", wait, false, wait),
	METHOD("HealthCheck", health_check, false, health_check),
	METHOD("Logs", logs, true, logs),
	BIDI("Exec", exec, exec_call_exec),
	BIDI("Attach", attach, exec_call_attach),
	METHOD("Signal", signal, false, exec_call_signal),
	METHOD("Pause", pause, false, pause_call),
	METHOD("Unpause", unpause, false, unpause_call),
	METHOD("WriteStdin", write_stdin, false, exec_call_write_stdin),
	METHOD("Update", update, false, update),
	METHOD("Stats", stats, false, stats),
	METHOD("Processes", processes, false, processes),
	METHOD("CopyFrom", copy_from, true, copy_from),
	METHOD("Diff", diff, true, diff_call),
	{ .name = "CopyTo",
	  .input = &nacre__v1__copy_to_request__descriptor,
	  .output = &nacre__v1__copy_to_response__descriptor,
	  .handle = copy_to,
	  .client_streaming = true },
};

const struct rpc_service workload_service = {
	.name = "nacre.v1.WorkloadService",
	.methods = workload_methods,
	.n_methods = ARRAY_SIZE(workload_methods),
};
