/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/observe.pb-c.h"
#include "aurae/check.h"
#include "aurae/services.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/memory/arena.h"
#include "base/text/str.h"
#include "instance/instance.h"
#include "isolate/spawn/signal_watch.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/services.h"
#include "runtime/start/cell_place.h"

/*
 * One watch for all streams, open while there is one. Opening and closing it take milliseconds, so
 * both are done on a thread, one at a time; a stream that comes meanwhile waits.
 */

#define SIGNALS_STREAMS_MAX 64
#define SIGNALS_AT_ONCE 256 /* then others have their turn */
#define SIGNALS_STATUS_MAX 16384
#define SIGNALS_FIRST_PIDS "pid:[4026531836]" /* of every kernel */

struct signals_stream {
	struct list link; /* aurae_signals.streams */
	struct aurae_signals *service;
	struct rpc_call *call;
	uint64_t group; /* in which the groups of its processes lie; 0: all of the host */
};

static void signals_work(struct pool_work *work)
{
	struct aurae_signals *s = container_of(work, struct aurae_signals, work);

	if (s->watch)
		s->watch = signal_watch_close(s->watch);
	else
		(void)signal_watch_open(&s->watch, &s->err);
}

/* Makes it so that there is a watch where there are streams. */
static void signals_settle(struct aurae_signals *s)
{
	if (s->work.busy || !s->watch == list_empty(&s->streams) || !s->owner)
		return;
	if (s->watch)
		loop_fd_done(&s->source);
	pool_submit(s->owner->pool, &s->work);
}

static void signals_stream_free(struct signals_stream *t)
{
	rpc_call_on_cancel(t->call, NULL, NULL);
	list_remove(&t->link);
	t->service->n--;
	free(t);
}

static void signals_fail(struct signals_stream *t, const struct error *err)
{
	struct aurae_signals *s = t->service;
	struct rpc_call *call = t->call;

	signals_stream_free(t);
	rpc_call_fail(call, err);
	signals_settle(s);
}

static void signals_fail_all(struct aurae_signals *s, const struct error *err)
{
	struct signals_stream *t;

	list_for_each (t, &s->streams, struct signals_stream, link)
		signals_fail(t, err);
}

static void signals_cancelled(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)call;
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	signals_fail(data, &err);
}

/* ---- one signal ---- */

/* In the innermost pid namespace of the process, as far as that is known: it may have ended. */
static int32_t signals_pid(const struct aurae_signals *s, int32_t pid)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *status = NULL;
	const struct workload *w;
	char name[64], *line, *end;

	(void)str_printf(name, sizeof(name), "/proc/%d/status", pid);
	if (fd_read_file(AT_FDCWD, name, SIGNALS_STATUS_MAX, &b) == 0)
		status = buf_take_str(&b);
	line = status ? strstr(status, "\nNSpid:") : NULL;
	if (line) {
		line++;
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		line = strrchr(line, '\t');
		return line ? (int32_t)strtol(line + 1, NULL, 10) : pid;
	}
	list_for_each (w, workloads_list(s->owner->workloads), struct workload, link)
		for (size_t i = 0; i < w->n_containers; i++)
			if (w->containers[i]->host_pid == pid)
				return (int32_t)w->containers[i]->status.pid;
	return pid;
}

/* Whether the process is that instance's keeper, or its group is one of these n. */
static bool signals_is_of(const struct instance *i, const struct signal_event *e, size_t n)
{
	struct stat st;

	if (i->pid == e->pid)
		return true;
	if (i->cgroup_fd < 0 || fstat(i->cgroup_fd, &st) < 0)
		return false;
	for (size_t k = 0; k < n; k++)
		if (e->groups[k] == st.st_ino)
			return true;
	return false;
}

/* What runs in the group, but its keeper, and what is in an instance below. */
static bool signals_concerns(const struct signals_stream *t, const struct signal_event *e)
{
	const struct instance *i;
	size_t n = 0;

	if (!t->group)
		return true;
	while (n < SIGNAL_GROUPS && e->groups[n] != t->group)
		n++;
	if (n == SIGNAL_GROUPS)
		return false;
	list_for_each (i, instances_list(t->service->owner->instances), struct instance, link)
		if (!instance_is_node(i) && signals_is_of(i, e, n))
			return false;
	return true;
}

