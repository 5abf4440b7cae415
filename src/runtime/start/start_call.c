/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/start_call.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/memory/arena.h"
#include "base/text/str.h"
#include "instance/instance.h"
#include "keeper/message/copy.h"
#include "pod/restart/again.h"
#include "pod/restart/container_again.h"
#include "pod/restart/container_restart.h"
#include "pod/restart/restart.h"
#include "pod/workload/failure.h"
#include "pod/workload/sandbox.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/convert.h"
#include "runtime/core/target.h"
#include "runtime/services.h"
#include "runtime/start/resources.h"
#include "runtime/start/run_spec.h"
#include "runtime/start/vendor_devices.h"
#include "runtime/storage/volumes_call.h"
#include "runtime/storage/volumes_take.h"
#include "runtime/workload/stop_call.h"

/* One start, until it was told how it went. */
struct start {
	struct list link; /* of those under way */
	struct starts *all;
	char id[ID_SIZE];
	char container[ID_SIZE]; /* the one that is started alone; "": all of them */
	bool by_policy, hold_output;
	bool opening; /* what it mounts is being opened, or its devices are looked up */
	struct arena arena;
	struct workload_spec spec;
	struct instance_nic nic;
	struct vendor_devices devices;
	workload_fn done;
	void *userdata;
};

void starts_init(struct starts *all, struct runtime_service *runtime, const struct copies *copies)
{
	*all = (struct starts){ .runtime = runtime, .copies = copies };
	list_init(&all->list);
}

/* Its end: w as it is then, NULL where it is gone. */
static void start_end(struct start *s, struct workload *w, const struct error *err)
{
	workload_fn done = s->done;
	void *userdata = s->userdata;

	list_remove(&s->link);
	arena_done(&s->arena);
	free(s);
	done(userdata, w, err);
}

void starts_done(struct starts *all)
{
	struct error err = ERROR_INIT;
	struct start *s;

	if (!all->runtime)
		return;
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "the daemon ends");
	list_for_each (s, &all->list, struct start, link)
		if (s->opening)
			start_end(s, NULL, &err);
}

static void start_on_started(void *userdata, struct workload *w, const struct error *err)
{
	start_end(userdata, w, err);
}

/* ---- from the record to the specification ---- */

/* Two overlays of the same files must not be. */
static int start_check_copies(const struct start *s, const struct workload *w, struct error *err)
{
	for (size_t i = 0; i < w->n_containers; i++) {
		int fd = -1;

		if (!s->container[0] || str_eq(w->containers[i]->id, s->container))
			fd = copies_root(s->all->copies, w->containers[i]->id);
		if (fd < 0)
			continue;
		(void)fd_close(fd);
		return error_refuse(err, ERROR_PRECONDITION,
				    "files of %s/%s are being copied (try again when that is over)",
				    w->path, w->containers[i]->name);
	}
	return 0;
}

/* Of the specification only the one that is started. */
static int start_choose_container(struct start *s, const struct workload *w, struct error *err)
{
	size_t i = 0;

	while (i < w->n_containers && !str_eq(w->containers[i]->id, s->container))
		i++;
	if (i >= MIN(w->n_containers, s->spec.n_containers))
		return error_refuse(err, ERROR_ABORTED, "it was removed before it was started");
	s->spec.containers += i;
	s->spec.n_containers = 1;
	return 0;
}

/* The request that it was made for, in the arena. */
static int start_wish(struct start *s, const struct workload *w, const char **ret,
		      struct error *err)
{
	char *wish = NULL;
	int r = workload_wish(w, &wish, err);

	if (r < 0)
		return r;
	*ret = arena_strdup(&s->arena, wish);
	free(wish);
	return *ret ? 0 : error_set(err, -ENOMEM, "start %s", w->path);
}

/* What was right before its volumes were opened may have changed meanwhile: it is done twice. */
static int start_specify(struct start *s, const struct workload *w, struct error *err)
{
	const char *wish;
	int r = start_check_copies(s, w, err);

	if (r == 0)
		r = start_wish(s, w, &wish, err);
	if (r < 0)
		return r;
	r = run_specify_again(s->all->runtime, &s->arena, w, wish, s->devices.changes, &s->spec,
			      &s->nic, err);
	for (size_t i = 0; r == 0 && i < s->spec.n_containers; i++)
		((struct pod_container_spec *)(uintptr_t)s->spec.containers)[i].hold_output =
			s->hold_output;
	if (r == 0 && s->container[0])
		r = start_choose_container(s, w, err);
	return r;
}

