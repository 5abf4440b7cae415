/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/layer/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cell/layer/bed_test.h"
#include "cell/layer/keeper_model.h"
#include "unit.h"

static struct bed bed;
static struct bed *const b = &bed;

static int start(const struct bed_start *s)
{
	struct error err = ERROR_INIT;
	int n = bed_start(b, s, &err);

	if (n < 0)
		printf("# keeper_start: %s\n", err.text);
	return n < 0 ? 0 : n;
}

static int run(const char *script)
{
	return start(&(struct bed_start){ .script = script });
}

/* Whether a process runs a program of this name, and has closed what its shell had. */
static bool runs(int64_t pid, const char *name)
{
	_cleanup_(buf_done) struct buf comm = BUF_INIT;
	char path[48], line[32];

	(void)str_printf(path, sizeof(path), "/proc/%lld/comm", (long long)pid);
	(void)str_printf(line, sizeof(line), "%s\n", name);
	return fd_read_file(AT_FDCWD, path, 64, &comm) == 0 && buf_add(&comm, "", 1) == 0 &&
	       str_eq((const char *)buf_data(&comm), line);
}

static void count_done(void *userdata)
{
	int *n = userdata;

	(*n)++;
}

static void remove_cell(const char *cell)
{
	int n = 0;

	keeper_remove_cell(b->keeper, cell, count_done, &n);
	CHECK_INT(n, 0);
	BED_UNTIL(b, n);
	CHECK_INT(n, 1);
}

static void exit_codes(void)
{
	const struct container_status *s;
	int n;

	bed_open(b);
	n = run("exit 7");
	CHECK_INT(b->last[n].state, CONTAINER_STARTING);
	CHECK_INT(b->n_started, 0);
	s = bed_wait(b, n);
	CHECK_INT(s->state, CONTAINER_EXITED);
	CHECK_INT(s->exit_code, 7);
	CHECK_INT(s->signal, 0);
	CHECK_INT(s->pid, 0);
	CHECK(s->started_at && s->finished_at >= s->started_at);
	CHECK_STR(s->reason, "");
	CHECK_INT(b->n_started, 1);
	CHECK(!bed_has_cgroup(b, "cell.c/n1"));

	n = run("sleep 1000");
	bed_wait_running(b, n);
	CHECK_INT(b->last[n].state, CONTAINER_RUNNING);
	CHECK(b->last[n].pid > 0);
	CHECK(bed_has_cgroup(b, "cell.c/n2"));
	CHECK(keeper_remove(b->keeper, bed_id(n), NULL) < 0);
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGKILL, false, NULL), 0);
	s = bed_wait(b, n);
	CHECK_INT(s->exit_code, 137);
	CHECK_INT(s->signal, 9);
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGTERM, false, NULL), 0);
	CHECK_INT(keeper_remove(b->keeper, bed_id(n), NULL), 0);
	CHECK(b->removed[n]);
	CHECK_INT(keeper_remove(b->keeper, bed_id(n), NULL), 0);
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGTERM, false, NULL), -ENOENT);

	n = run("trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done");
	BED_UNTIL(b, str_eq(bed_log_text(b, n, 1), "ready\n"));
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGTERM, false, NULL), 0);
	CHECK_INT(bed_wait(b, n)->exit_code, 9);
	remove_cell("c");
	bed_close(b);
}

static void cannot_start(void)
{
	static const struct {
		const char *program, *cwd;
		int exit_code;
	} table[] = {
		{ "nope", "", 127 },
		{ "/bin/nope", "", 127 },
		{ "/etc/passwd", "", 126 },
		{ "/etc/passwd/x", "", 126 },
	};

	bed_open(b);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_strv_ char **argv = NULL;
		const struct container_status *s;

		CHECK_INT(strv_add(&argv, table[i].program), 0);
		s = bed_wait(b, start(&(struct bed_start){ .argv = argv, .cwd = table[i].cwd }));
		CHECK_INT(s->state, CONTAINER_FAILED);
		if (i < 3)
			CHECK_INT(s->exit_code, table[i].exit_code);
		CHECK(strstr(s->reason, table[i].program));
		CHECK_INT(s->started_at, 0);
	}
	CHECK_INT(b->n_started, ARRAY_SIZE(table));
	/* The cell did not keep what a failed one has made. */
	CHECK_INT(bed_wait(b, run("hostname | grep -x c"))->exit_code, 0);
	remove_cell("c");
	bed_close(b);
}

