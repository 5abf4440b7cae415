/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The registry: which cells and containers there are, and whom to tell. What takes time (the
 * removal of a cell, a shutdown) is recorded where it is asked for and carried out by
 * keeper_sweep() from the loop, whenever something in a cell that is being removed has ended.
 */
#include "cell/layer/keeper.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "cell/container/cell.h"
#include "cell/container/container.h"
#include "cell/container/exec.h"
#include "cell/container/leaf.h"
#include "cell/layer/keeper_model.h"
#include "cell/layer/removals.h"
#include "cell/start/container_plan.h"
#include "cell/start/program.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/spawn/spawn.h"
#include "loop/loop.h"

#define KEEPER_RETRY_MIN NSEC_PER_MSEC
#define KEEPER_RETRY_MAX (500 * NSEC_PER_MSEC)

/* What the keeper knows of a container beyond its own state. */
struct record {
	keeper_started_fn started; /* NULL: called */
	void *userdata;
	bool held;      /* a callback looks at it */
	bool forgotten; /* freed when that has returned */
};

/* ---- who is told ---- */

static struct container_view keeper_view(const struct container *c)
{
	struct container_view view = {
		.id = c->id,
		.cell = c->cell->name,
		.name = c->name,
		.cell_dir = c->cell->dir,
		.dir = c->dir,
		.status = c->status,
	};

	view.status.cell_group = cgroup_number(c->cell->dir);
	view.status.group = cgroup_number(c->dir);
	return view;
}

static void keeper_free_container(struct container *c)
{
	free(TAKE_PTR(c->record));
	container_free(c);
}

static void keeper_forget(struct keeper *k, struct container *c)
{
	struct record *record = c->record;
	struct container_view view = keeper_view(c);

	map_remove(&k->containers, c->id);
	list_remove(&c->link);
	exec_detach_all(c, &k->execs);
	attach_point_done(&c->attach, true);
	kept_done(&c->kept);
	record->forgotten = true;
	if (k->config.on_container)
		k->config.on_container(k->config.userdata, &view, true);
	if (!record->held)
		keeper_free_container(c);
}

static void keeper_changed(void *userdata, struct container *c)
{
	struct keeper *k = userdata;
	struct record *record = c->record;
	struct container_view view = keeper_view(c);
	bool over = container_is_over(c);
	keeper_started_fn started = NULL;

	if (c->ended || over)
		exec_end_all(&c->execs);
	if (over && c->cell->state == CELL_REMOVING)
		loop_defer_schedule(&k->sweep);
	if (over || c->status.state == CONTAINER_RUNNING)
		started = TAKE_PTR(record->started);

	record->held = true;
	if (k->config.on_container)
		k->config.on_container(k->config.userdata, &view, false);
	if (started)
		started(record->userdata, &view);
	record->held = false;
	if (record->forgotten)
		keeper_free_container(c);
}

/* ---- removal ---- */

static bool cell_is_over(const struct cell *cell)
{
	struct container *c;

	list_for_each (c, &cell->containers, struct container, link)
		if (!container_is_over(c))
			return false;
	return true;
}

/* Forgets what is left of a cell in which nothing runs; answers into `answers`. */
static void keeper_finish_cell(struct keeper *k, struct cell *cell, struct list *answers)
{
	struct container *c;

	for (c = list_first(&cell->containers, struct container, link); c;
	     c = list_first(&cell->containers, struct container, link))
		keeper_forget(k, c);
	if (cell_remove_cgroup(cell) == -EBUSY) {
		cell_kill(cell);
		k->retry_delay = k->retry_delay ? MIN(k->retry_delay * 2, KEEPER_RETRY_MAX)
						: KEEPER_RETRY_MIN;
		loop_timer_set(&k->retry, k->retry_delay);
		return;
	}
	removals_move(&cell->removals, answers);
	map_remove(&k->cells, cell->name);
	cell_free(cell);
}

