/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keepers as real processes: this program is the parent of keepers that are this program again
 * (`keeper-test keeper ...`). It needs root, and leaves nothing behind.
 */

#include "init/keeper_main.h"
#include "init/nest_main.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/instance.pb-c.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/process/title.h"
#include "base/text/str.h"
#include "instance/spawn.h"
#include "isolate/cgroup/cgroup.h"
#include "keeper/client/client.h"
#include "loop/loop.h"
#include "loop/wait_test.h"
#include "rpc/exchange/client.h"
#include "scratch.h"
#include "unit.h"

#define BUSYBOX "/bin/busybox"

/* ---- the world of a test ---- */

struct world {
	struct loop *loop;
	int base_cgroup_fd, cgroup_fd, exe_fd, dir_fd;
	char base[64], dir[80];
	struct isolate_child process;
	struct loop_child watch;
	bool exited;
	int exit_code, exit_status;
};

/* What a peer has told. */
struct told {
	struct peer *peer;
	bool opened, synced, lost;
	int n_done;
	struct error err;
	int64_t pid;
	struct container_view last;
	char last_id[ID_SIZE];
	unsigned n_states[CONTAINER_STATE_COUNT];
	char child[64], child_reason[512];
};

static struct world w;

#define WAIT_FOR(cond) LOOP_WAIT(w.loop, cond)

static void say(const char *what, const struct error *err)
{
	printf("# %s: %s\n", what, error_text(err));
	unit_failed();
}

static void on_exit_(struct loop_child *c, int code, int status)
{
	w.exited = true;
	w.exit_code = code;
	w.exit_status = status;
}

