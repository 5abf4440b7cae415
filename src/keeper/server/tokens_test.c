/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "io/unix.h"
#include "scratch.h"
#include "unit.h"

static struct loop *l;
static struct tokens t;
static char dir[] = "/tmp/tokens-test-XXXXXX";
static int dir_fd;
static char forwarded[FDCHAN_TARGET_MAX];

static void forward(void *userdata, const struct fdchan_packet *packet)
{
	(void)str_copy(forwarded, sizeof(forwarded), packet->target);
}

static void begin(void)
{
	(void)str_copy(dir, sizeof(dir), "/tmp/tokens-test-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(loop_new(&l) == 0);
	tokens_init(&t, l, unix_listen(dir_fd, "fd.sock", SOCK_SEQPACKET, NULL), forward, NULL);
	forwarded[0] = '\0';
}

static void end(void)
{
	tokens_done(&t);
	l = loop_free(l);
	dir_fd = fd_close(dir_fd);
	CHECK_INT(scratch_remove(dir), 0);
}

static int channel(void)
{
	return unix_connect(dir_fd, "fd.sock", SOCK_SEQPACKET, NULL);
}

/* Sends the writing end of a pipe: the reading end tells when the other is closed. */
static int send_pipe(int fd, uint64_t token, const char *target)
{
	int ends[2];

	CHECK(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
	CHECK_INT(fdchan_send(fd, token, target, ends[1]), 0);
	(void)fd_close(ends[1]);
	return ends[0];
}

static bool is_closed(int pipe_fd)
{
	char c;

	return read(pipe_fd, &c, 1) == 0;
}

static void a_token_is_taken_once(void)
{
	int fd, pipe_fd, taken;

	begin();
	fd = channel();
	pipe_fd = send_pipe(fd, 42, "");
	CHECK_INT(tokens_take(&t, 41), -ENOENT);
	taken = tokens_take(&t, 42);
	CHECK(taken >= 0);
	CHECK(write(taken, "x", 1) == 1);
	CHECK_INT(tokens_take(&t, 42), -ENOENT);
	(void)fd_close(taken);
	(void)fd_close(pipe_fd);
	(void)fd_close(fd);
	end();
}

static void unclaimed_ones_are_bounded(void)
{
	int pipes[TOKENS_HELD_MAX + 1], fd;

	begin();
	fd = channel();
	for (int i = 0; i <= TOKENS_HELD_MAX; i++)
		pipes[i] = send_pipe(fd, (uint64_t)i + 1, "");
	tokens_drain(&t);
	CHECK_INT(t.n_held, TOKENS_HELD_MAX);
	CHECK(is_closed(pipes[0]));
	CHECK(!is_closed(pipes[1]));
	CHECK_INT(tokens_take(&t, 1), -ENOENT);

	/* What came over a connection that has ended is of no use to anybody. */
	(void)fd_close(fd);
	tokens_drain(&t);
	CHECK_INT(t.n_held, 0);
	CHECK_INT(t.n_connections, 0);
	for (int i = 0; i <= TOKENS_HELD_MAX; i++) {
		CHECK(is_closed(pipes[i]));
		(void)fd_close(pipes[i]);
	}
	end();
}

static void refused_ones_are_not_kept(void)
{
	int fd, before, after;

	begin();
	fd = channel();
	before = send_pipe(fd, 5, "");
	tokens_drain(&t);
	CHECK(tokens_have(&t, 5));
	tokens_refuse(&t, 5);
	CHECK(is_closed(before));
	tokens_refuse(&t, 6);
	tokens_refuse(&t, 0);
	after = send_pipe(fd, 6, "");
	tokens_drain(&t);
	CHECK(is_closed(after));
	CHECK(!tokens_have(&t, 6));
	CHECK_INT(t.n_held, 0);
	/* Refused once is not refused for ever. */
	(void)fd_close(after);
	after = send_pipe(fd, 6, "");
	tokens_drain(&t);
	CHECK(tokens_have(&t, 6));
	(void)fd_close(before);
	(void)fd_close(after);
	(void)fd_close(fd);
	end();
}

static void targets_are_passed_on(void)
{
	int fd, pipe_fd;

	begin();
	fd = channel();
	pipe_fd = send_pipe(fd, 7, "b/c");
	tokens_drain(&t);
	CHECK_STR(forwarded, "b/c");
	CHECK_INT(t.n_held, 0);
	CHECK(is_closed(pipe_fd));
	(void)fd_close(pipe_fd);
	(void)fd_close(fd);
	end();
}

static void connections_are_bounded(void)
{
	int fds[TOKENS_CONNECTIONS_MAX + 1], pipe_fd;

	begin();
	for (int i = 0; i <= TOKENS_CONNECTIONS_MAX; i++)
		fds[i] = channel();
	pipe_fd = send_pipe(fds[TOKENS_CONNECTIONS_MAX], 9, "");
	CHECK_INT(tokens_take(&t, 9), -ENOENT);
	CHECK_INT(t.n_connections, TOKENS_CONNECTIONS_MAX);
	CHECK(is_closed(pipe_fd));
	for (int i = 0; i <= TOKENS_CONNECTIONS_MAX; i++)
		(void)fd_close(fds[i]);
	(void)fd_close(pipe_fd);
	end();
}

UNIT_MAIN({ "a token is taken once", a_token_is_taken_once },
	  { "unclaimed ones are bounded", unclaimed_ones_are_bounded },
	  { "refused ones are not kept", refused_ones_are_not_kept },
	  { "targets are passed on", targets_are_passed_on },
	  { "connections are bounded", connections_are_bounded })