static void keeper_sweep(struct loop_defer *defer)
{
	struct keeper *k = container_of(defer, struct keeper, sweep);
	struct list ready = LIST_INIT(ready), answers = LIST_INIT(answers);
	struct cell *cell;
	size_t pos = 0;

	/* Callbacks may add cells, so no walk over the map goes on beside them. */
	for (cell = map_next(&k->cells, &pos); cell; cell = map_next(&k->cells, &pos))
		if (cell->state == CELL_REMOVING && cell_is_over(cell))
			list_add_tail(&ready, &cell->link);
	for (cell = list_first(&ready, struct cell, link); cell;
	     cell = list_first(&ready, struct cell, link)) {
		list_remove(&cell->link);
		keeper_finish_cell(k, cell, &answers);
	}
	removals_move(&k->removals, &answers);
	if (k->stopping && k->cells.n == 0 && !spare_container_busy(&k->spare_container))
		removals_move(&k->shutdowns, &answers);
	removals_answer(&answers);
}

static void keeper_retry(struct loop_timer *timer)
{
	struct keeper *k = container_of(timer, struct keeper, retry);

	loop_defer_schedule(&k->sweep);
}

static void keeper_begin_removal(struct keeper *k, struct cell *cell)
{
	struct container *c;

	loop_defer_schedule(&k->sweep);
	if (cell->state == CELL_REMOVING)
		return;
	cell_begin_removal(cell);
	k->retry_delay = 0;
	list_for_each (c, &cell->containers, struct container, link)
		container_finish_off(c);
}

void keeper_remove_cell(struct keeper *k, const char *name, void (*done)(void *userdata),
			void *userdata)
{
	struct cell *cell = map_get(&k->cells, name);

	FAILPOINT_BEFORE("keeper.remove");
	if (cell)
		keeper_begin_removal(k, cell);
	FAILPOINT_AFTER("keeper.remove");
	loop_defer_schedule(&k->sweep);
	/* Without memory for the answer it comes too early, which is better than never. */
	if (removal_add(cell ? &cell->removals : &k->removals, done, userdata) < 0 && done)
		done(userdata);
}

void keeper_shutdown(struct keeper *k, void (*done)(void *userdata), void *userdata)
{
	struct cell *cell;
	size_t pos = 0;

	FAILPOINT_BEFORE("keeper.shutdown");
	k->stopping = true;
	spare_container_hold(&k->spare_container, true);
	for (cell = map_next(&k->cells, &pos); cell; cell = map_next(&k->cells, &pos))
		keeper_begin_removal(k, cell);
	FAILPOINT_AFTER("keeper.shutdown");
	loop_defer_schedule(&k->sweep);
	if (removal_add(&k->shutdowns, done, userdata) < 0 && done)
		done(userdata);
}

int keeper_remove(struct keeper *k, const char *id, struct error *err)
{
	struct container *c = map_get(&k->containers, id);

	if (!c)
		return 0;
	if (!container_is_over(c))
		return error_refuse(err, ERROR_PRECONDITION, "container %s has not ended", c->name);
	keeper_forget(k, c);
	return 0;
}

/* ---- orphans ---- */

bool keeper_owns_pid(struct keeper *k, pid_t pid)
{
	struct container *c;
	size_t pos = 0;

	for (c = map_next(&k->containers, &pos); c; c = map_next(&k->containers, &pos))
		if ((c->child.pidfd >= 0 && c->child.pid == pid) ||
		    exec_list_has_pid(&c->execs, pid))
			return true;
	return exec_list_has_pid(&k->execs, pid) ||
	       spare_container_has_pid(&k->spare_container, pid);
}

void keeper_reap_orphans(struct keeper *k)
{
	for (;;) {
		siginfo_t si = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 || si.si_pid == 0)
			break;
		if (keeper_owns_pid(k, si.si_pid) ||
		    (k->config.is_other_child &&
		     k->config.is_other_child(k->config.userdata, si.si_pid))) {
			/* The kernel shows nobody behind it before its owner has taken it. */
			k->reap_delay = k->reap_delay ? MIN(k->reap_delay * 2, KEEPER_RETRY_MAX)
						      : KEEPER_RETRY_MIN;
			loop_timer_set(&k->reap, k->reap_delay);
			return;
		}
		(void)waitid(P_PID, (id_t)si.si_pid, &si, WEXITED | WNOHANG);
	}
	k->reap_delay = 0;
	loop_timer_stop(&k->reap);
}