static void logs_are_exact(void)
{
	_cleanup_(buf_done) struct buf want = BUF_INIT, got = BUF_INIT;
	_cleanup_fd_ int fd = -1;
	uint8_t *data;
	int n;

	bed_open(b);
	CHECK_INT(buf_reserve(&want, 3000001, &data), 0);
	for (size_t i = 0; i < 3000001; i++)
		data[i] = (uint8_t)(rand() >> 7);
	/* A run of line feeds is the worst that can happen to the encoding. */
	memset(data + 1000000, '\n', 500000);
	data[3000000] = 'x';
	buf_added(&want, 3000001);
	fd = openat(b->base_fd, "root/data/blob", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
	CHECK_INT(fd_write_full(fd, buf_data(&want), want.len), 0);

	n = run("cat /data/blob; printf 'one\\ntwo' >&2");
	CHECK_INT(bed_wait(b, n)->exit_code, 0);
	bed_log(b, n, 1, &got);
	CHECK_INT(got.len, want.len);
	CHECK(got.len == want.len && memcmp(buf_data(&got), buf_data(&want), got.len) == 0);
	CHECK_STR(bed_log_text(b, n, 2), "one\ntwo");

	n = start(&(struct bed_start){ .script = "echo lost", .no_log = true });
	CHECK_INT(bed_wait(b, n)->exit_code, 0);
	remove_cell("c");
	bed_close(b);
}

static void full_log(void)
{
	_cleanup_fd_ int dir_fd = -1, log_fd = -1, filler_fd = -1;
	static char zeroes[65536];
	int n, done = 0;

	bed_open(b);
	CHECK_INT(mkdirat(b->base_fd, "small", 0755), 0);
	dir_fd = bed_small_tmpfs(b, "small");
	for (int round = 0; round < 2; round++) {
		filler_fd = openat(dir_fd, "filler", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		while (write(filler_fd, zeroes, sizeof(zeroes)) > 0)
			;
		log_fd = openat(dir_fd, round ? "b" : "a", O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC,
				0600);
		n = start(&(struct bed_start){ .script = "echo hello",
					       .cell = round ? "two" : "one",
					       .log_fd = fd_copy(log_fd) });
		BED_UNTIL(b, b->last[n].reason[0] && b->last[n].state == CONTAINER_DRAINING);
		CHECK(strstr(b->last[n].reason, "No space left"));
		CHECK_INT(b->last[n].state, CONTAINER_DRAINING);
		CHECK_INT(b->last[n].exit_code, 0);
		if (round == 0) {
			CHECK_INT(unlinkat(dir_fd, "filler", 0), 0);
			filler_fd = fd_close(filler_fd);
			CHECK_INT(bed_wait(b, n)->state, CONTAINER_EXITED);
			CHECK_STR(b->last[n].reason, "");
			CHECK_INT(lseek(log_fd, 0, SEEK_END), 46);
		} else {
			keeper_remove_cell(b->keeper, "two", count_done, &done);
			BED_UNTIL(b, done);
			CHECK_INT(done, 1);
			CHECK(strstr(b->last[n].reason, "6 bytes of its output are lost"));
		}
		log_fd = fd_close(log_fd);
		filler_fd = fd_close(filler_fd);
	}
	remove_cell("one");
	bed_close(b);
}

static void cell_is_shared(void)
{
	static const char who[] =
		"for k in net ipc uts pid mnt cgroup; do readlink /proc/self/ns/$k; "
		"done; hostname";
	char one[8192];
	int n[3];

	bed_open(b);
	/* All at the same instant: the first makes the namespaces, the others wait for it. */
	n[0] = run("echo here >/dev/shm/x; nc -l -p 7000 -e /bin/echo answer; sleep 1000");
	n[1] = run("until test -e /dev/shm/x; do sleep 0.02; done; cat /dev/shm/x; "
		   "until nc 127.0.0.1 7000; do sleep 0.02; done");
	n[2] = run(who);
	CHECK_INT(bed_wait(b, n[1])->exit_code, 0);
	CHECK_STR(bed_log_text(b, n[1], 1), "here\nanswer\n");
	CHECK_INT(bed_wait(b, n[2])->exit_code, 0);
	(void)str_copy(one, sizeof(one), bed_log_text(b, n[2], 1));
	CHECK(strstr(one, "\nc\n"));

	/* Another one of the cell has the same net, ipc and uts, and its own pid, mnt and cgroup.
	 */
	n[1] = run(who);
	CHECK_INT(bed_wait(b, n[1])->exit_code, 0);
	CHECK(strncmp(one, bed_log_text(b, n[1], 1), (size_t)(strstr(one, "pid") - one)) == 0);

	/* Another cell has nothing of it. */
	n[2] = start(&(struct bed_start){ .cell = "d",
					  .script = "readlink /proc/self/ns/net; "
						    "ls /dev/shm" });
	CHECK_INT(bed_wait(b, n[2])->exit_code, 0);
	CHECK(!strstr(one, bed_log_text(b, n[2], 1)));
	CHECK(!strstr(bed_log_text(b, n[2], 1), "\nx\n"));
	remove_cell("c");
	remove_cell("d");
	CHECK(b->removed[n[0]]);
	bed_close(b);
}

static void cell_shares_instance(void)
{
	struct bed_start s = { .shares = true,
			       .script =
				       "echo $HOSTNAME >/dev/shm/pod; readlink /proc/self/ns/net" };
	char mine[64] = "";
	int n;

	bed_open(b);
	CHECK_INT(sethostname("instance", 8), 0);
	CHECK(readlink("/proc/self/ns/net", mine, sizeof(mine) - 2) > 0);
	mine[strlen(mine)] = '\n';
	n = start(&s);
	CHECK_INT(bed_wait(b, n)->exit_code, 0);
	CHECK_STR(bed_log_text(b, n, 1), mine);
	n = start(&(struct bed_start){ .shares = true,
				       .script = "cat /dev/shm/pod; echo $PATH $HOME" });
	CHECK_INT(bed_wait(b, n)->exit_code, 0);
	CHECK_STR(bed_log_text(b, n, 1),
		  "instance\n/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /root\n");
	/* A cell is what it began as. */
	CHECK_INT(bed_start(b, &(struct bed_start){ .script = "true" }, NULL) < 0, 1);
	remove_cell("c");
	n = start(&(struct bed_start){
		.shares = true, .hostname = "www.example", .script = "hostname; echo $HOSTNAME" });
	CHECK_INT(bed_wait(b, n)->exit_code, 0);
	CHECK_STR(bed_log_text(b, n, 1), "www.example\nwww.example\n");
	remove_cell("c");
	bed_close(b);
}

static void cell_uses_host_network(void)
{
	struct bed_start s = { .host_network = true,
			       .script = "readlink /proc/self/ns/net; hostname; "
					 "readlink /proc/self/ns/uts" };
	char first[256], mine[64] = "";
	int n;

	bed_open(b);
	CHECK(readlink("/proc/self/ns/net", mine, sizeof(mine) - 2) > 0);
	n = start(&s);
	CHECK_INT(bed_wait(b, n)->exit_code, 0);
	(void)str_copy(first, sizeof(first), bed_log_text(b, n, 1));
	CHECK(str_has_prefix(first, mine));
	CHECK(strstr(first, "\nc\nuts:"));
	n = start(&s);
	CHECK_INT(bed_wait(b, n)->exit_code, 0);
	CHECK_STR(bed_log_text(b, n, 1), first);
	s.shares = true;
	CHECK(bed_start(b, &s, NULL) < 0);
	remove_cell("c");
	bed_close(b);
}

/* A descriptor of a new network namespace, and its name. */
static int new_network(char name[64])
{
	int own_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), fd;
	ssize_t len;

	CHECK(own_fd >= 0 && unshare(CLONE_NEWNET) == 0);
	fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	len = readlink("/proc/thread-self/ns/net", name, 63);
	CHECK(fd >= 0 && len > 0);
	name[len] = '\0';
	CHECK(setns(own_fd, CLONE_NEWNET) == 0);
	close(own_fd);
	return fd;
}

static void cell_is_given_a_network(void)
{
	struct bed_start s = { .hostname = "www.example",
			       .script = "readlink /proc/self/ns/net; hostname; echo $HOSTNAME" };
	char name[64], want[160];
	int fd, n;

	bed_open(b);
	fd = new_network(name);
	/* What its first container did not come to make is made by the second; all join. */
	n = start(&(struct bed_start){ .network_fd = fd_copy(fd),
				       .hostname = "www.example",
				       .argv = (char *const[]){ (char[]){ "/nowhere" }, NULL } });
	CHECK_INT(bed_wait(b, n)->state, CONTAINER_FAILED);
	(void)str_printf(want, sizeof(want), "%s\nwww.example\nwww.example\n", name);
	for (int i = 0; i < 2; i++) {
		s.network_fd = fd_copy(fd);
		n = start(&s);
		CHECK_INT(bed_wait(b, n)->exit_code, 0);
		CHECK_STR(bed_log_text(b, n, 1), want);
	}
	s.network_fd = 0;
	CHECK(bed_start(b, &s, NULL) < 0);
	remove_cell("c");
	close(fd);
	bed_close(b);
}

/* How many network namespaces this process holds by descriptors, but its own; one of them. */
static int held_networks(char name[64])
{
	char path[32], link[64], own[64] = "";
	int n = 0;

	CHECK(readlink("/proc/self/ns/net", own, sizeof(own) - 1) > 0);
	for (int fd = 3; fd < 256; fd++) {
		ssize_t len;

		(void)str_printf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, link, sizeof(link) - 1);
		if (len <= 0)
			continue;
		link[len] = '\0';
		if (!str_has_prefix(link, "net:[") || str_eq(link, own))
			continue;
		n++;
		(void)str_copy(name, 64, link);
	}
	return n;
}

