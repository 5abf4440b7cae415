/* SPDX-License-Identifier: Apache-2.0 */
#include "network/settle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "net/port/port.h"
#include "net/range/subnets.h"
#include "network/attachment.h"
#include "network/driver.h"
#include "network/state.h"
#include "store/store.h"

/* What others change comes in bursts. */
#define SETTLE_DELAY (20 * NSEC_PER_MSEC)
/* After one that failed. */
#define SETTLE_AGAIN (5 * NSEC_PER_SEC)

/* One settling: a copy of what is to be, made on the loop thread, and what a thread found. */
struct settling {
	struct pool_work work;
	struct networks *all;
	struct filter_network *networks;
	size_t n_networks;
	struct filter_port *ports;       /* in this order in `seen` too */
	char (*devices)[IF_NAMESIZE];    /* of each of ports */
	uint32_t *masters;               /* the bridge that each of ports is in */
	struct attachment **attachments; /* for the loop thread alone */
	size_t n_ports, n_present;
	struct bridge_plan *bridges; /* of the networks that are bridges */
	uint32_t *bridge_networks;   /* the number of the network of each */
	uint32_t *bridge_links; /* and its index, once it is there; 0: bridge_trouble says why */
	struct error *bridge_trouble;
	size_t n_bridges;
	bool has_bridges; /* the packet filter can have some */
	size_t n_orphans;
	struct forward forward;
	struct error err;
};

static struct settling *settling_free(struct settling *s)
{
	if (!s)
		return NULL;
	free(s->networks);
	free(s->ports);
	free(s->devices);
	free(s->masters);
	free(s->attachments);
	free(s->bridges);
	free(s->bridge_networks);
	free(s->bridge_links);
	free(s->bridge_trouble);
	free(s);
	return NULL;
}

static void settling_add_port(struct settling *s, struct attachment *a)
{
	size_t i = s->n_ports++;

	s->ports[i] = (struct filter_port){ .network = a->network->number,
					    .ip4 = a->ip4,
					    .ip6 = a->ip6,
					    .publish = a->publish,
					    .n_publish = a->n_publish };
	memcpy(s->ports[i].mac, a->mac, sizeof(s->ports[i].mac));
	memcpy(s->devices[i], a->device, IF_NAMESIZE);
	s->attachments[i] = a;
}

static void settling_fill(struct settling *s, struct networks *all)
{
	struct attachment *a;
	struct network *n;

	list_for_each (n, &all->list, struct network, link) {
		if (n->state == NETWORK_REMOVING || !network_passes_node(n))
			continue;
		if (n->driver == NETWORK_BRIDGE) {
			driver_plan_bridge(n, &s->bridges[s->n_bridges]);
			s->bridge_networks[s->n_bridges++] = n->number;
		}
		s->networks[s->n_networks++] = (struct filter_network){ .number = n->number,
									.pool4 = n->pool4,
									.pool6 = n->pool6,
									.internal = n->internal,
									.node_open = n->node_open };
		list_for_each (a, &n->attachments, struct attachment, link)
			if (a->state == ATTACHMENT_PLUGGED)
				settling_add_port(s, a);
	}
}

static struct settling *settling_new(struct networks *all)
{
	struct settling *s = calloc(1, sizeof(*s));
	size_t n_networks = 0, n_ports = 0;
	const struct network *n;

	if (!s)
		return NULL;
	list_for_each (n, &all->list, struct network, link) {
		n_networks++;
		n_ports += n->n_attached;
	}
	s->all = all;
	s->forward = all->forward;
	s->networks = calloc(n_networks + 1, sizeof(*s->networks));
	s->ports = calloc(n_ports + 1, sizeof(*s->ports));
	s->devices = calloc(n_ports + 1, sizeof(*s->devices));
	s->masters = calloc(n_ports + 1, sizeof(*s->masters));
	s->attachments = calloc(n_ports + 1, sizeof(struct attachment *));
	s->bridges = calloc(n_networks + 1, sizeof(*s->bridges));
	s->bridge_networks = calloc(n_networks + 1, sizeof(*s->bridge_networks));
	s->bridge_links = calloc(n_networks + 1, sizeof(*s->bridge_links));
	s->bridge_trouble = calloc(n_networks + 1, sizeof(*s->bridge_trouble));
	if (!s->networks || !s->ports || !s->devices || !s->attachments || !s->bridges ||
	    !s->masters || !s->bridge_networks || !s->bridge_links || !s->bridge_trouble)
		return settling_free(s);
	settling_fill(s, all);
	return s;
}

/* ---- on a thread ---- */

/* ---- bridges ---- */

static uint32_t settling_bridge_of(const struct settling *s, uint32_t network)
{
	for (size_t i = 0; i < s->n_bridges; i++)
		if (s->bridge_networks[i] == network)
			return s->bridge_links[i];
	return 0;
}