static struct workload *start_find(struct start *s, struct error *err)
{
	struct workload *w = workloads_find_id(s->all->runtime->workloads, s->id);

	if (!w)
		(void)error_refuse(err, ERROR_ABORTED, "it was removed before it was started");
	return w;
}

/* As start_now(). */
static void start_container_now(struct start *s, struct workload *w)
{
	struct pod_container *c =
		workloads_find_container(s->all->runtime->workloads, s->container);
	struct error err = ERROR_INIT;
	int r;

	if (s->by_policy && (!c || c->stopped || !c->restarting)) {
		start_end(s, w, NULL);
		return;
	}
	r = c ? container_check_start(c, &err)
	      : error_refuse(&err, ERROR_ABORTED, "it was removed before it was started");
	if (r > 0)
		r = workload_wait_container_started(c, start_on_started, s, &err);
	else if (r == 0)
		r = container_start(c, &s->spec, s->by_policy, start_on_started, s, &err);
	if (r < 0)
		start_end(s, w, &err);
}

/* Another call may have started it meanwhile. */
static void start_now(struct start *s, struct workload *w)
{
	struct error err = ERROR_INIT;
	int r;

	if (s->container[0]) {
		start_container_now(s, w);
		return;
	}
	/* Somebody has stopped it meanwhile. */
	if (s->by_policy && (w->stopped || !w->restarting)) {
		start_end(s, w, NULL);
		return;
	}
	r = workload_check_start(w, &err);
	if (r > 0) {
		workload_wait_started(w, start_on_started, s);
		return;
	}
	if (r == 0)
		r = workload_start(w, &s->spec, s->by_policy, start_on_started, s, &err);
	if (r < 0)
		start_end(s, w, &err);
}

static void start_on_opened(void *userdata, const struct volumes_opened *opened)
{
	struct error err = ERROR_INIT;
	struct start *s = userdata;
	struct workload *w = start_find(s, &err);

	s->opening = false;
	if (w && start_specify(s, w, &err) == 0) {
		volumes_call_take(&s->spec, opened);
		start_now(s, w);
	} else {
		start_end(s, w, &err);
	}
}

static void start_on_unopened(void *userdata, const struct error *err)
{
	struct start *s = userdata;

	s->opening = false;
	start_end(s, workloads_find_id(s->all->runtime->workloads, s->id), err);
}

/* 1: nothing needs to be opened. 0: later. */
static int start_open(struct start *s, struct workload *w, struct error *err)
{
	int r = start_specify(s, w, err);

	if (r == 0)
		r = volumes_open_start(&s->all->runtime->volumes, &s->spec, start_on_opened,
				       start_on_unopened, s, err);
	s->opening = r == 0;
	return r;
}

static void start_on_devices(void *userdata)
{
	struct error err = ERROR_INIT;
	struct start *s = userdata;
	struct workload *w = start_find(s, &err);
	int r = w ? 0 : -ENOENT;

	s->opening = false;
	if (r == 0)
		r = start_open(s, w, &err);
	if (r > 0)
		start_now(s, w);
	else if (r < 0)
		start_end(s, w, &err);
}

/* NULL: all of them. */
static char *start_container_name(struct start *s)
{
	const struct pod_container *c =
		s->container[0] ? workloads_find_container(s->all->runtime->workloads, s->container)
				: NULL;

	return c ? arena_strdup(&s->arena, c->name) : NULL;
}

/* 1: it has no devices of vendors. 0: later. */
static int start_look_up(struct start *s, const struct workload *w, struct error *err)
{
	Aurae__Runtime__V0__Container **containers;
	const char *wish;
	size_t n;
	int r = start_wish(s, w, &wish, err);

	if (r == 0)
		r = run_wanted_containers(s->all->runtime, &s->arena, w, wish, &containers, &n,
					  err);
	if (r < 0)
		return r;
	s->devices = (struct vendor_devices){ .all = &s->all->runtime->devices,
					      .arena = &s->arena,
					      .containers = containers,
					      .n = n,
					      .only = start_container_name(s),
					      .go_on = start_on_devices,
					      .fail = start_on_unopened,
					      .userdata = s };
	r = vendor_devices_start(&s->devices, err);
	s->opening = r == 0;
	return r;
}