static void world_open(bool walled, const char *title)
{
	struct error err = ERROR_INIT;
	int root_fd = cgroup_open_root(&err);

	w = (struct world){ .dir_fd = -1 };
	CHECK(loop_new(&w.loop) == 0);
	(void)snprintf(w.base, sizeof(w.base), "nacre-keeper-test-%d", getpid());
	(void)snprintf(w.dir, sizeof(w.dir), "/tmp/%s", w.base);
	w.base_cgroup_fd = cgroup_make(root_fd, w.base, &err);
	w.cgroup_fd = cgroup_make(w.base_cgroup_fd, "inst.t", &err);
	(void)fd_close(root_fd);
	CHECK(mkdir(w.dir, 0700) == 0);
	w.dir_fd = open(w.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	w.exe_fd = instance_open_exe(&err);
	if (w.exe_fd < 0)
		say("exe", &err);
	if (instance_spawn(&(struct instance_spawn){ .title = title,
						     .dir_fd = w.dir_fd,
						     .cgroup_fd = w.cgroup_fd,
						     .exe_fd = w.exe_fd,
						     .walled = walled },
			   &w.process, &err) < 0) {
		say("spawn", &err);
		abort();
	}
	loop_child_init(&w.watch, w.loop, w.process.pidfd, on_exit_);
}

static void world_close(void)
{
	struct error err = ERROR_INIT;
	int root_fd = cgroup_open_root(&err);

	loop_child_done(&w.watch);
	isolate_child_done(&w.process);
	w.cgroup_fd = fd_close(w.cgroup_fd);
	w.base_cgroup_fd = fd_close(w.base_cgroup_fd);
	w.exe_fd = fd_close(w.exe_fd);
	w.dir_fd = fd_close(w.dir_fd);
	CHECK_INT(cgroup_remove(root_fd, w.base), 0);
	(void)fd_close(root_fd);
	CHECK_INT(scratch_remove(w.dir), 0);
	w.loop = loop_free(w.loop);
}

/* ---- a peer ---- */

static void on_container(void *userdata, const struct container_view *view)
{
	struct told *t = userdata;

	t->last = *view;
	(void)str_copy(t->last_id, sizeof(t->last_id), view->id);
	t->n_states[view->status.state]++;
}

static void on_child_end(void *userdata, const char *name, const char *reason)
{
	struct told *t = userdata;

	(void)str_copy(t->child, sizeof(t->child), name);
	(void)str_copy(t->child_reason, sizeof(t->child_reason), reason);
}

static void on_synced(void *userdata)
{
	struct told *t = userdata;

	t->synced = true;
}

static void on_lost(void *userdata, const struct error *err)
{
	struct told *t = userdata;

	t->lost = true;
}

static const struct peer_events events = {
	.on_container = on_container,
	.on_child_end = on_child_end,
	.on_synced = on_synced,
	.on_lost = on_lost,
};

static void on_done(void *userdata, const struct error *err)
{
	struct told *t = userdata;

	t->n_done++;
	t->err = err ? *err : (struct error)ERROR_INIT;
}

static void on_spawned(void *userdata, int64_t pid, const struct error *err)
{
	struct told *t = userdata;

	t->pid = pid;
	on_done(userdata, err);
}

static void on_started(void *userdata, const struct container_view *view, const struct error *err)
{
	struct told *t = userdata;

	if (view)
		t->last = *view;
	on_done(userdata, err);
}

/* Waits for the completion that comes next. */
#define DONE(t, call)                                                                              \
	do {                                                                                       \
		int before_ = (t)->n_done;                                                         \
		call;                                                                              \
		CHECK_INT((t)->n_done, before_);                                                   \
		WAIT_FOR((t)->n_done > before_);                                                   \
		CHECK_INT((t)->n_done, before_ + 1);                                               \
	} while (0)

#define DONE_OK(t, call)                                                                           \
	do {                                                                                       \
		DONE(t, call);                                                                     \
		if ((t)->err.code)                                                                 \
			say(#call, &(t)->err);                                                     \
	} while (0)

static void told_open(struct told *t)
{
	DONE_OK(t, t->peer->ops->open(t->peer, &events, t, on_done));
	WAIT_FOR(t->synced || t->lost);
	CHECK(t->synced);
}

static void told_connect(struct told *t)
{
	struct error err = ERROR_INIT;
	int rpc_fd, fd_fd;

	*t = (struct told){ .peer = NULL };
	if (instance_connect(w.dir_fd, &rpc_fd, &fd_fd, &err) < 0)
		say("connect", &err);
	CHECK_INT(keeper_client_new(&t->peer, w.loop, rpc_fd, fd_fd), 0);
	told_open(t);
}

static void told_child(struct told *t, struct told *parent, const char *name)
{
	*t = (struct told){ .peer = NULL };
	CHECK_INT(parent->peer->ops->child(parent->peer, name, &t->peer), 0);
	told_open(t);
}

static void told_close(struct told *t)
{
	t->peer = t->peer->ops->free(t->peer);
}

/* ---- containers ---- */

static void copy_file(int dir_fd, const char *name, const char *from)
{
	_cleanup_fd_ int in = open(from, O_RDONLY | O_CLOEXEC);
	_cleanup_fd_ int out = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	static char data[65536];
	ssize_t n;

	for (n = read(in, data, sizeof(data)); n > 0; n = read(in, data, sizeof(data)))
		CHECK_INT(fd_write_full(out, data, (size_t)n), 0);
}

/* A detached tmpfs with busybox in it. */
#define FDS(rootfs_fd, log_fd)                                                                     \
	&(struct container_fds)                                                                    \
	{                                                                                          \
		.rootfs = (rootfs_fd), .log = (log_fd), .log_dir = -1, .network = -1               \
	}

static int make_rootfs(void)
{
	static const char *const names[] = { "sh", "sleep", "cat", "echo", "yes", "id" };
	_cleanup_fd_ int fs = sysio_fsopen("tmpfs", FSOPEN_CLOEXEC);
	_cleanup_fd_ int bin = -1;
	int fd;

	CHECK(sysio_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0);
	fd = sysio_fsmount(fs, FSMOUNT_CLOEXEC, 0);
	CHECK(fd >= 0);
	CHECK(mkdirat(fd, "bin", 0755) == 0);
	bin = openat(fd, "bin", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	copy_file(bin, "busybox", BUSYBOX);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK(symlinkat("busybox", bin, names[i]) == 0);
	return fd;
}

static int make_log(void)
{
	return open(w.dir, O_RDWR | O_TMPFILE | O_CLOEXEC | O_APPEND, 0600);
}

static bool log_has(int log_fd, const char *text)
{
	char data[4096];
	ssize_t n = pread(log_fd, data, sizeof(data) - 1, 0);

	data[n > 0 ? n : 0] = '\0';
	return strstr(data, text) != NULL;
}

/* No source of the loop tells that a file has grown, so the loop must not block meanwhile. */
static void wait_for_log(int log_fd, const char *text)
{
	time_t since = unit_now();

	while (!log_has(log_fd, text) && unit_waits(since)) {
		loop_turn(w.loop, false);
		(void)usleep(1000);
	}
	CHECK(log_has(log_fd, text));
}

static void start_shell(struct told *t, const char *id, const char *script, int log_fd)
{
	char *argv[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, (char *)(uintptr_t)script, NULL };
	struct container_spec spec = {
		.name = "main", .kind = CONTAINER_IMAGE, .argv = argv, .cwd = "", .user = ""
	};
	struct cell_spec cell = { .name = "cell", .shares_instance = true };

	(void)str_copy(spec.id, sizeof(spec.id), id);
	DONE_OK(t, t->peer->ops->start(t->peer, &cell, &spec, FDS(make_rootfs(), fd_copy(log_fd)),
				       on_started, t));
	CHECK_INT(t->last.status.state, CONTAINER_RUNNING);
	if (t->last.status.state != CONTAINER_RUNNING)
		printf("# start: %s\n", t->last.status.reason);
}

struct exec_told {
	bool ended;
	struct buf out;
	int exit_code;
	struct error err;
};

static void exec_on_message(struct rpc_stream *s, const uint8_t *data, size_t len, void *userdata)
{
	struct exec_told *x = userdata;
	Nacre__Instance__V1__ExecResponse *r =
		nacre__instance__v1__exec_response__unpack(NULL, len, data);

	CHECK(r != NULL);
	CHECK(buf_add(&x->out, r->stdout.data, r->stdout.len) == 0);
	if (r->exit)
		x->exit_code = r->exit->exit_code;
	nacre__instance__v1__exec_response__free_unpacked(r, NULL);
}

static void exec_on_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
			void *userdata)
{
	struct exec_told *x = userdata;

	x->ended = true;
	x->err = err ? *err : (struct error)ERROR_INIT;
}

static const struct rpc_stream_ops exec_ops = { exec_on_message, exec_on_end };

static struct rpc_stream *exec_start(struct told *t, struct exec_told *x, const char *id,
				     const char *script)
{
	char *argv[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, (char *)(uintptr_t)script };
	Nacre__Instance__V1__ExecRequest request;
	struct rpc_stream *stream = NULL;

	nacre__instance__v1__exec_request__init(&request);
	request.id = (char *)(uintptr_t)id;
	request.argv = argv;
	request.n_argv = 3;
	*x = (struct exec_told){ .exit_code = -1 };
	CHECK_INT(rpc_client_call(keeper_client_rpc(t->peer),
				  &(struct rpc_request){
					  .method = "/nacre.instance.v1.InstanceService/Exec",
					  .target = keeper_client_target(t->peer),
					  .message = &request.base,
					  .timeout = NSEC_NEVER,
				  },
				  &exec_ops, x, &stream),
		  0);
	return stream;
}

static void check_exec(struct told *t, const char *id)
{
	struct exec_told x;

	(void)exec_start(t, &x, id, "echo one; exit 3");
	WAIT_FOR(x.ended);
	CHECK_INT(x.err.code, 0);
	CHECK_INT(x.exit_code, 3);
	CHECK(x.out.len == 4 && memcmp(buf_data(&x.out), "one\n", 4) == 0);
	buf_done(&x.out);
}

/* ---- looking from outside ---- */

/* The first process of a group below the base, as this process sees it. */
static pid_t group_pid(const char *group)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	if (fd_read_file(w.base_cgroup_fd, path, 65536, &b) < 0)
		return -1;
	text = buf_take_str(&b);
	return text ? (pid_t)strtol(text, NULL, 10) : -1;
}

/* By pidfd: a number of a process that is not there would mean many. */
static void group_kill_first(const char *group)
{
	pid_t pid = group_pid(group);
	_cleanup_fd_ int pidfd = pid > 1 ? pidfd_of(pid) : -1;

	CHECK(pidfd >= 0);
	if (pidfd >= 0)
		CHECK_INT(pidfd_kill(pidfd, SIGKILL), 0);
}

static bool group_exists(const char *group)
{
	return faccessat(w.base_cgroup_fd, group, F_OK, 0) == 0;
}

static void print_memory(const char *what, pid_t pid)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	if (fd_read_file(AT_FDCWD, path, 65536, &b) < 0)
		return;
	text = buf_take_str(&b);
	printf("# memory of %s:\n", what);
	for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (str_has_prefix(line, "Rss") || str_has_prefix(line, "Pss") ||
		    str_has_prefix(line, "Private"))
			printf("#   %s\n", line);
}

