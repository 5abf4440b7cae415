/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/container/session.h"

/*
 * Theory of operation. A process belongs to the session if its number is in it, or if its parent
 * belongs: setsid(2) does not take a child out. Members are stopped as they are found, so that they
 * neither fork nor exit, and a child does not lose its parent by our hand; the groups are read
 * again until nobody is new. Then all are killed. A member is remembered by its number and the time
 * of its start: a number that was given to another process meanwhile is not hit.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

#define SESSION_PROCS_MAX ((size_t)1 << 20)
#define SESSION_ROUNDS_MAX 8

struct member {
	pid_t pid;
	uint64_t began;
};

struct members {
	struct member *all; /* by pid */
	size_t n, n_room;
};

struct session_stat {
	pid_t parent, session;
	uint64_t began;
};

/* Fields 4, 6 and 22 of /proc/PID/stat. False where they cannot be told, and of one whose field 3
 * says that it is gone. */
static bool session_stat(int proc_fd, pid_t pid, struct session_stat *ret)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char name[32];
	char *p, *save = NULL;

	(void)str_printf(name, sizeof(name), "%d/stat", (int)pid);
	if (fd_read_file(proc_fd, name, 4096, &b) < 0 || buf_add(&b, "", 1) < 0)
		return false;
	/* Field 2, the name in parentheses, may hold anything: begin behind its last parenthesis.
	 */
	p = strrchr((char *)b.base + b.head, ')');
	for (int field = 3; p && field <= 22; field++) {
		const char *word = strtok_r(field == 3 ? p + 1 : NULL, " ", &save);

		if (!word || (field == 3 && (*word == 'Z' || *word == 'X')))
			return false;
		if (field == 4)
			ret->parent = (pid_t)strtol(word, NULL, 10);
		else if (field == 6)
			ret->session = (pid_t)strtol(word, NULL, 10);
		else if (field == 22)
			ret->began = strtoull(word, NULL, 10);
	}
	return p != NULL;
}

/* Where it is, or would be. */
static size_t members_place(const struct members *m, pid_t pid)
{
	size_t from = 0, to = m->n;

	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (m->all[at].pid < pid)
			from = at + 1;
		else
			to = at;
	}
	return from;
}

static bool members_have(const struct members *m, pid_t pid)
{
	size_t at = members_place(m, pid);

	return at < m->n && m->all[at].pid == pid;
}

static int members_add(struct members *m, pid_t pid, uint64_t began)
{
	size_t at = members_place(m, pid), n_room = m->n_room ? m->n_room * 2 : 64;
	struct member *all = m->all;

	if (m->n == m->n_room) {
		all = reallocarray(m->all, n_room, sizeof(*all));
		if (!all)
			return -1;
		m->all = all;
		m->n_room = n_room;
	}
	memmove(all + at + 1, all + at, (m->n - at) * sizeof(*all));
	all[at] = (struct member){ .pid = pid, .began = began };
	m->n++;
	return 0;
}

/* The pidfd comes first: what is read about the number afterwards is about that process, or it is
 * dead and the signal meets nobody. */
static bool session_take(int proc_fd, struct members *m, pid_t pid, pid_t session)
{
	_cleanup_fd_ int pidfd = pidfd_of(pid);
	struct session_stat s = { .parent = 0 };

	if (pidfd < 0 || !session_stat(proc_fd, pid, &s) ||
	    (s.session != session && !members_have(m, s.parent)))
		return false;
	/* Without memory it dies at once, and its children may be missed. */
	(void)pidfd_kill(pidfd, members_add(m, pid, s.began) < 0 ? SIGKILL : SIGSTOP);
	return true;
}

static bool session_round(int proc_fd, int cgroup_fd, struct members *m, pid_t session)
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

		if (pid > 0 && !members_have(m, pid) && session_take(proc_fd, m, pid, session))
			met = true;
	}
	return met;
}

static void session_end(int proc_fd, const struct member *one)
{
	_cleanup_fd_ int pidfd = pidfd_of(one->pid);
	struct session_stat s = { .parent = 0 };

	if (pidfd >= 0 && session_stat(proc_fd, one->pid, &s) && s.began == one->began)
		(void)pidfd_kill(pidfd, SIGKILL);
}

void session_kill(int proc_fd, int cgroup_fd, pid_t session)
{
	_cleanup_fd_ int below_fd = sysio_openat(
		cgroup_fd, SESSION_GROUP, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct members m = { .all = NULL };
	bool met = true;

	for (int i = 0; met && i < SESSION_ROUNDS_MAX; i++) {
		met = session_round(proc_fd, cgroup_fd, &m, session);
		if (below_fd >= 0 && session_round(proc_fd, below_fd, &m, session))
			met = true;
	}
	for (size_t i = 0; i < m.n; i++)
		session_end(proc_fd, &m.all[i]);
	free(m.all);
}
