/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/container.h"

#include <signal.h>

#include "base/fault/failpoint.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "cell/start/mounts.h"
#include "image/image.h"
#include "network/namespace.h"
#include "pod/networks/etc.h"
#include "pod/workload/health.h"
#include "pod/workload/publish.h"
#include "pod/workload/record.h"
#include "pod/workload/remote.h"
#include "pod/workload/stop_signal.h"
#include "pod/workload/workloads.h"

static void pod_container_ignore(void *userdata, const struct error *err)
{
	(void)userdata;
	(void)err;
}

void pod_container_save(struct pod_container *c)
{
	struct error err = ERROR_INIT;

	if (record_put_container(c->workload->all->config.store, c, &err) < 0)
		log_error("cannot record a container", LOG_STR("container", c->id), LOG_ERR(&err));
}

static int stop_signal_of(const struct pod_container *c)
{
	return stop_signal_parse(c->image ? c->image->config.stop_signal : "");
}

static void pod_container_send(struct pod_container *c, int sig, bool all)
{
	struct peer *peer = workload_peer(c->workload);

	if (peer && !c->starting && c->phase == POD_CONTAINER_STARTED &&
	    !pod_container_has_ended(c))
		peer->ops->signal(peer, c->id, sig, all, pod_container_ignore, NULL);
}

void pod_container_end(struct pod_container *c, bool kill)
{
	pod_container_send(c, kill ? SIGKILL : stop_signal_of(c), kill);
}

void pod_container_signal(struct pod_container *c, int sig)
{
	pod_container_send(c, sig ? sig : stop_signal_of(c), false);
}

void pod_container_lose(struct pod_container *c, const char *reason)
{
	bool ran = c->status.started_at != 0;

	c->starting = false;
	c->unanswered = false;
	c->restarting = false;
	c->restart_at = 0;
	loop_timer_stop(&c->again);
	if (c->phase == POD_CONTAINER_ROOT)
		image_rootfs_forget(c->workload->all->config.images, c);
	if (pod_container_is_created(c))
		c->phase = POD_CONTAINER_STARTED;
	container_fds_close(&c->fds);
	if (pod_container_has_ended(c))
		return;
	health_end(c);
	c->status.state = ran ? CONTAINER_EXITED : CONTAINER_FAILED;
	c->status.exit_code = ran ? 128 + SIGKILL : 125;
	c->status.signal = ran ? SIGKILL : 0;
	c->status.finished_at = clock_real();
	c->status.pid = 0;
	(void)str_copy(c->status.reason, sizeof(c->status.reason), reason);
	pod_container_save(c);
	publish_container(c->workload->all->config.events, c, pod_container_state_word(c));
}

void pod_container_skip(struct pod_container *c, const char *reason)
{
	c->phase = POD_CONTAINER_STARTED;
	container_fds_close(&c->fds);
	c->status.state = CONTAINER_EXITED;
	c->status.finished_at = clock_real();
	(void)str_printf(c->status.reason, sizeof(c->status.reason), "not started: %.480s", reason);
	pod_container_save(c);
	publish_container(c->workload->all->config.events, c, pod_container_state_word(c));
	loop_defer_schedule(&c->workload->defer);
}

void pod_container_update(struct pod_container *c, const struct container_status *status)
{
	enum container_state was = c->status.state;
	int64_t pid;

	if (pod_container_has_ended(c) || status->state < was)
		return;
	pid = c->status.pid;
	c->status = *status;
	c->status.log_lost += c->log_dropped;
	/* The record keeps the pid that it had. */
	if (!c->status.pid)
		c->status.pid = pid;
	c->host_pid = 0;
	if (status->state == was)
		return;
	if (status->state > CONTAINER_RUNNING)
		health_end(c);
	if (pod_container_has_ended(c))
		FAILPOINT_BEFORE("container.ended");
	pod_container_save(c);
	if (pod_container_has_ended(c))
		FAILPOINT_AFTER("container.ended");
	if (status->state == CONTAINER_RUNNING)
		names_look(&c->workload->all->names);
	if (status->state != CONTAINER_DRAINING)
		publish_container(c->workload->all->config.events, c, pod_container_state_word(c));
	if (status->state == CONTAINER_RUNNING)
		health_begin(c);
}

static enum container_kind pod_container_kind(const struct workload *w)
{
	if (w->kind != WORKLOAD_EXECUTABLE)
		return CONTAINER_IMAGE;
	return instance_is_node(w->instance) ? CONTAINER_PROCESS : CONTAINER_VISITOR;
}

void pod_container_launch(struct pod_container *c, const struct etc *etc, bool late,
			  void (*done)(void *userdata, const struct container_view *view,
				       const struct error *err))
{
	struct workload *w = c->workload;
	struct peer *peer = workload_peer(w);
	struct cell_spec cell = {
		.name = w->handle,
		.shares_instance = w->kind == WORKLOAD_POD,
		.hostname = w->etc && !w->etc->is_host ? w->etc->hostname : NULL,
		.host_network = w->kind == WORKLOAD_CELL && str_eq(w->network, "host"),
		.given_network = w->kind == WORKLOAD_CELL && w->attachment,
		.limits = w->kind == WORKLOAD_POD ? NULL : w->limits,
		.ids = w->ids,
	};
	struct container_spec spec = {
		.name = c->name,
		.kind = pod_container_kind(w),
		.new_proc = c->new_proc,
		.argv = c->argv,
		.env = c->env,
		.cwd = c->cwd,
		.user = c->user,
		.stdin_open = c->stdin_open,
		.log = w->all->config.log,
		.tty = c->tty,
		.terminal = c->terminal,
		.hold_output = c->hold_output,
		.mounts = c->mounts,
		.n_mounts = c->n_mounts,
		.read_only_root = c->read_only_root,
		.security = c->security,
		.masks = { c->hidden, c->read_only },
		.filter = { buf_data(&c->filter), c->filter.len, c->filter_flags },
		.limits = c->limits,
		.image = c->image_id,
		.late = late,
	};
	struct container_disk disk;

	/* Without one the keeper is not asked (client_check_features()). */
	if (w->netns)
		c->fds.network = fd_copy(network_namespace_fd(w->netns, NULL));
	if (instance_is_remote(w->instance)) {
		remote_fill(c, etc, &spec, &disk);
		c->log_fd = TAKE_FD(c->fds.log);
	} else if (c->has_own_log) {
		spec.log.max_bytes = 0;
	}
	(void)str_copy(spec.id, sizeof(spec.id), c->id);
	c->phase = POD_CONTAINER_STARTED;
	c->starting = true;
	c->late = spec.late;
	w->n_starting++;
	peer->ops->start(peer, &cell, &spec, &c->fds, done, c);
	strv_free(TAKE_PTR(c->argv));
	strv_free(TAKE_PTR(c->env));
	c->mounts = mounts_free(c->mounts, c->n_mounts);
	c->n_mounts = 0;
	strv_free(TAKE_PTR(c->limits));
	strv_free(TAKE_PTR(c->hidden));
	strv_free(TAKE_PTR(c->read_only));
	buf_done(&c->filter);
}

void pod_container_drop_root(struct pod_container *c)
{
	if (!c->has_rootfs)
		return;
	image_rootfs_remove(c->workload->all->config.images, c->image, c->id);
	c->has_rootfs = false;
	c->image = NULL;
}
