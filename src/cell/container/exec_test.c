/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/container/exec.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/text/str.h"
#include "cell/layer/bed_test.h"
#include "unit.h"

static struct bed bed;
static struct bed *const b = &bed;

struct result {
	struct keeper_exec *exec;
	struct buf streams[2];
	int n_exits, exit_code, sig;
	char reason[512];
	bool pause, cancel; /* at the first output */
};

static void on_output(void *userdata, int stream, const void *data, size_t len)
{
	struct result *r = userdata;

	CHECK(len > 0 && len <= 65536);
	CHECK_INT(r->n_exits, 0);
	CHECK_INT(buf_add(&r->streams[stream - 1], data, len), 0);
	if (r->pause)
		keeper_exec_pause(r->exec, true);
	if (r->cancel)
		keeper_exec_cancel(r->exec);
	r->cancel = false;
}

static void on_exit_called(void *userdata, int exit_code, int sig, const char *reason)
{
	struct result *r = userdata;

	r->n_exits++;
	r->exit_code = exit_code;
	r->sig = sig;
	(void)str_copy(r->reason, sizeof(r->reason), reason);
}

static const struct keeper_exec_ops ops = { .on_output = on_output, .on_exit = on_exit_called };

static void result_reset(struct result *r)
{
	buf_done(&r->streams[0]);
	buf_done(&r->streams[1]);
	*r = (struct result){ .exec = NULL };
}

static const char *text(struct result *r, int stream)
{
	static char s[4096];
	struct buf *from = &r->streams[stream - 1];

	(void)str_printf(s, sizeof(s), "%.*s", (int)from->len,
			 from->len ? (const char *)buf_data(from) : "");
	return s;
}

static int exec(struct result *r, int n, const char *script, struct keeper_exec_spec spec)
{
	char *argv[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, NULL, NULL };
	_cleanup_str_ char *copy = strdup(script);
	struct error err = ERROR_INIT;
	int result;

	result_reset(r);
	argv[2] = copy;
	spec.id = bed_id(n);
	spec.argv = spec.argv ?: argv;
	spec.cwd = spec.cwd ?: "";
	spec.user = spec.user ?: "";
	spec.timeout = spec.timeout ?: NSEC_NEVER;
	result = keeper_exec(b->keeper, &spec, &ops, r, &r->exec, &err);
	CHECK_INT(r->n_exits, 0);
	return result;
}

static void exec_wait(struct result *r, int n, const char *script, struct keeper_exec_spec spec)
{
	CHECK_INT(exec(r, n, script, spec), 0);
	BED_UNTIL(b, r->n_exits);
	CHECK_INT(r->n_exits, 1);
}

static void remove_done(void *userdata)
{
	*(bool *)userdata = true;
}

static void remove_cell(void)
{
	bool done = false;

	keeper_remove_cell(b->keeper, "c", remove_done, &done);
	BED_UNTIL(b, done);
	CHECK(done);
}

static int sleeper(void)
{
	char *env[] = { (char[]){ "A=1" }, (char[]){ "B=2" }, NULL };
	int n = bed_start(b,
			  &(struct bed_start){ .script = "for k in pid mnt net ipc uts cgroup; do "
							 "readlink /proc/self/ns/$k; done; "
							 "sleep 1000",
					       .env = env },
			  NULL);

	bed_wait_running(b, n);
	return n;
}

