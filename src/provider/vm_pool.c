/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_pool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/id.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "gates/issuer.h"
#include "instance/model.h"
#include "instance/spare.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/footprint.h"
#include "provider/vm_machine.h"
#include "provider/vm_size.h"
#include "provider/vm_template.h"
#include "vm/guest/guest_set.h"

/*
 * Theory of operation. A machine of the pool is a struct machine without an instance, and with a
 * struct pooled, which says where it is; it is started as all are (machine_begin()), and what its
 * driver and its gate tell goes where the instance's would go (machine_break()). When it is taken,
 * `pooled` ends and the instance takes its place; nothing else changes.
 *
 * The timer looks at what is missing, and begins with one. It runs again when that has come up,
 * and whenever something has changed.
 */

#define POOL_MEMINFO_MAX 65536
/* Of one that has ended, until its group lets itself be removed: first and last pause. */
#define POOL_CLEAN_FIRST (1 * NSEC_PER_MSEC)
#define POOL_CLEAN_LAST (2 * NSEC_PER_SEC)
/* At the end of the daemon that is waited for. */
#define POOL_CLEAN_TRIES 2000
#define POOL_CLEAN_USEC 100

/*
 * MAKING    its parts are asked for, or started, or its memory is being measured
 * WAITING   it can be taken
 * TAKEN     by an instance that is not recorded yet
 * ENDING    of no use; its processes end, or a thread still works for it
 */
enum pooled_state {
	POOLED_MAKING,
	POOLED_WAITING,
	POOLED_TAKEN,
	POOLED_ENDING,
	POOLED_STATE_COUNT
};
enum pooled_event { POOLED_MEASURED, POOLED_TAKE, POOLED_RETURN, POOLED_BREAK, POOLED_EVENT_COUNT };

static const enum pooled_state pooled_edges[POOLED_STATE_COUNT][POOLED_EVENT_COUNT] = {
	[POOLED_MAKING] = { POOLED_WAITING, POOLED_MAKING, POOLED_MAKING, POOLED_ENDING },
	[POOLED_WAITING] = { POOLED_WAITING, POOLED_TAKEN, POOLED_WAITING, POOLED_ENDING },
	[POOLED_TAKEN] = { POOLED_TAKEN, POOLED_TAKEN, POOLED_WAITING, POOLED_ENDING },
	[POOLED_ENDING] = { POOLED_ENDING, POOLED_ENDING, POOLED_ENDING, POOLED_ENDING },
};

struct pooled {
	struct list link;
	struct vm_pool *pool;
	struct machine *machine; /* which has it */
	enum pooled_state state;
	char id[ID_SIZE], title[ID_SIZE + 8];
	int dir_fd, cgroup_fd;
	struct instance_machine size;
	struct pool_work measuring;
	uint64_t memory; /* bytes of the node's that it takes, once that is known */
	struct loop_timer clean;
	nsec_t delay;
	bool cleans; /* that timer runs */
};

struct vm_pool {
	struct vms *vms;
	int groups_fd, dirs_fd; /* -1: not open yet */
	struct list machines;
	struct loop_timer timer;
	nsec_t retry;
	char reason[ERROR_TEXT_MAX]; /* why there are fewer than wanted; "": it is a matter of time
				      */
};

static void pooled_turn(struct pooled *w, enum pooled_event event)
{
	w->state = pooled_edges[w->state][event];
}

static void pooled_group(const struct pooled *w, char ret[ID_SIZE + 16])
{
	(void)str_printf(ret, ID_SIZE + 16, SPARE_GROUP_PREFIX "%s", w->id);
}

/* ---- its end ---- */

static void pooled_free(struct pooled *w)
{
	loop_timer_done(&w->clean);
	list_remove(&w->link);
	(void)fd_close(w->dir_fd);
	(void)fd_close(w->cgroup_fd);
	free(w);
}

static void pooled_free_all(struct machine *m)
{
	pooled_free(TAKE_PTR(m->pooled));
	machine_free(m);
}

