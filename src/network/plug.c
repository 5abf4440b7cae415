/* SPDX-License-Identifier: Apache-2.0 */
#include "network/plug.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "net/netlink/conntrack.h"
#include "network/driver.h"
#include "network/plugins.h"
#include "network/settle.h"
#include "network/state.h"

/* One attachment on its way. What a thread reads of it does not change meanwhile. */
struct plug {
	struct network_job job;
	struct attachment *attachment;
	struct driver_plan plan;
	struct driver_plan heir; /* of who gets the default routes */
	bool has_heir;
	bool with_device; /* which does not go with its pod */
	int netns_fd;
	plug_fn done;
	void *userdata;
	uint32_t index, bridge;
	struct error err;
};

static void plug_filter_port(const struct plug *p, struct filter_port *ret)
{
	const struct attachment *a = p->attachment;

	*ret = (struct filter_port){ .link = p->index,
				     .network = a->network->number,
				     .ip4 = a->ip4,
				     .ip6 = a->ip6,
				     .publish = a->publish,
				     .n_publish = a->n_publish,
				     .bridge = p->bridge };
	memcpy(ret->mac, a->mac, sizeof(ret->mac));
}

static void plug_end(struct plug *p)
{
	const plug_fn done = p->done;
	void *userdata = p->userdata;
	const struct error err = p->err;

	networks_job_done(&p->job);
	(void)fd_close(p->netns_fd);
	free(p);
	if (done)
		done(userdata, err.code ? &err : NULL);
}

/* ---- into the kernel ---- */

/* A sender to a port of a protocol without connections stays where it was led first. */
static void plug_forget_connections(const struct attachment *a)
{
	struct conntrack_stale *stale = calloc(2 * a->n_publish + 1, sizeof(*stale));
	struct error err = ERROR_INIT;
	size_t n = 0;

	for (size_t i = 0; stale && i < a->n_publish; i++) {
		const struct filter_publish *p = &a->publish[i];

		if (p->protocol == IPPROTO_TCP)
			continue;
		stale[n++] = (struct conntrack_stale){ .protocol = p->protocol,
						       .pod = a->ip4,
						       .host_port = p->host_port };
		if (!a->ip6.family)
			continue;
		stale[n] = stale[n - 1];
		stale[n++].pod = a->ip6;
	}
	if (n > 0 && conntrack_forget(stale, n, &err) < 0)
		log_warn("connections to a published port are still what they were",
			 LOG_STR("workload", a->owner), LOG_ERR(&err));
	free(stale);
}

/* Where an end of it is at the node, what the filter is to know of it. */
static int plug_let_pass(struct plug *p)
{
	struct networks *all = p->job.all;
	struct filter_port port;
	int r;

	if (!p->index)
		return 0;
	plug_filter_port(p, &port);
	(void)pthread_mutex_lock(&all->filter_lock);
	r = filter_add_port(all->filter, &port, &p->err);
	(void)pthread_mutex_unlock(&all->filter_lock);
	if (r < 0)
		(void)driver_remove(&p->plan, p->netns_fd, NULL);
	else
		plug_forget_connections(p->attachment);
	return r;
}

static int plug_make(struct plug *p)
{
	struct networks *all = p->job.all;
	const struct attachment *a = p->attachment;
	int r;

	if (all->unsettled.code)
		return error_refuse(&p->err, ERROR_PRECONDITION,
				    "the network of pods cannot be set up on this host: %.300s; "
				    "use --network none or host meanwhile",
				    error_text(&all->unsettled));
	if (a->network->trouble.code)
		return error_refuse(&p->err, ERROR_PRECONDITION,
				    "the network %s cannot be had on this host: %.300s",
				    a->network->name, error_text(&a->network->trouble));
	r = FAILPOINT("network.plug");
	if (r < 0)
		return error_set(&p->err, r, "make the port of %s", a->owner);
	r = driver_make(&p->plan, p->netns_fd, &p->index, &p->bridge, &p->err);
	/* That of a pod which had this address before, and is held by its last connections. */
	if (r == -EEXIST && a->device[0] && driver_remove(&p->plan, -1, NULL) == 0) {
		p->err = (struct error)ERROR_INIT;
		r = driver_make(&p->plan, p->netns_fd, &p->index, &p->bridge, &p->err);
	}
	if (r == -EEXIST)
		return error_refuse(&p->err, ERROR_PRECONDITION,
				    "%s has a device of its own that is called %s, as that on the "
				    "network %s would be; rename it",
				    a->owner, p->plan.port.pod_name, a->network->name);
	return r < 0 ? r : plug_let_pass(p);
}

