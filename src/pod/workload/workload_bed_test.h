/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_WORKLOAD_BED_TEST_H
#define NACRE_POD_WORKLOAD_BED_TEST_H

/*
 * A node for the tests of workloads: images, keepers and the kernel are fakes; store, instances and
 * workloads are real. Included by each of these tests once.
 */

/* No test uses all of it. */
#pragma GCC diagnostic ignored "-Wunused-function"

#include "pod/log/log_pull.h"
#include "pod/networks/names.h"
#include "pod/storage/mirror.h"
#include "pod/workload/hosted.h"
#include "pod/workload/workload.h"

#include "image/image.h"
#include "instance/fake_test.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/limits_words.h"
#include "isolate/mount/idmap.h"
#include "isolate/plan/plan.h"
#include "isolate/spawn/spawn.h"
#include "pod/networks/etc.h"
#include "pod/workload/events.h"
#include "pod/workload/failure.h"
#include "pod/workload/follow.h"
#include "store/store.h"
#include "unit.h"

/* ---- images ---- */

static char stop_signal[] = "SIGINT";
static char program[] = "/bin/app";
static char *entrypoint[] = { program, NULL };
static struct image image = { .id = "sha256:1",
			      .config = { .entrypoint = entrypoint, .stop_signal = stop_signal } };
static unsigned n_rootfs; /* that are there */
static int fail_rootfs;   /* > 0: the n-th from now fails */
static bool rootfs_is_awaited;
static unsigned n_rootfs_awaited; /* that are waited for; to be called for each: */
static image_rootfs_fn rootfs_done;

struct image *image_store_find(struct image_store *s, const char *reference, struct error *err)
{
	if (str_eq(reference, "app") || str_eq(reference, image.id))
		return &image;
	(void)error_refuse(err, ERROR_NOT_FOUND, "there is no image %s", reference);
	return NULL;
}

bool isolate_dev_has_name(const char *name)
{
	return str_eq(name, "null");
}

int isolate_ns_open_own(enum isolate_ns kind)
{
	(void)kind;
	return -ENOSYS;
}

int log_pull_new(struct log_pull **ret, const struct log_pull_config *config)
{
	return -ENOSYS;
}

int log_pull_change(struct log_pull *p, int fd,
		    void (*done)(void *userdata, const struct error *err), void *userdata)
{
	return -EPIPE;
}

struct log_pull *log_pull_free(struct log_pull *p)
{
	return NULL;
}

int image_erofs_open(struct image_store *s, struct image *i, image_erofs_fn done, void *userdata,
		     struct error *err)
{
	return error_set(err, -ENOSYS, "no bed of this test has another kernel");
}

int image_rootfs_await(struct image_store *s, struct image *i, image_rootfs_fn done, void *userdata,
		       struct error *err)
{
	if (!rootfs_is_awaited)
		return 0;
	n_rootfs_awaited++;
	rootfs_done = done;
	return 1;
}

void image_rootfs_forget(struct image_store *s, void *userdata)
{
	n_rootfs_awaited = 0;
}

void image_ballast_spend(const struct image_store *s)
{
	(void)s;
}

int image_rootfs_make(struct image_store *s, struct image *i, const char *container_id,
		      const struct image_limit *limit, const struct isolate_ids *ids,
		      struct error *err)
{
	if (fail_rootfs > 0 && --fail_rootfs == 0)
		return error_set(err, -ENOSPC, "make a root file system");
	i->n_users++;
	n_rootfs++;
	return eventfd(0, EFD_CLOEXEC);
}

/* Nothing is mapped. */
int isolate_users_new(const struct isolate_ids *ids, const bool kinds[ISOLATE_NS_COUNT],
		      int ret_fd[ISOLATE_NS_COUNT], struct error *err)
{
	(void)ids;
	(void)kinds;
	(void)ret_fd;
	return error_set(err, -ENOSYS, "make a user namespace");
}

int isolate_idmap_apply(int mount_fd, int userns_fd, bool below, struct error *err)
{
	(void)mount_fd;
	(void)userns_fd;
	(void)below;
	return error_set(err, -ENOSYS, "map ids");
}

static unsigned n_rootfs_again; /* that were run again */

