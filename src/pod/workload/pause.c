/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/pause.h"

#include <errno.h>
#include <fcntl.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/str.h"

#define PAUSE_FILE "cgroup.freeze"
#define PAUSE_GROUP_SIZE (2 * NAME_LABEL_MAX + 64)

int pause_open_group(const struct pod_container *c)
{
	const struct instance *i = c->workload->instance;
	char group[PAUSE_GROUP_SIZE];
	int r = i ? pod_container_group(c, i->cgroup_fd, ".", group, sizeof(group)) : -ENOENT;

	if (r < 0)
		return r;
	r = sysio_openat(i->cgroup_fd, group, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return r < 0 ? -errno : r;
}

void pause_look(struct pod_container *c)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_fd_ int fd = pause_open_group(c);

	c->paused = fd >= 0 && fd_read_file(fd, PAUSE_FILE, 16, &b) == 0 && b.len > 0 &&
		    *buf_data(&b) == '1';
}

void pause_let_go(struct pod_container *c)
{
	_cleanup_fd_ int fd = pause_open_group(c);
	int r = fd < 0 ? fd : fd_write_file(fd, PAUSE_FILE, "0");
	struct error err = ERROR_INIT;

	c->paused = false;
	if (r == 0 || r == -ENOENT || r == -ENODEV)
		return;
	(void)error_set(&err, r, "write " PAUSE_FILE);
	log_warn("cannot let a container go on", LOG_STR("container", c->id), LOG_ERR(&err));
}

void pause_end(struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (w->containers[i]->paused)
			pause_let_go(w->containers[i]);
}

bool workload_is_paused(const struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (w->containers[i]->paused && !pod_container_has_ended(w->containers[i]))
			return true;
	return false;
}