static void plug_run(struct pool_work *work)
{
	struct plug *p = container_of(work, struct plug, job.work);

	if (plug_make(p) == 0)
		FAILPOINT_AFTER("network.plug");
}

/* Others are in a bridge that is not there any more: this one was made in its place. */
static void plug_look_at_bridge(const struct attachment *a)
{
	const struct attachment *other;

	list_for_each (other, &a->network->attachments, struct attachment, link) {
		if (!other->bridge || other->bridge == a->bridge)
			continue;
		networks_settle(a->network->all);
		return;
	}
}

static void plug_done(struct pool_work *work)
{
	struct plug *p = container_of(work, struct plug, job.work);

	struct attachment *a = p->attachment;

	a->state = p->err.code ? ATTACHMENT_RESERVED : ATTACHMENT_PLUGGED;
	a->index = p->err.code ? 0 : p->index;
	a->bridge = p->err.code ? 0 : p->bridge;
	if (a->bridge)
		plug_look_at_bridge(a);
	/* The lender of a device sees to it that it comes back. */
	if (attachment_holds_netns(a) && !p->err.code)
		a->home_fd = TAKE_FD(p->netns_fd);
	/* What it could not undo. */
	if (p->err.code)
		networks_settle(p->job.all);
	if (a->abandoned)
		p->done = NULL;
	plug_end(p);
}

static void plug_drop(struct network_job *job)
{
	struct plug *p = container_of(job, struct plug, job);

	(void)fd_close(p->netns_fd);
	free(p);
}

static struct plug *plug_new(struct attachment *a, plug_fn done, void *userdata)
{
	struct plug *p = calloc(1, sizeof(*p));

	if (p)
		*p = (struct plug){ .job.drop = plug_drop,
				    .attachment = a,
				    .netns_fd = -1,
				    .done = done,
				    .userdata = userdata,
				    .err = ERROR_INIT };
	return p;
}

int attachment_plug(struct attachment *a, int netns_fd, plug_fn done, void *userdata)
{
	struct plug *p;

	assert(a->state == ATTACHMENT_RESERVED);
	if (a->network->plugins)
		return plugins_plug(a, netns_fd, done, userdata);
	p = plug_new(a, done, userdata);
	if (!p) {
		(void)fd_close(netns_fd);
		return -ENOMEM;
	}
	p->netns_fd = netns_fd;
	driver_plan(a, &p->plan);
	p->job.work = (struct pool_work){ .run = plug_run, .done = plug_done };
	a->state = ATTACHMENT_PLUGGING;
	networks_submit(a->network->all, &p->job);
	return 0;
}

/* ---- out of it ---- */

/* What is in its way is the pod's own doing, and does not hold the others up. */
static void unplug_device(struct plug *p)
{
	struct error err = ERROR_INIT;
	int r = driver_remove(&p->plan, p->netns_fd, &err);

	if (r == 0 && p->has_heir && p->netns_fd >= 0)
		r = driver_lead_out(&p->heir, p->netns_fd, &err);
	if (r < 0)
		log_warn("a pod that leaves a network is not as it should be",
			 LOG_STR("workload", p->attachment->owner), LOG_ERR(&err));
}

