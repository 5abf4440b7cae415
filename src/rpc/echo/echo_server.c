/* SPDX-License-Identifier: Apache-2.0 */

/* echo-server SOCKET: serves rpc_test.proto until SIGTERM, for clients of other makers. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "loop/loop.h"
#include "rpc/echo/echo.h"
#include "rpc/server/server.h"

struct echo_server {
	struct loop *loop;
	struct rpc_server *rpc;
	struct loop_signal signals;
	struct echo echo;
};

static int serve_at(const char *path)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (fd < 0)
		return -errno;
	if (str_copy(address.sun_path, sizeof(address.sun_path), path) < 0)
		return -ENAMETOOLONG;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (listen(fd, 128) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static void echo_drained(void *userdata)
{
	struct echo_server *s = userdata;

	s->rpc = rpc_server_free(s->rpc);
	loop_quit(s->loop, 0);
}

static void echo_signal(struct loop_signal *source, int sig, pid_t sender)
{
	struct echo_server *s = container_of(source, struct echo_server, signals);

	rpc_server_drain(s->rpc, 2 * NSEC_PER_SEC, echo_drained, s);
}

static int echo_serve(struct echo_server *s, const char *path)
{
	static const int signals[] = { SIGTERM, SIGINT };
	struct rpc_server_config config = {
		.descriptors = rpc_test_descriptors,
		.descriptors_len = rpc_test_descriptors_len,
	};
	int fd, r;

	r = loop_new(&s->loop);
	if (r < 0)
		return r;
	config.loop = s->loop;
	s->echo.loop = s->loop;
	r = rpc_server_new(&s->rpc, &config);
	if (r < 0)
		return r;
	r = rpc_server_add(s->rpc, &echo_service, &s->echo);
	if (r < 0)
		return r;
	fd = serve_at(path);
	if (fd < 0)
		return fd;
	r = rpc_server_listen(s->rpc, fd);
	if (r < 0)
		return r;
	r = loop_signal_init(&s->signals, s->loop, signals, ARRAY_SIZE(signals), echo_signal);
	if (r < 0)
		return r;
	r = loop_run(s->loop);
	loop_signal_done(&s->signals);
	return r;
}

int main(int argc, char **argv)
{
	struct echo_server s = { .loop = NULL };
	int r;

	if (argc != 2) {
		(void)fprintf(stderr, "usage: echo-server SOCKET\n");
		return EXIT_FAILURE;
	}
	r = echo_serve(&s, argv[1]);
	s.rpc = rpc_server_free(s.rpc);
	s.loop = loop_free(s.loop);
	if (r < 0) {
		errno = -r;
		perror("echo-server");
	}
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