static void signals_tell(struct signals_stream *t, const struct signal_event *e, int32_t pid)
{
	Aurae__Observe__V0__GetPosixSignalsStreamResponse m =
		AURAE__OBSERVE__V0__GET_POSIX_SIGNALS_STREAM_RESPONSE__INIT;
	Aurae__Observe__V0__Signal signal = AURAE__OBSERVE__V0__SIGNAL__INIT;
	struct error err = ERROR_INIT;
	int r;

	if (!rpc_call_writable(t->call)) {
		(void)error_refuse(&err, ERROR_EXHAUSTED,
				   "signals come faster than they are read here");
		signals_fail(t, &err);
		return;
	}
	signal.signal = e->signal;
	signal.process_id = pid;
	m.signal = &signal;
	r = rpc_call_send(t->call, &m.base);
	if (r < 0) {
		(void)error_set(&err, r, "tell a signal");
		signals_fail(t, &err);
	}
}

static void signals_take(struct aurae_signals *s, const struct signal_event *e)
{
	struct signals_stream *t;
	int32_t pid = 0;

	list_for_each (t, &s->streams, struct signals_stream, link) {
		if (!signals_concerns(t, e))
			continue;
		if (pid == 0)
			pid = signals_pid(s, e->pid);
		signals_tell(t, e, pid);
	}
}

static void signals_on_ring(struct loop_fd *source, unsigned events)
{
	struct aurae_signals *s = container_of(source, struct aurae_signals, source);
	struct error err = ERROR_INIT;
	struct signal_event e;
	uint64_t lost;

	(void)events;
	/* The last stream may end in here, and its watch with it. */
	for (int i = 0;
	     i < SIGNALS_AT_ONCE && !list_empty(&s->streams) && signal_watch_next(s->watch, &e) > 0;
	     i++)
		signals_take(s, &e);
	if (list_empty(&s->streams))
		return;
	lost = signal_watch_lost(s->watch);
	if (lost == s->lost)
		return;
	(void)error_refuse(&err, ERROR_EXHAUSTED,
			   "%llu signals came faster than this node reads them, and are lost",
			   (unsigned long long)(lost - s->lost));
	s->lost = lost;
	signals_fail_all(s, &err);
}

static void signals_worked(struct pool_work *work)
{
	struct aurae_signals *s = container_of(work, struct aurae_signals, work);
	const struct error err = s->err;

	s->err = (struct error)ERROR_INIT;
	s->lost = 0;
	if (err.code)
		signals_fail_all(s, &err);
	else if (s->watch)
		loop_fd_init(&s->source, s->owner->loop, signal_watch_fd(s->watch), LOOP_READ,
			     signals_on_ring);
	signals_settle(s);
}

/* ---- the call ---- */

static int signals_group_of(const struct instance *i, struct signals_stream *t, struct error *err)
{
	struct stat st;

	if (i->cgroup_fd < 0 || fstat(i->cgroup_fd, &st) < 0)
		return error_field(err, ERROR_UNSUPPORTED, "workload.id",
				   "%s has a kernel of its own, whose signals are not seen here",
				   i->path);
	t->group = st.st_ino;
	return 0;
}

static int signals_choose_cell(const char *id, struct signals_stream *t, struct error *err)
{
	struct arena *a = rpc_call_arena(t->call);
	struct cell_place place = { .instance = NULL };
	const char *name;
	int r = aurae_check_name(a, "workload.id", id, &name, err);

	if (r == 0)
		r = cell_place_find(a, t->service->owner->instances, "workload.id", name, &place,
				    err);
	return r < 0 ? r : signals_group_of(place.instance, t, err);
}

