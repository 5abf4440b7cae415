/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/networks/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/memory/hash.h"
#include "base/memory/map.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "isolate/cgroup/process.h"
#include "isolate/mount/hosts_block.h"
#include "isolate/mount/root_view.h"
#include "loop/pool.h"
#include "network/attachment.h"
#include "network/model.h"

/* Containers of one turn of the thread. */
#define NAMES_BATCH 64
/* Between two batches that nobody waits for the thread rests so many times as long as one took, so
 * that the start of a pod does not lose a processor to the files of all others; and at most for
 * NAMES_REST_MOST, since a change is to be seen within a second. */
#define NAMES_REST 9
#define NAMES_REST_MOST (100 * NSEC_PER_MSEC)

/* The block of one network, for all that are on it. */
struct names_text {
	struct list link;
	const struct workload *of;
	char *text;
	uint64_t sum;
};

struct names_target {
	struct isolate_ids ids; /* of its user namespace */
	char id[ID_SIZE];
	pid_t pid;
	char *group; /* whole path of its cgroup */
	const struct names_text *text;
	int r;
};

struct names_job {
	struct pool_work work;
	struct names *names;
	struct list texts; /* struct names_text */
	struct names_target targets[NAMES_BATCH];
	size_t n_targets;
	nsec_t began; /* clock_mono() */
	bool is_full; /* more of those that have not failed may be left */
};

/* ---- the block ---- */

static bool names_has_one(const struct workload *w)
{
	static const char *const taken[] = { "localhost", "ip6-localhost", "ip6-loopback" };

	if (w->lasts || workload_has_ended(w))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (str_eq(name_last(w->path), taken[i]))
			return false;
	return true;
}

/* Of a list, the first that is there for good. */
static const struct attachment *names_first(const struct attachment *a)
{
	while (a && a->is_half)
		a = a->next;
	return a;
}

/* Plugins have a network for each of those who are on it, and one name for all. */
static bool names_are_together(const struct attachment *a, const struct attachment *b)
{
	return a->network == b->network || (a->network->plugins && b->network->plugins &&
					    str_eq(a->network->name, b->network->name));
}

/* Whether both are on the same networks, in the same order. */
static bool names_are_alike(const struct workload *a, const struct workload *b)
{
	const struct attachment *x = names_first(a->attachment);
	const struct attachment *y = names_first(b->attachment);

	while (x && y && names_are_together(x, y)) {
		x = names_first(x->next);
		y = names_first(y->next);
	}
	return !x && !y;
}

static int names_add_address(struct buf *b, const struct workload *w, const struct attachment *a,
			     const struct prefix *address)
{
	const char *name = name_last(w->path);
	char text[PREFIX_TEXT_MAX];

	if (!address->family)
		return 0;
	prefix_print_address(address, text);
	return buf_addf(b, "%s\t%s %s.%s\n", text, name, name, a->network->name);
}

static int names_add(struct buf *b, const struct workload *w, const struct attachment *a)
{
	int r = names_add_address(b, w, a, &a->ip4);

	return r < 0 ? r : names_add_address(b, w, a, &a->ip6);
}

/* Those who are on one network. */
static int names_add_network(struct buf *b, const struct list *workloads,
			     const struct attachment *of)
{
	const struct workload *w;
	int r = 0;

	list_for_each (w, workloads, struct workload, link) {
		const struct attachment *a = names_first(w->attachment);

		while (a && !names_are_together(a, of))
			a = names_first(a->next);
		if (a && r == 0 && names_has_one(w))
			r = names_add(b, w, a);
	}
	return r;
}

static int names_add_all(struct buf *b, const struct list *workloads, const struct workload *of)
{
	_cleanup_(buf_done) struct buf networks = BUF_INIT;
	const struct attachment *first = names_first(of->attachment), *a;
	int r = first ? 0 : buf_add_str(&networks, "none");

	for (a = first; a && r == 0; a = names_first(a->next))
		r = buf_addf(&networks, "%s%s", a == first ? "" : ", ", a->network->name);
	if (r == 0)
		r = buf_add(&networks, "", 1);
	if (r == 0)
		r = hosts_block_begin(b, (const char *)buf_data(&networks));
	for (a = first; a && r == 0; a = names_first(a->next))
		r = names_add_network(b, workloads, a);
	return r < 0 ? r : hosts_block_end(b);
}