/* What the second cell needs was made behind the start of the first; nobody in there can tell. */
static void next_cell_from_warm_pool(void)
{
	static const char script[] = "readlink /proc/self/ns/net; hostname; ls /dev; id;"
				     "echo x >/dev/shm/said; cat /proc/self/cgroup; cd /..; ls";
	struct bed_start s = { .cell = "first", .script = script };
	char before[64] = "", name[64] = "";
	const char *text, *rest;
	int n, again;

	bed_open(b);
	n = start(&s);
	CHECK_INT(bed_wait(b, n)->exit_code, 0);
	/* That of the first cell, and the one ahead. */
	BED_UNTIL(b, b->keeper->warm_pool.state == WARM_POOL_READY);
	CHECK_INT(held_networks(name), 2);
	remove_cell("first");
	CHECK_INT(held_networks(before), 1);
	text = bed_log_text(b, n, 1);
	rest = strchr(text, '\n');
	CHECK(!str_has_prefix(text, before) && rest && str_has_prefix(rest, "\nfirst\n"));
	CHECK(rest && strstr(rest, "\nmqueue\nnull\n") && strstr(rest, "\nproc\n"));
	(void)str_copy(name, sizeof(name), before);

	s.cell = "other";
	again = start(&s);
	CHECK_INT(bed_wait(b, again)->exit_code, 0);
	text = bed_log_text(b, again, 1);
	CHECK(str_has_prefix(text, name));
	CHECK(str_has_prefix(text + strlen(name), "\nother\n"));
	/* The same file system, and another container without a prepared set. */
	s.script = "readlink /proc/self/ns/net; cat /dev/shm/said; hostname";
	n = start(&s);
	CHECK_INT(bed_wait(b, n)->exit_code, 0);
	text = bed_log_text(b, n, 1);
	CHECK(str_has_prefix(text, name));
	CHECK_STR(text + strlen(name), "\nx\nother\n");
	remove_cell("other");
	keeper_hold(b->keeper, true);
	CHECK_INT(held_networks(name), 0);
	keeper_hold(b->keeper, false);
	bed_close(b);
}