static void runs_inside(void)
{
	char *env[] = { (char[]){ "B=3" }, NULL };
	char *nope[] = { (char[]){ "nope" }, NULL };
	char *not_exec[] = { (char[]){ "/etc/passwd" }, NULL };
	struct result r = { .exec = NULL };
	int n;

	bed_open(b);
	n = sleeper();
	/* What it says of itself has to be in its log first. */
	BED_UNTIL(b, strstr(bed_log_text(b, n, 1), "cgroup:["));
	exec_wait(&r, n, "for k in pid mnt net ipc uts cgroup; do readlink /proc/self/ns/$k; done",
		  (struct keeper_exec_spec){ .env = NULL });
	CHECK_INT(r.exit_code, 0);
	CHECK_STR(text(&r, 1), bed_log_text(b, n, 1));
	CHECK(r.streams[0].len > 60);

	exec_wait(&r, n, "echo $A$B$HOME; echo err >&2; pwd; exit 42",
		  (struct keeper_exec_spec){ .env = env, .cwd = "/tmp" });
	CHECK_INT(r.exit_code, 42);
	CHECK_STR(text(&r, 1), "13/root\n/tmp\n");
	CHECK_STR(text(&r, 2), "err\n");

	exec_wait(&r, n,
		  "id -u; id -G; echo $HOME; cat /proc/self/cgroup | grep ^0; "
		  "grep -E 'CapBnd|NoNewPrivs|Seccomp:' /proc/self/status",
		  (struct keeper_exec_spec){ .user = "app" });
	CHECK_STR(text(&r, 1), "1000\n1000 2000\n/home/app\n0::/\nCapBnd:\t00000000000005fb\n"
			       "NoNewPrivs:\t1\nSeccomp:\t2\n");

	exec_wait(&r, n, "kill -TERM $$", (struct keeper_exec_spec){ .env = NULL });
	CHECK_INT(r.exit_code, 143);
	CHECK_INT(r.sig, 15);
	exec_wait(&r, n, "", (struct keeper_exec_spec){ .argv = nope });
	CHECK_INT(r.exit_code, 127);
	CHECK(strstr(r.reason, "nope"));
	exec_wait(&r, n, "", (struct keeper_exec_spec){ .argv = not_exec });
	CHECK_INT(r.exit_code, 126);
	CHECK_INT(b->last[n].state, CONTAINER_RUNNING);
	result_reset(&r);
	remove_cell();
	bed_close(b);
}

static void is_refused(void)
{
	struct keeper_exec_spec spec = { .argv = NULL };
	struct result r = { .exec = NULL };
	struct error err = ERROR_INIT;
	int n;

	bed_open(b);
	n = sleeper();
	spec.id = bed_id(n);
	CHECK(keeper_exec(b->keeper, &spec, &ops, &r, &r.exec, &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
	CHECK_INT(exec(&r, 77, "true", spec), -ENOENT);
	CHECK(exec(&r, n, "true", (struct keeper_exec_spec){ .user = "nobody-here" }) < 0);
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGKILL, true, NULL), 0);
	(void)bed_wait(b, n);
	spec.argv = NULL;
	CHECK(exec(&r, n, "true", spec) < 0);
	remove_cell();
	bed_close(b);
}

static void times_out(void)
{
	struct result r = { .exec = NULL };
	nsec_t before;
	int n;

	bed_open(b);
	n = sleeper();
	before = clock_mono();
	/* A child of it holds the output open. */
	exec_wait(&r, n, "echo begun; sleep 900 & sleep 900",
		  (struct keeper_exec_spec){ .timeout = 5 * NSEC_PER_SEC });
	CHECK_INT(r.exit_code, 137);
	CHECK(strstr(r.reason, "time"));
	CHECK_STR(text(&r, 1), "begun\n");
	CHECK(clock_mono() - before < 60 * NSEC_PER_SEC);

	exec_wait(&r, n, "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null; done",
		  (struct keeper_exec_spec){ .env = NULL });
	CHECK(!strstr(text(&r, 1), "sleep 900 "));
	/* Nor is it kept by one that left the session, at any depth. */
	exec_wait(&r, n, "setsid sh -c 'sleep 902 & setsid sh -c \"sleep 902; :\"; :'; :",
		  (struct keeper_exec_spec){ .timeout = 2 * NSEC_PER_SEC });
	CHECK_INT(r.exit_code, 137);
	exec_wait(&r, n, "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null; done",
		  (struct keeper_exec_spec){ .env = NULL });
	CHECK(!strstr(text(&r, 1), "sleep 902"));
	CHECK(strstr(text(&r, 1), "sleep"));
	result_reset(&r);
	remove_cell();
	bed_close(b);
}