int names_block(const struct list *workloads, const struct workload *w, struct buf *b,
		uint64_t *ret)
{
	size_t before = b->len;
	int r;

	*ret = 0;
	if (!w->has_names || w->lasts)
		return 0;
	r = names_add_all(b, workloads, w);
	if (r == 0)
		*ret = hash_add(HASH_INIT, buf_data(b) + before, b->len - before);
	return r;
}

/* ---- on the thread ---- */

static int names_put_as_is(const struct names_target *t)
{
	_cleanup_fd_ int proc_fd = process_open(t->pid, t->group);
	_cleanup_fd_ int root_fd = -1, view_fd = -1;
	int r;

	if (proc_fd < 0)
		return proc_fd;
	root_fd = sysio_openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (root_fd < 0)
		return -errno;
	r = hosts_block_put(root_fd, t->text->text);
	if (r != -EROFS)
		return r;
	view_fd = root_view_open(proc_fd);
	return view_fd < 0 ? view_fd : hosts_block_put(view_fd, t->text->text);
}

/* The new file belongs to the root of the container. */
static int names_put(const struct names_target *t)
{
	int r = isolate_ids_enter(&t->ids, NULL);

	if (r < 0)
		return r;
	r = names_put_as_is(t);
	isolate_ids_leave(&t->ids);
	return r;
}

static void names_run(struct pool_work *work)
{
	struct names_job *j = container_of(work, struct names_job, work);

	FAILPOINT_BEFORE("names.write");
	for (size_t i = 0; i < j->n_targets; i++)
		j->targets[i].r = names_put(&j->targets[i]);
}

/* ---- what is to be written ---- */

static struct names_job *names_job_free(struct names_job *j)
{
	struct names_text *t;

	if (!j)
		return NULL;
	for (size_t i = 0; i < j->n_targets; i++)
		free(j->targets[i].group);
	list_for_each (t, &j->texts, struct names_text, link) {
		free(t->text);
		free(t);
	}
	free(j);
	return NULL;
}

static const struct names_text *names_text_of(struct names_job *j, const struct workload *w)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct names_text *t;

	list_for_each (t, &j->texts, struct names_text, link)
		if (names_are_alike(t->of, w))
			return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->text = names_block(j->names->workloads, w, &b, &t->sum) < 0 ? NULL : buf_take_str(&b);
	if (!t->text) {
		free(t);
		return NULL;
	}
	t->of = w;
	list_init(&t->link);
	list_add_tail(&j->texts, &t->link);
	return t;
}

/* 0; -ENOMEM. */
static int names_add_target(struct names_job *j, struct pod_container *c)
{
	const struct names_text *text = names_text_of(j, c->workload);
	struct names_target *t = &j->targets[j->n_targets];

	if (!text)
		return -ENOMEM;
	if (text->sum == c->names)
		return 0;
	t->pid = pod_container_pid(c);
	t->text = text;
	t->ids = c->workload->ids;
	t->group = t->pid > 0 ? pod_container_whole_group(c) : NULL;
	(void)str_copy(t->id, sizeof(t->id), c->id);
	j->n_targets += t->group != NULL;
	return 0;
}

static bool names_are_wanted(const struct workload *w)
{
	return (w->kind == WORKLOAD_POD || w->kind == WORKLOAD_CELL) && w->has_names && !w->lasts &&
	       !workload_has_ended(w) && w->instance && !w->instance->ended;
}

static bool names_have_machine(const struct workload *w)
{
	return names_are_wanted(w) && instance_is_remote(w->instance);
}

/* Those that could not be written before, or the others. */
static int names_collect_some(struct names_job *j, bool have_failed)
{
	struct workload *w;
	int r = 0;

	list_for_each (w, j->names->workloads, struct workload, link) {
		if (!names_are_wanted(w) || instance_is_remote(w->instance))
			continue;
		for (size_t i = 0; i < w->n_containers && r == 0; i++) {
			struct pod_container *c = w->containers[i];

			if (c->status.state == CONTAINER_RUNNING && c->has_rootfs &&
			    c->has_old_names == have_failed && j->n_targets < NAMES_BATCH)
				r = names_add_target(j, c);
		}
	}
	return r;
}