static bool title_is(pid_t pid, const char *title)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	return fd_read_file(AT_FDCWD, path, 4096, &b) == 0 && b.len > strlen(title) &&
	       memcmp(buf_data(&b), title, strlen(title) + 1) == 0;
}

static void shut_down(struct told *t)
{
	char words[INSTANCE_LAST_WORDS_MAX + 1];

	DONE_OK(t, t->peer->ops->shutdown(t->peer, on_done, t));
	WAIT_FOR(w.exited);
	CHECK_INT(w.exit_code, CLD_EXITED);
	CHECK_INT(w.exit_status, 0);
	WAIT_FOR(t->lost);
	instance_last_words(w.dir_fd, words, sizeof(words));
	CHECK_STR(words, "was shut down");
	told_close(t);
}

/* ---- tests ---- */

static void runs_a_container(void)
{
	int log_fd;
	struct exec_told x;
	struct rpc_stream *stream;
	struct told t;

	world_open(true, "t");
	told_connect(&t);
	log_fd = make_log();
	start_shell(&t, "00000000000000aa",
		    "trap 'exit 7' TERM; echo hello; while :; do sleep 0.1; done", log_fd);
	WAIT_FOR(t.n_states[CONTAINER_RUNNING] > 0);
	wait_for_log(log_fd, "hello");
	check_exec(&t, "00000000000000aa");

	/* More than any window holds, and nobody who waits for it. */
	stream = exec_start(&t, &x, "00000000000000aa", "yes > /proc/self/fd/1");
	rpc_stream_pause(stream, true);
	for (int i = 0; i < 20; i++)
		loop_turn(w.loop, false);
	rpc_stream_cancel(stream);
	buf_done(&x.out);
	check_exec(&t, "00000000000000aa");

	DONE_OK(&t, t.peer->ops->signal(t.peer, "00000000000000aa", SIGTERM, false, on_done, &t));
	WAIT_FOR(t.n_states[CONTAINER_EXITED] > 0);
	CHECK_INT(t.last.status.exit_code, 7);
	DONE_OK(&t, t.peer->ops->remove(t.peer, "00000000000000aa", on_done, &t));
	DONE_OK(&t, t.peer->ops->remove_cell(t.peer, "cell", on_done, &t));
	DONE(&t, t.peer->ops->signal(t.peer, "00000000000000aa", SIGTERM, false, on_done, &t));
	CHECK_INT(t.err.kind, ERROR_NOT_FOUND);
	CHECK(title_is(group_pid("inst.t/keeper"), "nacre: keeper t"));
	print_memory("an idle keeper", group_pid("inst.t/keeper"));
	(void)fd_close(log_fd);
	shut_down(&t);
	world_close();
}

