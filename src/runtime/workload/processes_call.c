/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/processes_call.h"

#include <errno.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/memory/array.h"
#include "base/text/str.h"
#include "instance/instance.h"
#include "isolate/cgroup/process.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/groups.h"
#include "runtime/core/pool_call.h"
#include "runtime/core/target.h"
#include "runtime/services.h"

/*
 * Only leaves are looked into: the groups of containers, of keepers, and of what a machine is made
 * of. A keeper that has groups of another kernel is asked first, once for all of them; a thread
 * looks into those that are here when all have answered.
 */
struct processes_leaf {
	char *group; /* NULL: its keeper is asked */
	char *workload, *container;
	char *id; /* then: of the container; "": the keeper */
	size_t question;
	struct isolate_ids ids; /* of its user namespace */
};

/* A keeper that is asked. */
struct processes_question {
	struct processes_call *call;
	struct instance *instance; /* until it was asked */
};

struct processes_found {
	struct process process;
	size_t leaf;
};

struct processes_call {
	struct pool_call base;
	struct arena arena;
	int top_fd;
	struct processes_leaf *leaves;
	size_t n_leaves, leaves_size;
	struct processes_question *questions;
	size_t n_questions, questions_size;
	size_t question;  /* of what is added */
	size_t n_pending; /* of them, and one for who asks */
	bool targeted;    /* whoever does not answer is missed */
	struct pool *pool;
	struct error error;
	struct processes_found *found;
	size_t n_found, found_size;
	size_t at; /* the leaf that is looked into */
	bool truncated;
	int result;
};

static int processes_add(struct processes_call *c, const char *group, const char *workload,
			 const char *container)
{
	void *leaves = c->leaves;
	struct processes_leaf *leaf;
	int r = array_grow(&leaves, c->n_leaves, &c->leaves_size, sizeof(*c->leaves));

	c->leaves = leaves;
	if (r < 0)
		return r;
	leaf = &c->leaves[c->n_leaves];
	*leaf = (struct processes_leaf){ .question = c->question };
	leaf->group = arena_strdup(&c->arena, group);
	leaf->workload = arena_strdup(&c->arena, workload);
	leaf->container = arena_strdup(&c->arena, container);
	if (!leaf->group || !leaf->workload || !leaf->container)
		return -ENOMEM;
	c->n_leaves++;
	return 0;
}

/* id: "" for the keeper itself. */
static int processes_add_remote(struct processes_call *c, const char *id, const char *workload,
				const char *container)
{
	int r = processes_add(c, "", workload, container);
	struct processes_leaf *leaf = r < 0 ? NULL : &c->leaves[c->n_leaves - 1];

	if (!leaf)
		return r;
	leaf->group = NULL;
	leaf->id = arena_strdup(&c->arena, id);
	return leaf->id ? 0 : -ENOMEM;
}

/* What is added next is asked of its keeper. */
static int processes_begin_question(struct processes_call *c, struct instance *i)
{
	void *questions = c->questions;
	int r;

	for (c->question = 0; c->question < c->n_questions; c->question++)
		if (c->questions[c->question].instance == i)
			return 0;
	r = array_grow(&questions, c->n_questions, &c->questions_size, sizeof(*c->questions));
	c->questions = questions;
	if (r == 0)
		c->questions[c->n_questions++] =
			(struct processes_question){ .call = c, .instance = i };
	return r;
}

/* A keeper on another kernel, and the machine around it where that is its own. */
static int processes_add_machine(struct processes_call *c, struct workload_service *s,
				 struct instance *i, const char *path)
{
	static const char *const leaves[] = { "vmm", "gate" };
	char group[GROUP_PATH_MAX];
	int r = processes_begin_question(c, i);

	for (size_t k = 0; r == 0 && k < ARRAY_SIZE(leaves); k++)
		if (group_of_machine(s, i, leaves[k], group) == 0)
			r = processes_add(c, group, path, "");
	return r < 0 ? r : processes_add_remote(c, "", path, "");
}

static int processes_add_remote_workload(struct processes_call *c, struct workload_service *s,
					 struct workload *w, const struct pod_container *only)
{
	int r = processes_begin_question(c, w->instance);

	if (r == 0 && !only && w->kind == WORKLOAD_POD)
		r = processes_add_machine(c, s, w->instance, w->path);
	for (size_t i = 0; r == 0 && i < w->n_containers; i++) {
		const struct pod_container *pc = w->containers[i];

		if ((!only || only == pc) && !pod_container_has_ended(pc))
			r = processes_add_remote(c, pc->id, w->path, pc->name);
	}
	return r;
}