/* The exec ends with its program; what the program left lives on, and its output is cut. */
static void leaves_a_child(void)
{
	static const char *const left[] = { "sleep 901 & exit 6", "setsid sleep 901 & exit 6",
					    "yes | cat & exit 6" };
	struct result r = { .exec = NULL };
	char command[128];
	int n;

	bed_open(b);
	n = sleeper();
	for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
		(void)str_printf(command, sizeof(command), "echo out; echo err >&2; %s", left[i]);
		exec_wait(&r, n, command, (struct keeper_exec_spec){ .env = NULL });
		CHECK_INT(r.exit_code, 6);
		CHECK_STR(r.reason, "");
		CHECK(str_has_prefix(text(&r, 1), "out\n"));
		CHECK_STR(text(&r, 2), "err\n");
	}
	/* Output written within the drain is passed on. */
	exec_wait(&r, n, "(sleep 0.02; echo late) & exit 0",
		  (struct keeper_exec_spec){ .env = NULL });
	CHECK_STR(text(&r, 1), "late\n");
	exec_wait(&r, n, "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null; done",
		  (struct keeper_exec_spec){ .env = NULL });
	CHECK(strstr(text(&r, 1), "sleep 901 "));
	result_reset(&r);
	remove_cell();
	bed_close(b);
}

static void is_cancelled(void)
{
	struct result r = { .exec = NULL };
	int n;

	bed_open(b);
	n = sleeper();
	CHECK_INT(exec(&r, n, "sleep 900 & while :; do echo x; done",
		       (struct keeper_exec_spec){ .env = NULL }),
		  0);
	r.cancel = true;
	BED_UNTIL(b, r.streams[0].len);
	for (int i = 0; i < 200; i++)
		bed_turn(b);
	CHECK_INT(r.n_exits, 0);
	/* While it is only being drained: nobody reads the rest. */
	CHECK_INT(exec(&r, n, "setsid sleep 901 & seq 1 5000; exit 0",
		       (struct keeper_exec_spec){ .env = NULL }),
		  0);
	keeper_exec_pause(r.exec, true);
	for (int i = 0; i < 200; i++)
		bed_turn(b);
	CHECK_INT(r.n_exits, 0);
	keeper_exec_cancel(r.exec);
	exec_wait(&r, n, "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null; done",
		  (struct keeper_exec_spec){ .env = NULL });
	CHECK(!strstr(text(&r, 1), "sleep 900 "));
	CHECK(!strstr(text(&r, 1), "echo x"));
	result_reset(&r);
	remove_cell();
	bed_close(b);
}

static void is_paused(void)
{
	struct result r = { .exec = NULL }, after = { .exec = NULL };
	size_t len;
	int n;

	bed_open(b);
	n = sleeper();
	CHECK_INT(exec(&r, n, "seq 1 100000", (struct keeper_exec_spec){ .env = NULL }), 0);
	r.pause = true;
	BED_UNTIL(b, r.streams[0].len);
	len = r.streams[0].len;
	for (int i = 0; i < 200; i++)
		bed_turn(b);
	CHECK_INT(r.streams[0].len, len);
	CHECK_INT(r.n_exits, 0);
	r.pause = false;
	keeper_exec_pause(r.exec, false);
	BED_UNTIL(b, r.n_exits);
	CHECK_INT(r.streams[0].len, 588895);

	/* Its container ends and is forgotten while nobody reads: what it wrote still comes. */
	CHECK_INT(exec(&r, n, "seq 1 5000; sleep $((1000 + 50))",
		       (struct keeper_exec_spec){ .env = NULL }),
		  0);
	keeper_exec_pause(r.exec, true);
	exec_wait(&after, n,
		  "until cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' |"
		  " grep -q 'sleep 105[0]'; do sleep 0.02; done",
		  (struct keeper_exec_spec){ .env = NULL });
	CHECK_INT(after.exit_code, 0);
	result_reset(&after);
	remove_cell();
	CHECK(b->removed[n]);
	CHECK_INT(r.n_exits, 0);
	keeper_exec_pause(r.exec, false);
	BED_UNTIL(b, r.n_exits);
	CHECK_INT(r.exit_code, 137);
	CHECK_INT(r.streams[0].len, 23893);
	result_reset(&r);
	bed_close(b);
}

