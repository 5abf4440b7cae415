/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "aurae/check.h"
#include "aurae/services.h"
#include "base/memory/arena.h"
#include "base/memory/map.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "instance/instance.h"
#include "isolate/cgroup/limits_words.h"
#include "pod/workload/failure.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/services.h"
#include "runtime/start/cell_place.h"
#include "runtime/start/settings.h"

#define CELLS_ID_MAX ((uint32_t)INT32_MAX)

/* A call under way; in its arena. */
struct cells_call {
	struct rpc_call *call;
	struct aurae_cells *service;
	const char *name; /* of the cell */
	char **limits;
	unsigned n_left; /* executables that are being removed */
	struct error err;
	uint32_t uid, gid;
};

static struct cells_call *cells_call_new(struct rpc_call *call, void *userdata, struct error *err)
{
	struct cells_call *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));

	if (!c)
		(void)error_set(err, -ENOMEM, "take the request up");
	else
		*c = (struct cells_call){ .call = call, .service = userdata, .err = ERROR_INIT };
	return c;
}

/* ---- Allocate ---- */

static void cells_refused_gone(void *userdata, struct instance *i, const struct error *err)
{
	struct cells_call *c = userdata;

	(void)err;
	if (i && i->state == INSTANCE_FAILED)
		instance_remove(i);
	rpc_call_fail(c->call, &c->err);
}

/* A cell without the limits that it should have is none. */
static void cells_allocated(void *userdata, struct instance *i, const struct error *err)
{
	Aurae__Cells__V0__CellServiceAllocateResponse m =
		AURAE__CELLS__V0__CELL_SERVICE_ALLOCATE_RESPONSE__INIT;
	struct cells_call *c = userdata;

	if (err) {
		c->err = *err;
		aurae_blame_limit(&c->err);
		cells_refused_gone(c, i, NULL);
		return;
	}
	if (c->limits && limits_words_apply(i->cgroup_fd, c->limits, &c->err) < 0) {
		aurae_blame_limit(&c->err);
		instance_stop(i, cells_refused_gone, c);
		return;
	}
	m.cell_name = i->path;
	m.cgroup_v2 = true;
	rpc_call_reply(c->call, &m.base);
}

/* The cell above; the first one that is missing is named. */
static int cells_find_parent(struct cells_call *c, struct instance **ret, struct error *err)
{
	struct arena *a = rpc_call_arena(c->call);
	struct cell_place place;
	const char *at = c->name;
	int r = 0;

	*ret = NULL;
	while (r == 0 && (at = strchr(at, '/'))) {
		const char *above = arena_printf(a, "%.*s", (int)(at - c->name), c->name);

		if (!above)
			return error_set(err, -ENOMEM, "cell.name");
		r = cell_place_find(a, c->service->work->instances, "cell.name", above, &place,
				    err);
		*ret = r == 0 ? place.instance : NULL;
		at++;
	}
	return r;
}

static int cells_begin(struct cells_call *c, const Aurae__Cells__V0__Cell *cell, struct error *err)
{
	struct arena *a = rpc_call_arena(c->call);
	Aurae__Cells__V0__Cell record = *cell;
	struct instance_spec spec = {
		.name = name_last(c->name),
		.host_network = !cell->isolate_network,
		.host_pids = !cell->isolate_process,
		.host_ipc = !cell->isolate_process,
		.host_uts = !cell->isolate_process,
		.choice = { .kind = INSTANCE_CELL, .reason = "a cell of aurae.cells.v0 is one" },
	};
	struct instance *parent, *i;
	int r = cells_find_parent(c, &parent, err);

	if (r < 0)
		return r;
	if (parent && parent->state != INSTANCE_READY)
		return error_field(err, ERROR_PRECONDITION, "cell.name", "the cell %s is %s",
				   parent->path, instance_state_word(parent->state));
	if (workloads_find(c->service->work->workloads, c->name))
		return error_field(err, ERROR_EXISTS, "cell.name",
				   "the name %s is taken by a workload", c->name);
	record.name = (char *)(uintptr_t)c->name;
	spec.settings = settings_with_record(a, NULL, &record.base);
	if (!spec.settings)
		return error_set(err, -ENOMEM, "cell");
	return instance_create(c->service->work->instances, parent, &spec, cells_allocated, c, &i,
			       err);
}