int image_rootfs_again(struct image_store *s, struct image *i, const char *container_id,
		       const struct isolate_ids *ids, struct error *err)
{
	if (fail_rootfs > 0 && --fail_rootfs == 0)
		return error_refuse(err, ERROR_PRECONDITION, "its files are gone");
	n_rootfs_again++;
	return eventfd(0, EFD_CLOEXEC);
}

/* No volume is given as files. */
void mirrors_init(struct mirrors *of, struct loop *l, const struct volume_guard *guard)
{
	*of = (struct mirrors){ .loop = l };
}

void mirrors_done(struct mirrors *of)
{
	CHECK(of->loop != NULL);
}

int mirror_new(struct mirror **ret, struct mirrors *of, const struct mirror_spec *spec)
{
	return -ENOSYS;
}

void mirror_lose_peer(struct mirror *m)
{
	CHECK(m == NULL);
}

struct mirror *mirror_free(struct mirror *m)
{
	CHECK(m == NULL);
	return NULL;
}

/* No bed has machines. */
void hosted_leave(struct workload *w)
{
	CHECK(w->kind != WORKLOAD_VM);
}

int hosted_start(struct workload *w, const struct hosted_ops *ops, struct error *err)
{
	return error_set(err, -ENOSYS, "a machine");
}

int hosted_adopt(struct workload *w, const struct hosted_ops *ops, struct error *err)
{
	return error_set(err, -ENOSYS, "a machine");
}

void hosted_end(struct workload *w, bool kill)
{
	CHECK(w->kind != WORKLOAD_VM);
}

int hosted_take_down(struct workload *w, const struct hosted_ops *ops)
{
	return 0;
}

void hosted_sweep(struct workloads *of)
{
	(void)of;
}

static bool refuse_limits;

int limits_words_apply(int cgroup_fd, char *const *words, struct error *err)
{
	(void)words;
	CHECK(cgroup_fd >= 0);
	return refuse_limits ? error_field(err, ERROR_PRECONDITION, "cpu.max", "not here") : 0;
}

int limits_words_check(char *const *words, struct error *err)
{
	return strv_len(words) > 3 ? error_field(err, ERROR_INVALID, "limits", "too many") : 0;
}

int cgroup_controller_of(const char *name)
{
	return str_has_prefix(name, "cpu.") ? CGROUP_CPU : -ENOENT;
}

/* Nobody is on a network. */
void names_init(struct names *n, struct loop *l, const struct list *of,
		const struct map *containers)
{
	n->loop = l;
}

void names_done(struct names *n)
{
	CHECK(n->loop != NULL);
}

void names_await(struct names *n, struct names_wait *wait)
{
	CHECK(n->loop != NULL && wait->done != NULL);
}

void names_look(struct names *n)
{
	CHECK(n->loop != NULL);
}

int etc_make_for(struct etc *etc, const struct workload *w, struct error *err)
{
	return 0;
}

void etc_done(struct etc *etc)
{
}

int etc_fill(int root_fd, const struct etc *etc, struct error *err)
{
	return 0;
}

int image_rootfs_open_changes(struct image_store *s, const char *container_id, struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION, "there is nothing here");
}

int image_view_open(struct image_store *s, const struct image *i, const struct isolate_ids *ids,
		    struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION, "there is nothing here");
}

int image_mount_open(struct image_store *s, const struct image *i, const struct isolate_ids *ids,
		     const char *sub_path, bool no_exec, struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION, "there is nothing here");
}

int image_rootfs_open(struct image_store *s, const struct image *i, const char *container_id,
		      struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION, "its files are gone");
}

void image_rootfs_remove(struct image_store *s, struct image *i, const char *container_id)
{
	CHECK(i == &image);
	i->n_users--;
	n_rootfs--;
}

void image_rootfs_adopt(struct image_store *s, struct image *i, const char *container_id)
{
	i->n_users++;
	n_rootfs++;
}

/* ---- a node ---- */

static struct workloads *all;
static struct run_store *store;
static struct events events;
static struct event_listener listener;
static char seen[2048]; /* events, in order */
static int logs_fd = -1;
static unsigned n_fds; /* of this process, with the keeper of the node */

static unsigned count_fds(void)
{
	_cleanup_strv_ char **names = NULL;
	_cleanup_fd_ int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK_INT(fd_list_dir(fd, &names), 0);
	return (unsigned)strv_len(names);
}

