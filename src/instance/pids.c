/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/pids.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup_name.h"

/* ./cell.+N/+N/cgroup.procs, with room for names. */
#define PIDS_PATH_SIZE (2 * NAME_LABEL_MAX + 64)

/* Namespaces of processes, one in the other: as many as the kernel allows, and the first. */
#define PIDS_LEVELS_MAX 33

/* Since 6.11; the headers may be older. */
#define PIDS_NAMESPACE_OF_PIDFD _IO(0xff, 5)     /* PIDFD_GET_PID_NAMESPACE */
#define PIDS_FROM_NAMESPACE _IOR(0xb7, 0x7, int) /* NS_GET_TGID_FROM_PIDNS */

int instance_find_process(struct instance *i, pid_t pid, unsigned long long start_time)
{
	unsigned long long start = 0;
	int r;

	r = pid > 0 ? pidfd_of(pid) : -ESRCH;
	if (r >= 0) {
		i->pidfd = r;
		r = process_start_time(-1, pid, &start);
	}
	if (r >= 0 && start == start_time) {
		i->pid = pid;
		i->start_time = start;
		return 1;
	}
	i->pidfd = fd_close(i->pidfd);
	return r >= 0 || r == -ESRCH || r == -ENOENT ? 0 : r;
}

/* The pid of a keeper that another keeper made: the only process of its leaf. */
pid_t instance_keeper_pid(struct instance *i)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char *text;
	pid_t pid = 0;

	if (i->cgroup_fd < 0 || fd_read_file(i->cgroup_fd, "keeper/cgroup.procs", 4096, &b) < 0)
		return 0;
	text = buf_take_str(&b);
	if (text)
		pid = (pid_t)strtol(text, NULL, 10);
	free(text);
	return pid;
}

/* What the keeper's own pid `inner` is here, by the kernel's word; 0 where the kernel has none.
 * Much cheaper than to look at each process of a group. */
static pid_t instance_pid_ask(const struct instance *i, pid_t inner)
{
	_cleanup_fd_ int ns_fd = -1;
	int pid;

	if (i->pidfd < 0 || inner <= 0)
		return 0;
	ns_fd = ioctl(i->pidfd, PIDS_NAMESPACE_OF_PIDFD, 0);
	if (ns_fd < 0)
		return 0;
	pid = ioctl(ns_fd, PIDS_FROM_NAMESPACE, inner);
	return pid > 0 ? pid : 0;
}

/* Its numbers in the namespaces from ours down to its own, at most `max`; how many it has. */
static size_t instance_pid_levels(long pid, pid_t *levels, size_t max)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *status = NULL;
	char name[64], *line, *save = NULL;
	size_t n = 0;

	if (str_printf(name, sizeof(name), "/proc/%ld/status", pid) < 0 ||
	    fd_read_file(AT_FDCWD, name, 16384, &b) < 0)
		return 0;
	status = buf_take_str(&b);
	line = status ? strstr(status, "\nNSpid:") : NULL;
	if (!line)
		return 0;
	line += 7;
	line[strcspn(line, "\n")] = '\0';
	for (char *word = strtok_r(line, "\t ", &save); word && n < max;
	     word = strtok_r(NULL, "\t ", &save))
		levels[n++] = (pid_t)strtol(word, NULL, 10);
	return n;
}

/* Whether the process has the pid `inner` in the keeper's namespace, which is the n-th from ours.
 */
static bool instance_pid_matches(const char *pid, pid_t inner, size_t n)
{
	pid_t levels[PIDS_LEVELS_MAX];

	return n > 0 &&
	       instance_pid_levels(strtol(pid, NULL, 10), levels, ARRAY_SIZE(levels)) >= n &&
	       levels[n - 1] == inner;
}

pid_t instance_container_pid(struct instance *i, const char *group, pid_t keeper_pid,
			     bool own_pid_ns)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *pids = NULL;
	char path[PIDS_PATH_SIZE + sizeof("/cgroup.procs")], *save = NULL;
	pid_t known, levels[PIDS_LEVELS_MAX];
	size_t n;

	if (instance_is_remote(i))
		return 0;
	if (!own_pid_ns)
		return keeper_pid;
	if (i->cgroup_fd < 0 || str_printf(path, sizeof(path), "%s/cgroup.procs", group) < 0 ||
	    fd_read_file(i->cgroup_fd, path, 1 << 20, &b) < 0)
		return 0;
	pids = buf_take_str(&b);
	known = instance_pid_ask(i, keeper_pid);
	n = known ? 0
		  : instance_pid_levels(i->pid ?: instance_keeper_pid(i), levels,
					ARRAY_SIZE(levels));
	for (char *pid = pids ? strtok_r(pids, "\n", &save) : NULL; pid;
	     pid = strtok_r(NULL, "\n", &save))
		if (known ? strtol(pid, NULL, 10) == known
			  : instance_pid_matches(pid, keeper_pid, n))
			return (pid_t)strtol(pid, NULL, 10);
	return 0;
}

pid_t instance_container_pid_told(struct instance *i, pid_t keeper_pid, bool own_pid_ns)
{
	if (instance_is_remote(i))
		return 0;
	return own_pid_ns ? instance_pid_ask(i, keeper_pid) : keeper_pid;
}
