/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/output/attach.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/text/str.h"
#include "cell/layer/bed_test.h"
#include "unit.h"

static struct bed bed;
static struct bed *const b = &bed;

/* One who is attached. */
struct seat {
	struct keeper_attach *attach; /* NULL: it has ended */
	struct buf streams[2];
	uint64_t n_skipped;
	int n_ends, n_written;
	struct container_status status;
	struct error err, write_err;
	bool pause; /* at the first output */
};

static void on_output(void *userdata, int stream, const void *data, size_t len)
{
	struct seat *s = userdata;

	CHECK(len > 0 && len <= RING_PIECE_MAX);
	CHECK_INT(buf_add(&s->streams[stream - 1], data, len), 0);
	if (s->pause)
		keeper_attach_pause(s->attach, true);
}

static void on_skipped(void *userdata, uint64_t n)
{
	((struct seat *)userdata)->n_skipped += n;
}

static void on_exit_called(void *userdata, const struct container_status *status)
{
	struct seat *s = userdata;

	s->n_ends++;
	s->status = *status;
	s->attach = NULL;
}

static void on_error(void *userdata, const struct error *err)
{
	struct seat *s = userdata;

	s->n_ends++;
	s->err = *err;
	s->attach = NULL;
}

static const struct keeper_attach_ops ops = {
	.on_output = on_output,
	.on_skipped = on_skipped,
	.on_exit = on_exit_called,
	.on_error = on_error,
};

static void seat_leave(struct seat *s)
{
	if (s->attach)
		keeper_attach_leave(s->attach);
	buf_done(&s->streams[0]);
	buf_done(&s->streams[1]);
	*s = (struct seat){ .attach = NULL };
}

static int seat_take(struct seat *s, int n, bool replay, bool input)
{
	return keeper_attach(b->keeper,
			     &(struct keeper_attach_spec){
				     .id = bed_id(n), .replay = replay, .stdin_open = input },
			     &ops, s, &s->attach, &s->err);
}

static const char *seat_text(struct seat *s, int stream)
{
	static char text[8192];
	const struct buf *from = &s->streams[stream - 1];

	(void)str_printf(text, sizeof(text), "%.*s", (int)from->len,
			 from->len ? (const char *)buf_data(from) : "");
	return text;
}

static void on_written(void *userdata, const struct error *err)
{
	struct seat *s = userdata;

	s->n_written++;
	if (err)
		s->write_err = *err;
}

static void seat_type(struct seat *s, const char *text, bool close)
{
	int n = s->n_written;

	CHECK_INT(keeper_attach_write(s->attach, text, strlen(text), close, on_written, &s->err),
		  0);
	BED_UNTIL(b, s->n_written > n);
	CHECK_INT(s->n_written, n + 1);
}

static void replays_and_follows(void)
{
	struct seat first = { .attach = NULL }, second = { .attach = NULL };
	int n;

	bed_open(b);
	n = bed_start(b,
		      &(struct bed_start){ .script = "echo one; echo two >&2; read x; echo $x",
					   .stdin_open = true },
		      NULL);
	bed_wait_running(b, n);
	BED_UNTIL(b,
		  str_eq(bed_log_text(b, n, 2), "two\n") && str_eq(bed_log_text(b, n, 1), "one\n"));
	CHECK_INT(seat_take(&first, n, true, true), 0);
	CHECK_INT(seat_take(&second, n, false, false), 0);
	CHECK(first.streams[0].len == 0);
	seat_type(&first, "three\n", true);
	BED_UNTIL(b, first.n_ends && second.n_ends);
	CHECK_STR(seat_text(&first, 1), "one\nthree\n");
	CHECK_STR(seat_text(&first, 2), "two\n");
	CHECK_STR(seat_text(&second, 1), "three\n");
	CHECK_STR(seat_text(&second, 2), "");
	CHECK_INT(first.status.state, CONTAINER_EXITED);
	CHECK_INT(first.n_ends, 1);
	CHECK_INT(first.err.code, 0);
	CHECK_STR(bed_log_text(b, n, 1), "one\nthree\n");
	seat_leave(&first);
	seat_leave(&second);
	bed_close(b);
}