/* What the next cell needs is being made when it comes. */
static void next_cell_at_once(void)
{
	struct bed_start s = { .cell = "a", .script = "hostname; sleep 1000" };
	char name[64] = "";
	int n[4];

	bed_open(b);
	for (int i = 0; i < 4; i++) {
		s.cell = (const char *const[]){ "a", "b", "c", "d" }[i];
		n[i] = start(&s);
		/* The last one is taken back while it waits. */
		if (i < 3)
			BED_UNTIL(b, b->last[n[i]].state == CONTAINER_RUNNING);
	}
	CHECK_INT(keeper_signal(b->keeper, bed_id(n[3]), SIGKILL, true, NULL), 0);
	CHECK_INT(bed_wait(b, n[3])->exit_code, 137);
	BED_UNTIL(b, held_networks(name) == 4);
	BED_UNTIL(b, str_has_prefix(bed_log_text(b, n[2], 1), "c\n"));
	for (int i = 0; i < 4; i++)
		remove_cell((const char *const[]){ "a", "b", "c", "d" }[i]);
	BED_UNTIL(b, held_networks(name) == 1);
	bed_close(b);
}

/* The next cell makes its own namespaces. */
static void drop_warm_pool(void)
{
	keeper_hold(b->keeper, true);
	keeper_hold(b->keeper, false);
}

