/* SPDX-License-Identifier: Apache-2.0 */

/* A server on a socket, which is given the input behind the preface of HTTP/2. */

#include <errno.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "fuzz.h"
#include "loop/loop.h"
#include "rpc/echo/echo.h"
#include "rpc/server/server.h"

#define TURNS 12

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rpc_server_config config = { .descriptors = rpc_test_descriptors,
					    .descriptors_len = rpc_test_descriptors_len };
	struct echo echo = { 0 };
	struct rpc_server *server;
	struct echo_address address;
	struct loop *loop;
	char answer[4096];
	int fd;

	fuzz_need(loop_new(&loop) == 0);
	config.loop = echo.loop = loop;
	fuzz_need(rpc_server_new(&server, &config) == 0);
	fuzz_need(rpc_server_add(server, &echo_service, &echo) == 0);
	fuzz_need(rpc_server_listen(server, echo_listen(&address)) == 0);
	fd = echo_connect(&address);
	fuzz_need(fd >= 0);
	(void)!write(fd, preface, sizeof(preface) - 1);
	(void)!write(fd, data, size);
	for (unsigned i = 0; i < TURNS; i++) {
		loop_turn(loop, false);
		while (read(fd, answer, sizeof(answer)) > 0)
			continue;
	}
	(void)fd_close(fd);
	for (unsigned i = 0; i < TURNS; i++)
		loop_turn(loop, false);
	(void)rpc_server_free(server);
	(void)loop_free(loop);
	return 0;
}