static int signals_choose_pod(const char *id, struct signals_stream *t, struct error *err)
{
	const struct workload *w = workloads_find(t->service->owner->workloads, id);

	if (!w || w->kind != WORKLOAD_POD || !w->instance)
		return error_field(err, ERROR_NOT_FOUND, "workload.id", "no pod \"%.80s\" runs",
				   id);
	if (instance_is_remote(w->instance))
		return error_field(err, ERROR_UNSUPPORTED, "workload.id",
				   "%s has a kernel of its own, whose signals are not seen here",
				   w->path);
	return signals_group_of(w->instance, t, err);
}

static int signals_choose(const Aurae__Observe__V0__Workload *w, struct signals_stream *t,
			  struct error *err)
{
	if (!w)
		return 0;
	switch ((int)w->workload_type) {
	case AURAE__OBSERVE__V0__WORKLOAD_TYPE__WORKLOAD_TYPE_UNSPECIFIED:
		return str_empty(w->id)
			       ? 0
			       : error_field(err, ERROR_PRECONDITION, "workload.workload_type",
					     "required with an id");
	case AURAE__OBSERVE__V0__WORKLOAD_TYPE__WORKLOAD_TYPE_CELL:
		return signals_choose_cell(w->id, t, err);
	case AURAE__OBSERVE__V0__WORKLOAD_TYPE__WORKLOAD_TYPE_POD_SANDBOX:
		return signals_choose_pod(w->id, t, err);
	case AURAE__OBSERVE__V0__WORKLOAD_TYPE__WORKLOAD_TYPE_VM:
		return error_field(err, ERROR_UNSUPPORTED, "workload.workload_type",
				   "a machine has a kernel of its own, whose signals are not seen "
				   "here");
	default:
		return error_field(err, ERROR_INVALID, "workload.workload_type", "%d is unknown",
				   (int)w->workload_type);
	}
}

/* The kernel tells pids of its first pid namespace. */
static int signals_check_place(struct error *err)
{
	char own[64] = "";
	ssize_t n = readlinkat(AT_FDCWD, "/proc/self/ns/pid", own, sizeof(own) - 1);

	if (n > 0 && str_eq(own, SIGNALS_FIRST_PIDS))
		return 0;
	return error_refuse(err, ERROR_UNSUPPORTED,
			    "this node is in a pid namespace of its own, and the kernel tells "
			    "signals by the numbers of the first one: ask the node around it");
}

void aurae_signals_call(struct rpc_call *call, const ProtobufCMessage *request,
			struct aurae_signals *s)
{
	const Aurae__Observe__V0__GetPosixSignalsStreamRequest *q = (const void *)request;
	struct signals_stream *t = calloc(1, sizeof(*t));
	struct error err = ERROR_INIT;
	int r = t ? signals_check_place(&err) : error_set(&err, -ENOMEM, "follow signals");

	if (r == 0 && s->n >= SIGNALS_STREAMS_MAX)
		r = error_refuse(&err, ERROR_EXHAUSTED, "%d streams of signals are open, the limit",
				 SIGNALS_STREAMS_MAX);
	if (r == 0) {
		*t = (struct signals_stream){ .service = s, .call = call };
		r = signals_choose(q->workload, t, &err);
	}
	if (r < 0) {
		free(t);
		rpc_call_fail(call, &err);
		return;
	}
	list_init(&t->link);
	list_add_tail(&s->streams, &t->link);
	s->n++;
	rpc_call_on_cancel(call, signals_cancelled, t);
	signals_settle(s);
}

void aurae_signals_open(struct aurae_signals *s, struct workload_service *owner)
{
	*s = (struct aurae_signals){ .owner = owner, .err = ERROR_INIT };
	s->work = (struct pool_work){ .run = signals_work, .done = signals_worked };
	list_init(&s->streams);
}

void aurae_signals_stop(struct aurae_signals *s)
{
	if (!s->owner)
		return;
	if (s->watch && !s->work.busy)
		loop_fd_done(&s->source);
	s->owner = NULL;
}

void aurae_signals_done(struct aurae_signals *s)
{
	s->watch = signal_watch_close(s->watch);
}