/* The first of a cell fails while others wait for what it makes: one of them makes it anew. */
static void waiting_ones_go_on(void)
{
	char *nope[] = { (char[]){ "nope" }, NULL };
	int n[4], done = 0;

	bed_open(b);
	for (int i = 0; i < 2; i++)
		n[i] = start(&(struct bed_start){ .argv = nope });
	for (int i = 2; i < 4; i++)
		n[i] = run("readlink /proc/self/ns/net; nc -l -p 7001 & "
			   "until test -e /dev/shm/said; do "
			   "echo x | nc 127.0.0.1 7001 && touch /dev/shm/said; sleep 0.02; done");
	for (int i = 0; i < 4; i++)
		CHECK_INT(bed_wait(b, n[i])->state, i < 2 ? CONTAINER_FAILED : CONTAINER_EXITED);
	CHECK_INT(b->last[n[2]].exit_code, 0);
	CHECK_INT(b->last[n[3]].exit_code, 0);
	CHECK(bed_log_text(b, n[2], 1)[0]);
	CHECK_INT(b->n_started, 4);
	remove_cell("c");

	drop_warm_pool();
	/* Killed on its way: what it made may have no loopback device, so nobody joins it. */
	n[0] = run("sleep 1000");
	n[1] = run("nc -l -p 7001 & until echo x | nc 127.0.0.1 7001; do sleep 0.02; done");
	CHECK_INT(keeper_signal(b->keeper, bed_id(n[0]), SIGKILL, false, NULL), 0);
	CHECK_INT(bed_wait(b, n[0])->exit_code, 137);
	CHECK_INT(bed_wait(b, n[1])->exit_code, 0);
	remove_cell("c");

	drop_warm_pool();
	/* A cell goes, and one of its containers is killed, before the first of them has made
	 * anything. */
	b->n_started = 0;
	for (int i = 0; i < 4; i++)
		n[i] = run("sleep 1000");
	CHECK_INT(keeper_signal(b->keeper, bed_id(n[2]), SIGKILL, false, NULL), 0);
	CHECK_INT(bed_wait(b, n[2])->state, CONTAINER_FAILED);
	CHECK_INT(b->last[n[2]].exit_code, 137);
	(void)run("sleep 1000");
	keeper_remove_cell(b->keeper, "c", count_done, &done);
	BED_UNTIL(b, done);
	CHECK_INT(b->n_started, 5);
	for (int i = 0; i < 4; i++)
		CHECK(b->removed[n[i]]);
	CHECK(!bed_has_cgroup(b, "cell.c"));
	/* The name is free again. */
	CHECK_INT(bed_wait(b, run("exit 3"))->exit_code, 3);
	remove_cell("c");
	bed_close(b);
}

