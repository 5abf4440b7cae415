/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/driver/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"
#include "io/unix.h"
#include "unit.h"
#include "gates/channel.h"
#include "wire/message/relay.h"

/* ---- what stands in for the program ---- */

static struct {
	unsigned n;
	int result;
	char words[160];
	int cgroup_fd, net_fd;
	int fds[4]; /* copies: [0] and [1] are listened on */
} started;

int channel_spawn(const struct channel_spawn *spec, struct isolate_child *ret, struct error *err)
{
	started.n++;
	started.words[0] = '\0';
	for (size_t i = 0; spec->argv[i]; i++)
		(void)str_printf(started.words + strlen(started.words),
				 sizeof(started.words) - strlen(started.words), "%s%s",
				 i ? " " : "", spec->argv[i]);
	started.cgroup_fd = spec->cgroup_fd;
	started.net_fd = spec->net_fd;
	CHECK_INT(spec->n_fds, 4);
	if (started.result < 0)
		return error_set(err, started.result, "clone");
	for (size_t i = 0; i < 4; i++)
		started.fds[i] = fcntl(spec->fds[i], F_DUPFD_CLOEXEC, 3);
	ret->pid = 7;
	return 0;
}

/* ---- a place, and one that was started there ---- */

static char place[] = "/tmp/nacre-relay-XXXXXX";

static int open_place(void)
{
	int fd;

	started.n = 0;
	started.result = 0;
	for (size_t i = 0; i < 4; i++)
		started.fds[i] = -1;
	CHECK(mkdtemp(place) != NULL);
	fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void close_place(int dir_fd)
{
	_cleanup_fd_ int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < 4; i++)
		started.fds[i] = fd_close(started.fds[i]);
	(void)fd_close(dir_fd);
	CHECK_INT(rootfd_remove_tree(fd, place + strlen("/tmp/")), 0);
	memcpy(place + strlen(place) - 6, "XXXXXX", 6);
}

/* False where there was no memory for it. */
static bool start_one(int dir_fd)
{
	struct isolate_child child = ISOLATE_CHILD_INIT;
	const struct relay_start start = { .program = "/libexec/nacre-gate",
					   .title = "web",
					   .dir_fd = dir_fd,
					   .cgroup_fd = 11,
					   .console_fd = STDIN_FILENO,
					   .agent_fd = STDOUT_FILENO,
					   .uid = 64001,
					   .gid = 64002 };
	struct error err = ERROR_INIT;

	if (relay_start(&start, &child, &err) < 0) {
		CHECK_INT(err.code, -ENOMEM);
		return false;
	}
	CHECK_INT(child.pid, 7);
	return true;
}

/* What a console that was asked for hears first. */
static void check_wish(int listen_fd, int client_fd, char wish)
{
	_cleanup_fd_ int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	char said[2] = "";

	CHECK(fd >= 0);
	CHECK_INT(recv(fd, said, sizeof(said), 0), 1);
	CHECK_INT(said[0], wish);
	/* It is a line both ways. */
	CHECK_INT(send(fd, "out", 3, MSG_NOSIGNAL), 3);
	CHECK_INT(recv(client_fd, said, 1, 0), 1);
	CHECK_INT(said[0], 'o');
}

/* ---- the tests ---- */

static void is_started_with_its_lines(void)
{
	int dir_fd = open_place();

	if (start_one(dir_fd)) {
		CHECK_INT(started.n, 1);
		CHECK_STR(started.words, "/libexec/nacre-gate relay 64001 64002 web");
		CHECK_INT(started.cgroup_fd, 11);
		CHECK_INT(started.net_fd, -1);
		CHECK_INT(faccessat(dir_fd, "console.sock", F_OK, 0), 0);
		CHECK_INT(faccessat(dir_fd, "agent.sock", F_OK, 0), 0);
		/* What it was lent is still there. */
		CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0 && fcntl(STDOUT_FILENO, F_GETFD) >= 0);
	}
	close_place(dir_fd);
}

static void is_not_where_it_could_not_be_started(void)
{
	struct isolate_child child = ISOLATE_CHILD_INIT;
	struct relay_start start = { .program = "p", .title = "t", .dir_fd = -1, .cgroup_fd = -1 };
	struct error err = ERROR_INIT;
	int dir_fd = open_place();

	CHECK(relay_start(&start, &child, &err) < 0);
	CHECK_INT(started.n, 0);
	start.dir_fd = dir_fd;
	started.result = -EAGAIN;
	err = (struct error)ERROR_INIT;
	CHECK(relay_start(&start, &child, &err) < 0);
	CHECK(err.code == -EAGAIN || err.code == -ENOMEM);
	/* Its sockets are there, and nobody listens. */
	CHECK(relay_console(dir_fd, true, &err) < 0);
	CHECK_INT(err.kind, ERROR_UNAVAILABLE);
	CHECK_STR(err.text, "nobody reads its console any more");
	close_place(dir_fd);
}

static void shows_its_console(void)
{
	struct error err = ERROR_INIT;
	int dir_fd = open_place();

	CHECK(relay_console(dir_fd, true, &err) < 0);
	CHECK_INT(err.kind, ERROR_UNAVAILABLE);
	CHECK_STR(err.text, "nobody reads its console any more");
	for (unsigned replay = 0; replay < 2 && start_one(dir_fd); replay++) {
		_cleanup_fd_ int fd = relay_console(dir_fd, replay, &err);

		CHECK(fd >= 0);
		if (fd >= 0)
			check_wish(started.fds[0], fd, replay ? RELAY_REPLAY : RELAY_LIVE);
		for (size_t i = 0; i < 4; i++)
			started.fds[i] = fd_close(started.fds[i]);
	}
	close_place(dir_fd);
}

static void asks_the_agent_by_coming(void)
{
	struct error err = ERROR_INIT;
	int dir_fd = open_place();

	CHECK(relay_ask_agent(dir_fd, &err) < 0);
	CHECK_INT(err.kind, ERROR_UNAVAILABLE);
	if (start_one(dir_fd)) {
		_cleanup_fd_ int fd = relay_ask_agent(dir_fd, &err);
		_cleanup_fd_ int agent_fd = -1;
		char said = 0;

		CHECK(fd >= 0);
		agent_fd = accept4(started.fds[1], NULL, NULL, SOCK_CLOEXEC);
		CHECK_INT(recv(agent_fd, &said, 1, MSG_DONTWAIT), -1);
		CHECK_INT(send(agent_fd, &(char){ RELAY_ASKED }, 1, MSG_NOSIGNAL), 1);
		CHECK_INT(recv(fd, &said, 1, 0), 1);
		CHECK_INT(said, RELAY_ASKED);
	}
	close_place(dir_fd);
}

UNIT_MAIN({ "is_started_with_its_lines", is_started_with_its_lines },
	  { "is_not_where_it_could_not_be_started", is_not_where_it_could_not_be_started },
	  { "shows_its_console", shows_its_console },
	  { "asks_the_agent_by_coming", asks_the_agent_by_coming })