static void keeper_reap_again(struct loop_timer *timer)
{
	keeper_reap_orphans(container_of(timer, struct keeper, reap));
}

/* ---- the start ---- */

static bool cell_has_name(const struct cell *cell, const char *name)
{
	struct container *c;

	list_for_each (c, &cell->containers, struct container, link)
		if (str_eq(c->name, name))
			return true;
	return false;
}

static int keeper_check_start(struct keeper *k, const struct cell_spec *cell_spec,
			      const struct container_spec *spec, const struct container_fds *fds,
			      struct error *err)
{
	const struct cell *cell;
	int r;

	r = program_check_container(cell_spec, spec, err);
	if (r < 0)
		return r;
	if (cell_spec->given_network != (fds->network >= 0))
		return error_field(err, ERROR_INVALID, "network_token",
				   "it comes where the cell is given a network, and only there");
	if (spec->kind == CONTAINER_IMAGE && fds->rootfs < 0 && !spec->late)
		return error_field(err, ERROR_INVALID, "rootfs",
				   "a container from an image needs one");
	if (spec->kind == CONTAINER_VISITOR && fds->rootfs < 0)
		return error_field(err, ERROR_INVALID, "rootfs",
				   "a visitor needs a mount namespace");
	if (k->stopping)
		return error_refuse(err, ERROR_ABORTED, "the keeper is shutting down");
	if (map_get(&k->containers, spec->id))
		return error_field(err, ERROR_EXISTS, "id", "container %s is there already",
				   spec->id);
	cell = map_get(&k->cells, cell_spec->name);
	r = cell ? cell_check(cell, cell_spec, err) : 0;
	if (r < 0)
		return r;
	if (cell && cell_has_name(cell, spec->name))
		return error_field(err, ERROR_EXISTS, "name", "cell %s has a container %s already",
				   cell->name, spec->name);
	if (k->containers.n >= KEEPER_CONTAINERS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "there are %d containers already",
				    KEEPER_CONTAINERS_MAX);
	if (!cell && k->cells.n >= KEEPER_CELLS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "there are %d cells already",
				    KEEPER_CELLS_MAX);
	return 0;
}

/* What a start brings along, on its way to be a container. */
struct start_request {
	const struct cell_spec *cell;
	const struct container_spec *spec;
	const struct isolate_user *user; /* NULL: not known yet */
	struct container_fds *fds;
	struct spare_process *ahead; /* NULL: none that fits */
};

static int keeper_find_cell(struct keeper *k, const struct start_request *q, struct cell **ret,
			    struct error *err)
{
	const struct cell_spec *spec = q->cell;
	struct cell *cell = map_get(&k->cells, spec->name);
	int r;

	if (!cell) {
		r = cell_new(&cell, spec, q->ahead, k->config.cgroup_fd, k->config.shm_parent_fd,
			     k->config.shm_fd, err);
		if (r < 0)
			return r;
		if (cell->given_network)
			cell->ns_fd[ISOLATE_NS_NET] = TAKE_FD(q->fds->network);
		r = map_add(&k->cells, cell->name, cell);
		if (r < 0) {
			(void)cell_remove_cgroup(cell);
			cell_free(cell);
			return error_set(err, r, "record cell %s", spec->name);
		}
	}
	*ret = cell;
	return 0;
}

/* A cell that the failed start of its first container has left. */
static void keeper_drop_empty_cell(struct keeper *k, struct cell *cell, bool is_new)
{
	if (!is_new)
		return;
	(void)cell_remove_cgroup(cell);
	map_remove(&k->cells, cell->name);
	cell_free(cell);
}

int keeper_record(struct keeper *k, struct container *c, keeper_started_fn done, void *userdata,
		  struct error *err)
{
	struct record *record = malloc(sizeof(*record));
	int r = -ENOMEM;

