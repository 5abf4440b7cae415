/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/groups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/memory/arena.h"
#include "base/memory/array.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cell/layer/keeper.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/limits_words.h"
#include "isolate/cgroup/process.h"
#include "isolate/cgroup/usage.h"
#include "isolate/steps/sysctl_set.h"
#include "keeper/message/convert_groups.h"
#include "loop/pool.h"
#include "rpc/server/server.h"

#define GROUPS_THREADS 1
#define GROUPS_KEEPER "keeper"
#define GROUPS_PATH_SIZE 256

/*
 * Theory of operation. The loop writes down which groups are meant, by their paths below the
 * layer's; a thread works on them; the loop answers. A job is its own until then, whatever becomes
 * of the call. A group that is gone by the time that it is read has nothing to tell.
 */

struct group_entry {
	char *path;      /* below the layer's; ".": that itself */
	char *id, *cell; /* "": none */
	struct usage usage;
	int result; /* of usage_read() */
};

struct group_process {
	struct process process;
	size_t entry;
};

struct group_job;

struct group_ops {
	void (*run)(struct group_job *job);
	void (*reply)(struct group_job *job, struct rpc_call *call);
};

struct group_job {
	struct pool_work work;
	struct list link;
	const struct group_ops *ops;
	struct groups *all;
	struct rpc_call *call; /* NULL: it was cancelled */
	struct arena arena;
	struct group_entry *entries;
	size_t n_entries, entries_size;
	char **words;
	struct isolate_sysctl sysctls[ISOLATE_SYSCTLS_MAX];
	size_t n_sysctls;
	struct group_process *found;
	size_t n_found, found_size;
	size_t at; /* the entry that is looked into */
	bool truncated;
	struct error error;
};

static void group_job_free(struct group_job *job)
{
	list_remove(&job->link);
	arena_done(&job->arena);
	free(job->entries);
	free(job->found);
	free(job);
}

static void group_job_run(struct pool_work *work)
{
	struct group_job *job = container_of(work, struct group_job, work);

	job->ops->run(job);
}

static void group_job_ran(struct pool_work *work)
{
	struct group_job *job = container_of(work, struct group_job, work);
	struct rpc_call *call = TAKE_PTR(job->call);

	if (call) {
		rpc_call_on_cancel(call, NULL, NULL);
		if (job->error.code)
			rpc_call_fail(call, &job->error);
		else
			job->ops->reply(job, call);
	}
	group_job_free(job);
}

static void group_job_cancelled(struct rpc_call *call, void *data)
{
	struct group_job *job = data;
	struct error err = ERROR_INIT;

	job->call = NULL;
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	rpc_call_fail(call, &err);
}

static struct group_job *group_job_new(struct groups *all, const struct group_ops *ops,
				       struct error *err)
{
	struct group_job *job = calloc(1, sizeof(*job));

	if (!job) {
		(void)error_set(err, -ENOMEM, "look at groups");
		return NULL;
	}
	job->all = all;
	job->ops = ops;
	job->work = (struct pool_work){ .run = group_job_run, .done = group_job_ran };
	list_init(&job->link);
	return job;
}

/* The job is taken over: with an error in it it is only told. */
static void group_job_start(struct group_job *job, struct rpc_call *call)
{
	struct groups *all = job->all;
	int r = 0;

	if (!job->error.code && !all->pool) {
		r = pool_new(&all->pool, all->loop, GROUPS_THREADS);
		if (r < 0)
			(void)error_set(&job->error, r, "make a thread for groups");
	}
	if (job->error.code) {
		rpc_call_fail(call, &job->error);
		group_job_free(job);
		return;
	}
	job->call = call;
	list_add_tail(&all->jobs, &job->link);
	rpc_call_on_cancel(call, group_job_cancelled, job);
	pool_submit(all->pool, &job->work);
}

/* Only the first failure is kept; behind it nothing is added. */
static void group_job_add(struct group_job *job, const char *path, const char *cell, const char *id)
{
	struct group_entry *e;
	void *entries = job->entries;
	int r;

	if (job->error.code)
		return;
	r = array_grow(&entries, job->n_entries, &job->entries_size, sizeof(*e));
	job->entries = entries;
	if (r == 0) {
		e = &job->entries[job->n_entries];
		*e = (struct group_entry){ .path = arena_strdup(&job->arena, path),
					   .cell = arena_strdup(&job->arena, cell),
					   .id = arena_strdup(&job->arena, id) };
		r = e->path && e->cell && e->id ? 0 : -ENOMEM;
	}
	if (r < 0)
		(void)error_set(&job->error, r, "look at groups");
	else
		job->n_entries++;
}

