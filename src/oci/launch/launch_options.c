/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/launch_options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/file/fd.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "oci/config/given.h"
#include "oci/launch/message.h"
#include "oci/launch/terminal.h"

static int count_fds(const char *name, const char *text, unsigned *ret, struct error *err)
{
	uint64_t n = 0;

	if (!text)
		return 0;
	if (parse_u64(text, 0, ISOLATE_KEEP_FDS_MAX, &n) < 0)
		return error_refuse(err, ERROR_INVALID, "%s: \"%.40s\" is no number from 0 to %d",
				    name, text, ISOLATE_KEEP_FDS_MAX);
	*ret = (unsigned)n;
	return 0;
}

/* What the caller passed has come through an exec. A number that it left closed can be one of this
 * program's own by now (--log), and those are close-on-exec. */
static bool count_is_given(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

int launch_count_fds(struct launch_options *o, const char *preserve, struct error *err)
{
	int r;

	r = count_fds("LISTEN_FDS", getenv("LISTEN_FDS"), &o->n_listen_fds, err);
	if (r == 0)
		r = count_fds("--preserve-fds", preserve, &o->n_preserve_fds, err);
	if (r < 0)
		return r;
	if (o->n_listen_fds + o->n_preserve_fds > ISOLATE_KEEP_FDS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "more than %d descriptors to pass on",
				    ISOLATE_KEEP_FDS_MAX);
	for (unsigned i = 0; i < o->n_listen_fds + o->n_preserve_fds; i++)
		if (!count_is_given((int)i + 3))
			return error_refuse(err, ERROR_INVALID,
					    "--preserve-fds: descriptor %u is not open", i + 3);
	return 0;
}

/* $LISTEN_FDS of the caller counts in the program, too. */
static int plan_listen_env(struct isolate_plan *plan, struct arena *arena, unsigned n,
			   struct error *err)
{
	size_t n_env = strv_len(plan->env);
	const char **env = arena_zalloc(arena, n_env + 3, sizeof(*env));
	char *count = arena_printf(arena, "LISTEN_FDS=%u", n);

	if (!env || !count)
		return error_set(err, -ENOMEM, "make the environment");
	for (size_t i = 0; i < n_env; i++)
		env[i] = plan->env[i];
	env[n_env] = count;
	env[n_env + 1] = "LISTEN_PID=1";
	plan->env = (char *const *)(uintptr_t)env;
	return 0;
}

int launch_plan_fds(struct isolate_plan *plan, const struct launch_options *o, struct arena *arena,
		    struct error *err)
{
	for (int i = 0; i < 3; i++)
		plan->stdio[i] = i;
	plan->n_keep_fds = o->n_listen_fds + o->n_preserve_fds;
	for (size_t i = 0; i < plan->n_keep_fds; i++)
		plan->keep_fds[i] = (int)i + 3;
	return o->n_listen_fds > 0 ? plan_listen_env(plan, arena, o->n_listen_fds, err) : 0;
}

int launch_plan_terminal(struct isolate_plan *plan, struct isolate_pty *pty,
			 const struct oci_process *p, const struct launch_options *o,
			 struct error *err)
{
	int r = terminal_set_size(pty, p->console_size, err);

	for (int i = 0; i < 3; i++)
		plan->stdio[i] = pty->slave_fd;
	if (r == 0 && o->console_socket)
		r = terminal_send(pty, o->console_socket, err);
	return r;
}

int launch_write_pid_file(const char *path, pid_t pid, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	char text[16];
	int r;

	if (!path)
		return 0;
	fd = given_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	r = fd < 0 ? fd : str_printf(text, sizeof(text), "%d", (int)pid);
	if (r >= 0)
		r = fd_write_full(fd, text, strlen(text));
	return r < 0 ? error_set(err, r, "write the pid file %s", path) : 0;
}

int launch_send_pidfd(const char *path, int pidfd, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (!path)
		return 0;
	fd = message_connect(-1, path, err);
	if (fd < 0)
		return error_wrap(err, fd, "--pidfd-socket");
	r = message_send(fd, "pidfd", 5, &pidfd, 1);
	return r < 0 ? error_set(err, r, "--pidfd-socket: send") : 0;
}

void launch_end(const struct isolate_child *child)
{
	siginfo_t info;

	if (child->pidfd < 0)
		return;
	(void)pidfd_kill(child->pidfd, SIGKILL);
	while (waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED) < 0 && errno == EINTR)
		continue;
}
