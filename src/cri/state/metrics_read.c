/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/state/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "cri/state/stats.h"
#include "isolate/cgroup/cgroup.h"

#define METRICS_FILE_MAX 4096

/* NULL where it cannot be read. */
static char *metrics_read(int root_fd, const char *path)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	return rootfd_read(root_fd, path, METRICS_FILE_MAX, &b) < 0 ? NULL : buf_take_str(&b);
}

/* What goes in at one end of the link comes out at the other. */
static void metrics_read_traffic(struct cri_reading *r, int root_fd, const char *device)
{
	static const char *const counters[CRI_TRAFFIC_COUNT] = {
		[CRI_RECEIVED_BYTES] = "tx_bytes",     [CRI_RECEIVED_PACKETS] = "tx_packets",
		[CRI_RECEIVED_DROPPED] = "tx_dropped", [CRI_RECEIVED_ERRORS] = "tx_errors",
		[CRI_SENT_BYTES] = "rx_bytes",         [CRI_SENT_PACKETS] = "rx_packets",
		[CRI_SENT_DROPPED] = "rx_dropped",     [CRI_SENT_ERRORS] = "rx_errors",
	};

	for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
		_cleanup_str_ char *text = NULL;
		char path[128];

		(void)str_printf(path, sizeof(path), "sys/class/net/%s/statistics/%s", device,
				 counters[i]);
		text = metrics_read(root_fd, path);
		if (!text)
			return;
		text[strcspn(text, "\n")] = '\0';
		if (parse_u64(text, 0, UINT64_MAX, &r->traffic[i]) < 0)
			return;
	}
	r->has_traffic = true;
}

/* "/dev/sda", or its number where the kernel has no name for it. */
static void metrics_name_devices(struct cri_reading *r, int root_fd)
{
	for (size_t i = 0; i < r->details.n_devices; i++) {
		const struct usage_device *d = &r->details.devices[i];
		_cleanup_str_ char *text = NULL;
		const char *name;
		char path[64];

		(void)str_printf(path, sizeof(path), "sys/dev/block/%u:%u/uevent", d->major,
				 d->minor);
		text = metrics_read(root_fd, path);
		name = text ? strstr(text, "DEVNAME=") : NULL;
		if (name)
			(void)str_printf(r->devices[i], sizeof(r->devices[i]), "/dev/%.*s",
					 (int)MIN(strcspn(name + 8, "\n"), (size_t)32), name + 8);
		else
			(void)str_printf(r->devices[i], sizeof(r->devices[i]), "%u:%u", d->major,
					 d->minor);
	}
}

static void metrics_read_files(struct cri_reading *r, const char *root)
{
	_cleanup_fd_ int fd = rootfd_point(AT_FDCWD, root);
	struct statvfs s;

	if (fd < 0 || fstatvfs(fd, &s) < 0)
		return;
	r->files_bytes = (uint64_t)s.f_blocks * s.f_frsize;
	r->inodes = s.f_files;
	r->inodes_free = s.f_ffree;
	r->has_files = true;
}

/* ---- processes ---- */

/* 0; -E2BIG past the limit; or -errno where the process is gone or not to be looked at. */
static int metrics_count_descriptors(struct cri_reading *r, pid_t pid)
{
	_cleanup_strv_ char **names = NULL;
	_cleanup_fd_ int fd = -1;
	char path[32], target[16];
	ssize_t n;
	int k;

	(void)str_printf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	k = fd < 0 ? -errno : fd_list_dir(fd, &names);
	if (k < 0)
		return k;
	for (size_t i = 0; names && names[i]; i++) {
		if (r->descriptors == CRI_METRICS_DESCRIPTORS_MAX)
			return -E2BIG;
		r->descriptors++;
		n = readlinkat(fd, names[i], target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		r->sockets += str_has_prefix(target, "socket:");
	}
	return 0;
}

static void metrics_read_processes(struct cri_reading *r, int cgroup_fd, const char *group)
{
	_cleanup_fd_ int fd = rootfd_point(cgroup_fd, group);
	pid_t *pids = NULL;
	size_t n = 0;
	int k = fd < 0 ? fd : cgroup_pids(fd, true, &pids, &n, NULL);

	r->has_processes = k >= 0;
	r->has_descriptors = k >= 0 && n <= CRI_METRICS_PROCESSES_MAX;
	r->processes = n;
	for (size_t i = 0; i < n && r->has_descriptors; i++)
		r->has_descriptors = metrics_count_descriptors(r, pids[i]) != -E2BIG;
	free(pids);
}

static void metrics_read_open_files(struct cri_reading *r, pid_t pid)
{
	struct rlimit limit;

	if (pid <= 0 || prlimit(pid, RLIMIT_NOFILE, NULL, &limit) < 0)
		return;
	r->open_files = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
	r->has_open_files = true;
}

void cri_reading_told(struct cri_reading *r, const struct usage *told)
{
	*r = (struct cri_reading){ .at = clock_real(), .usage = *told };
}

void cri_reading_take_machine(struct cri_reading *r, struct machine_usage *m, int cgroup_fd,
			      const struct cri_metrics_owner *owner)
{
	_cleanup_fd_ int root_fd = rootfd_point(AT_FDCWD, "/");
	struct cri_usage u = { .result = -ENOENT };

	cri_usage_read_machine(&u, m, cgroup_fd, "");
	cri_reading_told(r, &u.usage);
	r->result = u.result;
	if (r->result == 0 && root_fd >= 0 && owner->device[0])
		metrics_read_traffic(r, root_fd, owner->device);
}

void cri_reading_take(struct cri_reading *r, int cgroup_fd, const struct cri_metrics_owner *owner)
{
	_cleanup_fd_ int root_fd = rootfd_point(AT_FDCWD, "/");

	*r = (struct cri_reading){ .at = clock_real() };
	r->result = usage_read(cgroup_fd, owner->group, &r->usage);
	if (r->result == 0)
		r->result = usage_read_details(cgroup_fd, owner->group, &r->details);
	if (r->result < 0)
		return;
	r->has_details = true;
	if (root_fd >= 0)
		metrics_name_devices(r, root_fd);
	if (root_fd >= 0 && owner->device[0])
		metrics_read_traffic(r, root_fd, owner->device);
	if (owner->limits)
		metrics_read_files(r, owner->root);
	metrics_read_processes(r, cgroup_fd, owner->group);
	metrics_read_open_files(r, owner->pid);
}