static void allocate(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Aurae__Cells__V0__CellServiceAllocateRequest *q = (const void *)request;
	struct arena *a = rpc_call_arena(call);
	struct error err = ERROR_INIT;
	struct cells_call *c = cells_call_new(call, userdata, &err);
	int r = c ? 0 : -ENOMEM;

	if (r == 0 && !q->cell)
		r = error_field(&err, ERROR_PRECONDITION, "cell", "required");
	if (r == 0)
		r = aurae_check_name(a, "cell.name", q->cell->name, &c->name, &err);
	if (r == 0)
		r = aurae_check_limits(a, q->cell, c->service->work->cgroup_fd, &c->limits, &err);
	if (r == 0)
		r = cells_begin(c, q->cell, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- Free ---- */

static bool cells_is_below(const char *path, const char *cell)
{
	size_t n = strlen(cell);

	return strncmp(path, cell, n) == 0 && path[n] == '/';
}

/* What was started while it was being freed has ended with it. */
static void cells_remove_late(const struct cells_call *c)
{
	struct workload *w;

	list_for_each (w, workloads_list(c->service->work->workloads), struct workload, link)
		if (cells_is_below(w->path, c->name))
			(void)workload_remove(w, true, NULL, NULL, NULL);
}

static void cells_gone(void *userdata, struct instance *i, const struct error *err)
{
	Aurae__Cells__V0__CellServiceFreeResponse m =
		AURAE__CELLS__V0__CELL_SERVICE_FREE_RESPONSE__INIT;
	struct cells_call *c = userdata;

	if (i && i->state == INSTANCE_FAILED)
		instance_remove(i);
	cells_remove_late(c);
	if (err)
		rpc_call_fail(c->call, err);
	else
		rpc_call_reply(c->call, &m.base);
}

static void cells_stop(struct cells_call *c)
{
	Aurae__Cells__V0__CellServiceFreeResponse m =
		AURAE__CELLS__V0__CELL_SERVICE_FREE_RESPONSE__INIT;
	struct instance *i = instances_find(c->service->work->instances, c->name);

	if (c->err.code)
		rpc_call_fail(c->call, &c->err);
	else if (!i)
		rpc_call_reply(c->call, &m.base);
	else
		instance_stop(i, cells_gone, c);
}

static void cells_removed(void *userdata, struct workload *w, const struct error *err)
{
	struct cells_call *c = userdata;

	(void)w;
	if (err)
		(void)error_copy(&c->err, err);
	if (--c->n_left == 0)
		cells_stop(c);
}

/* What runs in it ends first, with its record; an error is told once all of them are done. */
static void cells_remove_all(struct cells_call *c)
{
	struct workload *w;

	c->n_left = 1;
	list_for_each (w, workloads_list(c->service->work->workloads), struct workload, link) {
		if (!cells_is_below(w->path, c->name))
			continue;
		c->n_left++;
		if (workload_remove(w, true, cells_removed, c, &c->err) < 0)
			c->n_left--;
	}
	if (--c->n_left == 0)
		cells_stop(c);
}

static void free_cell(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Aurae__Cells__V0__CellServiceFreeRequest *q = (const void *)request;
	struct arena *a = rpc_call_arena(call);
	struct error err = ERROR_INIT;
	struct cells_call *c = cells_call_new(call, userdata, &err);
	struct cell_place place;
	int r = c ? 0 : -ENOMEM;

	if (r == 0)
		r = aurae_check_name(a, "cell_name", q->cell_name, &c->name, &err);
	if (r == 0)
		r = cell_place_find(a, c->service->work->instances, "cell_name", c->name, &place,
				    &err);
	if (r < 0)
		rpc_call_fail(call, &err);
	else
		cells_remove_all(c);
}

/* ---- executables ---- */

/* As it was started; NULL: it was not started here. */
static Aurae__Cells__V0__Executable *cells_executable(struct arena *a, const struct workload *w)
{
	return w->kind == WORKLOAD_EXECUTABLE
		       ? settings_record(a, w->settings, &aurae__cells__v0__executable__descriptor)
		       : NULL;
}

/* Of that name in a cell ("": of the node). */
static struct workload *cells_find(struct arena *a, const struct aurae_cells *s, const char *cell,
				   const char *name)
{
	const Aurae__Cells__V0__Executable *e;
	struct workload *w;
	size_t n = strlen(cell);

	list_for_each (w, workloads_list(s->work->workloads), struct workload, link) {
		const char *last = name_last(w->path);

		if ((size_t)(last - w->path) != (n ? n + 1 : 0) || strncmp(w->path, cell, n) != 0)
			continue;
		e = cells_executable(a, w);
		if (e && str_eq(e->name, name))
			return w;
	}
	return NULL;
}

static void cells_failed_gone(void *userdata, struct workload *w, const struct error *err)
{
	struct cells_call *c = userdata;

	(void)w;
	(void)err;
	rpc_call_fail(c->call, &c->err);
}

/* It did not come to run: its name is free again. */
static void cells_start_failed(struct cells_call *c, struct workload *w)
{
	const struct container_status *status = w->n_containers ? &w->containers[0]->status : NULL;
	struct error own = ERROR_INIT;

	if (status && status->state == CONTAINER_FAILED && status->reason[0])
		(void)error_set(&c->err, -ENOEXEC, "start the executable: %s", status->reason);
	else
		(void)failure_tell(w, &c->err);
	if (workload_remove(w, true, cells_failed_gone, c, &own) < 0)
		rpc_call_fail(c->call, &c->err);
}

static void cells_started(void *userdata, struct workload *w, const struct error *err)
{
	Aurae__Cells__V0__CellServiceStartResponse m =
		AURAE__CELLS__V0__CELL_SERVICE_START_RESPONSE__INIT;
	struct cells_call *c = userdata;
	struct error own = ERROR_INIT;

	if (err || !w) {
		if (!err)
			(void)error_refuse(&own, ERROR_ABORTED, "it was removed while it started");
		rpc_call_fail(c->call, err ?: &own);
		return;
	}
	if (w->state == WORKLOAD_FAILED) {
		cells_start_failed(c, w);
		return;
	}
	m.pid = (int32_t)w->containers[0]->status.pid;
	m.uid = c->uid;
	m.gid = c->gid;
	rpc_call_reply(c->call, &m.base);
}

static int cells_run(struct cells_call *c, const Aurae__Cells__V0__Executable *e,
		     const struct cell_place *place, struct error *err)
{
	struct arena *a = rpc_call_arena(c->call);
	/* What it is found by; all else is in the specification. */
	Aurae__Cells__V0__Executable record = AURAE__CELLS__V0__EXECUTABLE__INIT;
	char *command[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", e->command, NULL };
	struct pod_container_spec main_container = {
		.name = "main",
		.command = command,
		.user = arena_printf(a, "%u:%u", c->uid, c->gid),
		.new_proc = place->new_proc,
	};
	struct workload_spec spec = {
		.kind = WORKLOAD_EXECUTABLE,
		.name = "",
		.parent = place->instance,
		.network = "host",
		.comment = e->description,
		.containers = &main_container,
		.n_containers = 1,
	};
	struct workload *w;

	record.name = e->name;
	spec.settings = settings_with_record(a, NULL, &record.base);
	if (!main_container.user || !spec.settings)
		return error_set(err, -ENOMEM, "executable");
	return workload_run(c->service->work->workloads, &spec, cells_started, c, &w, err);
}

static int cells_check_id(const char *field, uint32_t id, struct error *err)
{
	if (id <= CELLS_ID_MAX)
		return 0;
	return error_field(err, ERROR_PRECONDITION, field, "%u is more than %u", id, CELLS_ID_MAX);
}

/* The cell of a request that may name none; c->name. */
static int cells_of(struct cells_call *c, bool is_set, const char *name, struct cell_place *place,
		    struct error *err)
{
	struct arena *a = rpc_call_arena(c->call);
	int r;

	c->name = "";
	*place = (struct cell_place){ .instance = NULL };
	if (!is_set)
		return 0;
	r = aurae_check_name(a, "cell_name", name, &c->name, err);
	return r < 0 ? r
		     : cell_place_find(a, c->service->work->instances, "cell_name", c->name, place,
				       err);
}

static void start(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Aurae__Cells__V0__CellServiceStartRequest *q = (const void *)request;
	struct arena *a = rpc_call_arena(call);
	struct error err = ERROR_INIT;
	struct cells_call *c = cells_call_new(call, userdata, &err);
	struct cell_place place;
	int r = c ? 0 : -ENOMEM;

	if (r == 0)
		r = aurae_check_executable(q->executable, &err);
	if (r == 0)
		r = cells_check_id("uid", q->uid_set_case ? q->uid : 0, &err);
	if (r == 0)
		r = cells_check_id("gid", q->gid_set_case ? q->gid : 0, &err);
	if (r == 0)
		r = cells_of(c, q->cell_name_set_case != 0, q->cell_name, &place, &err);
	if (r == 0 && cells_find(a, c->service, c->name, q->executable->name))
		r = error_field(&err, ERROR_EXISTS, "executable.name",
				"there is %.100s already: Stop ends and forgets it",
				q->executable->name);
	if (r == 0) {
		c->uid = q->uid_set_case ? q->uid : 0;
		c->gid = q->gid_set_case ? q->gid : 0;
		r = cells_run(c, q->executable, &place, &err);
	}
	if (r < 0)
		rpc_call_fail(call, &err);
}

static void cells_stopped(void *userdata, struct workload *w, const struct error *err)
{
	Aurae__Cells__V0__CellServiceStopResponse m =
		AURAE__CELLS__V0__CELL_SERVICE_STOP_RESPONSE__INIT;
	struct cells_call *c = userdata;

	(void)w;
	if (err)
		rpc_call_fail(c->call, err);
	else
		rpc_call_reply(c->call, &m.base);
}

static void stop(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Aurae__Cells__V0__CellServiceStopRequest *q = (const void *)request;
	struct error err = ERROR_INIT;
	struct cells_call *c = cells_call_new(call, userdata, &err);
	struct workload *w = NULL;
	struct cell_place place;
	int r = c ? 0 : -ENOMEM;

	if (r == 0 && str_empty(q->executable_name))
		r = error_field(&err, ERROR_PRECONDITION, "executable_name", "required");
	if (r == 0)
		r = cells_of(c, q->cell_name_set_case != 0, q->cell_name, &place, &err);
	if (r == 0) {
		w = cells_find(rpc_call_arena(call), c->service, c->name, q->executable_name);
		if (!w)
			r = error_field(&err, ERROR_NOT_FOUND, "executable_name",
					"there is no executable %.100s in %s", q->executable_name,
					*c->name ? c->name : "the node");
	}
	if (r == 0)
		r = workload_remove(w, true, cells_stopped, c, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- List ---- */

struct cells_tree {
	struct arena *arena;
	Aurae__Cells__V0__CellGraphNode **top, **nodes; /* of all, in order of creation */
	size_t n_top, n;
	struct map by_path;
};

static int cells_tree_add(struct cells_tree *t, struct instance *i)
{
	Aurae__Cells__V0__Cell *record = cell_place_record(t->arena, i);
	Aurae__Cells__V0__CellGraphNode *node;
	int r;

	if (!record)
		return 0;
	node = arena_zalloc(t->arena, 1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	aurae__cells__v0__cell_graph_node__init(node);
	node->cell = record;
	r = map_add(&t->by_path, i->path, node);
	if (r < 0)
		return r;
	t->nodes[t->n++] = node;
	return 0;
}

static Aurae__Cells__V0__CellGraphNode *cells_above(const struct cells_tree *t,
						    const Aurae__Cells__V0__CellGraphNode *node)
{
	const char *name = node->cell->name, *last = name_last(name);
	char above[NAME_PATH_MAX + 1];

	if (last == name ||
	    str_printf(above, sizeof(above), "%.*s", (int)(last - name - 1), name) < 0)
		return NULL;
	return map_get(&t->by_path, above);
}

/* Each below the one above it: counted first, then put there. */
static int cells_tree_join(struct cells_tree *t)
{
	Aurae__Cells__V0__CellGraphNode *above;

	for (size_t k = 0; k < t->n; k++) {
		above = cells_above(t, t->nodes[k]);
		if (above)
			above->n_children++;
	}
	for (size_t k = 0; k < t->n; k++) {
		Aurae__Cells__V0__CellGraphNode *node = t->nodes[k];

		node->children =
			arena_zalloc(t->arena, node->n_children + 1, sizeof(*node->children));
		if (!node->children)
			return -ENOMEM;
		node->n_children = 0;
	}
	for (size_t k = 0; k < t->n; k++) {
		above = cells_above(t, t->nodes[k]);
		if (above)
			above->children[above->n_children++] = t->nodes[k];
		else
			t->top[t->n_top++] = t->nodes[k];
	}
	return 0;
}

static int cells_tree_make(struct cells_tree *t, const struct list *instances)
{
	struct instance *i;
	size_t n = 0;
	int r = 0;

	list_for_each (i, instances, struct instance, link)
		n++;
	t->top = arena_zalloc(t->arena, n + 1, sizeof(*t->top));
	t->nodes = arena_zalloc(t->arena, n + 1, sizeof(*t->nodes));
	if (!t->top || !t->nodes)
		return -ENOMEM;
	list_for_each (i, instances, struct instance, link)
		if (r == 0)
			r = cells_tree_add(t, i);
	return r < 0 ? r : cells_tree_join(t);
}

static void list(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Aurae__Cells__V0__CellServiceListResponse m =
		AURAE__CELLS__V0__CELL_SERVICE_LIST_RESPONSE__INIT;
	const struct aurae_cells *service = userdata;
	struct cells_tree tree = { .arena = rpc_call_arena(call) };
	struct error err = ERROR_INIT;
	int r = cells_tree_make(&tree, instances_list(service->work->instances));

	(void)request;
	map_done(&tree.by_path);
	m.cells = tree.top;
	m.n_cells = tree.n_top;
	if (r < 0) {
		(void)error_set(&err, r, "list the cells");
		rpc_call_fail(call, &err);
		return;
	}
	rpc_call_reply(call, &m.base);
}

static const struct rpc_method cells_methods[] = {
	{ "Allocate", &aurae__cells__v0__cell_service_allocate_request__descriptor,
	  &aurae__cells__v0__cell_service_allocate_response__descriptor, false, allocate },
	{ "Free", &aurae__cells__v0__cell_service_free_request__descriptor,
	  &aurae__cells__v0__cell_service_free_response__descriptor, false, free_cell },
	{ "Start", &aurae__cells__v0__cell_service_start_request__descriptor,
	  &aurae__cells__v0__cell_service_start_response__descriptor, false, start },
	{ "Stop", &aurae__cells__v0__cell_service_stop_request__descriptor,
	  &aurae__cells__v0__cell_service_stop_response__descriptor, false, stop },
	{ "List", &aurae__cells__v0__cell_service_list_request__descriptor,
	  &aurae__cells__v0__cell_service_list_response__descriptor, false, list },
};

const struct rpc_service aurae_cells_service = {
	.name = "aurae.cells.v0.CellService",
	.methods = cells_methods,
	.n_methods = ARRAY_SIZE(cells_methods),
};