static void refuses(void)
{
	struct seat s = { .attach = NULL };
	int n;

	bed_open(b);
	CHECK(keeper_attach(b->keeper, &(struct keeper_attach_spec){ .id = "00" }, &ops, &s,
			    &s.attach, &s.err) < 0);
	CHECK_INT(s.err.kind, ERROR_NOT_FOUND);
	n = bed_start(b, &(struct bed_start){ .script = "sleep 100" }, NULL);
	CHECK(seat_take(&s, n, false, false) < 0);
	CHECK_INT(s.err.kind, ERROR_PRECONDITION);
	bed_wait_running(b, n);
	CHECK(seat_take(&s, n, false, true) < 0);
	CHECK_INT(s.err.kind, ERROR_PRECONDITION);
	s.err = (struct error)ERROR_INIT;
	CHECK_INT(seat_take(&s, n, false, false), 0);
	CHECK(keeper_attach_write(s.attach, "x", 1, false, on_written, &s.err) < 0);
	CHECK(keeper_attach_resize(s.attach, &(struct terminal_size){ 1, 1 }, &s.err) < 0);
	for (int i = 1; i < CONTAINER_ATTACH_MAX; i++) {
		struct keeper_attach *more;

		CHECK_INT(keeper_attach(b->keeper, &(struct keeper_attach_spec){ .id = bed_id(n) },
					&ops, &s, &more, NULL),
			  0);
	}
	s.err = (struct error)ERROR_INIT;
	CHECK(seat_take(&s, n, false, false) < 0);
	CHECK_INT(s.err.kind, ERROR_EXHAUSTED);
	s.attach = NULL;
	bed_close(b);
}

/* 300 KB pass a ring of 64 KiB; who stops reading is waited for and loses nothing. */
static void waits_for_who_reads(void)
{
	struct seat s = { .pause = true };
	int n;

	bed_open(b);
	n = bed_start(b, &(struct bed_start){ .script = "seq 50000", .hold_output = true }, NULL);
	bed_wait_running(b, n);
	CHECK_INT(seat_take(&s, n, true, false), 0);
	BED_UNTIL(b, s.streams[0].len > 0);
	for (int i = 0; i < 200; i++)
		bed_turn(b);
	CHECK(b->last[n].state == CONTAINER_RUNNING);
	CHECK(s.streams[0].len < RING_MAX);
	s.pause = false;
	keeper_attach_pause(s.attach, false);
	BED_UNTIL(b, s.n_ends);
	CHECK_INT(s.streams[0].len, 288894);
	CHECK_INT(s.n_skipped, 0);
	CHECK_INT(s.status.exit_code, 0);
	seat_leave(&s);
	bed_close(b);
}

/* Short output, then the end: both wait for the first who comes. */
static void keeps_the_end_for_the_first(void)
{
	struct seat s = { .attach = NULL };
	int n;

	bed_open(b);
	n = bed_start(b, &(struct bed_start){ .script = "echo hi; exit 7", .hold_output = true },
		      NULL);
	bed_wait_running(b, n);
	BED_UNTIL(b, b->last[n].state == CONTAINER_DRAINING);
	for (int i = 0; i < 100; i++)
		bed_turn(b);
	CHECK_INT(b->last[n].state, CONTAINER_DRAINING);
	CHECK_INT(seat_take(&s, n, true, false), 0);
	BED_UNTIL(b, s.n_ends);
	CHECK_STR(seat_text(&s, 1), "hi\n");
	CHECK_INT(s.status.exit_code, 7);
	CHECK_INT(b->last[n].state, CONTAINER_EXITED);
	seat_leave(&s);

	/* It stays there for those who come later, until it is removed. */
	CHECK_INT(seat_take(&s, n, true, false), 0);
	BED_UNTIL(b, s.n_ends);
	CHECK_STR(seat_text(&s, 1), "hi\n");
	seat_leave(&s);
	bed_close(b);
}

static size_t logged(int n)
{
	_cleanup_(buf_done) struct buf log = BUF_INIT;

	bed_log(b, n, 1, &log);
	return log.len;
}

static void removal_waits_for_nobody(void)
{
	struct seat s = { .pause = true };
	int n;

	bed_open(b);
	n = bed_start(b, &(struct bed_start){ .script = "seq 50000; sleep 100" }, NULL);
	bed_wait_running(b, n);
	CHECK_INT(seat_take(&s, n, true, false), 0);
	/* It has more to come than it has taken. */
	BED_UNTIL(b, s.streams[0].len > 0 && logged(n) > s.streams[0].len);
	keeper_remove_cell(b->keeper, "c", NULL, NULL);
	BED_UNTIL(b, b->removed[n]);
	CHECK(b->removed[n]);
	CHECK_INT(s.n_ends, 1);
	CHECK_INT(s.err.kind, ERROR_ABORTED);
	seat_leave(&s);
	bed_close(b);
}

