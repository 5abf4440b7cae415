/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/driver/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "gates/channel.h"
#include "io/unix.h"
#include "wire/message/relay.h"

#define RELAY_SOCK_CONSOLE "console.sock"
#define RELAY_SOCK_AGENT "agent.sock"

int relay_start(const struct relay_start *start, struct isolate_child *ret, struct error *err)
{
	_cleanup_str_ char *program = strdup(start->program), *title = strdup(start->title);
	_cleanup_fd_ int console_fd = -1, agent_fd = -1;
	char uid[16], gid[16], role[] = "relay";
	char *const argv[] = { program, role, uid, gid, title, NULL };
	int fds[4];
	const struct channel_spawn spec = { .argv = argv,
					    .net_fd = -1,
					    .cgroup_fd = start->cgroup_fd,
					    .fds = fds,
					    .n_fds = ARRAY_SIZE(fds) };

	if (!program || !title)
		return error_set(err, -ENOMEM, "start nacre-gate");
	console_fd = unix_listen(start->dir_fd, RELAY_SOCK_CONSOLE, SOCK_STREAM, err);
	if (console_fd < 0)
		return console_fd;
	agent_fd = unix_listen(start->dir_fd, RELAY_SOCK_AGENT, SOCK_STREAM, err);
	if (agent_fd < 0)
		return agent_fd;
	(void)str_printf(uid, sizeof(uid), "%u", start->uid);
	(void)str_printf(gid, sizeof(gid), "%u", start->gid);
	fds[0] = console_fd;
	fds[1] = agent_fd;
	fds[2] = start->console_fd;
	fds[3] = start->agent_fd;
	return channel_spawn(&spec, ret, err);
}

static int relay_connect(int dir_fd, const char *name, struct error *err)
{
	int fd = unix_connect(dir_fd, name, SOCK_STREAM, err);

	return fd == -ENOENT || fd == -ECONNREFUSED
		       ? error_refuse(err, ERROR_UNAVAILABLE, "nobody reads its console any more")
		       : fd;
}

int relay_console(int dir_fd, bool replay, struct error *err)
{
	const char wish = replay ? RELAY_REPLAY : RELAY_LIVE;
	_cleanup_fd_ int fd = relay_connect(dir_fd, RELAY_SOCK_CONSOLE, err);

	if (fd < 0)
		return fd;
	if (send(fd, &wish, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
		return error_refuse(err, ERROR_UNAVAILABLE, "nobody reads its console any more");
	return TAKE_FD(fd);
}

int relay_ask_agent(int dir_fd, struct error *err)
{
	return relay_connect(dir_fd, RELAY_SOCK_AGENT, err);
}