static void outlives_its_parent(void)
{
	struct told t;
	int log_fd;

	world_open(true, "t");
	told_connect(&t);
	log_fd = make_log();
	start_shell(&t, "00000000000000ab", "while :; do echo tick; sleep 0.05; done", log_fd);
	told_close(&t);
	told_connect(&t);
	CHECK_STR(t.last_id, "00000000000000ab");
	CHECK_INT(t.n_states[CONTAINER_RUNNING], 1);
	check_exec(&t, "00000000000000ab");
	(void)fd_close(log_fd);
	shut_down(&t);
	world_close();
}

static void nests(void)
{
	struct told a, b, c;
	nsec_t before;
	int log_fd;

	world_open(true, "t");
	told_connect(&a);
	log_fd = make_log();
	before = clock_mono();
	DONE_OK(&a, a.peer->ops->spawn(a.peer, "b", &(struct peer_shares){ .network = false },
				       on_spawned, &a));
	printf("# a nested keeper said hello after %u us\n",
	       (unsigned)((clock_mono() - before) / NSEC_PER_USEC));
	CHECK(a.pid > 1);
	DONE(&a, a.peer->ops->spawn(a.peer, "b", &(struct peer_shares){ .network = false },
				    on_spawned, &a));
	CHECK_INT(a.err.kind, ERROR_EXISTS);
	told_child(&b, &a, "b");
	DONE_OK(&b, b.peer->ops->spawn(b.peer, "c", &(struct peer_shares){ .network = false },
				       on_spawned, &b));
	told_child(&c, &b, "c");
	start_shell(&c, "00000000000000ac", "echo deep; while :; do sleep 1; done", log_fd);
	wait_for_log(log_fd, "deep");
	check_exec(&c, "00000000000000ac");
	CHECK(title_is(group_pid("inst.t/inst.b/inst.c/keeper"), "nacre: keeper t/b/c"));
	print_memory("a keeper in the middle", group_pid("inst.t/inst.b/keeper"));

	group_kill_first("inst.t/inst.b/keeper");
	WAIT_FOR(a.child[0]);
	CHECK_STR(a.child, "b");
	CHECK_STR(a.child_reason, "keeper of b was killed by signal 9");
	WAIT_FOR(b.lost && c.lost);
	CHECK(!group_exists("inst.t/inst.b"));
	told_close(&c);
	told_close(&b);

	/* Who comes later is told as well, until the name is used again. */
	told_close(&a);
	told_connect(&a);
	CHECK_STR(a.child, "b");
	DONE_OK(&a, a.peer->ops->spawn(a.peer, "b", &(struct peer_shares){ .network = false },
				       on_spawned, &a));
	DONE_OK(&a, a.peer->ops->end(a.peer, "b", on_done, &a));
	CHECK(!group_exists("inst.t/inst.b"));
	DONE_OK(&a, a.peer->ops->end(a.peer, "b", on_done, &a));
	DONE_OK(&a, a.peer->ops->spawn(a.peer, "d", &(struct peer_shares){ .network = true },
				       on_spawned, &a));
	(void)fd_close(log_fd);
	shut_down(&a);
	world_close();
}

