/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/relay.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "unit.h"

/* A socket stands for the terminal: what the program has of it is `program_fd`. */
struct bed {
	struct relay relay;
	int master_fd, program_fd;
	int typed_fd; /* writing end of the input */
	int input_fd, output_fd;
	int read_fd; /* reading end of the output */
};

static void bed_init(struct bed *b, int pipe_flags)
{
	int fds[2];

	(void)signal(SIGPIPE, SIG_IGN);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
	b->master_fd = fds[0];
	b->program_fd = fds[1];
	CHECK(pipe2(fds, O_CLOEXEC | pipe_flags) == 0);
	b->input_fd = fds[0];
	b->typed_fd = fds[1];
	CHECK(pipe2(fds, O_CLOEXEC | pipe_flags) == 0);
	b->read_fd = fds[0];
	b->output_fd = fds[1];
	relay_init(&b->relay, b->master_fd, b->input_fd, b->output_fd);
}

static void bed_done(struct bed *b)
{
	int *fds[] = { &b->master_fd, &b->program_fd, &b->typed_fd,
		       &b->input_fd,  &b->output_fd,  &b->read_fd };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		*fds[i] = fd_close(*fds[i]);
}

/* What can be done without waiting; how often there was something. A relay that spins never comes
 * to an end here. */
static int bed_run(struct bed *b)
{
	struct pollfd p[RELAY_POLL_COUNT];
	int n = 0;

	for (relay_polls(&b->relay, p); poll(p, ARRAY_SIZE(p), 0) > 0; relay_polls(&b->relay, p)) {
		relay_step(&b->relay, p);
		if (b->relay.unread)
			break;
		CHECK(n++ < 100000);
		if (n == 100000)
			break;
	}
	return n;
}

static size_t bed_fill(int fd)
{
	static const char data[PIPE_BUF];
	size_t n = 0;
	ssize_t now;

	for (;;) {
		now = write(fd, data, sizeof(data));
		if (now < 0)
			return n;
		n += (size_t)now;
	}
}

static size_t bed_empty(int fd)
{
	static char data[65536];
	size_t n = 0;
	ssize_t now;

	for (;;) {
		now = read(fd, data, sizeof(data));
		if (now <= 0)
			return n;
		n += (size_t)now;
	}
}

static void both_ways(void)
{
	struct bed b;
	char text[16] = "";

	bed_init(&b, 0);
	CHECK(write(b.program_fd, "out", 3) == 3 && write(b.typed_fd, "in", 2) == 2);
	CHECK(bed_run(&b) > 0);
	CHECK(read(b.read_fd, text, sizeof(text)) == 3 && memcmp(text, "out", 3) == 0);
	CHECK(read(b.program_fd, text, sizeof(text)) == 2 && memcmp(text, "in", 2) == 0);
	CHECK(!b.relay.unread && !relay_is_done(&b.relay));
	bed_done(&b);
}

/* Nothing is lost, nothing is read ahead, and nobody spins while the output takes nothing. */
static void output_that_is_full(void)
{
	struct bed b;
	size_t before, sent, there;

	bed_init(&b, O_NONBLOCK);
	before = bed_fill(b.output_fd);
	sent = bed_fill(b.program_fd);
	(void)bed_run(&b);
	CHECK_INT(bed_run(&b), 0);
	/* Input goes on meanwhile. */
	CHECK(write(b.typed_fd, "x", 1) == 1);
	CHECK(bed_run(&b) > 0);
	CHECK(bed_empty(b.program_fd) == 1);
	for (there = 0; bed_run(&b) >= 0 && there < before + sent;) {
		size_t n = bed_empty(b.read_fd);

		there += n;
		if (n == 0)
			break;
	}
	CHECK_INT(there, before + sent);
	CHECK(!b.relay.unread);
	bed_done(&b);
}

/* The program is gone, and what it wrote waits for the reader: a hangup is not reported again and
 * again. */
static void hangup_behind_output(void)
{
	struct bed b;
	size_t before;

	bed_init(&b, O_NONBLOCK);
	before = bed_fill(b.output_fd);
	CHECK(write(b.program_fd, "last", 4) == 4);
	b.program_fd = fd_close(b.program_fd);
	(void)bed_run(&b);
	CHECK_INT(bed_run(&b), 0);
	relay_finish(&b.relay);
	CHECK_INT(bed_run(&b), 0);
	CHECK(!relay_is_done(&b.relay));
	CHECK(bed_empty(b.read_fd) == before);
	(void)bed_run(&b);
	CHECK(relay_is_done(&b.relay));
	CHECK(bed_empty(b.read_fd) == 4);
	bed_done(&b);
}