/* only: one container, or NULL for all of them and the keeper of a pod. */
static int processes_add_workload(struct processes_call *c, struct workload_service *s,
				  struct workload *w, const struct pod_container *only)
{
	char group[GROUP_PATH_MAX];
	int r = 0;

	if (w->instance && instance_is_remote(w->instance))
		return processes_add_remote_workload(c, s, w, only);
	if (!only && w->kind == WORKLOAD_POD && w->instance &&
	    group_of_keeper(s, w->instance, group) == 0)
		r = processes_add(c, group, w->path, "");
	for (size_t i = 0; r == 0 && i < w->n_containers; i++) {
		const struct pod_container *pc = w->containers[i];
		size_t n = c->n_leaves;

		if (only && only != pc)
			continue;
		if (!pod_container_has_ended(pc) && group_of_container(s, pc, group) == 0)
			r = processes_add(c, group, w->path, pc->name);
		if (r == 0 && c->n_leaves > n)
			c->leaves[c->n_leaves - 1].ids = w->ids;
	}
	return r;
}

static bool processes_is_below(const char *path, const char *above)
{
	size_t len = strlen(above);

	return len == 0 ||
	       (strncmp(path, above, len) == 0 && (path[len] == '\0' || path[len] == '/'));
}

/* Everything at `above` and below it; "" for the whole node. */
static int processes_add_below(struct processes_call *c, struct workload_service *s,
			       const char *above)
{
	char group[GROUP_PATH_MAX];
	struct instance *i;
	struct workload *w;
	int r = 0;

	list_for_each (i, instances_list(s->instances), struct instance, link) {
		/* The keeper of a pod is told with the pod. */
		if (r < 0 || i->owner[0] || !processes_is_below(i->path, above))
			continue;
		if (instance_is_remote(i))
			r = instance_has_ended(i) ? 0 : processes_add_machine(c, s, i, i->path);
		else if (group_of_keeper(s, i, group) == 0)
			r = processes_add(c, group, i->path, "");
	}
	list_for_each (w, workloads_list(s->workloads), struct workload, link)
		if (r == 0 && processes_is_below(w->path, above))
			r = processes_add_workload(c, s, w, NULL);
	return r;
}

static int processes_take(void *userdata, const struct process *p)
{
	struct processes_call *c = userdata;
	void *found = c->found;
	int r;

	if (c->n_found == PROCESSES_MAX) {
		c->truncated = true;
		return -ENOBUFS;
	}
	r = array_grow(&found, c->n_found, &c->found_size, sizeof(*c->found));
	c->found = found;
	if (r < 0)
		return r;
	c->found[c->n_found++] = (struct processes_found){ .process = *p, .leaf = c->at };
	return 0;
}

static void processes_run(struct pool_call *p)
{
	struct processes_call *c = container_of(p, struct processes_call, base);

	for (c->at = 0; c->result == 0 && c->at < c->n_leaves; c->at++)
		if (c->leaves[c->at].group)
			c->result = processes_each(c->top_fd, "", c->leaves[c->at].group,
						   processes_take, c);
	if (c->truncated)
		c->result = 0;
}

static Nacre__V1__Process *processes_convert(struct arena *a, const struct processes_call *c,
					     struct processes_found *f)
{
	Nacre__V1__Process *m = arena_alloc(a, sizeof(*m));
	char *state = m ? arena_strndup(a, &f->process.state, 1) : NULL;

	if (!state)
		return NULL;
	nacre__v1__process__init(m);
	m->pid = f->process.pid;
	m->inner_pid = f->process.inner_pid;
	m->parent = f->process.parent;
	m->workload = c->leaves[f->leaf].workload;
	m->container = c->leaves[f->leaf].container;
	m->uid = isolate_ids_inside(&c->leaves[f->leaf].ids, c->leaves[f->leaf].ids.uid,
				    f->process.uid);
	m->state = state;
	m->cpu_us = f->process.cpu_us;
	m->memory = f->process.memory;
	m->command = f->process.command;
	return m;
}

