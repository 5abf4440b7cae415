/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A keeper and a hostile parent: calls of its service with any bytes, descriptors with any token,
 * noise on the channel. The keeper is a real one without a cgroup, so that it can start nothing.
 */

#include "keeper/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/instance.pb-c.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "fuzz.h"
#include "fuzz_tmpfs.h"
#include "instance/spawn.h"
#include "io/unix.h"
#include "loop/loop.h"
#include "rpc/exchange/client.h"

#define CALLS_MAX 16
#define STEPS 48

struct call {
	struct rpc_stream *stream;
	bool more;
};

static struct call calls[CALLS_MAX];
static int fd_fd;

static void on_message(struct rpc_stream *s, const uint8_t *data, size_t len, void *userdata)
{
}

static void on_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
		   void *userdata)
{
	struct call *c = userdata;

	c->stream = NULL;
}

static const struct rpc_stream_ops ops = { .on_message = on_message, .on_end = on_end };

static void step_call(struct rpc_client *client, struct fuzz_input *in, bool more)
{
	const ProtobufCServiceDescriptor *service =
		&nacre__instance__v1__instance_service__descriptor;
	unsigned method = fuzz_byte(in);
	struct call *c = &calls[fuzz_byte(in) % CALLS_MAX];
	struct fuzz_input message = fuzz_bytes(in, fuzz_byte(in));
	char path[256];

	if (c->stream)
		return;
	c->more = more;
	(void)str_printf(path, sizeof(path), "/%s/%s", service->name,
			 service->methods[method % service->n_methods].name);
	(void)rpc_client_call(client,
			      &(struct rpc_request){ .method = path,
						     .target = method & 0x80 ? "below/it" : NULL,
						     .data = message.at,
						     .len = message.len,
						     .timeout = NSEC_NEVER,
						     .more = more },
			      &ops, c, &c->stream);
}

static void step_more(struct fuzz_input *in)
{
	struct call *c = &calls[fuzz_byte(in) % CALLS_MAX];
	struct fuzz_input message = fuzz_bytes(in, fuzz_byte(in));

	if (!c->stream || !c->more)
		return;
	c->more = message.len > 0;
	if (!c->more)
		rpc_stream_close_send(c->stream);
	else
		fuzz_need(rpc_stream_send(c->stream, message.at, message.len) == 0);
}

static void step_cancel(struct fuzz_input *in)
{
	struct call *c = &calls[fuzz_byte(in) % CALLS_MAX];

	if (c->stream)
		rpc_stream_cancel(c->stream);
	c->stream = NULL;
}

static void step_descriptor(struct fuzz_input *in)
{
	_cleanup_fd_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned token = fuzz_byte(in);

	(void)fdchan_send(fd_fd, token, token & 1 ? "" : "below/it", fd);
}

static void step(struct rpc_client *client, struct loop *loop, struct fuzz_input *in)
{
	unsigned what = fuzz_byte(in) % 8;
	struct fuzz_input noise;

	if (what < 2) {
		step_call(client, in, what == 1);
	} else if (what == 2) {
		step_more(in);
	} else if (what == 3) {
		step_cancel(in);
	} else if (what == 4) {
		step_descriptor(in);
	} else if (what == 5) {
		noise = fuzz_bytes(in, fuzz_byte(in));
		(void)send(fd_fd, noise.at, noise.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	} else {
		for (unsigned i = 0; i < 4; i++)
			loop_turn(loop, false);
	}
}

static void on_named(void *userdata, const char *path)
{
	fuzz_need(path != NULL);
}

static void on_shut(void *userdata)
{
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_fd_ int dir_fd = fuzz_tmpfs();
	struct fuzz_input in = { data, size };
	struct error err = ERROR_INIT;
	struct keeper_server_config config = {
		.keeper = { .cgroup_fd = -1 },
		.run_fd = dir_fd,
		.exe_fd = -1,
		.path = "",
		.on_named = on_named,
		.on_shut = on_shut,
	};
	struct keeper_server *server;
	struct rpc_client *client;
	int rpc_fd;

	memset(calls, 0, sizeof(calls));
	fuzz_need(loop_new(&config.loop) == 0);
	config.rpc_listen_fd = unix_listen(dir_fd, "rpc.sock", SOCK_STREAM, &err);
	config.channel_listen_fd = unix_listen(dir_fd, "fd.sock", SOCK_SEQPACKET, &err);
	fuzz_need(config.rpc_listen_fd >= 0 && config.channel_listen_fd >= 0);
	fuzz_need(keeper_server_new(&server, &config, &err) == 0);
	fuzz_need(instance_connect(dir_fd, &rpc_fd, &fd_fd, &err) == 0);
	fuzz_need(rpc_client_new(&client, config.loop, rpc_fd) == 0);
	for (unsigned i = 0; i < STEPS && in.len > 0; i++)
		step(client, config.loop, &in);
	for (unsigned i = 0; i < 8; i++)
		loop_turn(config.loop, false);
	(void)rpc_client_free(client);
	(void)fd_close(fd_fd);
	(void)keeper_server_free(server);
	(void)loop_free(config.loop);
	return 0;
}