static void many(void)
{
	static struct result r[CONTAINER_EXECS_MAX + 1];
	int n, ended = 0;

	bed_open(b);
	n = sleeper();
	for (int i = 0; i < CONTAINER_EXECS_MAX; i++)
		CHECK_INT(exec(&r[i], n, "sleep 1000", (struct keeper_exec_spec){ .env = NULL }),
			  0);
	CHECK(exec(&r[CONTAINER_EXECS_MAX], n, "true", (struct keeper_exec_spec){ .env = NULL }) <
	      0);
	/* The end of the container ends them all. */
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGKILL, false, NULL), 0);
	CHECK_INT(bed_wait(b, n)->exit_code, 137);
	for (int i = 0; i < CONTAINER_EXECS_MAX; i++) {
		BED_UNTIL(b, r[i].n_exits);
		ended += r[i].n_exits == 1 && r[i].exit_code == 137;
		result_reset(&r[i]);
	}
	CHECK_INT(ended, CONTAINER_EXECS_MAX);
	remove_cell();
	bed_close(b);
}

static int n_written;
static struct error write_err;

static void on_written(void *userdata, const struct error *err)
{
	n_written++;
	if (err)
		write_err = *err;
}

static void type(struct result *r, const char *words, bool close)
{
	int n = n_written;

	/* One that has ended is gone with the next turn. */
	CHECK_INT(r->n_exits, 0);
	CHECK_INT(keeper_exec_write(r->exec, words, strlen(words), close, on_written, NULL), 0);
	BED_UNTIL(b, n_written > n);
}

static void takes_input(void)
{
	struct result r = { .exec = NULL };
	static char big[400000];
	int n;

	memset(big, 'x', sizeof(big));
	bed_open(b);
	n = sleeper();
	CHECK_INT(exec(&r, n, "cat; echo end", (struct keeper_exec_spec){ .stdin_open = true }), 0);
	type(&r, "one ", false);
	type(&r, "two ", true);
	CHECK(keeper_exec_write(r.exec, "x", 1, false, on_written, NULL) < 0);
	BED_UNTIL(b, r.n_exits);
	CHECK_STR(text(&r, 1), "one two end\n");

	/* What the pipe does not take waits, until the program has ended. */
	write_err = (struct error)ERROR_INIT;
	CHECK_INT(exec(&r, n, "read x; exit 5", (struct keeper_exec_spec){ .stdin_open = true }),
		  0);
	CHECK_INT(keeper_exec_write(r.exec, big, sizeof(big), false, on_written, NULL), 0);
	for (int i = 0; i < 20; i++)
		bed_turn(b);
	CHECK_INT(write_err.code, 0);
	CHECK_INT(keeper_exec_signal(r.exec, SIGTERM, NULL), 0);
	BED_UNTIL(b, r.n_exits);
	CHECK_INT(r.exit_code, 128 + SIGTERM);
	CHECK_INT(write_err.kind, ERROR_PRECONDITION);

	/* Without it there is none. */
	CHECK_INT(exec(&r, n, "cat; sleep 100", (struct keeper_exec_spec){ .env = NULL }), 0);
	CHECK(keeper_exec_write(r.exec, "x", 1, false, on_written, NULL) < 0);
	CHECK(keeper_exec_resize(r.exec, &(struct terminal_size){ 1, 1 }, NULL) < 0);
	CHECK(keeper_exec_signal(r.exec, 65, NULL) < 0);
	keeper_exec_cancel(r.exec);
	result_reset(&r);
	remove_cell();
	bed_close(b);
}