/* -EBUSY while the kernel does not let go of it. */
static int pooled_remove_group(const struct pooled *w)
{
	char group[ID_SIZE + 16];

	pooled_group(w, group);
	return cgroup_remove(w->pool->groups_fd, group);
}

static void pooled_remove_dir(const struct pooled *w)
{
	if (w->id[0] && rootfd_remove_tree(w->pool->dirs_fd, w->id) < 0)
		log_warn("cannot remove the directory of a machine of the pool",
			 LOG_STR("id", w->id));
}

static void pooled_clean(struct pooled *w)
{
	if (w->measuring.busy ||
	    (pooled_remove_group(w) == -EBUSY && w->delay <= POOL_CLEAN_LAST)) {
		loop_timer_set(&w->clean, w->delay);
		w->delay *= 2;
		return;
	}
	pooled_remove_dir(w);
	pooled_free_all(w->machine);
}

static void pooled_on_clean(struct loop_timer *t)
{
	pooled_clean(container_of(t, struct pooled, clean));
}

/* Never within the call that has found out. */
static void pooled_gone(struct machine *m)
{
	struct pooled *w = m->pooled;

	if (w->state != POOLED_ENDING || w->cleans)
		return;
	w->cleans = true;
	loop_timer_set(&w->clean, w->delay);
}

static void pooled_end(struct machine *m)
{
	struct pooled *w = m->pooled;

	if (w->state == POOLED_ENDING)
		return;
	pooled_turn(w, POOLED_BREAK);
	if (m->awaits_bundle)
		issuer_forget(m->vms->config.issuer, m);
	m->awaits_bundle = false;
	if (m->vm)
		m->vm->driver->kill(m->vm);
	if (w->cgroup_fd >= 0)
		(void)cgroup_kill(w->cgroup_fd);
	machine_check_gone(m);
}

/* It died, or could not be made: another one may come to the same end. */
static void pooled_break(struct machine *m, const char *reason)
{
	struct vm_pool *p = m->pooled->pool;

	if (m->pooled->state == POOLED_ENDING)
		return;
	log_warn("a machine of the pool is lost", LOG_STR("id", m->pooled->id),
		 LOG_STR("reason", reason));
	(void)str_copy(p->reason, sizeof(p->reason), reason);
	pooled_end(m);
	loop_timer_set(&p->timer, p->retry);
	p->retry = MIN(p->retry * 2, VM_POOL_RETRY_LAST);
}

static bool pooled_is_ending(const struct machine *m)
{
	return m->pooled->state == POOLED_ENDING;
}

/* ---- its beginning ---- */

static struct machine_seat pooled_seat(const struct machine *m)
{
	const struct pooled *w = m->pooled;

	return (struct machine_seat){
		.id = w->id, .title = w->title, .dir_fd = w->dir_fd, .cgroup_fd = w->cgroup_fd
	};
}

static struct instance_machine *pooled_size(struct machine *m)
{
	return &m->pooled->size;
}

/* On a thread. */
static void pooled_measure(struct pool_work *work)
{
	static const char *const leaves[] = { "vmm", "gate" };
	struct pooled *w = container_of(work, struct pooled, measuring);
	struct footprint sum;

	w->memory = 0;
	for (size_t i = 0; i < ARRAY_SIZE(leaves); i++)
		if (footprint_of_group(w->cgroup_fd, leaves[i], w->size.memory, &sum) == 0)
			w->memory += sum.ram + sum.other;
}

static void pooled_on_measured(struct pool_work *work)
{
	struct pooled *w = container_of(work, struct pooled, measuring);
	struct vm_pool *p = w->pool;

	FAILPOINT_BEFORE("pool.wait");
	pooled_turn(w, POOLED_MEASURED);
	if (w->state != POOLED_WAITING)
		return;
	p->retry = VM_POOL_RETRY_FIRST;
	p->reason[0] = '\0';
	log_info("a machine waits in the pool", LOG_STR("id", w->id), LOG_INT("memory", w->memory));
	vm_pool_rest(p, 0);
	FAILPOINT_AFTER("pool.wait");
}