static void on_event(struct event_listener *l, const struct event *e)
{
	size_t n = strlen(seen);

	(void)str_printf(seen + n, sizeof(seen) - n, "%s=%s ", e->name, e->state);
}

static int save(void *userdata, const struct instance *i, struct error *err)
{
	struct run_instance r = { .id = i->id,
				  .path = i->path,
				  .kind = "cell",
				  .state = (int)i->state,
				  .state_word = instance_state_word(i->state),
				  .pid = i->pid,
				  .start_time = i->start_time,
				  .cgroup = i->cgroup,
				  .owner = i->owner,
				  .reason = i->reason,
				  .created_at = i->created_at };

	return run_store_put_instance(store, &r, err);
}

static void forget(void *userdata, const struct instance *i)
{
	CHECK_INT(run_store_drop_instance(store, i->id, NULL), 0);
}

static void on_state(void *userdata, struct instance *i)
{
	if (all)
		workloads_on_instance(all, i);
}

static void on_container(void *userdata, struct instance *i, const struct container_view *view)
{
	workloads_on_container(all, i, view);
}

static void on_synced(void *userdata, struct instance *i)
{
	workloads_on_synced(all, i);
}

static int adopt(void *data, const struct run_instance *r)
{
	struct instance_record record = { .id = r->id,
					  .path = r->path,
					  .owner = r->owner,
					  .reason = r->reason,
					  .cgroup = r->cgroup,
					  .state = r->state,
					  .created_at = r->created_at,
					  .pid = (pid_t)r->pid,
					  .start_time = r->start_time };

	return instance_adopt(fake.all, &record, NULL);
}

static struct instance *node(void)
{
	return instances_find(fake.all, "");
}

static void synced(struct instance *i)
{
	struct fake_peer *f = fake_of(i->peer);

	f->events->on_synced(f->userdata);
	fake_turns();
}

/* The callback that restarts a workload whose policy asks for it. */
static void (*restart_asked)(void *userdata, struct workload *w);

static void open_daemon(void)
{
	struct instances_config config = fake_config();
	struct workloads_config pods = { .loop = fake.loop, .events = &events, .logs_fd = logs_fd };

	config.save = save;
	config.forget = forget;
	config.on_state = on_state;
	config.on_container = on_container;
	config.on_synced = on_synced;
	CHECK_INT(run_store_open(&store, fake.dir_fd, "run.db", NULL), 0);
	CHECK_INT(instances_new(&fake.all, &config, NULL), 0);
	CHECK_INT(run_store_each_instance(store, adopt, NULL, NULL), 0);
	pods.store = store;
	pods.restart = restart_asked;
	pods.instances = fake.all;
	CHECK_INT(workloads_new(&all, &pods), 0);
	CHECK_INT(workloads_adopt(all, NULL), 0);
}

static void close_daemon(void)
{
	all = workloads_free(all);
	fake.all = instances_free(fake.all);
	store = run_store_close(store);
	image.n_users = 0;
	n_rootfs = 0;
}

static void begin(void)
{
	struct error err = ERROR_INIT;

	fake_begin();
	logs_fd = cgroup_make(fake.dir_fd, "logs", &err);
	CHECK_INT(events_init(&events), 0);
	listener.fn = on_event;
	events_add(&events, &listener);
	open_daemon();
	CHECK_INT(instances_open_node(fake.all, &err), 0);
	fake_yes(node(), FAKE_OPEN);
	synced(node());
	workloads_resume(all);
	seen[0] = '\0';
	n_fds = count_fds();
}

static void finish(void)
{
	close_daemon();
	events_remove(&listener);
	events_done(&events);
	logs_fd = fd_close(logs_fd);
	fake_end_all();
}

/* ---- what is run, and who waits ---- */

struct told {
	unsigned n;
	bool removed;
	enum workload_state state;
	int code;
	char reason[WORKLOAD_REASON_MAX];
	char field[ERROR_FIELD_MAX];
	struct error failure; /* of one that is FAILED */
};

static void told_by(void *userdata, struct workload *w, const struct error *err)
{
	struct told *t = userdata;

	t->n++;
	t->removed = w == NULL;
	t->code = err ? err->code : 0;
	(void)str_copy(t->field, sizeof(t->field), err ? err->field : "");
	if (w) {
		t->state = w->state;
		(void)str_copy(t->reason, sizeof(t->reason), w->reason);
		(void)failure_tell(w, &t->failure);
	}
}

