/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A parent and a hostile keeper, which answers each call with bytes of the input: a byte says how
 * many messages follow and how the call ends, and each has its length before it.
 */

#include "keeper/client/client.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/instance.pb-c.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "fuzz.h"
#include "loop/loop.h"
#include "rpc/echo/echo.h"
#include "rpc/server/server.h"

#define METHODS_MAX 64
#define STEPS 24

static struct fuzz_input answers;

static void on_call(struct rpc_call *c, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;
	unsigned how = fuzz_byte(&answers);

	for (unsigned i = 0; i < (how & 3); i++) {
		struct fuzz_input part = fuzz_bytes(&answers, fuzz_byte(&answers));

		if (rpc_call_send_bytes(c, part.at, part.len) < 0)
			break;
	}
	/* Some never end: the loss of the connection does it. */
	if ((how & 12) == 12 && !rpc_call_cancelled(c)) {
		(void)error_refuse(&err, ERROR_NOT_FOUND, "the fuzz says no");
		rpc_call_fail(c, &err);
	} else {
		rpc_call_finish(c);
	}
}

static void on_container(void *userdata, const struct container_view *view)
{
	fuzz_need(view->id && view->cell && view->name);
}

static void on_child_end(void *userdata, const char *name, const char *reason)
{
	fuzz_need(name && reason);
}

static void on_synced(void *userdata)
{
}

static void on_lost(void *userdata, const struct error *err)
{
	fuzz_need(err && err->code != 0);
}

static const struct peer_events events = { on_container, on_child_end, on_synced, on_lost };

static void on_done(void *userdata, const struct error *err)
{
	fuzz_need(!err || err->code != 0);
}

static void on_spawned(void *userdata, int64_t pid, const struct error *err)
{
	fuzz_need(err || pid > 0);
}

static void step(struct peer *p, struct loop *loop, unsigned what)
{
	switch (what & 7) {
	case 0:
		p->ops->signal(p, "0000000000000001", SIGTERM, false, on_done, NULL);
		break;
	case 1:
		p->ops->remove(p, "0000000000000001", on_done, NULL);
		break;
	case 2:
		p->ops->remove_cell(p, "cell", on_done, NULL);
		break;
	case 3:
		p->ops->spawn(p, "child", &(struct peer_shares){ .network = false }, on_spawned,
			      NULL);
		break;
	case 4:
		p->ops->end(p, "child", on_done, NULL);
		break;
	default:
		for (unsigned i = 0; i < 4; i++)
			loop_turn(loop, false);
	}
}

static void methods_of(const ProtobufCServiceDescriptor *from, struct rpc_method *to)
{
	fuzz_need(from->n_methods <= METHODS_MAX);
	for (unsigned i = 0; i < from->n_methods; i++)
		to[i] = (struct rpc_method){ .name = from->methods[i].name,
					     .input = from->methods[i].input,
					     .output = from->methods[i].output,
					     .server_streaming = true,
					     .handle = on_call };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const ProtobufCServiceDescriptor *d = &nacre__instance__v1__instance_service__descriptor;
	struct fuzz_input in = { data, size };
	struct rpc_method methods[METHODS_MAX];
	struct rpc_service service = { .name = d->name,
				       .methods = methods,
				       .n_methods = d->n_methods };
	struct rpc_server_config config = { 0 };
	struct fuzz_input steps = fuzz_bytes(&in, STEPS);
	struct rpc_server *server;
	struct echo_address address;
	struct peer *p;
	int fds[2], fd;

	answers = in;
	methods_of(d, methods);
	fuzz_need(loop_new(&config.loop) == 0);
	fuzz_need(rpc_server_new(&server, &config) == 0);
	fuzz_need(rpc_server_add(server, &service, NULL) == 0);
	fuzz_need(rpc_server_listen(server, echo_listen(&address)) == 0);
	fd = echo_connect(&address);
	fuzz_need(fd >= 0);
	fuzz_need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
	fuzz_need(keeper_client_new(&p, config.loop, fd, fds[0]) == 0);
	p->ops->open(p, &events, NULL, on_done);
	while (steps.len > 0)
		step(p, config.loop, fuzz_byte(&steps));
	for (unsigned i = 0; i < 16; i++)
		loop_turn(config.loop, false);
	(void)p->ops->free(p);
	(void)fd_close(fds[1]);
	(void)rpc_server_free(server);
	(void)loop_free(config.loop);
	return 0;
}
