/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_FAKE_TEST_H
#define NACRE_INSTANCE_FAKE_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/process/build_id.h"
#include "base/text/str.h"
#include "instance/instance.h"
#include "instance/spawn.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/cgroup_name.h"
#include "isolate/cgroup/cgroup_path.h"
#include "scratch.h"

/*
 * The fakes for tests of this floor: instances whose keepers are processes that sleep, whose
 * cgroups are plain directories, and whose peers record what they are asked and answer when told.
 * To be included by one file of a test, which is linked with instance_fake_dep (meson.build):
 * timers run fifty times as fast, and calloc() fails when told.
 */

enum fake_op {
	FAKE_OPEN,
	FAKE_START,
	FAKE_SIGNAL,
	FAKE_CHANGE_LOG,
	FAKE_REMOVE,
	FAKE_REMOVE_CELL,
	FAKE_SPAWN,
	FAKE_END,
	FAKE_SHUTDOWN,
	FAKE_PING,
	FAKE_UPGRADE,
	FAKE_LIMIT,
	FAKE_OP_COUNT
};

struct fake_call {
	struct list link;
	enum fake_op op;
	char name[64]; /* id, cell or instance */
	int sig;
	bool all;
	struct container_fds fds;
	peer_done_fn done;
	peer_started_fn started;
	void (*spawned)(void *userdata, int64_t pid, const struct error *err);
	peer_machine_fn machine;
	void *userdata;
};

struct fake_peer {
	struct peer peer;
	struct list link;
	struct list calls;
	const struct peer_events *events;
	void *userdata;
	struct peer_hello hello; /* of this build, unless a test says otherwise */
};

struct fake_keeper {
	dev_t dev;
	ino_t group;
	int pidfd;
};

#define FAKE_KEEPERS_MAX 64

static struct {
	struct loop *loop;
	char path[64];
	int dir_fd, cgroup_fd;
	struct instances *all;
	struct list peers;
	struct fake_keeper keepers[FAKE_KEEPERS_MAX];
	size_t n_keepers;
	unsigned n_busy; /* tries in which a cgroup cannot be removed yet */
	int fail_calloc; /* > 0: the n-th from now fails */
	int connect_error;
	unsigned n_refusals; /* calls of upgrade() that are refused at once */
	char words[64];
	/* The calls that the callbacks have recorded. */
	char states[512];
	unsigned n_saved, n_forgotten, n_synced, n_noted;
	char forgotten[ID_SIZE];
} fake = { .peers = LIST_INIT(fake.peers), .dir_fd = -1, .cgroup_fd = -1 };

/* Aborts the test program where the condition does not hold: no test can go on without it. */
static inline void fake_need(bool condition, const char *what)
{
	if (condition)
		return;
	(void)fprintf(stderr, "fake: %s\n", what);
	abort();
}

/* ---- wrapped ---- */

void __real_loop_timer_set(struct loop_timer *t, nsec_t after);
void __wrap_loop_timer_set(struct loop_timer *t, nsec_t after);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void __wrap_loop_timer_set(struct loop_timer *t, nsec_t after)
{
	__real_loop_timer_set(t, after == NSEC_NEVER ? after : after / 50);
}

void *__wrap_calloc(size_t n, size_t size)
{
	if (fake.fail_calloc > 0 && --fake.fail_calloc == 0)
		return NULL;
	return __real_calloc(n, size);
}

/* ---- cgroups ---- */