static void reader_goes(int flags, bool has_output, bool is_full)
{
	struct bed b;

	bed_init(&b, flags);
	if (is_full)
		(void)bed_fill(b.output_fd);
	if (has_output)
		CHECK(write(b.program_fd, "out", 3) == 3);
	if (is_full)
		(void)bed_run(&b);
	CHECK(!b.relay.unread);
	b.read_fd = fd_close(b.read_fd);
	(void)bed_run(&b);
	CHECK(b.relay.unread);
	relay_stop(&b.relay);
	CHECK_INT(bed_run(&b), 0);
	CHECK(relay_is_done(&b.relay));
	bed_done(&b);
}

static void readers_that_go(void)
{
	reader_goes(0, false, false);
	reader_goes(0, true, false);
	reader_goes(O_NONBLOCK, true, false);
	reader_goes(O_NONBLOCK, true, true);
}

static void input_that_waits_and_ends(void)
{
	struct bed b;
	char text[4];

	bed_init(&b, O_NONBLOCK);
	CHECK_INT(bed_run(&b), 0);
	CHECK(write(b.typed_fd, "a", 1) == 1);
	(void)bed_run(&b);
	CHECK(write(b.typed_fd, "b", 1) == 1);
	b.typed_fd = fd_close(b.typed_fd);
	(void)bed_run(&b);
	CHECK(read(b.program_fd, text, sizeof(text)) == 2 && memcmp(text, "ab", 2) == 0);
	/* The end is no end of the output. */
	CHECK_INT(bed_run(&b), 0);
	CHECK(write(b.program_fd, "out", 3) == 3);
	(void)bed_run(&b);
	CHECK(bed_empty(b.read_fd) == 3);
	bed_done(&b);
}

/* A program that does not read: what was typed waits, and the input behind it too. */
static void input_that_is_not_taken(void)
{
	struct bed b;
	size_t before, sent;

	bed_init(&b, O_NONBLOCK);
	before = bed_fill(b.master_fd);
	sent = bed_fill(b.typed_fd);
	(void)bed_run(&b);
	CHECK_INT(bed_run(&b), 0);
	CHECK(bed_empty(b.program_fd) == before);
	for (size_t there = 0; there < sent;) {
		size_t n;

		(void)bed_run(&b);
		n = bed_empty(b.program_fd);
		CHECK(n > 0);
		if (n == 0)
			break;
		there += n;
	}
	/* A program that is gone takes the rest with it. */
	(void)bed_fill(b.master_fd);
	CHECK(write(b.typed_fd, "x", 1) == 1);
	(void)bed_run(&b);
	b.program_fd = fd_close(b.program_fd);
	(void)bed_run(&b);
	CHECK_INT(bed_run(&b), 0);
	bed_done(&b);
}

static void last_of_the_output(void)
{
	struct bed b;

	bed_init(&b, 0);
	CHECK(write(b.program_fd, "last", 4) == 4 && write(b.typed_fd, "x", 1) == 1);
	relay_finish(&b.relay);
	CHECK(!relay_is_done(&b.relay));
	(void)bed_run(&b);
	/* The socket has not been closed: that nothing is there is the end now. */
	CHECK(relay_is_done(&b.relay));
	b.output_fd = fd_close(b.output_fd);
	CHECK(bed_empty(b.read_fd) == 4);
	CHECK(bed_empty(b.program_fd) == 0);
	bed_done(&b);
}

static void without_a_terminal(void)
{
	struct pollfd p[RELAY_POLL_COUNT];
	struct relay r;

	relay_init(&r, -1, STDIN_FILENO, STDOUT_FILENO);
	relay_polls(&r, p);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		CHECK_INT(p[i].fd, -1);
	CHECK(relay_is_done(&r));
}

UNIT_MAIN({ "both ways", both_ways }, { "an output that is full", output_that_is_full },
	  { "a hangup behind output", hangup_behind_output },
	  { "readers that go", readers_that_go },
	  { "input that waits and ends", input_that_waits_and_ends },
	  { "input that is not taken", input_that_is_not_taken },
	  { "the last of the output", last_of_the_output },
	  { "without a terminal", without_a_terminal })