static void group_job_add_container(struct group_job *job, const struct container_view *view)
{
	char path[GROUPS_PATH_SIZE];

	/* It has no group any more, or none yet. */
	if (view->status.state == CONTAINER_EXITED || view->status.state == CONTAINER_FAILED)
		return;
	if (str_printf(path, sizeof(path), "%s/%s", view->cell_dir, view->dir) >= 0)
		group_job_add(job, path, view->cell, view->id);
}

/* ---- limits ---- */

static int limit_open(const struct group_job *job, struct error *err)
{
	const struct group_entry *e = &job->entries[0];
	int fd;

	if (str_eq(e->path, ".")) {
		fd = fcntl(job->all->cgroup_fd, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? error_set(err, -errno, "open the layer's group") : fd;
	}
	fd = rootfd_point(job->all->cgroup_fd, e->path);
	if (fd == -ENOENT)
		return error_field(err, ERROR_NOT_FOUND, *e->id ? "id" : "cell",
				   "it has no group (any more)");
	return fd < 0 ? error_set(err, fd, "open a group") : fd;
}

static int limit_set_sysctls(struct group_job *job)
{
	_cleanup_fd_ int proc_fd = job->n_sysctls ? rootfd_point(AT_FDCWD, "/proc") : -1;
	int r = 0;

	for (size_t i = 0; i < job->n_sysctls && r == 0; i++) {
		const struct isolate_sysctl *one = &job->sysctls[i];

		r = proc_fd < 0 ? error_set(&job->error, proc_fd, "open /proc")
				: isolate_sysctl_set(proc_fd, one, &job->error);
		if (r < 0)
			return error_wrap(&job->error, r, "sysctls: %s", one->name);
	}
	return r;
}

static void limit_run(struct group_job *job)
{
	_cleanup_fd_ int fd = limit_open(job, &job->error);

	if (fd >= 0 && limits_words_apply(fd, job->words, &job->error) == 0)
		(void)limit_set_sysctls(job);
}

static void limit_reply(struct group_job *job, struct rpc_call *call)
{
	Nacre__Instance__V1__LimitResponse m;

	(void)job;
	nacre__instance__v1__limit_response__init(&m);
	rpc_call_reply(call, &m.base);
}

struct limit_search {
	struct group_job *job;
	const char *id; /* or the name of a cell */
};

static void limit_search_cell(void *userdata, const struct container_view *view)
{
	const struct limit_search *search = userdata;

	if (!search->job->n_entries && str_eq(view->cell, search->id))
		group_job_add(search->job, view->cell_dir, view->cell, "");
}

static void limit_search_container(void *userdata, const struct container_view *view)
{
	const struct limit_search *search = userdata;

	if (str_eq(view->id, search->id))
		group_job_add_container(search->job, view);
}

static int limit_find(struct group_job *job, const Nacre__Instance__V1__LimitRequest *request,
		      struct error *err)
{
	struct limit_search search = { job, *request->id ? request->id : request->cell };
	char path[GROUPS_PATH_SIZE];

	if (*request->id && *request->cell)
		return error_field(err, ERROR_INVALID, "cell", "not beside id");
	if (*request->id) {
		keeper_each(job->all->keeper, limit_search_container, &search);
		if (!job->n_entries && !err->code)
			return error_field(err, ERROR_NOT_FOUND, "id", "no container %.40s runs",
					   request->id);
		return err->code;
	}
	if (*request->cell && !name_is_label(request->cell))
		return error_field(err, ERROR_INVALID, "cell", "\"%.80s\" is not a name",
				   request->cell);
	if (!*request->cell) {
		group_job_add(job, ".", "", "");
		return err->code;
	}
	keeper_each(job->all->keeper, limit_search_cell, &search);
	if (job->n_entries || err->code)
		return err->code;
	/* Without a container that would know it. */
	(void)str_printf(path, sizeof(path), "cell.%s", request->cell);
	group_job_add(job, path, request->cell, "");
	return err->code;
}

static int limit_take_words(struct group_job *job, const Nacre__Instance__V1__LimitRequest *request,
			    struct error *err)
{
	job->words = arena_zalloc(&job->arena, request->n_limits + 1, sizeof(*job->words));
	for (size_t i = 0; job->words && i < request->n_limits; i++) {
		job->words[i] = arena_strdup(&job->arena, request->limits[i]);
		if (!job->words[i])
			job->words = NULL;
	}
	if (!job->words)
		return error_set(err, -ENOMEM, "limits");
	return limits_words_check(job->words, err);
}

/* Of namespaces that the keeper has as its own. */
static int limit_take_sysctls(struct group_job *job,
			      const Nacre__Instance__V1__LimitRequest *request, struct error *err)
{
	static const enum isolate_ns_mode own[ISOLATE_NS_COUNT] = {
		[ISOLATE_NS_NET] = ISOLATE_NEW,
		[ISOLATE_NS_IPC] = ISOLATE_NEW,
		[ISOLATE_NS_UTS] = ISOLATE_NEW,
	};

	if (request->n_sysctls > ISOLATE_SYSCTLS_MAX)
		return error_field(err, ERROR_INVALID, "sysctls",
				   "%zu are more than the limit of %d", request->n_sysctls,
				   ISOLATE_SYSCTLS_MAX);
	if (request->n_sysctls > 0 && (*request->id || *request->cell))
		return error_field(err, ERROR_INVALID, "sysctls", "not of a part of the layer");
	for (size_t i = 0; i < request->n_sysctls; i++) {
		char *name = arena_strdup(&job->arena, request->sysctls[i]), *value;

		if (!name)
			return error_set(err, -ENOMEM, "sysctls");
		value = strchr(name, '=');
		if (!value)
			return error_field(err, ERROR_INVALID, "sysctls", "\"%.80s\" has no value",
					   name);
		*value = '\0';
		job->sysctls[i] = (struct isolate_sysctl){ .name = name, .value = value + 1 };
	}
	job->n_sysctls = request->n_sysctls;
	return isolate_sysctls_check(job->sysctls, job->n_sysctls, own, err);
}

void groups_limit(struct groups *all, struct rpc_call *call,
		  const Nacre__Instance__V1__LimitRequest *request)
{
	static const struct group_ops ops = { limit_run, limit_reply };
	struct error err = ERROR_INIT;
	struct group_job *job = group_job_new(all, &ops, &err);

	if (!job) {
		rpc_call_fail(call, &err);
		return;
	}
	if (limit_find(job, request, &job->error) == 0 &&
	    limit_take_words(job, request, &job->error) == 0)
		(void)limit_take_sysctls(job, request, &job->error);
	group_job_start(job, call);
}

/* ---- usage ---- */

static bool usage_has_cell(const struct group_job *job, const char *cell)
{
	for (size_t i = 0; i < job->n_entries; i++)
		if (str_eq(job->entries[i].cell, cell))
			return true;
	return false;
}

static void usage_add(void *userdata, const struct container_view *view)
{
	struct group_job *job = userdata;
	char path[GROUPS_PATH_SIZE];

	if (!usage_has_cell(job, view->cell) &&
	    str_printf(path, sizeof(path), "%s", view->cell_dir) >= 0)
		group_job_add(job, path, view->cell, "");
	group_job_add_container(job, view);
}

static void usage_run(struct group_job *job)
{
	for (size_t i = 0; i < job->n_entries; i++)
		job->entries[i].result = usage_read(job->all->cgroup_fd, job->entries[i].path,
						    &job->entries[i].usage);
	if (job->entries[0].result < 0)
		(void)error_set(&job->error, job->entries[0].result, "read the layer's group");
}

static void usage_reply(struct group_job *job, struct rpc_call *call)
{
	struct arena *a = rpc_call_arena(call);
	Nacre__Instance__V1__UsageResponse m;
	Nacre__Instance__V1__GroupUsage *groups;
	struct error err = ERROR_INIT;

	nacre__instance__v1__usage_response__init(&m);
	groups = arena_zalloc(a, job->n_entries, sizeof(*groups));
	m.groups = arena_zalloc(a, job->n_entries, sizeof(*m.groups));
	if (!groups || !m.groups) {
		(void)error_set(&err, -ENOMEM, "answer");
		rpc_call_fail(call, &err);
		return;
	}
	for (size_t i = 0; i < job->n_entries; i++) {
		const struct group_entry *e = &job->entries[i];

		if (e->result < 0)
			continue;
		convert_group_usage(&groups[i], &e->usage);
		groups[i].id = e->id;
		groups[i].cell = e->cell;
		m.groups[m.n_groups++] = &groups[i];
	}
	rpc_call_reply(call, &m.base);
}

void groups_usage(struct groups *all, struct rpc_call *call)
{
	static const struct group_ops ops = { usage_run, usage_reply };
	struct error err = ERROR_INIT;
	struct group_job *job = group_job_new(all, &ops, &err);

	if (!job) {
		rpc_call_fail(call, &err);
		return;
	}
	group_job_add(job, ".", "", "");
	keeper_each(all->keeper, usage_add, job);
	group_job_start(job, call);
}

/* ---- processes ---- */

static void processes_add(void *userdata, const struct container_view *view)
{
	group_job_add_container(userdata, view);
}

static int processes_take(void *userdata, const struct process *p)
{
	struct group_job *job = userdata;
	void *found = job->found;
	int r;

	if (job->n_found == GROUPS_PROCESSES_MAX) {
		job->truncated = true;
		return -ENOBUFS;
	}
	r = array_grow(&found, job->n_found, &job->found_size, sizeof(*job->found));
	job->found = found;
	if (r == 0)
		job->found[job->n_found++] =
			(struct group_process){ .process = *p, .entry = job->at };
	return r;
}

/* The keeper is in a leaf of the layer's group, wherever that is. */
static int processes_find_layer(char *ret, size_t size, struct error *err)
{
	int r;

	*ret = '/';
	r = cgroup_own_path(ret + 1, size - 1, err);
	if (r == 0)
		*strrchr(ret, '/') = '\0';
	return r;
}

static void processes_run(struct group_job *job)
{
	char layer[1024];
	int r = processes_find_layer(layer, sizeof(layer), &job->error);

	for (job->at = 0; r == 0 && job->at < job->n_entries; job->at++)
		r = processes_each(job->all->cgroup_fd, layer, job->entries[job->at].path,
				   processes_take, job);
	if (r < 0 && !job->truncated && !job->error.code)
		(void)error_set(&job->error, r, "look at processes");
}

static void processes_reply(struct group_job *job, struct rpc_call *call)
{
	struct arena *a = rpc_call_arena(call);
	Nacre__Instance__V1__ProcessesResponse m;
	Nacre__Instance__V1__GroupProcess *all;
	struct error err = ERROR_INIT;
	bool failed;

	nacre__instance__v1__processes_response__init(&m);
	m.truncated = job->truncated;
	all = arena_zalloc(a, job->n_found + 1, sizeof(*all));
	m.processes = arena_zalloc(a, job->n_found + 1, sizeof(*m.processes));
	failed = !all || !m.processes;
	for (size_t i = 0; !failed && i < job->n_found; i++) {
		failed = convert_group_process(a, &all[i], &job->found[i].process) < 0;
		all[i].id = job->entries[job->found[i].entry].id;
		m.processes[i] = &all[i];
	}
	if (failed) {
		(void)error_set(&err, -ENOMEM, "answer");
		rpc_call_fail(call, &err);
		return;
	}
	m.n_processes = job->n_found;
	rpc_call_reply(call, &m.base);
}

void groups_processes(struct groups *all, struct rpc_call *call)
{
	static const struct group_ops ops = { processes_run, processes_reply };
	struct error err = ERROR_INIT;
	struct group_job *job = group_job_new(all, &ops, &err);

	if (!job) {
		rpc_call_fail(call, &err);
		return;
	}
	group_job_add(job, GROUPS_KEEPER, "", "");
	keeper_each(all->keeper, processes_add, job);
	group_job_start(job, call);
}

/* ---- the object ---- */

void groups_init(struct groups *all, struct loop *loop, struct keeper *keeper, int cgroup_fd)
{
	*all = (struct groups){ .loop = loop, .keeper = keeper, .cgroup_fd = cgroup_fd };
	list_init(&all->jobs);
}

void groups_done(struct groups *all)
{
	struct group_job *job;

	if (!all->loop)
		return;
	all->pool = pool_free(all->pool);
	/* Those whose turn never came. */
	list_for_each (job, &all->jobs, struct group_job, link)
		group_job_free(job);
}