/* As many as one turn of the thread takes: no failure is in the way of others. -ENOMEM. */
static int names_collect(struct names_job *j)
{
	int r = names_collect_some(j, false);

	j->is_full = j->n_targets == NAMES_BATCH;
	return r < 0 ? r : names_collect_some(j, true);
}

/* ---- machines ---- */

/* What a keeper was asked to write. It outlives `names` where an answer is still to come. */
struct names_asking {
	struct list link;    /* names.asked */
	struct names *names; /* NULL: nobody wants to know any more */
	char id[ID_SIZE];
	uint64_t sum;
};

static void names_set(struct names *n, nsec_t delay)
{
	nsec_t due = clock_mono() + delay;

	if (n->due && n->due <= due)
		return;
	n->due = due;
	loop_timer_set(&n->timer, delay);
}

static void names_take_told(const struct names_asking *a, const struct error *err)
{
	struct pod_container *c = a->names ? map_get(a->names->containers, a->id) : NULL;

	if (!c)
		return;
	/* A root that is read-only stays so. */
	if (!err || err->kind == ERROR_PRECONDITION || err->kind == ERROR_NOT_FOUND) {
		c->names = a->sum;
		c->has_old_names = err != NULL;
		/* What has come or gone meanwhile. */
		names_set(a->names, NAMES_SETTLE);
		return;
	}
	if (!c->has_old_names)
		log_warn("a container does not see who is on its network",
			 LOG_STR("container", c->id), LOG_ERR(err));
	c->has_old_names = true;
	names_set(a->names, NAMES_AGAIN);
}

static void names_on_told(void *userdata, const struct error *err)
{
	struct names_asking *a = userdata;

	list_remove(&a->link);
	names_take_told(a, err);
	free(a);
}

static bool names_are_asked(const struct names *n, const struct pod_container *c)
{
	const struct names_asking *a;

	list_for_each (a, &n->asked, struct names_asking, link)
		if (str_eq(a->id, c->id))
			return true;
	return false;
}

/* -ENOMEM. */
static int names_tell(struct names *n, struct pod_container *c, const char *block, uint64_t sum)
{
	struct peer *peer = workload_peer(c->workload);
	struct names_asking *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->names = n;
	a->sum = sum;
	(void)str_copy(a->id, sizeof(a->id), c->id);
	list_init(&a->link);
	list_add_tail(&n->asked, &a->link);
	peer->ops->put_hosts(peer, c->id, block, names_on_told, a);
	return 0;
}

static int names_tell_workload(struct names *n, const struct workload *w)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	uint64_t sum;
	int r = names_block(n->workloads, w, &b, &sum);

	if (r == 0)
		r = buf_add(&b, "", 1);
	for (size_t i = 0; i < w->n_containers && r == 0; i++) {
		struct pod_container *c = w->containers[i];

		if (c->status.state == CONTAINER_RUNNING && c->names != sum &&
		    !names_are_asked(n, c))
			r = names_tell(n, c, (const char *)buf_data(&b), sum);
	}
	return r;
}

/* Their keepers write, each as soon as it can. -ENOMEM. */
static int names_tell_machines(struct names *n)
{
	struct workload *w;
	int r = 0;

	list_for_each (w, n->workloads, struct workload, link) {
		struct peer *peer = names_have_machine(w) ? workload_peer(w) : NULL;

		if (peer && peer->ops->takes_hosts && peer->ops->takes_hosts(peer) && r == 0)
			r = names_tell_workload(n, w);
	}
	return r;
}

/* ---- the turns ---- */