static void on_machine(void *userdata, const char *kernel, const struct error *err)
{
	on_done(userdata, err);
}

/* Here there are no disks of a machine: what its process says last is what its parent is told. */
static void tells_why_there_is_no_machine(void)
{
	const struct peer_machine machine = {
		.name = "m", .tools = "slot0", .memory = 1 << 28, .cpus = 1
	};
	struct told a;

	world_open(true, "t");
	told_connect(&a);
	DONE(&a, a.peer->ops->spawn_machine(a.peer, &machine, on_machine, &a));
	CHECK_INT(a.err.kind, ERROR_FAULT);
	CHECK(strstr(a.err.text, "open /sys/block") != NULL);
	CHECK(!group_exists("inst.t/inst.m"));
	/* Its name is free again. */
	DONE_OK(&a, a.peer->ops->spawn(a.peer, "m", &(struct peer_shares){ .network = false },
				       on_spawned, &a));
	shut_down(&a);
	world_close();
}

static void starts_many_at_once(void)
{
	char *argv[] = { (char[]){ "/bin/sleep" }, (char[]){ "1000" }, NULL };
	struct container_spec spec = {
		.kind = CONTAINER_IMAGE, .argv = argv, .cwd = "", .user = ""
	};
	struct cell_spec cell = { .name = "cell", .shares_instance = true };
	char name[16];
	struct told t;

	world_open(true, "t");
	told_connect(&t);
	for (int i = 0; i < 60; i++) {
		(void)snprintf(name, sizeof(name), "n%d", i);
		(void)snprintf(spec.id, sizeof(spec.id), "%016x", i);
		spec.name = name;
		t.peer->ops->start(t.peer, &cell, &spec, FDS(make_rootfs(), make_log()), on_started,
				   &t);
	}
	WAIT_FOR(t.n_done == 61);
	CHECK_INT(t.n_states[CONTAINER_RUNNING], 60);
	CHECK_INT(t.n_states[CONTAINER_FAILED], 0);
	shut_down(&t);
	world_close();
}