/* A signal that comes before the program runs is not lost. */
static void early_signal(void)
{
	int n;

	bed_open(b);
	n = start(&(struct bed_start){ .process = true, .script = "busybox sleep 1000" });
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGTERM, false, NULL), 0);
	CHECK_INT(bed_wait(b, n)->exit_code, 143);
	CHECK(b->last[n].started_at);
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), 65, false, NULL), 0 - EINVAL);
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGTERM, true, NULL), 0 - EINVAL);
	remove_cell("c");
	bed_close(b);
}

static void credentials(void)
{
	int n;

	bed_open(b);
	n = start(&(struct bed_start){
		.user = "app",
		.cwd = "/tmp",
		.script = "id -u; id -G; pwd; echo $HOME; "
			  "grep -E 'CapBnd|NoNewPrivs|Seccomp:' /proc/self/status" });
	CHECK_INT(bed_wait(b, n)->exit_code, 0);
	CHECK_STR(bed_log_text(b, n, 1),
		  "1000\n1000 2000\n/tmp\n/home/app\n"
		  "CapBnd:\t00000000000005fb\nNoNewPrivs:\t1\nSeccomp:\t2\n");
	CHECK(bed_start(b, &(struct bed_start){ .user = "nobody-here" }, NULL) < 0);
	remove_cell("c");
	bed_close(b);
}

struct write_result {
	int n;
	struct error err;
};

static void wrote(void *userdata, const struct error *err)
{
	struct write_result *w = userdata;

	w->n++;
	w->err = err ? *err : (struct error)ERROR_INIT;
}

static void standard_input(void)
{
	static char big[200000];
	struct write_result w = { .n = 0 };
	struct error err = ERROR_INIT;
	int n;

	bed_open(b);
	n = start(&(struct bed_start){ .script = "cat | wc -c", .stdin_open = true });
	CHECK_INT(keeper_write_stdin(b->keeper, bed_id(n), "x", 1, false, wrote, &w, &err),
		  err.code);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	bed_wait_running(b, n);
	CHECK_INT(
		keeper_write_stdin(b->keeper, bed_id(n), big, sizeof(big), false, wrote, &w, NULL),
		0);
	CHECK_INT(w.n, 0);
	CHECK(keeper_write_stdin(b->keeper, bed_id(n), "x", 1, false, wrote, &w, NULL) < 0);
	BED_UNTIL(b, w.n == 1);
	CHECK_INT(w.err.code, 0);
	CHECK_INT(keeper_write_stdin(b->keeper, bed_id(n), "x", 1, true, wrote, &w, NULL), 0);
	BED_UNTIL(b, w.n == 2);
	CHECK(keeper_write_stdin(b->keeper, bed_id(n), "x", 1, true, wrote, &w, NULL) < 0);
	CHECK_INT(bed_wait(b, n)->exit_code, 0);
	CHECK_STR(bed_log_text(b, n, 1), "200001\n");

	/* Closed by the program. */
	n = start(
		&(struct bed_start){ .script = "exec sleep 1000 </dev/null", .stdin_open = true });
	bed_wait_running(b, n);
	BED_UNTIL(b, runs(b->last[n].pid, "sleep"));
	w.n = 0;
	CHECK_INT(keeper_write_stdin(b->keeper, bed_id(n), "x", 1, false, wrote, &w, NULL), 0);
	BED_UNTIL(b, w.n);
	CHECK_INT(w.err.kind, ERROR_PRECONDITION);
	CHECK_INT(w.err.code != 0, 1);

	/* Full, and then its program ends. */
	n = start(&(struct bed_start){ .script = "sleep 1000", .stdin_open = true });
	bed_wait_running(b, n);
	w.n = 0;
	CHECK_INT(
		keeper_write_stdin(b->keeper, bed_id(n), big, sizeof(big), false, wrote, &w, NULL),
		0);
	bed_turn(b);
	CHECK_INT(w.n, 0);
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGKILL, true, NULL), 0);
	BED_UNTIL(b, w.n);
	CHECK_INT(w.err.kind, ERROR_PRECONDITION);
	CHECK(keeper_write_stdin(b->keeper, bed_id(n), big, CONTAINER_STDIN_MAX + 1, false, wrote,
				 &w, NULL) < 0);
	remove_cell("c");
	bed_close(b);
}