int cgroup_make(int parent_fd, const char *name, struct error *err)
{
	int fd;

	if (mkdirat(parent_fd, name, 0755) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make %s", name);
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? error_set(err, -errno, "open %s", name) : fd;
}

int cgroup_make_inner(int parent_fd, const char *name, struct error *err)
{
	return cgroup_make(parent_fd, name, err);
}

int cgroup_find_name(int parent_fd, const char *name, char ret_dir[CGROUP_DIR_SIZE])
{
	(void)parent_fd;
	return str_copy(ret_dir, CGROUP_DIR_SIZE, name);
}

int cgroup_find_below(int base_fd, const char *group, const char *first, const char *second,
		      char *ret, size_t size)
{
	(void)base_fd;
	return str_printf(ret, size, "%s/%s/%s", group, first, second);
}

int cgroup_kill(int dir_fd)
{
	struct stat st;

	if (fstat(dir_fd, &st) < 0)
		return -errno;
	for (size_t i = 0; i < fake.n_keepers; i++)
		if (fake.keepers[i].group == st.st_ino && fake.keepers[i].dev == st.st_dev)
			(void)pidfd_kill(fake.keepers[i].pidfd, SIGKILL);
	return 0;
}

int cgroup_remove(int parent_fd, const char *name)
{
	if (fake.n_busy > 0) {
		fake.n_busy--;
		return -EBUSY;
	}
	return rootfd_remove_tree(parent_fd, name);
}

/* Paths of three parts. */
int cgroup_make_path(int root_fd, const char *path, unsigned needed, unsigned wanted,
		     struct error *err)
{
	char parts[3][64];
	int fd = root_fd, next;

	(void)needed;
	(void)wanted;
	if (sscanf(path, "%63[^/]/%63[^/]/%63[^/]", parts[0], parts[1], parts[2]) != 3)
		return error_set(err, -EINVAL, "%s", path);
	for (int i = 0; i < 3 && fd >= 0; i++) {
		next = cgroup_make(fd, parts[i], err);
		if (fd != root_fd)
			(void)fd_close(fd);
		fd = next;
	}
	return fd;
}

void cgroup_enable_workload(int dir_fd)
{
	(void)dir_fd;
}

int cgroup_remove_path(int root_fd, const char *path)
{
	return cgroup_remove(root_fd, path);
}

/* ---- keepers ---- */

int instance_open_exe(struct error *err)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? error_set(err, -errno, "open /dev/null") : fd;
}

/* A process that does nothing; -1 where there is none. */
static inline pid_t fake_process(void)
{
	static char name[] = "sleep", seconds[] = "60";
	char *const argv[] = { name, seconds, NULL }, *const env[] = { NULL };
	pid_t pid;

	return posix_spawn(&pid, "/bin/sleep", NULL, NULL, argv, env) == 0 ? pid : -1;
}

static inline int fake_keeper_add(int cgroup_fd, pid_t pid)
{
	struct stat st;
	int pidfd = pidfd_of(pid);

	if (pidfd < 0 || fake.n_keepers == FAKE_KEEPERS_MAX || fstat(cgroup_fd, &st) < 0)
		abort();
	fake.keepers[fake.n_keepers++] =
		(struct fake_keeper){ .dev = st.st_dev, .group = st.st_ino, .pidfd = pidfd };
	return pidfd;
}

int instance_spawn(const struct instance_spawn *spec, struct isolate_child *ret, struct error *err)
{
	ret->pid = fake_process();
	if (ret->pid < 0)
		return error_set(err, -EAGAIN, "spawn");
	ret->pidfd = fcntl(fake_keeper_add(spec->cgroup_fd, ret->pid), F_DUPFD_CLOEXEC, 3);
	ret->report_fd = -1;
	return 0;
}

int instance_connect(int dir_fd, int *ret_rpc_fd, int *ret_fd_fd, struct error *err)
{
	if (fake.connect_error)
		return error_set(err, fake.connect_error, "reach the keeper");
	*ret_rpc_fd = eventfd(0, EFD_CLOEXEC);
	*ret_fd_fd = eventfd(0, EFD_CLOEXEC);
	return 0;
}

void instance_last_words(int dir_fd, char *ret, size_t size)
{
	(void)str_copy(ret, size, fake.words);
}

void isolate_child_done(struct isolate_child *c)
{
	c->pidfd = fd_close(c->pidfd);
	c->report_fd = fd_close(c->report_fd);
}

int isolate_child_report(struct isolate_child *c, int *ret_exit, struct error *err)
{
	return 0;
}

/* ---- peers ---- */