static void start_on_down(void *userdata, struct workload *w, const struct error *err)
{
	struct start *s = userdata;
	struct error own = ERROR_INIT;
	int r;

	if (err || !w) {
		if (!err)
			(void)error_refuse(&own, ERROR_ABORTED,
					   "it was removed before it was started");
		start_end(s, w, err ? err : &own);
		return;
	}
	r = start_look_up(s, w, &own);
	if (r > 0)
		r = start_open(s, w, &own);
	if (r > 0)
		start_now(s, w);
	else if (r < 0)
		start_end(s, w, &own);
}

/* done is not called where this fails. */
static int start_begin_container(struct starts *all, struct pod_container *c,
				 const struct start *what, struct error *err)
{
	struct workload *w = c->workload;
	struct start *s;
	int r = container_check_start(c, err);

	if (r > 0)
		return workload_wait_container_started(c, what->done, what->userdata, err);
	if (r < 0)
		return r;
	s = malloc(sizeof(*s));
	if (!s)
		return error_set(err, -ENOMEM, "start %s/%s", w->path, c->name);
	*s = *what;
	s->all = all;
	(void)str_copy(s->id, sizeof(s->id), w->id);
	(void)str_copy(s->container, sizeof(s->container), c->id);
	list_init(&s->link);
	list_add_tail(&all->list, &s->link);
	r = start_look_up(s, w, err);
	if (r > 0)
		r = start_open(s, w, err);
	if (r == 0)
		return 0;
	if (r > 0)
		r = container_start(c, &s->spec, s->by_policy, start_on_started, s, err);
	if (r == 0)
		return 0;
	list_remove(&s->link);
	arena_done(&s->arena);
	free(s);
	return r;
}

/* done is not called where this fails. */
static int start_begin(struct starts *all, struct workload *w, const struct start *what,
		       struct error *err)
{
	struct start *s;
	int r = workload_check_start(w, err);

	if (r < 0)
		return r;
	s = malloc(sizeof(*s));
	if (!s)
		return error_set(err, -ENOMEM, "start %s", w->path);
	*s = *what;
	s->all = all;
	(void)str_copy(s->id, sizeof(s->id), w->id);
	list_init(&s->link);
	list_add_tail(&all->list, &s->link);
	if (r > 0) {
		workload_wait_started(w, start_on_started, s);
		return 0;
	}
	if (sandbox_wait_down(w, start_on_down, s) == 0)
		return 0;
	list_remove(&s->link);
	free(s);
	return error_set(err, -ENOMEM, "start %s", w->path);
}

/* ---- the policies ---- */

static void start_told_policy(void *userdata, struct workload *w, const struct error *err)
{
	(void)userdata;
	/* Else how it went is its state. */
	if (err && w && workload_has_ended(w))
		restart_failed(w, err);
}

void starts_restart(void *userdata, struct workload *w)
{
	const struct start what = { .by_policy = true, .done = start_told_policy };
	struct error err = ERROR_INIT;

	if (start_begin(userdata, w, &what, &err) < 0)
		restart_failed(w, &err);
}

static void start_on_ended(void *userdata, struct workload *w, const struct error *err)
{
	/* The daemon ends, it was removed, or somebody has stopped it meanwhile. */
	if (err || !w || !w->restarting)
		return;
	starts_restart(userdata, w);
}

void starts_begin_anew(struct starts *all, struct workload *w, nsec_t grace)
{
	w->restarting = true;
	workload_end(w, grace, start_on_ended, all);
}

/* The policy of a container, until it was told how its start went. */
struct policy_start {
	struct starts *all;
	char id[ID_SIZE];
};

static void start_told_container(void *userdata, struct workload *w, const struct error *err)
{
	struct policy_start *p = userdata;
	struct pod_container *c =
		w ? workloads_find_container(p->all->runtime->workloads, p->id) : NULL;

	if (err && c && c->restarting)
		container_restart_failed(c, err);
	free(p);
}

void starts_restart_container(void *userdata, struct pod_container *c)
{
	struct policy_start *p = malloc(sizeof(*p));
	const struct start what = { .by_policy = true,
				    .done = start_told_container,
				    .userdata = p };
	struct error err = ERROR_INIT;
	int r;

	if (p) {
		p->all = userdata;
		(void)str_copy(p->id, sizeof(p->id), c->id);
		r = start_begin_container(userdata, c, &what, &err);
	} else {
		r = error_set(&err, -ENOMEM, "start %s/%s", c->workload->path, c->name);
	}
	if (r == 0)
		return;
	free(p);
	container_restart_failed(c, &err);
}