static bool settling_is_bridge(const struct settling *s, const char *name)
{
	for (size_t i = 0; i < s->n_bridges; i++)
		if (str_eq(s->bridges[i].name, name))
			return true;
	return false;
}

/* A network that cannot be had stops nobody else: its own pods are told (network.trouble). */
static void settling_bridges(struct settling *s)
{
	struct error why = ERROR_INIT;

	s->has_bridges = s->n_bridges > 0 && filter_has_bridges(&why) == 0;
	for (size_t i = 0; i < s->n_bridges; i++) {
		s->bridge_trouble[i] = why;
		if (s->has_bridges &&
		    bridge_make(&s->bridges[i], &s->bridge_links[i], &s->bridge_trouble[i]) < 0)
			s->bridge_links[i] = 0;
	}
	for (size_t i = 0; i < s->n_ports; i++)
		s->ports[i].bridge = settling_bridge_of(s, s->ports[i].network);
}

/* Whether it would be a port of a bridge that is not there. */
static bool settling_is_stray(const struct settling *s, const struct filter_port *p)
{
	for (size_t i = 0; i < s->n_bridges; i++)
		if (s->bridge_networks[i] == p->network)
			return p->bridge == 0;
	return false;
}

/* Somebody has removed the bridge that they were in, or taken them out of it. */
static int settling_rejoin(struct settling *s)
{
	int r = 0;

	for (size_t i = 0; i < s->n_ports && r == 0; i++) {
		const struct filter_port *p = &s->ports[i];
		struct port_plan plan = { .ip4 = p->ip4,
					  .ip6 = p->ip6,
					  .loopback = p->n_publish > 0 };

		if (!p->bridge || !p->link || s->masters[i] == p->bridge)
			continue;
		memcpy(plan.name, s->devices[i], sizeof(plan.name));
		memcpy(plan.mac, p->mac, sizeof(plan.mac));
		r = bridge_rejoin(&plan, p->bridge, p->n_publish > 0, p->link, &s->err);
	}
	return r;
}

/* Routes to pods that went while no daemon ran. */
static int settling_hosts(struct settling *s)
{
	struct prefix *known = calloc(2 * s->n_ports + 1, sizeof(*known));
	int r = known ? 0 : error_set(&s->err, -ENOMEM, "settle the bridges of networks");

	for (size_t i = 0; i < s->n_bridges && r == 0; i++) {
		size_t n = 0;

		for (size_t k = 0; k < s->n_ports; k++) {
			if (s->ports[k].network != s->bridge_networks[i])
				continue;
			known[n++] = s->ports[k].ip4;
			if (s->ports[k].ip6.family)
				known[n++] = s->ports[k].ip6;
		}
		if (s->bridge_links[i])
			r = bridge_forget_others(s->bridge_links[i], known, n, &s->err);
	}
	free(known);
	return r;
}

/* ---- ports ---- */

/* A device that cannot be removed, as one of hardware in the group of ours, stops nobody. */
static void settling_remove(const char *name)
{
	struct error err = ERROR_INIT;

	if (port_remove(name, &err) < 0)
		log_warn("a device that is in the group of a network, and nobody's, is left",
			 LOG_STR("device", name), LOG_ERR(&err));
}

/* The index of each port that is there, and the end of those that are nobody's. */
static void settling_match(struct settling *s, const struct port_seen *seen, size_t n_seen)
{
	for (size_t i = 0; i < n_seen; i++) {
		bool known = settling_is_bridge(s, seen[i].name);

		for (size_t k = 0; k < s->n_ports; k++) {
			if (!str_eq(s->devices[k], seen[i].name))
				continue;
			known = true;
			s->ports[k].link = seen[i].link;
			s->masters[k] = seen[i].master;
		}
		if (known)
			continue;
		s->n_orphans++;
		settling_remove(seen[i].name);
	}
}

static int settling_ports(struct settling *s)
{
	struct port_seen *seen = NULL;
	size_t n_seen = 0;
	int r;

	r = port_list(&seen, &n_seen, &s->err);
	if (r == 0)
		settling_match(s, seen, n_seen);
	free(seen);
	return r;
}

/* The filter's part: those that are there, in front. */
static int settling_filter(struct settling *s)
{
	struct networks *all = s->all;
	struct filter_port *present = calloc(s->n_ports + 1, sizeof(*present));
	struct filter_state state = { .networks = s->networks,
				      .n_networks = s->n_networks,
				      .ports = present,
				      .drop_transit4 = s->forward.drop_transit4,
				      .drop_transit6 = s->forward.drop_transit6,
				      .has_bridges = s->has_bridges };
	int r;

	if (!present)
		return error_set(&s->err, -ENOMEM, "settle the packet filter");
	for (size_t i = 0; i < s->n_ports; i++) {
		/* It has no rules that its end would remove. */
		if (settling_is_stray(s, &s->ports[i]))
			s->ports[i].link = 0;
		if (s->ports[i].link)
			present[s->n_present++] = s->ports[i];
	}
	state.n_ports = s->n_present;
	r = filter_sync(all->filter, &state, &s->err);
	free(present);
	return r;
}