static void unplug_rules(struct plug *p)
{
	struct networks *all = p->job.all;
	struct error err = ERROR_INIT;
	struct filter_port port;

	/* A table that was written meanwhile may have come to know it. */
	p->index = p->attachment->index;
	p->bridge = p->attachment->bridge;
	plug_filter_port(p, &port);
	if (p->bridge && bridge_forget(p->bridge, &port.ip4, &port.ip6, &err) < 0)
		log_warn("a route to a pod that is gone is left",
			 LOG_STR("workload", p->attachment->owner), LOG_ERR(&err));
	/* A port that was not there when the table was written has no rules. */
	if (!p->index)
		return;
	(void)pthread_mutex_lock(&all->filter_lock);
	(void)filter_remove_port(all->filter, &port, &p->err);
	(void)pthread_mutex_unlock(&all->filter_lock);
}

static void unplug_run(struct pool_work *work)
{
	struct plug *p = container_of(work, struct plug, job.work);

	FAILPOINT_BEFORE("network.unplug");
	unplug_rules(p);
	plug_forget_connections(p->attachment);
	if (p->with_device)
		unplug_device(p);
	FAILPOINT_AFTER("network.unplug");
}

static void unplug_done(struct pool_work *work)
{
	struct plug *p = container_of(work, struct plug, job.work);
	struct networks *all = p->job.all;

	if (p->err.code) {
		log_error("rules of a pod that is gone cannot be removed yet",
			  LOG_STR("workload", p->attachment->owner), LOG_ERR(&p->err));
		p->err = (struct error)ERROR_INIT;
		networks_settle(all);
	}
	if (p->attachment->abandoned)
		p->done = NULL;
	p->attachment->state = ATTACHMENT_RESERVED;
	p->attachment = attachment_free(p->attachment);
	plug_end(p);
}

/* Whether plugins are at it; else it has to do with none, or they are told when the daemon starts
 * again. */
static bool plug_tells_plugins(struct attachment *a, plug_fn done, void *userdata)
{
	return a->network->plugins && a->state == ATTACHMENT_PLUGGED &&
	       plugins_unplug(a, done, userdata) == 0;
}

static void unplug_begin(struct plug *p, struct attachment *a)
{
	p->index = a->index;
	p->bridge = a->bridge;
	driver_plan(a, &p->plan);
	/* Its owner's, which may be gone by then. */
	p->plan.port.alias = NULL;
	if (attachment_holds_netns(a)) {
		p->with_device = true;
		if (a->home_fd >= 0)
			(void)fd_close(p->netns_fd);
		p->netns_fd = a->home_fd >= 0 ? TAKE_FD(a->home_fd) : p->netns_fd;
	}
	p->with_device = p->with_device || a->is_shared;
	p->job.work = (struct pool_work){ .run = unplug_run, .done = unplug_done };
	a->state = ATTACHMENT_UNPLUGGING;
	networks_submit(a->network->all, &p->job);
}

void attachment_unplug(struct attachment *a, plug_fn done, void *userdata)
{
	struct networks *all = a->network->all;
	struct plug *p;

	assert(a->state == ATTACHMENT_RESERVED || a->state == ATTACHMENT_PLUGGED);
	if (plug_tells_plugins(a, done, userdata))
		return;
	p = a->state == ATTACHMENT_PLUGGED && all ? plug_new(a, done, userdata) : NULL;
	if (!p) {
		const bool was_plugged = all && a->state == ATTACHMENT_PLUGGED;

		(void)attachment_free(a);
		if (was_plugged)
			networks_settle(all);
		if (done)
			done(userdata, NULL);
		return;
	}
	/* Connections of the machine's gate hold its namespace for minutes. */
	p->with_device = a->of_machine;
	unplug_begin(p, a);
}

int attachment_withdraw(struct attachment *a, struct attachment *heir, int netns_fd, plug_fn done,
			void *userdata)
{
	struct plug *p;

	assert(a->state == ATTACHMENT_PLUGGED && !a->network->plugins);
	p = plug_new(a, done, userdata);
	if (!p) {
		(void)fd_close(netns_fd);
		return -ENOMEM;
	}
	p->with_device = true;
	p->netns_fd = netns_fd;
	p->has_heir = heir != NULL;
	if (heir)
		driver_plan(heir, &p->heir);
	p->heir.port.alias = NULL;
	unplug_begin(p, a);
	return 0;
}