/* Further members of the specification that run() uses. */
static struct workload_spec run_more;

static int run(enum workload_kind kind, const char *name, size_t n, struct told *told,
	       struct workload **ret, struct error *err)
{
	char *const words[] = { program, NULL };
	struct pod_container_spec c[] = {
		{ .name = "one", .image = kind == WORKLOAD_EXECUTABLE ? NULL : "app" },
		{ .name = "two", .image = kind == WORKLOAD_EXECUTABLE ? NULL : "app" },
	};
	struct workload_spec spec = run_more;

	spec.kind = kind;
	spec.name = name;
	spec.network = "own";
	spec.containers = c;
	spec.n_containers = n;
	c[0].command = words;
	return workload_run(all, &spec, told ? told_by : NULL, told, ret, err);
}

static struct workload *run_well(enum workload_kind kind, const char *name, size_t n,
				 struct told *told)
{
	struct error err = ERROR_INIT;
	struct workload *w = NULL;

	CHECK_INT(run(kind, name, n, told, &w, &err), 0);
	CHECK_STR(err.text, "");
	return w;
}

static struct container_view view_of(const struct workload *w, size_t n, enum container_state state)
{
	const struct pod_container *c = w->containers[n];
	struct container_view view = { .id = c->id, .cell = name_last(w->path), .name = c->name };

	view.status.state = state;
	view.status.pid = state == CONTAINER_RUNNING ? 5 : 0;
	view.status.started_at = state == CONTAINER_FAILED ? 0 : 1;
	view.status.exit_code = state == CONTAINER_FAILED ? 127 : 0;
	(void)str_copy(view.status.reason, sizeof(view.status.reason),
		       state == CONTAINER_FAILED ? "no such program" : "");
	return view;
}

/* The keeper answers the oldest Start, for container n of w. */
static void start_answered(struct workload *w, size_t n, enum container_state state)
{
	struct fake_call *c = fake_asked(w->instance, FAKE_START), call;
	struct container_view view = view_of(w, n, state);

	CHECK(c != NULL);
	if (!c)
		return;
	CHECK_STR(c->name, w->containers[n]->id);
	call = *c;
	fake_call_free(c);
	call.started(call.userdata, &view, NULL);
	fake_turns();
}

static void tell(struct workload *w, size_t n, enum container_state state)
{
	struct fake_peer *f = fake_of(w->instance->peer);
	struct container_view view = view_of(w, n, state);

	f->events->on_container(f->userdata, &view);
	fake_turns();
}

static struct workload *running_cell(const char *name)
{
	struct workload *w = run_well(WORKLOAD_CELL, name, 1, NULL);

	fake_turns();
	start_answered(w, 0, CONTAINER_RUNNING);
	CHECK_INT(w->state, WORKLOAD_RUNNING);
	return w;
}

static struct workload *running_pod(const char *name)
{
	struct workload *w = run_well(WORKLOAD_POD, name, 1, NULL);

	fake_yes(w->instance, FAKE_OPEN);
	synced(w->instance);
	start_answered(w, 0, CONTAINER_RUNNING);
	CHECK_INT(w->state, WORKLOAD_RUNNING);
	return w;
}

/* Nothing of any workload is left, in memory, files or descriptors. */
static void check_nothing_left(void)
{
	_cleanup_strv_ char **logs = NULL;

	fake_turns();
	CHECK(list_empty(workloads_list(all)));
	CHECK_INT(image.n_users, 0);
	CHECK_INT(n_rootfs, 0);
	CHECK_INT(fd_list_dir(logs_fd, &logs), 0);
	CHECK_INT(strv_len(logs), 0);
	/* Each keeper that was made for a pod is still held by the fake. */
	CHECK_INT(count_fds(), n_fds + (unsigned)fake.n_keepers - 1);
}

static void remove_well(struct workload *w)
{
	struct told told = { .n = 0 };
	struct instance *i = w->kind == WORKLOAD_POD ? NULL : w->instance;

	CHECK_INT(workload_remove(w, true, told_by, &told, NULL), 0);
	fake_turns();
	if (i && fake_asked(i, FAKE_REMOVE_CELL))
		fake_yes(i, FAKE_REMOVE_CELL);
	fake_turns();
	CHECK_INT(told.n, 1);
	CHECK(told.removed);
}

#endif