	if (record) {
		*record = (struct record){ .started = done, .userdata = userdata };
		c->record = record;
		r = map_add(&k->containers, c->id, c);
	}
	return r < 0 ? error_set(err, r, "record container %s", c->name) : 0;
}

static int keeper_add(struct keeper *k, const struct start_request *q, keeper_started_fn done,
		      void *userdata, struct container **ret, struct error *err)
{
	bool is_new = !map_get(&k->cells, q->cell->name);
	struct cell *cell;
	int r;

	r = keeper_find_cell(k, q, &cell, err);
	if (r < 0)
		return r;
	/* One is enough for all containers of a cell. */
	q->fds->network = fd_close(q->fds->network);
	r = container_new(ret, &k->host, cell, q->spec, q->user, q->fds, q->ahead, err);
	if (r < 0) {
		keeper_drop_empty_cell(k, cell, is_new);
		return r;
	}
	r = keeper_record(k, *ret, done, userdata, err);
	if (r < 0) {
		if (q->ahead)
			container_give_back(*ret, q->ahead);
		(void)cgroup_remove(cell->cgroup_fd, (*ret)->dir);
		keeper_free_container(*ret);
		keeper_drop_empty_cell(k, cell, is_new);
	}
	return r;
}

/* A process that waits for just such a start; ret, or NULL. */
static struct spare_process *keeper_take_spare_container(struct keeper *k,
							 const struct cell_spec *cell,
							 const struct container_spec *spec,
							 struct spare_process *ret)
{
	bool fits = spare_container_fits(cell, spec);

	if (map_get(&k->cells, cell->name))
		return NULL;
	spare_container_want(&k->spare_container, fits);
	return fits && spare_container_take(&k->spare_container, ret) == 0 ? ret : NULL;
}

int keeper_start(struct keeper *k, const struct cell_spec *cell_spec,
		 const struct container_spec *spec, struct container_fds *fds,
		 keeper_started_fn done, void *userdata, struct error *err)
{
	_cleanup_(container_fds_close) struct container_fds own = container_fds_take(fds);
	struct spare_process ahead = SPARE_PROCESS_NONE;
	struct start_request q = { .cell = cell_spec, .spec = spec, .fds = &own };
	struct isolate_user user;
	struct container *c = NULL;
	int r;

	r = keeper_check_start(k, cell_spec, spec, &own, err);
	if (r == 0)
		r = users_find_early(&k->users, spec, own.rootfs, &user, &q.user, err);
	if (r < 0)
		return r;
	r = FAILPOINT("keeper.start");
	if (r < 0)
		return error_set(err, r, "start container %s", spec->name);
	q.ahead = keeper_take_spare_container(k, cell_spec, spec, &ahead);
	r = keeper_add(k, &q, done, userdata, &c, err);
	if (r < 0) {
		if (q.ahead)
			spare_container_give_back(&k->spare_container, &ahead);
		return r;
	}
	keeper_changed(k, c);
	if (q.ahead)
		container_stand_in(c);
	else if (spec->late)
		container_adopt_prepared(c);
	container_launch(c);
	FAILPOINT_AFTER("keeper.start");
	return 0;
}

void keeper_supply(struct keeper *k, const char *id, struct container_fds *fds)
{
	_cleanup_(container_fds_close) struct container_fds own = container_fds_take(fds);
	struct container *c = map_get(&k->containers, id);

	if (c && container_awaits(c))
		container_supply(c, &own);
}

void keeper_withdraw(struct keeper *k, const char *id, const struct error *err)
{
	struct container *c = map_get(&k->containers, id);

	if (c && container_awaits(c))
		container_refuse(c, err);
}

/* ---- the rest of what is asked ---- */

static int keeper_find(struct keeper *k, const char *id, struct container **ret, struct error *err)
{
	*ret = map_get(&k->containers, id);
	return *ret ? 0 : error_refuse(err, ERROR_NOT_FOUND, "there is no container %.16s", id);
}