/* ---- answers ---- */

/* Why it did not come to run. */
static void start_blame(const struct workload *w, struct error *err)
{
	for (size_t i = 0; i < w->n_containers; i++) {
		if (!pod_container_is_to_blame(w->containers[i]))
			continue;
		(void)error_refuse(err, ERROR_ABORTED, "%s", w->reason);
		return;
	}
	(void)failure_tell(w, err);
}

/* The workload for an answer; NULL where the call has been failed instead. */
static Nacre__V1__Workload *start_shown(struct rpc_call *call, struct workload *w,
					const struct error *err)
{
	struct error own = ERROR_INIT;
	Nacre__V1__Workload *m = NULL;

	if (err)
		(void)error_copy(&own, err);
	else if (!w)
		(void)error_refuse(&own, ERROR_ABORTED, "it was removed while it started");
	else if (w->state == WORKLOAD_FAILED)
		start_blame(w, &own);
	if (own.code == 0) {
		m = convert_workload(rpc_call_arena(call), w);
		if (!m)
			(void)error_set(&own, -ENOMEM, "answer");
	}
	if (!m)
		resources_fail(call, &own);
	return m;
}

static void start_told(void *userdata, struct workload *w, const struct error *err)
{
	Nacre__V1__StartResponse m = NACRE__V1__START_RESPONSE__INIT;
	struct rpc_call *call = userdata;

	m.workload = start_shown(call, w, err);
	if (m.workload)
		rpc_call_reply(call, &m.base);
}

/* ---- one container ---- */

/* The start or restart of one, in the arena of its call. */
struct container_call {
	struct rpc_call *call;
	struct starts *starts;
	bool hold_output;
	bool stops; /* it was stopped for this */
	char id[ID_SIZE];
	/* Answers the call. */
	void (*answer)(struct rpc_call *call, Nacre__V1__Workload *m);
};

static struct pod_container *container_call_find(const struct container_call *k)
{
	return workloads_find_container(k->starts->runtime->workloads, k->id);
}

static void container_call_told(void *userdata, struct workload *w, const struct error *err)
{
	struct container_call *k = userdata;
	struct pod_container *c = w ? container_call_find(k) : NULL;
	struct error own = ERROR_INIT;
	Nacre__V1__Workload *m = NULL;

	if (err && c && c->restarting && k->stops)
		container_restart_failed(c, err);
	if (err)
		(void)error_copy(&own, err);
	else if (!c)
		(void)error_refuse(&own, ERROR_ABORTED, "it was removed while it started");
	else if (c->status.state == CONTAINER_FAILED || (!c->ran_at && !c->status.started_at))
		(void)error_refuse(&own, ERROR_ABORTED, "container %s: %.400s", c->name,
				   c->status.reason);
	else
		m = convert_workload(rpc_call_arena(k->call), w);
	if (own.code)
		resources_fail(k->call, &own);
	else
		k->answer(k->call, m);
}

static void container_call_on_ended(void *userdata, struct workload *w, const struct error *err)
{
	struct container_call *k = userdata;
	struct pod_container *c = w && !err ? container_call_find(k) : NULL;
	const struct start what = { .done = container_call_told,
				    .userdata = k,
				    .hold_output = k->hold_output };
	struct error own = ERROR_INIT;
	int r;

	if (err)
		r = error_copy(&own, err);
	else if (!c)
		r = error_refuse(&own, ERROR_ABORTED, "it was removed before it was started");
	else
		r = start_begin_container(k->starts, c, &what, &own);
	if (r < 0)
		container_call_told(k, w, &own);
}

static int container_call_begin(struct rpc_call *call, struct workload_service *s,
				const char *target, const char *name, struct container_call **ret,
				struct pod_container **ret_c, struct error *err)
{
	struct container_call *k = arena_zalloc(rpc_call_arena(call), 1, sizeof(*k));
	int r = target_container(s, target, name, ret_c, err);

	if (r == 0)
		r = container_check_start(*ret_c, err);
	if (r < 0)
		return r;
	if (!k)
		return error_set(err, -ENOMEM, "start %s", name);
	*k = (struct container_call){ .call = call, .starts = s->starts };
	(void)str_copy(k->id, sizeof(k->id), (*ret_c)->id);
	*ret = k;
	return 0;
}

