/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/link.h"

#include <assert.h>
#include <stdio.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "instance/end.h"
#include "instance/pids.h"
#include "instance/provider.h"
#include "instance/upgrade.h"

static void instance_peer_container(void *userdata, const struct container_view *view)
{
	struct instance *i = userdata;

	i->all->config.on_container(i->all->config.userdata, i, view);
}

static void instance_peer_child_end(void *userdata, const char *name, const char *reason)
{
	struct instance *i = userdata;
	struct instance *below;

	/* Of one that has not been made yet, that is the end of the last one of this name. */
	list_for_each (below, &i->all->list, struct instance, link)
		if (below->parent == i && str_eq(below->handle, name) &&
		    !instance_has_ended(below) && !instance_is_own(below) && below->peer)
			instance_note_end(below, reason);
}

static void instance_peer_synced(void *userdata)
{
	struct instance *i = userdata;

	/* The second time it is a new program of the same keeper. */
	if (i->synced)
		return;
	i->synced = true;
	i->all->config.on_synced(i->all->config.userdata, i);
	upgrade_consider(i);
}

static void instance_left(struct instance *i)
{
	if (i->state == INSTANCE_STOPPING && instance_is_own(i) && i->provider->ops->left)
		i->provider->ops->left(i);
}

/* The keeper, or that above it, should say why in a moment; the timer sees to it. */
static void instance_lost(struct instance *i, const char *why, const struct error *err)
{
	i->lost = true;
	instance_left(i);
	if (i->state == INSTANCE_STOPPING || i->broken || i->told_end)
		return;
	(void)error_refuse(&i->last_error, ERROR_UNAVAILABLE, "%s: %s", why, error_text(err));
	loop_timer_set(&i->timer, INSTANCE_LOST_GRACE);
}

/* A keeper from before, or that somebody else has exchanged: its workloads are none the worse. */
static void instance_be_mute(struct instance *i, const struct error *err)
{
	log_error("a keeper cannot be spoken to; what runs there goes on",
		  LOG_STR("instance", i->path), LOG_ERR(err));
	(void)str_copy(i->note, sizeof(i->note), error_text(err));
	i->mute = true;
	i->synced = true;
	i->all->config.on_note(i->all->config.userdata, i);
}

static void instance_peer_lost(void *userdata, const struct error *err)
{
	struct instance *i = userdata;

	if (err->kind == ERROR_PRECONDITION && i->state == INSTANCE_READY) {
		i->lost = false;
		instance_be_mute(i, err);
		return;
	}
	instance_lost(i, "the connection to its keeper was lost", err);
}

static void instance_peer_gap(void *userdata, const struct error *err)
{
	struct instance *i = userdata;

	i->lost = true;
	instance_left(i);
	if (i->state == INSTANCE_READY)
		log_info("the connection to a keeper is lost and is made again",
			 LOG_STR("instance", i->path), LOG_ERR(err));
}

static void instance_peer_back(void *userdata)
{
	struct instance *i = userdata;

	i->lost = false;
	log_info("a keeper is connected again", LOG_STR("instance", i->path),
		 LOG_STR("build", i->peer->ops->hello(i->peer)->build));
	upgrade_consider(i);
}

static int instance_peer_connect(void *userdata, int *ret_rpc_fd, int *ret_fd_fd, struct error *err)
{
	struct instance *i = userdata;

	return i->provider->ops->connect(i, ret_rpc_fd, ret_fd_fd, err);
}

static const struct peer_events instance_peer_events = {
	.on_container = instance_peer_container,
	.on_child_end = instance_peer_child_end,
	.on_synced = instance_peer_synced,
	.on_lost = instance_peer_lost,
	.on_gap = instance_peer_gap,
	.on_back = instance_peer_back,
	.connect = instance_peer_connect,
};

static void instance_is_ready(struct instance *i)
{
	loop_timer_stop(&i->timer);
	FAILPOINT_BEFORE("instance.ready");
	instance_event(i, INSTANCE_HELLO);
	FAILPOINT_AFTER("instance.ready");
}

/* Whether it was set; else it is lost, or fails. */
static bool instance_was_set(struct instance *i, const char *what, const struct error *err)
{
	struct error refused;
	char lost[64];

	if (!err)
		return true;
	/* As with hello: the end of what it was lost with is told, too, and may be no end of it. */
	if (err->kind == ERROR_UNAVAILABLE) {
		(void)str_printf(lost, sizeof(lost), "its %s are not set", what);
		instance_lost(i, lost, err);
		return false;
	}
	refused = *err;
	(void)error_wrap(&refused, err->code, "its %s", what);
	instance_fail(i, &refused);
	return false;
}