static void has_a_terminal(void)
{
	struct keeper_exec_spec spec = {
		.stdin_open = true, .tty = true, .user = "app", .terminal = { 100, 30 }
	};
	struct result r = { .exec = NULL };
	int n;

	bed_open(b);
	n = sleeper();
	/* Its size is right for the first who looks; errors come out of the same end. */
	CHECK_INT(exec(&r, n,
		       "stty size; tty; echo err >&2; read x; stty size; echo $x >/dev/tty; "
		       "sleep 1000 & exit 9",
		       spec),
		  0);
	BED_UNTIL(b, strstr(text(&r, 1), "err"));
	CHECK_STR(text(&r, 1), "30 100\r\n/dev/pts/0\r\nerr\r\n");
	CHECK_INT(keeper_exec_resize(r.exec, &(struct terminal_size){ 40, 20 }, NULL), 0);
	type(&r, "word\n", false);
	/* What it leaves running does not keep it: the terminal is hung up. */
	BED_UNTIL(b, r.n_exits);
	CHECK_INT(r.exit_code, 9);
	CHECK_STR(text(&r, 1), "30 100\r\n/dev/pts/0\r\nerr\r\nword\r\n20 40\r\nword\r\n");
	CHECK_INT(r.streams[1].len, 0);

	/* The interrupt character reaches the program as a signal. */
	CHECK_INT(exec(&r, n, "trap 'echo int; exit 4' INT; echo up; while :; do sleep 0.05; done",
		       spec),
		  0);
	BED_UNTIL(b, strstr(text(&r, 1), "up"));
	type(&r, "\003", false);
	BED_UNTIL(b, r.n_exits);
	CHECK_INT(r.exit_code, 4);
	CHECK(strstr(text(&r, 1), "int\r\n"));

	/* More than the terminal holds. */
	CHECK_INT(exec(&r, n, "exec seq 20000", spec), 0);
	BED_UNTIL(b, r.n_exits);
	CHECK_INT(r.streams[0].len, 108894 + 20000);
	result_reset(&r);
	remove_cell();
	bed_close(b);
}

static int n_starts;

static void on_start(void *userdata)
{
	struct result *r = userdata;

	CHECK_INT(r->n_exits, 0);
	n_starts++;
}

/* Once, when it runs; never of one that cannot be executed. */
static void tells_its_start(void)
{
	const struct keeper_exec_ops with_start = { on_output, on_exit_called, on_start };
	char *waits[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, (char[]){ "read x; exit 3" },
			  NULL };
	char *nope[] = { (char[]){ "nope" }, NULL };
	struct keeper_exec_spec spec = {
		.argv = waits, .cwd = "", .user = "", .timeout = NSEC_NEVER, .stdin_open = true
	};
	struct result r = { .exec = NULL };
	struct error err = ERROR_INIT;
	int n;

	bed_open(b);
	n = sleeper();
	spec.id = bed_id(n);
	CHECK_INT(keeper_exec(b->keeper, &spec, &with_start, &r, &r.exec, &err), 0);
	CHECK_INT(n_starts, 0);
	BED_UNTIL(b, n_starts);
	CHECK_INT(r.n_exits, 0);
	CHECK_INT(keeper_exec_write(r.exec, "x\n", 2, true, on_written, &err), 0);
	BED_UNTIL(b, r.n_exits);
	CHECK_INT(r.exit_code, 3);
	CHECK_INT(n_starts, 1);
	result_reset(&r);

	spec.argv = nope;
	spec.stdin_open = false;
	CHECK_INT(keeper_exec(b->keeper, &spec, &with_start, &r, &r.exec, &err), 0);
	BED_UNTIL(b, r.n_exits);
	CHECK_INT(r.exit_code, 127);
	CHECK(strstr(r.reason, "nope"));
	CHECK_INT(n_starts, 1);
	result_reset(&r);
	remove_cell();
	bed_close(b);
}

BED_MAIN({ "an exec runs inside", runs_inside }, { "an exec is refused", is_refused },
	 { "an exec times out", times_out }, { "an exec leaves a child behind", leaves_a_child },
	 { "an exec is cancelled", is_cancelled }, { "an exec is paused", is_paused },
	 { "many execs, ended by their container", many }, { "takes_input", takes_input },
	 { "has_a_terminal", has_a_terminal }, { "tells_its_start", tells_its_start })