static int settling_routes(struct settling *s)
{
	struct prefix subnets[2 * NETWORKS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < s->n_networks; i++) {
		subnets[n++] = s->networks[i].pool4;
		if (s->networks[i].pool6.family)
			subnets[n++] = s->networks[i].pool6;
	}
	return subnets_settle_routes(subnets, n, &s->err);
}

static void settling_run(struct pool_work *work)
{
	struct settling *s = container_of(work, struct settling, work);
	int r;

	r = forward_settle(&s->forward, &s->err);
	if (r == 0)
		settling_bridges(s);
	if (r == 0)
		r = settling_ports(s);
	if (r == 0)
		r = settling_hosts(s);
	if (r == 0)
		r = settling_rejoin(s);
	if (r == 0)
		r = settling_filter(s);
	if (r == 0)
		(void)settling_routes(s);
}

/* ---- on the loop thread ---- */

static void forward_save_one(struct networks *all, const char *family, uint32_t link)
{
	char id[32];
	const struct run_forward record = { .id = id, .family = family, .link = link };
	struct error err = ERROR_INIT;

	(void)str_printf(id, sizeof(id), "%s/%u", family, link);
	if (run_store_put_forward(all->config.run_store, &record, &err) < 0)
		log_warn("that a link forwards for pods is not recorded", LOG_ERR(&err));
}

/* What a settling has turned on beyond what was on before: the lists only grow. */
static void settling_save_forward(struct settling *s)
{
	const struct forward *was = &s->all->forward, *is = &s->forward;

	for (size_t i = was->n_turned4; i < is->n_turned4; i++)
		forward_save_one(s->all, "ipv4", is->turned4[i]);
	for (size_t i = was->n_turned6; i < is->n_turned6; i++)
		forward_save_one(s->all, "ipv6", is->turned6[i]);
	if (is->turned_all6 && !was->turned_all6)
		forward_save_one(s->all, "ipv6", 0);
}

static int forward_load_one(void *data, const struct run_forward *record)
{
	struct forward *f = data;
	const bool is4 = str_eq(record->family, "ipv4");

	if (!is4 && !str_eq(record->family, "ipv6"))
		return -EBADMSG;
	if (is4 && f->n_turned4 < FORWARD_LINKS_MAX)
		f->turned4[f->n_turned4++] = record->link;
	else if (!is4 && record->link == 0)
		f->turned_all6 = true;
	else if (!is4 && f->n_turned6 < FORWARD_LINKS_MAX)
		f->turned6[f->n_turned6++] = record->link;
	return 0;
}

int networks_load_forward(struct networks *all, struct error *err)
{
	int r = run_store_each_forward(all->config.run_store, forward_load_one, &all->forward, err);

	return r < 0 && !err->code ? error_set(err, r, "read the records of forwarding") : r;
}

/* Tells each network of its trouble; whether there is any. */
static bool settling_tell_trouble(struct settling *s)
{
	struct network *n;
	bool any = false;

	list_for_each (n, &s->all->list, struct network, link)
		for (size_t i = 0; i < s->n_bridges; i++) {
			const struct error *trouble = &s->bridge_trouble[i];

			if (s->bridge_networks[i] != n->number)
				continue;
			if (trouble->code && strcmp(trouble->text, n->trouble.text) != 0)
				log_error("a network cannot be had, and is tried again",
					  LOG_STR("network", n->name), LOG_ERR(trouble));
			n->trouble = *trouble;
			any = any || trouble->code;
		}
	return any;
}

static void settling_done(struct pool_work *work)
{
	struct settling *s = container_of(work, struct settling, work);
	struct networks *all = s->all;

	all->settling = false;
	all->settlement = NULL;
	for (size_t i = 0; i < s->n_ports; i++) {
		s->attachments[i]->index = s->ports[i].link;
		s->attachments[i]->bridge = s->ports[i].bridge;
	}
	if (s->err.code) {
		log_error("the network of the pods cannot be settled, and is tried again",
			  LOG_ERR(&s->err));
		loop_timer_set(&all->settle_soon, SETTLE_AGAIN);
	} else if (settling_tell_trouble(s)) {
		loop_timer_set(&all->settle_soon, SETTLE_AGAIN);
	}
	if (s->n_orphans > 0)
		log_info("ports of pods that are gone were removed",
			 LOG_INT("ports", (int64_t)s->n_orphans));
	all->unsettled = s->err;
	settling_save_forward(s);
	all->forward = s->forward;
	/* Its own removal of the table is no news. */
	if (all->filter_fd >= 0)
		(void)filter_watch_read(all->filter_fd);
	(void)settling_free(s);
	networks_turn(all);
}