int keeper_signal(struct keeper *k, const char *id, int sig, bool all, struct error *err)
{
	struct container *c;
	int r;

	r = keeper_find(k, id, &c, err);
	if (r < 0)
		return r;
	r = FAILPOINT("keeper.signal");
	if (r < 0)
		return error_set(err, r, "send signal %d to container %s", sig, c->name);
	r = container_signal(c, sig, all, err);
	FAILPOINT_AFTER("keeper.signal");
	return r;
}

int keeper_change_log(struct keeper *k, const char *id, int fd, void (*changed)(void *data),
		      void *data, struct error *err)
{
	_cleanup_fd_ int own = fd;
	struct container *c;
	int r = keeper_find(k, id, &c, err);

	if (r < 0)
		return r;
	if (c->status.state != CONTAINER_RUNNING || !c->pump.has_log || c->pump.log.dir_fd >= 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "container %s does not run, or has no log that can be changed",
				    c->name);
	r = container_change_log(c, TAKE_FD(own), changed, data);
	return r < 0 ? error_refuse(err, ERROR_ABORTED,
				    "the log of container %s is being changed already", c->name)
		     : 0;
}

int keeper_open_root(struct keeper *k, const char *id, const char **ret_name, struct error *err)
{
	struct container *c;
	int r = keeper_find(k, id, &c, err);

	return r < 0 ? r : exec_open_root(c, ret_name, err);
}

void keeper_each(struct keeper *k, void (*fn)(void *userdata, const struct container_view *view),
		 void *userdata)
{
	struct container *c;
	size_t pos = 0;

	for (c = map_next(&k->containers, &pos); c; c = map_next(&k->containers, &pos)) {
		struct container_view view = keeper_view(c);

		fn(userdata, &view);
	}
}

int keeper_exec(struct keeper *k, const struct keeper_exec_spec *spec,
		const struct keeper_exec_ops *ops, void *userdata, struct keeper_exec **ret,
		struct error *err)
{
	struct container *c;
	int r;

	r = keeper_find(k, spec->id, &c, err);
	return r < 0 ? r : exec_new(ret, c, spec, ops, userdata, err);
}

/* ---- attach ---- */

int keeper_attach(struct keeper *k, const struct keeper_attach_spec *spec,
		  const struct keeper_attach_ops *ops, void *userdata, struct keeper_attach **ret,
		  struct error *err)
{
	struct container *c;
	int r;

	r = keeper_find(k, spec->id, &c, err);
	if (r < 0)
		return r;
	if (c->status.state == CONTAINER_STARTING || c->status.state == CONTAINER_FAILED)
		return error_refuse(err, ERROR_PRECONDITION, "container %s does not run", c->name);
	/* A container that has ended takes no input, and says so by its end. */
	if (spec->stdin_open && c->status.state == CONTAINER_RUNNING && !c->stdin_open)
		return error_field(err, ERROR_PRECONDITION, "stdin",
				   "container %s was started without", c->name);
	if (terminal_is_open(&c->terminal) && (spec->terminal.width || spec->terminal.height))
		(void)terminal_resize(&c->terminal, &spec->terminal, NULL);
	return attach_new(ret, &c->attach, spec->stdin_open ? &c->input : NULL, spec->replay, ops,
			  userdata, err);
}

/* ---- a log that is kept ---- */

int keeper_log_open(struct keeper *k, const char *id, uint64_t from,
		    const struct keeper_log_ops *ops, void *userdata, struct keeper_log **ret,
		    struct error *err)
{
	struct container *c;
	int r = keeper_find(k, id, &c, err);

	return r < 0 ? r : kept_open(&c->kept, from, container_is_over(c), ops, userdata, ret, err);
}

int keeper_write_stdin(struct keeper *k, const char *id, const void *data, size_t len, bool close,
		       void (*done)(void *userdata, const struct error *err), void *userdata,
		       struct error *err)
{
	struct container *c;
	int r = keeper_find(k, id, &c, err);