static void pooled_up(struct machine *m)
{
	struct pooled *w = m->pooled;

	if (w->state != POOLED_MAKING || w->measuring.busy)
		return;
	w->measuring.run = pooled_measure;
	w->measuring.done = pooled_on_measured;
	pool_submit(m->vms->config.pool, &w->measuring);
}

static const struct machine_pool_ops pooled_ops = {
	.up = pooled_up,
	.broken = pooled_break,
	.gone = pooled_gone,
	.is_ending = pooled_is_ending,
	.seat = pooled_seat,
	.size = pooled_size,
};

static int pooled_open_place(struct pooled *w, struct error *err)
{
	char group[ID_SIZE + 16];
	int r = id_new(w->id);

	if (r < 0)
		return error_set(err, r, "draw an id");
	(void)str_printf(w->title, sizeof(w->title), "pool/%s", w->id);
	if (sysio_mkdirat(w->pool->dirs_fd, w->id, 0700) < 0)
		return error_set(err, -errno, "make the directory of a machine");
	w->dir_fd = sysio_openat(w->pool->dirs_fd, w->id,
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (w->dir_fd < 0)
		return error_set(err, -errno, "open the directory of a machine");
	pooled_group(w, group);
	w->cgroup_fd = cgroup_make_inner(w->pool->groups_fd, group, err);
	return w->cgroup_fd < 0 ? w->cgroup_fd : 0;
}

static void vm_pool_make(struct vm_pool *p)
{
	struct pooled *w = calloc(1, sizeof(*w));
	struct machine *m = w ? machine_new(p->vms, NULL) : NULL;
	struct error err = ERROR_INIT;
	int r;

	if (!m) {
		free(w);
		loop_timer_set(&p->timer, p->retry);
		return;
	}
	*w = (struct pooled){
		.pool = p, .machine = m, .dir_fd = -1, .cgroup_fd = -1, .delay = POOL_CLEAN_FIRST
	};
	list_init(&w->link);
	list_add_tail(&p->machines, &w->link);
	loop_timer_init(&w->clean, p->vms->config.loop, pooled_on_clean);
	m->pooled = w;
	m->pool_ops = &pooled_ops;
	r = FAILPOINT("pool.make");
	if (r < 0)
		(void)error_set(&err, r, "make a machine of the pool");
	if (r < 0 || pooled_open_place(w, &err) < 0 || machine_begin(m, &err) < 0)
		pooled_break(m, error_text(&err));
	FAILPOINT_AFTER("pool.make");
}

/* ---- how many ---- */

static unsigned vm_pool_count(const struct vm_pool *p, enum pooled_state state)
{
	const struct pooled *w;
	unsigned n = 0;

	list_for_each (w, &p->machines, struct pooled, link)
		n += w->state == state;
	return n;
}

static bool vm_pool_is_in_the_way(const struct vm_pool *p)
{
	const struct machine *m;

	list_for_each (m, &p->vms->machines, struct machine, link)
		if (m->instance && m->instance->state == INSTANCE_SPAWNING)
			return true;
	return false;
}

/* MiB that the node can give without taking them from anybody; where it does not say: any. */
static uint64_t vm_pool_room(const struct vm_pool *p)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	const char *line;

	if (fd_read_file(p->vms->proc_fd, "meminfo", POOL_MEMINFO_MAX, &b) < 0)
		return UINT64_MAX;
	text = buf_take_str(&b);
	line = text ? strstr(text, "MemAvailable:") : NULL;
	return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) >> 10 : UINT64_MAX;
}

