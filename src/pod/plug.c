/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/plug.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "base/sysio.h"
#include "network/attach.h"
#include "network/model.h"
#include "network/plug.h"
#include "pod/etc_wish.h"
#include "pod/failure.h"
#include "pod/workloads.h"

int plug_reserve(struct workload *w, struct networks *networks, const struct workload_spec *spec,
		 struct error *err)
{
	struct network_wish wish;

	if (!spec->attach)
		return 0;
	wish = *spec->attach;
	wish.id = w->id;
	wish.pod = wish.pod ? wish.pod : w->path;
	if (w->etc) {
		wish.servers = w->etc->servers;
		wish.search = w->etc->search;
		wish.options = w->etc->options;
	}
	names_look(&w->all->names);
	return network_attach(networks, &wish, w->path, &w->attachment, err);
}

int plug_adopt(struct workload *w, struct networks *networks, const char *text, struct error *err)
{
	if (str_empty(text))
		return 0;
	names_look(&w->all->names);
	return network_adopt(networks, text, w->path, &w->attachment, err);
}

int plug_open_netns(const struct instance *i, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	char path[48];

	(void)str_printf(path, sizeof(path), "/proc/%d/ns/net", (int)i->pid);
	fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0 || pidfd_has_ended(i->pidfd))
		return error_refuse(err, ERROR_UNAVAILABLE, "the keeper of %s has ended", i->path);
	return TAKE_FD(fd);
}

bool plug_chooses_address(const struct workload *w)
{
	return w->attachment && w->attachment->network->plugins;
}

static void plug_on_plugged(void *userdata, const struct error *err)
{
	struct workload *w = userdata;

	if (err) {
		w->plug_failed = true;
		(void)failure_refuse(w, err);
	}
	if (!err && plug_chooses_address(w))
		names_look(&w->all->names);
	/* The next life of the daemon does not ask plugins. */
	w->save_due = w->save_due || (!err && plug_chooses_address(w));
	loop_defer_schedule(&w->defer);
}

static int plug_begin(struct workload *w, struct error *err)
{
	int fd = plug_open_netns(w->instance, err), r;

	if (fd < 0)
		return fd;
	r = attachment_plug(w->attachment, fd, plug_on_plugged, w);
	return r < 0 ? error_set(err, r, "connect %s to its network", w->path) : 0;
}

int plug_is_awaited(struct workload *w, struct error *err)
{
	int r;

	if (!w->attachment || w->state != WORKLOAD_STARTING)
		return 0;
	if (w->plug_failed)
		return w->refused ? error_copy(err, w->refused)
				  : error_set(err, -ENOMEM, "connect %s to its network", w->path);
	if (w->attachment->state != ATTACHMENT_RESERVED)
		return w->attachment->state == ATTACHMENT_PLUGGING;
	if (!w->instance || w->instance->pid <= 0)
		return 1;
	r = plug_begin(w, err);
	return r < 0 ? r : 1;
}

static void plug_on_unplugged(void *userdata, const struct error *err)
{
	struct workload *w = userdata;

	(void)err;
	w->attachment = NULL;
	w->save_due = true;
	loop_defer_schedule(&w->defer);
}

bool plug_is_released(struct workload *w)
{
	if (!w->attachment)
		return true;
	names_look(&w->all->names);
	if (w->attachment->state == ATTACHMENT_RESERVED ||
	    w->attachment->state == ATTACHMENT_PLUGGED)
		attachment_unplug(w->attachment, plug_on_unplugged, w);
	return !w->attachment;
}