static inline struct fake_peer *fake_of(struct peer *p)
{
	return container_of(p, struct fake_peer, peer);
}

static inline struct fake_call *fake_record(struct peer *p, enum fake_op op, const char *name)
{
	struct fake_call *c = __real_calloc(1, sizeof(*c));

	c->op = op;
	c->fds = (struct container_fds)CONTAINER_FDS_NONE;
	list_init(&c->link);
	(void)str_copy(c->name, sizeof(c->name), name);
	list_add_tail(&fake_of(p)->calls, &c->link);
	return c;
}

static inline void fake_ask(struct peer *p, enum fake_op op, const char *name, peer_done_fn done,
			    void *userdata)
{
	struct fake_call *c = fake_record(p, op, name);

	c->done = done;
	c->userdata = userdata;
}

static inline void fake_open(struct peer *p, const struct peer_events *events, void *userdata,
			     peer_done_fn done)
{
	fake_of(p)->events = events;
	fake_of(p)->userdata = userdata;
	fake_ask(p, FAKE_OPEN, "", done, userdata);
}

static inline void fake_start(struct peer *p, const struct cell_spec *cell,
			      const struct container_spec *spec, struct container_fds *fds,
			      peer_started_fn done, void *userdata)
{
	struct fake_call *c = fake_record(p, FAKE_START, spec->id);

	c->fds = container_fds_take(fds);
	c->started = done;
	c->userdata = userdata;
}

static inline void fake_signal(struct peer *p, const char *id, int sig, bool all, peer_done_fn done,
			       void *userdata)
{
	struct fake_call *c = fake_record(p, FAKE_SIGNAL, id);

	c->sig = sig;
	c->all = all;
	c->done = done;
	c->userdata = userdata;
}

static inline void fake_change_log(struct peer *p, const char *id, int fd, peer_done_fn done,
				   void *userdata)
{
	(void)fd_close(fd);
	fake_ask(p, FAKE_CHANGE_LOG, id, done, userdata);
}

static inline void fake_remove(struct peer *p, const char *id, peer_done_fn done, void *userdata)
{
	fake_ask(p, FAKE_REMOVE, id, done, userdata);
}

static inline void fake_remove_cell(struct peer *p, const char *cell, peer_done_fn done,
				    void *userdata)
{
	fake_ask(p, FAKE_REMOVE_CELL, cell, done, userdata);
}

/* The call's name is the first of the words. */
static inline void fake_limit(struct peer *p, const char *id, const char *cell, char *const *words,
			      peer_done_fn done, void *userdata)
{
	fake_need(!*id && !*cell, "limits of the whole alone");
	fake_ask(p, FAKE_LIMIT, words[0], done, userdata);
}

static inline void fake_spawn(struct peer *p, const char *name, const struct peer_shares *shares,
			      void (*done)(void *userdata, int64_t pid, const struct error *err),
			      void *userdata)
{
	struct fake_call *c = fake_record(p, FAKE_SPAWN, name);

	c->spawned = done;
	c->userdata = userdata;
}

static inline void fake_spawn_machine(struct peer *p, const struct peer_machine *machine,
				      peer_machine_fn done, void *userdata)
{
	struct fake_call *c = fake_record(p, FAKE_SPAWN, machine->name);

	c->machine = done;
	c->userdata = userdata;
}

static inline void fake_end(struct peer *p, const char *name, peer_done_fn done, void *userdata)
{
	fake_ask(p, FAKE_END, name, done, userdata);
}

static inline void fake_shutdown(struct peer *p, peer_done_fn done, void *userdata)
{
	fake_ask(p, FAKE_SHUTDOWN, "", done, userdata);
}

static inline void fake_ping(struct peer *p, nsec_t within, peer_done_fn done, void *userdata)
{
	fake_ask(p, FAKE_PING, "", done, userdata);
}

static inline const struct peer_hello *fake_hello(struct peer *p)
{
	return &fake_of(p)->hello;
}

