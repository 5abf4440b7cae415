/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/container/session.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

#define SESSION_PROCS_MAX ((size_t)1 << 20)
#define SESSION_ROUNDS_MAX 8

/* Field 6 of /proc/PID/stat, and field 3: 'Z' counts as gone. 0 where it cannot be told. */
static pid_t session_of(int proc_fd, pid_t pid)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char name[32];
	char *p, *save = NULL;

	(void)str_printf(name, sizeof(name), "%d/stat", (int)pid);
	if (fd_read_file(proc_fd, name, 4096, &b) < 0 || buf_add(&b, "", 1) < 0)
		return 0;
	/* Field 2, the name in parentheses, may hold anything: begin behind its last parenthesis.
	 */
	p = strrchr((char *)b.base + b.head, ')');
	for (int field = 3; p && field <= 6; field++) {
		const char *word = strtok_r(field == 3 ? p + 1 : NULL, " ", &save);

		if (!word || (field == 3 && (*word == 'Z' || *word == 'X')))
			return 0;
		if (field == 6)
			return (pid_t)strtol(word, NULL, 10);
	}
	return 0;
}

/* The pidfd comes first: what is read about the number afterwards is about that process, or it is
 * dead and the signal meets nobody. */
static bool session_kill_one(int proc_fd, pid_t pid, pid_t session)
{
	_cleanup_fd_ int pidfd = pidfd_of(pid);

	if (pidfd < 0 || session_of(proc_fd, pid) != session)
		return false;
	return pidfd_kill(pidfd, SIGKILL) == 0;
}

static bool session_kill_round(int proc_fd, int cgroup_fd, pid_t session)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char *save = NULL;
	bool met = false;

	if (fd_read_file(cgroup_fd, "cgroup.procs", SESSION_PROCS_MAX, &b) < 0 ||
	    buf_add(&b, "", 1) < 0)
		return false;
	for (char *line = strtok_r((char *)b.base + b.head, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		pid_t pid = (pid_t)strtol(line, NULL, 10);

		if (pid > 0 && session_kill_one(proc_fd, pid, session))
			met = true;
	}
	return met;
}

void session_kill(int proc_fd, int cgroup_fd, pid_t session)
{
	_cleanup_fd_ int below_fd = sysio_openat(
		cgroup_fd, SESSION_GROUP, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	bool met = true;

	for (int i = 0; met && i < SESSION_ROUNDS_MAX; i++) {
		met = session_kill_round(proc_fd, cgroup_fd, session);
		if (below_fd >= 0 && session_kill_round(proc_fd, below_fd, session))
			met = true;
	}
}