static void plain_process(void)
{
	const struct container_status *s;
	int n;

	bed_open(b);
	n = start(&(struct bed_start){
		.process = true,
		.user = "12:34",
		.script = "busybox id -u; busybox id -g; echo $HOME; exit 4" });
	s = bed_wait(b, n);
	CHECK_INT(s->exit_code, 4);
	CHECK_STR(bed_log_text(b, n, 1), "12\n34\n/\n");

	/* What it leaves behind is killed with it, also what holds its output open. */
	n = start(&(struct bed_start){
		.process = true,
		.script = "busybox setsid busybox sleep 1000 & busybox sleep 0.1; exit 3" });
	s = bed_wait(b, n);
	CHECK_INT(s->state, CONTAINER_EXITED);
	CHECK_INT(s->exit_code, 3);
	CHECK(!bed_has_cgroup(b, "cell.c/n2"));
	CHECK(bed_start(b, &(struct bed_start){ .process = true, .user = "root" }, NULL) < 0);
	keeper_reap_orphans(b->keeper);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	remove_cell("c");
	bed_close(b);
}

static void orphans(void)
{
	int n, pid;
	siginfo_t si = { .si_pid = 0 };

	bed_open(b);
	n = start(&(struct bed_start){ .process = true, .script = "busybox sleep 1000" });
	bed_wait_running(b, n);
	CHECK(keeper_owns_pid(b->keeper, (pid_t)b->last[n].pid));
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGKILL, false, NULL), 0);
	/* A stranger, dead behind a container that is dead as well and not reaped yet. */
	pid = fork();
	if (pid == 0)
		_exit(5);
	CHECK_INT(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
	CHECK(!keeper_owns_pid(b->keeper, pid));
	keeper_reap_orphans(b->keeper);
	CHECK_INT(bed_wait(b, n)->exit_code, 137);
	BED_UNTIL(b, waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) < 0);
	CHECK_INT(errno, ECHILD);
	remove_cell("c");
	bed_close(b);
}

static void nothing_is_left(void)
{
	int n[6], fds, mounts, done = 0;

	bed_open(b);
	/* Once, for what a process makes for its whole life. */
	(void)bed_wait(b, run("echo"));
	remove_cell("c");
	drop_warm_pool();
	fds = bed_count_fds();
	mounts = bed_count_mounts();
	for (int i = 0; i < 6; i++)
		n[i] = start(&(struct bed_start){ .cell = i & 1 ? "odd" : "even",
						  .process = i == 5,
						  .stdin_open = i == 2,
						  .script = i == 4 ? "exit 1"
								   : "while :; do echo x; done" });
	CHECK(bed_count_mounts() > mounts);
	bed_wait_running(b, n[0]);
	keeper_shutdown(b->keeper, count_done, &done);
	CHECK(bed_start(b, &(struct bed_start){ .cell = "late" }, NULL) < 0);
	BED_UNTIL(b, done);
	CHECK_INT(done, 1);
	for (int i = 0; i < 6; i++)
		CHECK(b->removed[n[i]]);
	CHECK_INT(b->n_started, 7);
	CHECK(!bed_has_cgroup(b, "cell.odd") && !bed_has_cgroup(b, "cell.even"));
	drop_warm_pool();
	CHECK_INT(bed_count_mounts(), mounts);
	CHECK_INT(bed_count_fds(), fds);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	bed_close(b);
}