static void settling_start(struct networks *all)
{
	struct settling *s = settling_new(all);

	all->settle_due = false;
	if (!s) {
		log_error("no memory to settle the network of the pods");
		loop_timer_set(&all->settle_soon, SETTLE_AGAIN);
		return;
	}
	all->settling = true;
	all->settlement = s;
	s->work = (struct pool_work){ .run = settling_run, .done = settling_done };
	pool_submit(all->config.pool, &s->work);
}

/* What may begin now: a settling, or else all that waits. */
void networks_turn(struct networks *all)
{
	struct network_job *job;

	if (all->settling || all->stopped)
		return;
	if (all->settle_due && all->n_running == 0)
		settling_start(all);
	if (all->settling || all->settle_due)
		return;
	list_for_each (job, &all->jobs, struct network_job, link) {
		if (job->submitted)
			continue;
		job->submitted = true;
		all->n_running++;
		pool_submit(all->config.pool, &job->work);
	}
}

void networks_submit(struct networks *all, struct network_job *job)
{
	job->all = all;
	list_init(&job->link);
	list_add_tail(&all->jobs, &job->link);
	networks_turn(all);
}

void networks_job_done(struct network_job *job)
{
	struct networks *all = job->all;

	list_remove(&job->link);
	all->n_running--;
	networks_turn(all);
}

void networks_settle(struct networks *all)
{
	if (!all->begun)
		return;
	all->settle_due = true;
	networks_turn(all);
}

void networks_leave(struct networks *all)
{
	struct error err = ERROR_INIT;
	struct bridge_plan bridge;
	const struct network *n;

	if (!all->begun || all->was_used || !forward_undo(&all->forward))
		return;
	list_for_each (n, &all->list, struct network, link) {
		driver_plan_bridge(n, &bridge);
		if (n->driver == NETWORK_BRIDGE && port_remove(bridge.name, &err) < 0)
			log_warn("a bridge is left", LOG_ERR(&err));
	}
	if (filter_remove(all->filter, &err) < 0 || subnets_settle_routes(NULL, 0, &err) < 0)
		log_warn("something of the pods' network is left", LOG_ERR(&err));
}

void networks_settle_soon(struct networks *all)
{
	all->settle_due = true;
	loop_timer_set(&all->settle_soon, 0);
}

/* ---- what others do ---- */

static void networks_on_soon(struct loop_timer *timer)
{
	networks_settle(container_of(timer, struct networks, settle_soon));
}

static void networks_on_forward(struct loop_fd *source, unsigned events)
{
	struct networks *all = container_of(source, struct networks, forward_watch);

	(void)events;
	if (forward_watch_read(source->fd, &all->forward))
		loop_timer_set(&all->settle_soon, SETTLE_DELAY);
}

static void networks_on_filter(struct loop_fd *source, unsigned events)
{
	struct networks *all = container_of(source, struct networks, filter_watch);

	(void)events;
	if (filter_watch_read(source->fd))
		loop_timer_set(&all->settle_soon, SETTLE_DELAY);
}

void networks_init_settle(struct networks *all)
{
	loop_timer_init(&all->settle_soon, all->config.loop, networks_on_soon);
	all->forward_fd = -1;
	all->filter_fd = -1;
}

void networks_watch(struct networks *all)
{
	struct error err = ERROR_INIT;

	all->forward_fd = forward_watch_open(&err);
	if (all->forward_fd < 0)
		log_warn("changes of routes and forwarding are not seen", LOG_ERR(&err));
	else
		loop_fd_init(&all->forward_watch, all->config.loop, all->forward_fd, LOOP_READ,
			     networks_on_forward);
	if (filter_is_owned(all->filter))
		return;
	all->filter_fd = filter_watch_open(&err);
	if (all->filter_fd < 0)
		log_warn("changes of the packet filter are not seen", LOG_ERR(&err));
	else
		loop_fd_init(&all->filter_watch, all->config.loop, all->filter_fd, LOOP_READ,
			     networks_on_filter);
}

void networks_done_settle(struct networks *all)
{
	struct network_job *job;

	list_for_each (job, &all->jobs, struct network_job, link) {
		list_remove(&job->link);
		job->drop(job);
	}
	/* Work that a thread did not come to. */
	all->settlement = settling_free(all->settlement);
	loop_timer_done(&all->settle_soon);
	if (all->forward_fd >= 0)
		loop_fd_done(&all->forward_watch);
	if (all->filter_fd >= 0)
		loop_fd_done(&all->filter_watch);
	(void)fd_close(all->forward_fd);
	(void)fd_close(all->filter_fd);
}