	if (r < 0)
		return r;
	if (c->status.state != CONTAINER_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION, "container %s does not run", c->name);
	return input_write(&c->input, data, len, close, done, userdata, err);
}

/* ---- life and death of the object ---- */

/* The next cell has more use of a process than of what one would be made with. The prepared set
 * behind it is made at once, by the thread: then the next process can be cloned as soon as this one
 * is gone, and cells that come one behind the other find one each. */
static void keeper_prepared_ready(void *userdata)
{
	struct keeper *k = userdata;
	struct isolate_prepared prepared;

	if (!spare_container_lacks(&k->spare_container) ||
	    warm_pool_take(&k->warm_pool, &prepared) < 0)
		return;
	warm_pool_want_now(&k->warm_pool);
	spare_container_make(&k->spare_container, &prepared);
}

static void keeper_spare_container_gone(void *userdata)
{
	struct keeper *k = userdata;

	if (k->stopping)
		loop_defer_schedule(&k->sweep);
}

int keeper_new(struct keeper **ret, const struct keeper_config *config)
{
	struct keeper *k = malloc(sizeof(*k));

	if (!k)
		return -ENOMEM;
	*k = (struct keeper){ .config = *config,
			      .threads = PUMP_THREADS_INIT(config->loop),
			      .host = { .loop = config->loop,
					.proc_fd = config->proc_fd,
					.host_mount_ns_fd = config->host_mount_ns_fd,
					.devices_fd = leaf_load_devices(),
					.on_change = keeper_changed } };
	k->host.threads = &k->threads;
	k->host.warm_pool = &k->warm_pool;
	k->host.users = &k->users;
	k->host.pod_warm_pool = &k->pod_warm_pool;
	warm_pool_init(&k->warm_pool, config->loop, config->proc_fd, -1);
	warm_pool_init(&k->pod_warm_pool, config->loop, config->proc_fd, config->shm_fd);
	k->warm_pool.on_ready = keeper_prepared_ready;
	k->warm_pool.userdata = k;
	spare_container_init(&k->spare_container, config->loop, config->cgroup_fd,
			     k->host.devices_fd, keeper_spare_container_gone, k);
	if (config->ahead && config->shm_fd >= 0) {
		warm_pool_want(&k->pod_warm_pool);
		isolate_spawn_begin();
	}
	k->host.userdata = k;
	list_init(&k->execs);
	list_init(&k->removals);
	list_init(&k->shutdowns);
	loop_defer_init(&k->sweep, config->loop, keeper_sweep);
	loop_timer_init(&k->retry, config->loop, keeper_retry);
	loop_timer_init(&k->reap, config->loop, keeper_reap_again);
	*ret = k;
	return 0;
}

static void keeper_free_execs(struct list *execs)
{
	while (exec_first(execs))
		exec_free(exec_first(execs));
}

static void keeper_free_cell(struct cell *cell)
{
	struct container *c;

	cell_kill(cell);
	list_for_each (c, &cell->containers, struct container, link) {
		keeper_free_execs(&c->execs);
		keeper_free_container(c);
	}
	removals_drop(&cell->removals);
	(void)cell_remove_cgroup(cell);
	cell_free(cell);
}

struct keeper *keeper_free(struct keeper *k)
{
	struct cell *cell;
	size_t pos = 0;

	if (!k)
		return NULL;
	loop_defer_done(&k->sweep);
	loop_timer_done(&k->retry);
	loop_timer_done(&k->reap);
	warm_pool_done(&k->warm_pool);
	warm_pool_done(&k->pod_warm_pool);
	spare_container_done(&k->spare_container);
	pump_threads_done(&k->threads);
	for (cell = map_next(&k->cells, &pos); cell; cell = map_next(&k->cells, &pos)) {
		map_remove(&k->cells, cell->name);
		keeper_free_cell(cell);
	}
	keeper_free_execs(&k->execs);
	removals_drop(&k->removals);
	removals_drop(&k->shutdowns);
	map_done(&k->cells);
	map_done(&k->containers);
	(void)fd_close(k->host.devices_fd);
	free(k);
	return NULL;
}