static void free_kills(void)
{
	int pid, n;

	bed_open(b);
	n = run("sleep 1000");
	(void)run("sleep 1000");
	bed_wait_running(b, n);
	pid = (int)b->last[n].pid;
	CHECK(pid > 1 && kill(pid, 0) == 0);
	/* Waits for the dead, and would wait for ever for the living. */
	bed_close(b);
	CHECK(pid > 1 && kill(pid, 0) < 0);
}

static void refusals(void)
{
	char *no_argv[] = { NULL };
	char *bad_env[] = { (char[]){ "X" }, NULL };
	const struct {
		struct bed_start start;
		const char *field;
	} table[] = {
		{ { .cell = "Cell" }, "cell" },
		{ { .cell = "../x" }, "cell" },
		{ { .name = "a_b" }, "name" },
		{ { .argv = no_argv }, "argv" },
		{ { .env = bad_env }, "env" },
		{ { .cwd = "tmp" }, "cwd" },
		{ { .user = "a:b:c" }, "user" },
		{ { .user = "4294967295" }, "user" },
		{ { .process = true, .user = "1:x" }, "user" },
		{ { .hostname = "a\nb" }, "hostname" },
		{ { .shares = true, .hostname = "a\nb" }, "hostname" },
	};

	bed_open(b);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct error err = ERROR_INIT;

		CHECK(bed_start(b, &table[i].start, &err) < 0);
		CHECK_INT(err.kind, ERROR_INVALID);
		CHECK(str_has_prefix(err.text, table[i].field));
	}
	/* None has left a cell or a cgroup. */
	CHECK(!bed_has_cgroup(b, "cell.c"));
	CHECK_INT(b->n_started, 0);
	CHECK_INT(start(&(struct bed_start){ .name = "same", .script = "sleep 1000" }) > 0, 1);
	CHECK_INT(bed_start(b, &(struct bed_start){ .name = "same" }, NULL), -EEXIST);
	remove_cell("c");
	remove_cell("never-was");
	bed_close(b);
}

static void limits(void)
{
	struct bed_start s = { .process = true, .no_log = true, .script = "exit 0" };
	struct error err = ERROR_INIT;
	char cell[32];
	int done = 0;

	bed_open(b);
	s.cell = cell;
	for (int i = 0; i < KEEPER_CELLS_MAX; i++) {
		(void)str_printf(cell, sizeof(cell), "cell-%d", i);
		CHECK(bed_start(b, &s, NULL) > 0);
		bed_turn(b);
	}
	(void)str_copy(cell, sizeof(cell), "one-more");
	CHECK(bed_start(b, &s, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	(void)str_copy(cell, sizeof(cell), "cell-0");
	for (int i = KEEPER_CELLS_MAX; i < KEEPER_CONTAINERS_MAX; i++) {
		CHECK(bed_start(b, &s, NULL) > 0);
		bed_turn(b);
	}
	CHECK(bed_start(b, &s, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	keeper_shutdown(b->keeper, count_done, &done);
	BED_UNTIL(b, done);
	CHECK_INT(done, 1);
	bed_close(b);
}

/* The limits come first: what the others use makes each clone of a sanitized program slower. */
BED_MAIN({ "limits", limits }, { "exit codes and signals", exit_codes },
	 { "programs that cannot be started", cannot_start }, { "logs are exact", logs_are_exact },
	 { "a full log blocks, then goes on or is given up", full_log },
	 { "containers of a cell share", cell_is_shared },
	 { "a cell shares the instance", cell_shares_instance },
	 { "a cell uses the host's network", cell_uses_host_network },
	 { "a cell is given a network", cell_is_given_a_network },
	 { "the next cell from the warm pool", next_cell_from_warm_pool },
	 { "the next cell at once", next_cell_at_once },
	 { "those that wait go on", waiting_ones_go_on },
	 { "an early signal is kept", early_signal }, { "credentials", credentials },
	 { "standard input", standard_input }, { "plain processes", plain_process },
	 { "orphans are reaped", orphans }, { "nothing is left", nothing_is_left },
	 { "free kills", free_kills }, { "refusals name the field", refusals })
