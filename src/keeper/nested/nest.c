/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/nested/nest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "instance/spawn.h"
#include "isolate/cgroup/cgroup.h"

static int nest_make_line(int *ret_ours, int *ret_theirs, struct error *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return error_set(err, -errno, "make a socket");
	*ret_ours = pair[0];
	*ret_theirs = pair[1];
	return 0;
}

int nest_spawn(const struct nest_spawn *spec, struct isolate_child *ret, int *ret_line_fd,
	       struct error *err)
{
	char title[NAME_PATH_MAX + 1], tools[NEST_SERIAL_MAX + 1], memory[24], cpus[16];
	char *argv[] = {
		(char[]){ "nacre" }, (char[]){ "nest" }, title, tools, memory, cpus, NULL
	};
	_cleanup_fd_ int ours = -1, theirs = -1, end_fd = -1, leaf_fd = -1;
	char *const env[] = { NULL };
	struct isolate_plan plan;
	int r;

	(void)str_copy(title, sizeof(title), spec->title);
	if (str_copy(tools, sizeof(tools), spec->nest->tools) < 0)
		return error_field(err, ERROR_INVALID, "tools", "more than %d bytes",
				   NEST_SERIAL_MAX);
	(void)str_printf(memory, sizeof(memory), "%" PRIu64, spec->nest->memory);
	(void)str_printf(cpus, sizeof(cpus), "%u", spec->nest->cpus);
	r = nest_make_line(&ours, &theirs, err);
	if (r < 0)
		return r;
	end_fd = sysio_openat(spec->dir_fd, "end",
			      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (end_fd < 0)
		return error_set(err, -errno, "make the file for last words");
	leaf_fd = cgroup_make(spec->cgroup_fd, "nest", err);
	if (leaf_fd < 0)
		return leaf_fd;
	isolate_plan_init(&plan);
	plan.cgroup_fd = leaf_fd;
	plan.exec_fd = spec->exe_fd;
	plan.argv = argv;
	plan.env = env;
	plan.death_signal = SIGKILL;
	plan.new_session = true;
	plan.stdio[2] = STDERR_FILENO;
	plan.keep_fds[NEST_FD_LINE - 3] = theirs;
	plan.keep_fds[NEST_FD_DIR - 3] = spec->dir_fd;
	plan.keep_fds[NEST_FD_CGROUP - 3] = spec->cgroup_fd;
	plan.keep_fds[NEST_FD_END - 3] = end_fd;
	plan.n_keep_fds = NEST_FD_END_OF_LIST - 3;
	r = isolate_spawn(&plan, ret, err);
	if (r == 0)
		*ret_line_fd = TAKE_FD(ours);
	return r;
}

int nest_read(int line_fd, char *ret, size_t size)
{
	char packet[NEST_PACKET_MAX + 1];
	ssize_t n = recv(line_fd, packet, NEST_PACKET_MAX, 0);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n == 0)
		return -EPIPE;
	packet[n] = '\0';
	if (packet[0] != NEST_READY || !packet[1] || !str_is_clean(packet + 1))
		return -EAGAIN;
	return str_copy(ret, size, packet + 1);
}

void nest_end(int line_fd)
{
	const char packet = NEST_END;

	/* Whom it does not reach is killed. */
	(void)send(line_fd, &packet, sizeof(packet), MSG_NOSIGNAL);
}
