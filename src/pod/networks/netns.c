/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/networks/netns.h"

#include <errno.h>
#include <fcntl.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "isolate/cgroup/process.h"
#include "network/namespace.h"

/* Of a process whose number may be another one's by now: only where it is in that group. */
static int netns_open_of_group(pid_t pid, const char *group, const char *kind)
{
	_cleanup_fd_ int proc_fd = process_open(pid, group);
	char path[24];
	int fd;

	if (proc_fd < 0)
		return proc_fd;
	(void)str_printf(path, sizeof(path), "ns/%s", kind);
	fd = sysio_openat(proc_fd, path, O_RDONLY | O_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* Of an instance of this daemon by its pidfd, of a nested one by its group. */
static int netns_open_of_keeper(const struct instance *i, const char *kind, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	char path[48];

	if (i->pidfd < 0) {
		fd = i->pid > 0 && i->cgroup[0] == '/'
			     ? netns_open_of_group(i->pid, i->cgroup, kind)
			     : -ESRCH;
	} else {
		(void)str_printf(path, sizeof(path), "/proc/%d/ns/%s", (int)i->pid, kind);
		fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	}
	if (fd < 0 || (i->pidfd >= 0 && pidfd_has_ended(i->pidfd)))
		return error_refuse(err, ERROR_UNAVAILABLE, "the keeper of %s has ended", i->path);
	return TAKE_FD(fd);
}

static int netns_open_of_container(struct pod_container *c)
{
	_cleanup_str_ char *group = pod_container_whole_group(c);
	pid_t pid = pod_container_pid(c);

	return group && pid > 0 ? netns_open_of_group(pid, group, "net") : -ESRCH;
}

int netns_open(const struct workload *w, struct error *err)
{
	int fd = -ESRCH;

	if (w->kind == WORKLOAD_POD)
		return netns_open_of_keeper(w->instance, "net", err);
	if (w->netns)
		fd = fd_copy(network_namespace_fd(w->netns, NULL));
	for (size_t i = 0; i < w->n_containers && fd < 0; i++)
		if (w->containers[i]->status.state == CONTAINER_RUNNING)
			fd = netns_open_of_container(w->containers[i]);
	return fd >= 0 ? fd
		       : error_refuse(err, ERROR_UNAVAILABLE, "the containers of %s have ended",
				      w->path);
}

int netns_open_kind(const struct workload *w, const char *kind, struct error *err)
{
	if (!w->instance)
		return error_refuse(err, ERROR_UNAVAILABLE, "the keeper of %s has ended", w->path);
	return netns_open_of_keeper(w->instance, kind, err);
}