/* How many mounts this process sees. */
static size_t count_mounts(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	size_t n = 0;

	CHECK_INT(fd_read_file(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &b), 0);
	for (size_t i = 0; i < b.len; i++)
		n += buf_data(&b)[i] == '\n';
	return n;
}

static bool has_children(pid_t pid)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	CHECK_INT(fd_read_file(AT_FDCWD, path, 65536, &b), 0);
	return b.len > 0;
}

static void reaps_orphans(void)
{
	char *argv[] = { (char[]){ BUSYBOX }, (char[]){ "sh" }, (char[]){ "-c" },
			 (char[]){ "(" BUSYBOX " sleep 0.2; exit 3) & echo out" }, NULL };
	struct container_spec spec = { .id = "00000000000000ae",
				       .name = "main",
				       .kind = CONTAINER_PROCESS,
				       .argv = argv,
				       .cwd = "",
				       .user = "" };
	struct cell_spec cell = { .name = "cell" };
	struct told t;

	world_open(false, "node");
	told_connect(&t);
	DONE_OK(&t, t.peer->ops->start(t.peer, &cell, &spec, FDS(-1, make_log()), on_started, &t));
	WAIT_FOR(t.n_states[CONTAINER_EXITED] > 0);
	CHECK_INT(t.last.status.exit_code, 0);
	for (int i = 0; i < 2000 && has_children(w.process.pid); i++)
		(void)usleep(10000);
	CHECK(!has_children(w.process.pid));
	shut_down(&t);
	world_close();
}

static void serves_the_node(void)
{
	char *argv[] = { (char[]){ BUSYBOX }, (char[]){ "readlink" },
			 (char[]){ "/proc/self/ns/mnt" }, NULL };
	struct container_spec spec = { .id = "00000000000000ad",
				       .name = "main",
				       .kind = CONTAINER_PROCESS,
				       .argv = argv,
				       .cwd = "",
				       .user = "" };
	struct cell_spec cell = { .name = "cell" };
	char words[INSTANCE_LAST_WORDS_MAX + 1], mine[64] = "";
	struct told t;
	size_t n_mounts = count_mounts();
	int log_fd;

	world_open(false, "node");
	told_connect(&t);
	log_fd = make_log();
	DONE_OK(&t,
		t.peer->ops->start(t.peer, &cell, &spec, FDS(-1, fd_copy(log_fd)), on_started, &t));
	WAIT_FOR(t.n_states[CONTAINER_EXITED] > 0);
	CHECK(readlink("/proc/self/ns/mnt", mine, sizeof(mine) - 1) > 0);
	CHECK(log_has(log_fd, mine));
	(void)fd_close(log_fd);
	CHECK(title_is(w.process.pid, "nacre: keeper node"));
	CHECK_INT(count_mounts(), n_mounts);
	print_memory("the keeper of the node", w.process.pid);

	CHECK_INT(pidfd_kill(w.process.pidfd, SIGTERM), 0);
	WAIT_FOR(w.exited && t.lost);
	CHECK_INT(w.exit_status, 0);
	instance_last_words(w.dir_fd, words, sizeof(words));
	CHECK_STR(words, "ended by signal 15");
	told_close(&t);
	world_close();
}

static int run_tests(void)
{
	static const struct unit_test tests[] = {
		{ "runs a container", runs_a_container },
		{ "outlives its parent", outlives_its_parent },
		{ "nests", nests },
		{ "tells why there is no machine", tells_why_there_is_no_machine },
		{ "starts many at once", starts_many_at_once },
		{ "serves the node", serves_the_node },
		{ "reaps orphans", reaps_orphans },
	};

	return unit_run(tests, ARRAY_SIZE(tests));
}

int main(int argc, char **argv)
{
	title_init(argc, argv);
	if (argc > 1 && str_eq(argv[1], "keeper"))
		return keeper_main(argc - 1, argv + 1);
	if (argc > 1 && str_eq(argv[1], "nest"))
		return nest_main(argc - 1, argv + 1);
	return run_tests();
}