/* Whether it is to be tried again. What has ended is nobody's affair any more. */
static bool names_take(struct names *n, const struct names_target *t)
{
	struct pod_container *c = map_get(n->containers, t->id);
	struct error err = ERROR_INIT;
	bool again;

	if (!c || t->r == -ESRCH || t->r == -ENOENT)
		return false;
	again = t->r < 0;
	if (!again)
		c->names = t->text->sum;
	else if (!c->has_old_names) {
		(void)error_set(&err, t->r, "write the names of its network to /etc/hosts");
		log_warn("a container does not see who is on its network",
			 LOG_STR("container", c->id), LOG_ERR(&err));
	}
	c->has_old_names = again;
	return again;
}

/* Those whose turn is over; all: there is none. */
static void names_end_waits(struct names *n, bool all)
{
	struct names_wait *wait;
	bool more = false;

	list_for_each (wait, &n->waits, struct names_wait, link) {
		if (!wait->begun && !all) {
			more = true;
			continue;
		}
		list_remove(&wait->link);
		wait->done(wait->userdata);
	}
	if (more)
		names_set(n, 0);
}

static void names_on_done(struct pool_work *work)
{
	struct names_job *j = container_of(work, struct names_job, work);
	struct names *n = j->names;
	nsec_t took = clock_mono() - j->began;
	bool again = false, more = j->is_full;

	n->job = NULL;
	/* The thread has been in other namespaces. */
	n->pool = pool_free(n->pool);
	for (size_t i = 0; i < j->n_targets; i++)
		again = names_take(n, &j->targets[i]) || again;
	(void)names_job_free(j);
	if (more) {
		names_set(n, list_empty(&n->waits) ? MIN(NAMES_REST * took, NAMES_REST_MOST) : 0);
		return;
	}
	if (again)
		names_set(n, NAMES_AGAIN);
	names_end_waits(n, false);
}

static int names_begin(struct names *n)
{
	struct names_job *j = calloc(1, sizeof(*j));
	struct names_wait *wait;
	int r;

	if (!j)
		return -ENOMEM;
	list_init(&j->texts);
	j->names = n;
	j->work = (struct pool_work){ .run = names_run, .done = names_on_done };
	r = names_collect(j);
	if (r == 0 && j->n_targets)
		r = pool_new(&n->pool, n->loop, 1);
	if (r < 0 || j->n_targets == 0) {
		(void)names_job_free(j);
		return r;
	}
	n->job = j;
	j->began = clock_mono();
	list_for_each (wait, &n->waits, struct names_wait, link)
		wait->begun = true;
	pool_submit(n->pool, &j->work);
	return 0;
}

static void names_on_timer(struct loop_timer *t)
{
	struct names *n = container_of(t, struct names, timer);
	int r;

	n->due = 0;
	/* Once more when that is done. */
	if (n->job) {
		names_set(n, NAMES_SETTLE);
		return;
	}
	r = names_begin(n);
	if (r == 0)
		r = names_tell_machines(n);
	if (r < 0)
		names_set(n, NAMES_AGAIN);
	/* Nothing is to be written, or nothing can be for now. */
	if (!n->job)
		names_end_waits(n, true);
}

void names_look(struct names *n)
{
	names_set(n, NAMES_SETTLE);
}

void names_await(struct names *n, struct names_wait *wait)
{
	wait->begun = false;
	list_init(&wait->link);
	list_add_tail(&n->waits, &wait->link);
	/* Behind what is being written, which may be older. */
	if (!n->job)
		names_set(n, 0);
}

void names_forget(struct names_wait *wait)
{
	list_remove(&wait->link);
}

void names_init(struct names *n, struct loop *l, const struct list *workloads,
		const struct map *containers)
{
	*n = (struct names){ .loop = l, .workloads = workloads, .containers = containers };
	list_init(&n->waits);
	list_init(&n->asked);
	loop_timer_init(&n->timer, l, names_on_timer);
}

void names_done(struct names *n)
{
	struct names_asking *a;
	struct pool *pool;

	/* Nothing is set any more. */
	loop_timer_done(&n->timer);
	n->due = 1;
	/* What has not begun is dropped without its done(). */
	pool = TAKE_PTR(n->pool);
	(void)pool_free(pool);
	n->job = names_job_free(n->job);
	list_for_each (a, &n->asked, struct names_asking, link) {
		list_remove(&a->link);
		a->names = NULL;
	}
}