static inline int fake_upgrade(struct peer *p, const struct peer_upgrade *how, peer_done_fn done,
			       void *userdata, struct error *err)
{
	if (fake.n_refusals > 0) {
		fake.n_refusals--;
		return error_refuse(err, ERROR_ABORTED, "the fake is busy");
	}
	fake_ask(p, FAKE_UPGRADE, how->build, done, userdata);
	return 0;
}

static inline int fake_child(struct peer *p, const char *name, struct peer **ret);

static inline void fake_call_free(struct fake_call *c)
{
	list_remove(&c->link);
	container_fds_close(&c->fds);
	free(c);
}

static inline struct peer *fake_free(struct peer *p)
{
	struct fake_peer *f = fake_of(p);
	struct fake_call *c;

	list_for_each (c, &f->calls, struct fake_call, link)
		fake_call_free(c);
	list_remove(&f->link);
	free(f);
	return NULL;
}

static const struct peer_ops fake_ops = {
	.open = fake_open,
	.start = fake_start,
	.signal = fake_signal,
	.change_log = fake_change_log,
	.remove = fake_remove,
	.remove_cell = fake_remove_cell,
	.limit = fake_limit,
	.spawn = fake_spawn,
	.spawn_machine = fake_spawn_machine,
	.end = fake_end,
	.shutdown = fake_shutdown,
	.ping = fake_ping,
	.hello = fake_hello,
	.upgrade = fake_upgrade,
	.child = fake_child,
	.free = fake_free,
};

static inline struct peer *fake_peer_new(void)
{
	struct fake_peer *f = __real_calloc(1, sizeof(*f));

	f->peer.ops = &fake_ops;
	(void)str_copy(f->hello.build, sizeof(f->hello.build), build_id());
	f->hello.can_upgrade = true;
	list_init(&f->link);
	list_init(&f->calls);
	list_add_tail(&fake.peers, &f->link);
	return &f->peer;
}

static inline int fake_child(struct peer *p, const char *name, struct peer **ret)
{
	*ret = fake_peer_new();
	return 0;
}

/* The oldest call of this kind that waits for its answer; NULL. */
static inline struct fake_call *fake_asked(struct instance *i, enum fake_op op)
{
	struct fake_call *c;

	if (!i || !i->peer)
		return NULL;
	list_for_each (c, &fake_of(i->peer)->calls, struct fake_call, link)
		if (c->op == op)
			return c;
	return NULL;
}

static inline unsigned fake_count(struct instance *i, enum fake_op op)
{
	struct fake_call *c;
	unsigned n = 0;

	list_for_each (c, &fake_of(i->peer)->calls, struct fake_call, link)
		n += c->op == op;
	return n;
}

/* Answers the oldest call of this kind (not FAKE_START); err NULL: with success. */
static inline void fake_answer_with(struct instance *i, enum fake_op op, const struct error *err)
{
	struct fake_call *c = fake_asked(i, op);
	struct fake_call call;

	fake_need(c != NULL, "an answer to what was not asked");
	call = *c;
	fake_call_free(c);
	if (call.machine)
		call.machine(call.userdata, err ? "" : "6.1.0", err);
	else if (op == FAKE_SPAWN)
		call.spawned(call.userdata, 7, err);
	else
		call.done(call.userdata, err);
}

static inline void fake_answer(struct instance *i, enum fake_op op, enum error_kind kind)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, kind, "the fake refuses");
	fake_answer_with(i, op, &err);
}

static inline void fake_yes(struct instance *i, enum fake_op op)
{
	fake_answer_with(i, op, NULL);
}

/* ---- the daemon's part ---- */

static inline int fake_connect(void *userdata, int rpc_fd, int fd_fd, struct peer **ret)
{
	(void)fd_close(rpc_fd);
	(void)fd_close(fd_fd);
	*ret = fake_peer_new();
	return 0;
}

static inline int fake_save(void *userdata, const struct instance *i, struct error *err)
{
	fake.n_saved++;
	return 0;
}