static bool vm_pool_has_room(struct vm_pool *p)
{
	uint64_t needed = templates_memory(p->vms->templates) + VM_OVERHEAD_MIB;
	uint64_t room = vm_pool_room(p);
	bool known = p->reason[0];

	if (room >= needed)
		return true;
	(void)str_printf(p->reason, sizeof(p->reason),
			 "the node has %" PRIu64 " MiB of memory left, and a machine may take "
			 "%" PRIu64,
			 room, needed);
	if (!known)
		log_info("no machine is made for the pool", LOG_STR("reason", p->reason));
	return false;
}

static void vm_pool_on_timer(struct loop_timer *t)
{
	struct vm_pool *p = container_of(t, struct vm_pool, timer);

	if (p->groups_fd < 0 || p->dirs_fd < 0 || !templates_memory(p->vms->templates) ||
	    vm_pool_count(p, POOLED_MAKING) ||
	    vm_pool_count(p, POOLED_WAITING) >= p->vms->config.pool_size)
		return;
	if (vm_pool_is_in_the_way(p))
		loop_timer_set(&p->timer, VM_POOL_IDLE);
	else if (!vm_pool_has_room(p))
		loop_timer_set(&p->timer, VM_POOL_RETRY_FIRST);
	else
		vm_pool_make(p);
}

void vm_pool_rest(struct vm_pool *p, nsec_t took)
{
	if (p)
		loop_timer_set(&p->timer, MAX(took, VM_POOL_IDLE));
}

void vm_pool_renew(struct vm_pool *p)
{
	struct pooled *w;

	if (!p)
		return;
	list_for_each (w, &p->machines, struct pooled, link)
		pooled_end(w->machine);
	p->retry = VM_POOL_RETRY_FIRST;
	vm_pool_rest(p, 0);
}

void vm_pool_open(struct vm_pool *p, const struct instances *all)
{
	if (!p || p->groups_fd >= 0)
		return;
	p->groups_fd = fd_copy(all->config.cgroup_fd);
	p->dirs_fd = fd_copy(all->keepers_fd);
	vm_pool_rest(p, 0);
}

/* ---- taking one ---- */

/* Its end may not have been told yet. */
static bool pooled_lives(const struct machine *m)
{
	siginfo_t si = { .si_pid = 0 };
	pid_t pid = m->vm && m->gate ? m->vm->driver->pid(m->vm) : 0;

	return pid && waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       si.si_pid == 0;
}

/* Whether its machine would be one of these. Where the template is out of date, they all go. */
static bool vm_pool_fits(struct vm_pool *p, const struct instance *i)
{
	_cleanup_(guest_set_done) struct guest_set set = GUEST_SET_INIT;
	const struct vms_config *c = &p->vms->config;
	struct vm_nic nics[MACHINE_NICS];
	const char *words[VM_WORDS_MAX + 1];
	struct instance_machine size;
	struct vm_spec spec;

	if (!instance_is_own(i) || i->choice.cold || i->volumes || i->nic.bridge[0] ||
	    guest_set_open(&set, c->root_fd, c->guest, NULL) < 0 ||
	    vm_size_plan(c, &set.info.desc, &i->size,
			 (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L), &size, NULL) < 0)
		return false;
	(void)vms_plain_spec(p->vms, &set, words, &spec);
	spec.memory_mib = (unsigned)(size.memory >> 20);
	spec.cpus = size.cpus;
	vms_plain_nics(NULL, nics);
	spec.nics = nics;
	spec.n_nics = ARRAY_SIZE(nics);
	spec.n_ports = 1;
	spec.console_fd = 0;
	return templates_use(p->vms->templates, &spec);
}

static struct pooled *vm_pool_first(struct vm_pool *p)
{
	struct pooled *w;

	list_for_each (w, &p->machines, struct pooled, link)
		if (w->state == POOLED_WAITING && pooled_lives(w->machine))
			return w;
	return NULL;
}