static void container_call_answer(struct rpc_call *call, Nacre__V1__Workload *m,
				  ProtobufCMessage *answer)
{
	struct error err = ERROR_INIT;

	if (m) {
		rpc_call_reply(call, answer);
		return;
	}
	(void)error_set(&err, -ENOMEM, "answer");
	rpc_call_fail(call, &err);
}

static void container_call_answer_start(struct rpc_call *call, Nacre__V1__Workload *w)
{
	Nacre__V1__StartResponse m = NACRE__V1__START_RESPONSE__INIT;

	m.workload = w;
	container_call_answer(call, w, &m.base);
}

static void container_call_answer_restart(struct rpc_call *call, Nacre__V1__Workload *w)
{
	Nacre__V1__RestartResponse m = NACRE__V1__RESTART_RESPONSE__INIT;

	m.workload = w;
	container_call_answer(call, w, &m.base);
}

static int container_call_start(struct rpc_call *call, struct workload_service *s,
				const Nacre__V1__StartRequest *q, struct error *err)
{
	struct pod_container *c;
	struct container_call *k;
	struct start what = { .hold_output = q->hold_output, .done = container_call_told };
	int r = container_call_begin(call, s, q->target, q->container, &k, &c, err);

	if (r < 0)
		return r;
	k->answer = container_call_answer_start;
	what.userdata = k;
	return start_begin_container(s->starts, c, &what, err);
}

static int container_call_restart(struct rpc_call *call, struct workload_service *s,
				  const Nacre__V1__RestartRequest *q, nsec_t grace,
				  struct error *err)
{
	struct pod_container *c;
	struct container_call *k;
	int r = container_call_begin(call, s, q->target, q->container, &k, &c, err);

	if (r < 0)
		return r;
	k->answer = container_call_answer_restart;
	k->stops = true;
	return container_end(c, grace, container_call_on_ended, k, err);
}

/* ---- the calls ---- */

static int start_target(const struct workload_service *s, const char *name, struct workload **ret,
			struct error *err)
{
	struct target t;
	int r = target_find(s, name, &t, err);

	if (r < 0)
		return r;
	if (!t.workload)
		return error_field(
			err, ERROR_UNSUPPORTED, "target",
			"%s is an instance, which leaves nothing to start: spawn it anew",
			t.instance->path);
	*ret = t.workload;
	r = workload_check_start(t.workload, err);
	return MIN(r, 0);
}

int start_call_start(struct rpc_call *call, struct workload_service *s,
		     const Nacre__V1__StartRequest *q, struct error *err)
{
	struct start what = { .hold_output = q->hold_output, .done = start_told };
	struct workload *w;
	int r;

	if (!str_empty(q->container))
		return container_call_start(call, s, q, err);
	r = start_target(s, q->target, &w, err);
	what.userdata = call;
	return r < 0 ? r : start_begin(s->starts, w, &what, err);
}

/* A restart, in the arena of its call. */
struct restart_call {
	struct rpc_call *call;
	struct starts *starts;
};

static void restart_told(void *userdata, struct workload *w, const struct error *err)
{
	Nacre__V1__RestartResponse m = NACRE__V1__RESTART_RESPONSE__INIT;
	struct restart_call *c = userdata;

	m.workload = start_shown(c->call, w, err);
	if (m.workload)
		rpc_call_reply(c->call, &m.base);
}

static void restart_on_stopped(void *userdata, struct workload *w, const struct error *err)
{
	struct restart_call *c = userdata;
	const struct start what = { .done = restart_told, .userdata = c };
	struct error own = ERROR_INIT;

	if (!err && !w)
		(void)error_refuse(&own, ERROR_ABORTED, "it was removed before it was started");
	if (err || own.code || start_begin(c->starts, w, &what, &own) < 0)
		rpc_call_fail(c->call, err ? err : &own);
}

int start_call_restart(struct rpc_call *call, struct workload_service *s,
		       const Nacre__V1__RestartRequest *q, struct error *err)
{
	struct restart_call *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));
	struct workload *w;
	nsec_t grace;
	int r = stop_call_grace(q->grace_ms, &grace, err);

	if (r == 0 && !str_empty(q->container))
		return container_call_restart(call, s, q, grace, err);
	if (r == 0)
		r = start_target(s, q->target, &w, err);
	if (r < 0)
		return r;
	if (!c)
		return error_set(err, -ENOMEM, "restart %s", w->path);
	*c = (struct restart_call){ call, s->starts };
	workload_stop(w, grace, restart_on_stopped, c);
	return 0;
}