static void a_terminal_of_its_own(void)
{
	static const char script[] =
		"tty; stty size; test -c /dev/console && echo x >/dev/tty && echo y >/dev/console; "
		"echo $TERM; read x; echo got $x; read y; stty size; cat; echo end";
	struct seat s = { .attach = NULL };
	int n;

	bed_open(b);
	n = bed_start(b,
		      &(struct bed_start){ .script = script,
					   .stdin_open = true,
					   .tty = true,
					   .hold_output = true,
					   .user = "app",
					   .terminal = { 123, 45 } },
		      NULL);
	bed_wait_running(b, n);
	CHECK_INT(seat_take(&s, n, true, true), 0);
	BED_UNTIL(b, str_eq(seat_text(&s, 1), "/dev/pts/0\r\n45 123\r\nx\r\ny\r\nxterm\r\n"));
	CHECK_STR(seat_text(&s, 1), "/dev/pts/0\r\n45 123\r\nx\r\ny\r\nxterm\r\n");
	buf_clear(&s.streams[0]);
	seat_type(&s, "word\n", false);
	BED_UNTIL(b, str_eq(seat_text(&s, 1), "word\r\ngot word\r\n"));
	buf_clear(&s.streams[0]);
	CHECK_INT(keeper_attach_resize(s.attach, &(struct terminal_size){ 80, 24 }, &s.err), 0);
	seat_type(&s, "\n", false);
	BED_UNTIL(b, str_eq(seat_text(&s, 1), "\r\n24 80\r\n"));
	buf_clear(&s.streams[0]);
	/* The end of the input, inside a line. */
	seat_type(&s, "rest", true);
	BED_UNTIL(b, s.n_ends);
	CHECK_STR(seat_text(&s, 1), "restrestend\r\n");
	CHECK_INT(s.streams[1].len, 0);
	CHECK_INT(s.status.exit_code, 0);
	seat_leave(&s);
	bed_close(b);
}

/* More than a terminal holds, and then the end at once. */
static void a_terminal_loses_nothing_at_the_end(void)
{
	struct seat s = { .attach = NULL };
	int n;

	bed_open(b);
	n = bed_start(b,
		      &(struct bed_start){
			      .argv = (char *[]){ (char[]){ "seq" }, (char[]){ "20000" }, NULL },
			      .tty = true,
			      .hold_output = true },
		      NULL);
	bed_wait_running(b, n);
	CHECK_INT(seat_take(&s, n, true, false), 0);
	BED_UNTIL(b, s.n_ends);
	CHECK_INT(s.streams[0].len, 108894 + 20000);
	seat_leave(&s);
	bed_close(b);
}

/* Two who type: the second waits its turn, and one who leaves takes nothing away. */
static void several_type(void)
{
	static char big[300000];
	struct seat one = { .attach = NULL }, two = { .attach = NULL };
	int n;

	memset(big, 'a', sizeof(big));
	bed_open(b);
	n = bed_start(b, &(struct bed_start){ .script = "sleep 0.3; wc -c", .stdin_open = true },
		      NULL);
	bed_wait_running(b, n);
	CHECK_INT(seat_take(&one, n, true, true), 0);
	CHECK_INT(seat_take(&two, n, true, true), 0);
	CHECK_INT(keeper_attach_write(one.attach, big, sizeof(big), false, on_written, &one.err),
		  0);
	CHECK_INT(keeper_attach_write(two.attach, "zz", 2, true, on_written, &two.err), 0);
	CHECK_INT(two.n_written, 0);
	seat_leave(&one);
	BED_UNTIL(b, two.n_ends);
	CHECK_INT(two.n_written, 1);
	CHECK_STR(seat_text(&two, 1), "300002\n");
	CHECK_INT(one.n_written, 0);
	seat_leave(&two);
	bed_close(b);
}

static void signals(void)
{
	struct seat s = { .attach = NULL };
	int n;

	bed_open(b);
	n = bed_start(b,
		      &(struct bed_start){ .script = "trap 'echo usr1; exit 3' USR1; echo up; "
						     "while :; do sleep 0.05; done" },
		      NULL);
	bed_wait_running(b, n);
	CHECK_INT(seat_take(&s, n, true, false), 0);
	BED_UNTIL(b, str_eq(seat_text(&s, 1), "up\n"));
	CHECK(keeper_attach_signal(s.attach, 65, &s.err) < 0);
	CHECK_INT(keeper_attach_signal(s.attach, SIGUSR1, &s.err), 0);
	BED_UNTIL(b, s.n_ends);
	CHECK_STR(seat_text(&s, 1), "up\nusr1\n");
	CHECK_INT(s.status.exit_code, 3);
	seat_leave(&s);
	bed_close(b);
}

BED_MAIN({ "replays_and_follows", replays_and_follows }, { "refuses", refuses },
	 { "waits_for_who_reads", waits_for_who_reads },
	 { "keeps_the_end_for_the_first", keeps_the_end_for_the_first },
	 { "removal_waits_for_nobody", removal_waits_for_nobody },
	 { "a_terminal_of_its_own", a_terminal_of_its_own },
	 { "a_terminal_loses_nothing_at_the_end", a_terminal_loses_nothing_at_the_end },
	 { "several_type", several_type }, { "signals", signals })
