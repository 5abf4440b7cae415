/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/memory.h"

#include <errno.h>
#include <poll.h>

#include "base/macros.h"
#include "fetch/job/channel.h"

static int memory_wait(const struct memory *m, struct error *err)
{
	struct pollfd fds[] = { { .fd = m->sock_fd, .events = POLLIN },
				{ .fd = m->stop_fd, .events = POLLIN } };
	struct fetchmsg answer;
	int n, r;

	do {
		n = poll(fds, ARRAY_SIZE(fds), -1);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(err, -errno, "wait for memory");
	if (fds[1].revents)
		return error_set(err, -ECANCELED, "wait for memory");
	r = channel_receive(m->sock_fd, &answer, err);
	if (r < 0)
		return error_wrap(err, r, "wait for memory");
	return answer.type == FETCHMSG_GO ? 0 : error_set(err, -EPROTO, "wait for memory");
}

int memory_ask(struct memory *m, uint64_t n_bytes, struct error *err)
{
	const struct fetchmsg ask = { .type = FETCHMSG_MEMORY, .memory = { .n_bytes = n_bytes } };
	int r;

	if (m->sock_fd < 0 || n_bytes <= MAX(m->granted, FETCH_MEMORY_FREE))
		return 0;
	if (n_bytes > FETCH_MEMORY_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "it takes too much memory to decompress");
	r = channel_send(m->sock_fd, &ask, err);
	if (r == 0)
		r = memory_wait(m, err);
	if (r == 0)
		m->granted = n_bytes;
	return r;
}
