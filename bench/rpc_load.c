/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client that keeps a server of rpc_test.proto busy, and counts:
 *
 *   rpc-load SOCKET unary CONNECTIONS IN-FLIGHT SECONDS   Echo of 100 bytes
 *   rpc-load SOCKET stream SIZE SECONDS                   Count with SIZE bytes in each message
 *
 * Prints one JSON object. The same client for each server, so that only the server differs.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "loop/loop.h"
#include "rpc/exchange/client.h"
#include "rpc/rpc_test.pb-c.h"

#define CONNECTIONS_MAX 1024
#define ECHO_SIZE 100

static struct loop *loop;
static struct rpc_client *clients[CONNECTIONS_MAX];
static uint64_t n_messages, n_bytes, n_failed;
/* An EchoRequest. */
static const uint8_t request[ECHO_SIZE] = { 0x0a, ECHO_SIZE - 2 };

/* A slot in which one call follows the other. */
struct slot {
	struct rpc_client *client;
	bool due;
};

#define SLOTS_MAX 65536

static struct slot slots[SLOTS_MAX];

static void load_message(struct rpc_stream *s, const uint8_t *data, size_t len, void *userdata)
{
	n_messages++;
	n_bytes += len;
}

static void load_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
		     void *userdata)
{
	struct slot *slot = userdata;

	slot->due = code == RPC_OK;
	n_failed += code != RPC_OK;
}

static const struct rpc_stream_ops load_ops = { .on_message = load_message, .on_end = load_end };

static int load_connect(const char *path)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (fd < 0 || str_copy(address.sun_path, sizeof(address.sun_path), path) < 0 ||
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    fd_set_nonblock(fd, true) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int load_open(const char *path, size_t n)
{
	int fd, r;

	for (size_t i = 0; i < n; i++) {
		fd = load_connect(path);
		if (fd < 0)
			return fd;
		r = rpc_client_new(&clients[i], loop, fd);
		/* A server is measured here, not how long it waits for its client's word. */
		if (r == 0)
			r = rpc_client_widen(clients[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int load_unary(struct slot *slot)
{
	struct rpc_request q = {
		.method = "/nacre.test.v1.Test/Echo",
		.data = request,
		.len = sizeof(request),
		.timeout = NSEC_NEVER,
	};

	slot->due = false;
	return rpc_client_call(slot->client, &q, &load_ops, slot, NULL);
}

/* Calls for so long; the first part of it is not counted. */
static int load_run_unary(size_t n_slots, nsec_t length, double *ret_rate)
{
	nsec_t start = clock_mono(), now = start, begin = 0;
	uint64_t before = 0;
	int r = 0;

	while (r == 0 && n_failed == 0 && now < start + length) {
		for (size_t i = 0; r == 0 && i < n_slots; i++)
			if (slots[i].due)
				r = load_unary(&slots[i]);
		loop_turn(loop, true);
		now = clock_mono();
		if (!begin && now > start + length / 5) {
			begin = now;
			before = n_messages;
		}
	}
	*ret_rate = (double)(n_messages - before) * 1e9 / (double)(now - begin);
	return n_failed ? -EIO : r;
}

static int load_run_stream(uint32_t size, nsec_t length, double *ret_rate)
{
	Nacre__Test__V1__CountRequest count = NACRE__TEST__V1__COUNT_REQUEST__INIT;
	struct rpc_request q = {
		.method = "/nacre.test.v1.Test/Count",
		.message = &count.base,
		.timeout = NSEC_NEVER,
	};
	nsec_t start = clock_mono(), now = start, begin = 0;
	uint64_t before = 0;
	int r;

	count.count = UINT32_MAX;
	count.size = size;
	r = rpc_client_call(clients[0], &q, &load_ops, &slots[0], NULL);
	while (r == 0 && n_failed == 0 && now < start + length) {
		loop_turn(loop, true);
		now = clock_mono();
		if (!begin && now > start + length / 5) {
			begin = now;
			before = n_bytes;
		}
	}
	*ret_rate = (double)(n_bytes - before) * 1e9 / (double)(now - begin);
	return n_failed ? -EIO : r;
}

static int load_main(int argc, char **argv)
{
	bool unary = argc == 6 && strcmp(argv[2], "unary") == 0;
	size_t n = unary ? strtoul(argv[3], NULL, 10) : 1;
	size_t each = unary ? strtoul(argv[4], NULL, 10) : 1;
	nsec_t length = (nsec_t)(strtod(argv[argc - 1], NULL) * 1e9);
	double rate = 0;
	int r;

	if (n == 0 || n > CONNECTIONS_MAX || each == 0 || each > SLOTS_MAX / n)
		return -EINVAL;
	r = loop_new(&loop);
	if (r == 0)
		r = load_open(argv[1], n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n * each; i++)
		slots[i] = (struct slot){ .client = clients[i % n], .due = true };
	if (unary)
		r = load_run_unary(n * each, length, &rate);
	else
		r = load_run_stream((uint32_t)strtoul(argv[3], NULL, 10), length, &rate);
	if (r == 0)
		r = printf("{\"per_s\":%.0f}\n", rate) < 0 ? -EIO : 0;
	for (size_t i = 0; i < n; i++)
		clients[i] = rpc_client_free(clients[i]);
	loop = loop_free(loop);
	return r;
}

int main(int argc, char **argv)
{
	int r = argc == 5 || argc == 6 ? load_main(argc, argv) : -EINVAL;

	if (r < 0) {
		errno = -r;
		perror("rpc-load");
	}
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