static void processes_reply(struct pool_call *p, struct rpc_call *call)
{
	const struct processes_call *c = container_of(p, struct processes_call, base);
	Nacre__V1__ProcessesResponse m = NACRE__V1__PROCESSES_RESPONSE__INIT;
	struct arena *a = rpc_call_arena(call);
	struct error err = ERROR_INIT;
	int r = c->result;

	if (c->error.code) {
		rpc_call_fail(call, &c->error);
		return;
	}
	m.truncated = c->truncated;
	m.processes = arena_zalloc(a, c->n_found + 1, sizeof(*m.processes));
	if (!m.processes)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < c->n_found; i++) {
		m.processes[i] = processes_convert(a, c, &c->found[i]);
		if (!m.processes[i])
			r = -ENOMEM;
	}
	m.n_processes = c->n_found;
	if (r < 0) {
		(void)error_set(&err, r, "look at processes");
		rpc_call_fail(call, &err);
		return;
	}
	rpc_call_reply(call, &m.base);
}

static void processes_free(struct pool_call *p)
{
	struct processes_call *c = container_of(p, struct processes_call, base);

	arena_done(&c->arena);
	free(c->leaves);
	free(c->found);
	free(c->questions);
	free(c);
}

/* ---- what keepers are asked ---- */

static void processes_answered(struct processes_call *c)
{
	if (--c->n_pending > 0)
		return;
	if (c->error.code)
		pool_call_end(&c->base);
	else
		pool_call_submit(&c->base, c->pool);
}

/* Sets c->at; those of one container come together. */
static bool processes_find_leaf(struct processes_call *c, size_t question, const char *id)
{
	size_t first = c->at;

	for (size_t k = 0; k < c->n_leaves; k++) {
		const struct processes_leaf *leaf = &c->leaves[(first + k) % c->n_leaves];

		if (leaf->group || leaf->question != question || !str_eq(leaf->id, id))
			continue;
		c->at = (first + k) % c->n_leaves;
		return true;
	}
	return false;
}

static void processes_on_answer(void *userdata, const struct peer_process *processes, size_t n,
				bool truncated, const struct error *err)
{
	const struct processes_question *q = userdata;
	struct processes_call *c = q->call;

	if (err && c->targeted && !c->error.code)
		c->error = *err;
	c->truncated = c->truncated || truncated;
	for (size_t i = 0; c->result == 0 && i < n; i++)
		if (processes_find_leaf(c, (size_t)(q - c->questions), processes[i].id))
			c->result = processes_take(c, &processes[i].process);
	processes_answered(c);
}

static void processes_ask(struct processes_call *c)
{
	c->n_pending = 1;
	for (size_t k = 0; k < c->n_questions; k++) {
		struct processes_question *q = &c->questions[k];
		struct peer *peer = q->instance->state == INSTANCE_READY ? q->instance->peer : NULL;

		q->instance = NULL;
		if (!peer)
			continue;
		c->n_pending++;
		peer->ops->processes(peer, processes_on_answer, q);
	}
	processes_answered(c);
}

static int processes_find(struct processes_call *c, struct workload_service *s, const char *target,
			  const char *container, struct error *err)
{
	const struct pod_container *only = NULL;
	struct target t = { .workload = NULL };
	int r;

	if (str_empty(target) && !str_empty(container))
		return error_field(err, ERROR_INVALID, "container", "only with a target");
	if (!str_empty(target)) {
		r = target_find(s, target, &t, err);
		if (r < 0)
			return r;
	}
	if (t.instance && !str_empty(container))
		return error_field(err, ERROR_INVALID, "container",
				   "%s is an instance, it has no containers of its own",
				   t.instance->path);
	if (t.workload && !str_empty(container)) {
		only = workload_container(t.workload, container, err);
		if (!only)
			return err->code;
	}
	r = t.workload ? processes_add_workload(c, s, t.workload, only)
		       : processes_add_below(c, s, t.instance ? t.instance->path : "");
	return r < 0 ? error_set(err, r, "look at processes") : 0;
}

int processes_call_start(struct rpc_call *call, struct workload_service *s, const char *target,
			 const char *container, struct error *err)
{
	static const struct pool_call_ops ops = { processes_run, processes_reply, processes_free };
	struct processes_call *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "look at processes");
	c->top_fd = s->top_fd;
	r = processes_find(c, s, target, container, err);
	if (r < 0) {
		processes_free(&c->base);
		return r;
	}
	c->pool = s->pool;
	c->targeted = !str_empty(target);
	pool_call_begin(&c->base, &ops, call);
	processes_ask(c);
	return 0;
}