static void instance_on_sysctls(void *userdata, const struct error *err)
{
	struct instance *i = userdata;

	if (i->state != INSTANCE_SPAWNING || i->broken)
		return;
	if (instance_was_set(i, "sysctls", err))
		instance_is_ready(i);
}

/* Those of one that is made here were set by its own steps. */
static void instance_set_sysctls(struct instance *i)
{
	if (i->sysctls && instance_is_remote(i))
		i->peer->ops->set_sysctls(i->peer, i->sysctls, instance_on_sysctls, i);
	else
		instance_is_ready(i);
}

/* None is better than one without the limits that it should have. */
static void instance_on_limited(void *userdata, const struct error *err)
{
	struct instance *i = userdata;

	if (i->state != INSTANCE_SPAWNING || i->broken)
		return;
	if (!err || err->kind != ERROR_UNAVAILABLE)
		strv_free(TAKE_PTR(i->limits));
	if (instance_was_set(i, "limits", err))
		instance_set_sysctls(i);
}

static void instance_on_hello(void *userdata, const struct error *err)
{
	struct instance *i = userdata;

	if (err && err->kind == ERROR_PRECONDITION && i->state == INSTANCE_READY) {
		instance_be_mute(i, err);
		return;
	}
	if (err) {
		instance_lost(i, "its keeper did not say hello", err);
		return;
	}
	i->report_fd = fd_close(i->report_fd);
	if (!instance_is_own(i) && !i->pid)
		i->pid = instance_keeper_pid(i);
	/* While it is told to end, the timer watches over that. */
	if (i->state != INSTANCE_SPAWNING || i->broken)
		return;
	if (i->limits)
		i->peer->ops->limit(i->peer, "", "", i->limits, instance_on_limited, i);
	else
		instance_set_sysctls(i);
}

void instance_open_peer(struct instance *i)
{
	i->peer->ops->open(i->peer, &instance_peer_events, i, instance_on_hello);
}

int instance_connect_own(struct instance *i, struct error *err)
{
	_cleanup_fd_ int rpc_fd = -1;
	_cleanup_fd_ int fd_fd = -1;
	int r;

	r = FAILPOINT("instance.connect");
	if (r < 0)
		return error_set(err, r, "connect to the keeper of %s", i->path);
	/* An instance that was made ahead is connected. */
	if (!i->peer) {
		r = i->provider->ops->connect(i, &rpc_fd, &fd_fd, err);
		if (r < 0)
			return r;
		r = i->all->config.connect(i->all->config.userdata, TAKE_FD(rpc_fd), TAKE_FD(fd_fd),
					   &i->peer);
	}
	if (r == 0 && i->ahead)
		r = i->peer->ops->name(i->peer, i->path);
	if (r < 0)
		return error_set(err, r, "connect to the keeper of %s", i->path);
	instance_open_peer(i);
	FAILPOINT_AFTER("instance.connect");
	return 0;
}

int instance_meet(struct instance *i, struct error *err)
{
	int r;

	r = FAILPOINT("instance.spawned");
	if (r < 0)
		return error_set(err, r, "record the keeper of %s", i->path);
	if (!i->ahead)
		r = i->all->config.save(i->all->config.userdata, i, err);
	if (r < 0)
		return r;
	FAILPOINT_AFTER("instance.spawned");
	return instance_connect_own(i, err);
}

void instance_made(struct instance *i)
{
	struct error err = ERROR_INIT;

	if (i->ended || i->told_end || i->broken)
		return;
	if (instance_meet(i, &err) < 0)
		instance_fail(i, &err);
}

void instance_unmade(struct instance *i)
{
	assert(i->state == INSTANCE_SPAWNING);
	if (i->peer && i->all->config.on_close)
		i->all->config.on_close(i->all->config.userdata, i);
	if (i->peer)
		i->peer = i->peer->ops->free(i->peer);
	i->pidfd = fd_close(i->pidfd);
	i->pid = 0;
	i->start_time = 0;
	i->lost = false;
	i->last_error = (struct error)ERROR_INIT;
	loop_timer_set(&i->timer, i->provider->ops->hello_limit);
}