static inline void fake_forget(void *userdata, const struct instance *i)
{
	fake.n_forgotten++;
	(void)str_copy(fake.forgotten, sizeof(fake.forgotten), i->id);
}

static inline void fake_note_state(const struct instance *i)
{
	size_t n = strlen(fake.states);

	(void)str_printf(fake.states + n, sizeof(fake.states) - n, "%s:%s ", i->path,
			 instance_state_word(i->state));
}

static inline void fake_on_state(void *userdata, struct instance *i)
{
	fake_note_state(i);
}

static inline void fake_on_container(void *userdata, struct instance *i,
				     const struct container_view *view)
{
}

static inline void fake_on_synced(void *userdata, struct instance *i)
{
	fake.n_synced++;
}

static inline void fake_on_note(void *userdata, struct instance *i)
{
	fake.n_noted++;
}

static inline struct instances_config fake_config(void)
{
	return (struct instances_config){
		.loop = fake.loop,
		.run_fd = fake.dir_fd,
		.cgroup_fd = fake.cgroup_fd,
		.cgroup = "base",
		.top_fd = fake.dir_fd,
		.connect = fake_connect,
		.save = fake_save,
		.forget = fake_forget,
		.on_state = fake_on_state,
		.on_container = fake_on_container,
		.on_synced = fake_on_synced,
		.on_note = fake_on_note,
	};
}

/* ---- beginning and end of a test ---- */

static inline void fake_begin(void)
{
	struct error err = ERROR_INIT;

	(void)str_copy(fake.path, sizeof(fake.path), "/tmp/nacre-fake-XXXXXX");
	if (!mkdtemp(fake.path) || loop_new(&fake.loop) < 0)
		abort();
	fake.dir_fd = open(fake.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fake.cgroup_fd = cgroup_make(fake.dir_fd, "base", &err);
	fake.states[0] = '\0';
	fake.n_saved = 0;
	fake.n_forgotten = 0;
	fake.n_synced = 0;
	fake.n_noted = 0;
	fake.n_busy = 0;
	fake.connect_error = 0;
	fake.n_refusals = 0;
	fake.words[0] = '\0';
}

static inline void fake_end_all(void)
{
	fake.all = instances_free(fake.all);
	fake_need(list_empty(&fake.peers), "a peer is left");
	for (size_t i = 0; i < fake.n_keepers; i++) {
		siginfo_t si;

		(void)pidfd_kill(fake.keepers[i].pidfd, SIGKILL);
		(void)waitid(P_PIDFD, (id_t)fake.keepers[i].pidfd, &si, WEXITED);
		(void)fd_close(fake.keepers[i].pidfd);
	}
	fake.n_keepers = 0;
	fake.loop = loop_free(fake.loop);
	fake.cgroup_fd = fd_close(fake.cgroup_fd);
	fake.dir_fd = fd_close(fake.dir_fd);
	fake_need(scratch_remove(fake.path) == 0, "files are left");
}

static inline void fake_turns(void)
{
	for (int i = 0; i < 4; i++)
		loop_turn(fake.loop, false);
}

/* Until the condition holds, but not for ever. */
#define FAKE_UNTIL(condition)                                                                      \
	do {                                                                                       \
		for (int until_ = 0; until_ < 20000 && !(condition); until_++) {                   \
			loop_turn(fake.loop, false);                                               \
			(void)usleep(1000);                                                        \
		}                                                                                  \
		CHECK(condition);                                                                  \
	} while (0)

static inline bool fake_exists(const char *path)
{
	return faccessat(fake.dir_fd, path, F_OK, 0) == 0;
}

/* Whether a process that was made here still is one to be reaped. */
static inline bool fake_unreaped(size_t keeper)
{
	siginfo_t si = { .si_pid = 0 };

	return waitid(P_PIDFD, (id_t)fake.keepers[keeper].pidfd, &si,
		      WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Its keeper dies. */
static inline void fake_kill_keeper(size_t keeper)
{
	(void)pidfd_kill(fake.keepers[keeper].pidfd, SIGKILL);
}

#endif