bool vm_pool_take(struct vm_pool *p, struct instance *i)
{
	struct pooled *w;

	if (!p || !vm_pool_fits(p, i))
		return false;
	w = vm_pool_first(p);
	if (!w || str_printf(i->cgroup, sizeof(i->cgroup), "%s/" SPARE_GROUP_PREFIX "%s",
			     i->all->config.cgroup, w->id) < 0)
		return false;
	FAILPOINT_BEFORE("pool.take");
	(void)str_copy(i->id, sizeof(i->id), w->id);
	i->own = w->machine;
	pooled_turn(w, POOLED_TAKE);
	FAILPOINT_AFTER("pool.take");
	return true;
}

void vm_pool_return(struct instance *i)
{
	struct machine *m = i->own;

	if (!m)
		return;
	pooled_turn(m->pooled, POOLED_RETURN);
	i->own = NULL;
	i->cgroup[0] = '\0';
}

int vm_pool_give(struct instance *i, struct error *err)
{
	struct machine *m = i->own;
	struct pooled *w = TAKE_PTR(m->pooled);
	struct vm_pool *p = w->pool;
	int r;

	assert(w->state == POOLED_TAKEN);
	m->instance = i;
	m->taken = true;
	i->machine = w->size;
	i->dir_fd = TAKE_FD(w->dir_fd);
	i->cgroup_fd = TAKE_FD(w->cgroup_fd);
	pooled_free(w);
	machine_beat_start(m);
	r = FAILPOINT("pool.give");
	if (r < 0)
		(void)error_set(err, r, "take a machine of the pool");
	else
		r = machine_take_process(m, err);
	if (r == 0)
		r = m->vm->driver->resume(m->vm, err);
	if (r == 0)
		r = machine_tell(m, err);
	vm_pool_rest(p, 0);
	FAILPOINT_AFTER("pool.give");
	return r < 0 && machine_again(m, error_text(err)) ? 1 : r;
}

/* ---- the whole ---- */

const char *vm_pool_id(const struct vm_pool *p, size_t n)
{
	const struct pooled *w;

	if (p)
		list_for_each (w, &p->machines, struct pooled, link)
			if (n-- == 0)
				return w->id;
	return NULL;
}

void vm_pool_look(const struct vm_pool *p, struct provider_warm *ret)
{
	const struct pooled *w;

	*ret = (struct provider_warm){ .wanted = 0 };
	if (!p)
		return;
	ret->wanted = p->vms->config.pool_size;
	list_for_each (w, &p->machines, struct pooled, link) {
		ret->waiting += w->state == POOLED_WAITING;
		ret->memory += w->state == POOLED_WAITING ? w->memory : 0;
	}
	if (ret->waiting >= ret->wanted)
		return;
	if (!templates_memory(p->vms->templates))
		(void)str_copy(ret->reason, sizeof(ret->reason),
			       "there is no template of a guest yet");
	else
		(void)str_copy(ret->reason, sizeof(ret->reason), p->reason);
}

int vm_pool_new(struct vm_pool **ret, struct vms *v, struct error *err)
{
	struct vm_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return error_set(err, -ENOMEM, "the pool of machines");
	p->vms = v;
	p->groups_fd = p->dirs_fd = -1;
	p->retry = VM_POOL_RETRY_FIRST;
	list_init(&p->machines);
	loop_timer_init(&p->timer, v->config.loop, vm_pool_on_timer);
	*ret = p;
	return 0;
}

struct vm_pool *vm_pool_free(struct vm_pool *p)
{
	struct pooled *w;

	if (!p)
		return NULL;
	loop_timer_done(&p->timer);
	list_for_each (w, &p->machines, struct pooled, link)
		pooled_end(w->machine);
	list_for_each (w, &p->machines, struct pooled, link) {
		/* Killed all: a matter of some milliseconds. */
		for (int n = 0; n < POOL_CLEAN_TRIES && pooled_remove_group(w) == -EBUSY; n++)
			(void)usleep(POOL_CLEAN_USEC);
		pooled_remove_dir(w);
		pooled_free_all(w->machine);
	}
	(void)fd_close(p->groups_fd);
	(void)fd_close(p->dirs_fd);
	free(p);
	return NULL;
}
