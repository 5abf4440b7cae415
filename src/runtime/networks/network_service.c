/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/socket.h>

#include "api/nacre.pb-c.h"
#include "base/log/log.h"
#include "base/macros.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "loop/loop.h"
#include "network/attachment.h"
#include "network/driver.h"
#include "network/networks.h"
#include "pod/networks/connect.h"
#include "pod/networks/names.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/check.h"
#include "runtime/networks/convert_network.h"
#include "runtime/networks/pod_network.h"
#include "runtime/services.h"
#include "runtime/start/settings.h"

static int network_check_name(const char *name, struct error *err)
{
	if (str_empty(name))
		return error_field(err, ERROR_INVALID, "name", "required");
	return check_name("name", name, err);
}

static void network_no_memory(struct rpc_call *call)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, -ENOMEM, "answer");
	rpc_call_fail(call, &err);
}

/* ---- CreateNetwork ---- */

static int network_take_subnet(const char *text, size_t i, struct network_spec *spec,
			       struct error *err)
{
	struct prefix p, bare;
	struct prefix *to;
	char field[32];

	(void)str_printf(field, sizeof(field), "subnets[%zu]", i);
	if (!strchr(text, '/') || prefix_parse(text, &p) < 0)
		return error_field(err, ERROR_INVALID, field,
				   "\"%.64s\" is no subnet, as in 192.0.2.0/24", text);
	bare = prefix_network(&p);
	if (!prefix_eq(&bare, &p))
		return error_field(err, ERROR_INVALID, field,
				   "%s has bits behind its length; leave them 0", text);
	to = p.family == AF_INET ? &spec->subnet4 : &spec->subnet6;
	if (to->family)
		return error_field(err, ERROR_INVALID, field,
				   "%s is a second one of its family; a network has one", text);
	if (p.family == AF_INET6 && spec->no_ipv6)
		return error_field(err, ERROR_INVALID, field, "%s is of IPv6, beside no_ipv6",
				   text);
	*to = p;
	return 0;
}

static int network_take_gateway(const char *text, struct network_spec *spec, struct error *err)
{
	if (str_empty(text))
		return 0;
	if (strchr(text, '/') || prefix_parse(text, &spec->gateway4) < 0 ||
	    spec->gateway4.family != AF_INET)
		return error_field(err, ERROR_INVALID, "gateway",
				   "\"%.64s\" is no address of IPv4, as in 192.0.2.1", text);
	if (!spec->subnet4.family || !prefix_has(&spec->subnet4, &spec->gateway4))
		return error_field(err, ERROR_INVALID, "gateway",
				   "%s is in no subnet of IPv4 that is named", text);
	return 0;
}

static int network_take_address(const char *field, const char *text, struct prefix *ret,
				struct error *err)
{
	if (str_empty(text))
		return 0;
	return prefix_parse(text, ret) < 0
		       ? error_field(err, ERROR_INVALID, field, "\"%.64s\" is none", text)
		       : 0;
}

static int network_take_driver(const Nacre__V1__CreateNetworkRequest *q, struct network_spec *spec,
			       struct error *err)
{
	int r;

	spec->parent = q->parent;
	spec->mode = q->mode;
	if (network_driver_of(q->driver, &spec->driver) < 0)
		return error_field(err, ERROR_INVALID, "driver",
				   "\"%.32s\" is none of routed, bridge, macvlan, ipvlan and "
				   "device",
				   q->driver);
	r = network_take_address("ip_range", q->ip_range, &spec->range4, err);
	return r < 0 ? r : network_take_address("gateway6", q->gateway6, &spec->gateway6, err);
}

static int network_take(const Nacre__V1__CreateNetworkRequest *q, struct network_spec *spec,
			struct error *err)
{
	static const char *const taken[] = { "none", "host", "pod", "own" };
	int r = network_check_name(q->name, err);

	*spec = (struct network_spec){ .name = q->name,
				       .no_ipv6 = q->no_ipv6,
				       .internal = q->internal,
				       .node_open = q->node_open,
				       .mtu = q->mtu };
	for (size_t i = 0; i < ARRAY_SIZE(taken) && r == 0; i++)
		if (str_eq(q->name, taken[i]))
			r = error_field(err, ERROR_INVALID, "name",
					"\"%s\" means something else where a network is named",
					q->name);
	for (size_t i = 0; i < q->n_subnets && r == 0; i++)
		r = network_take_subnet(q->subnets[i], i, spec, err);
	if (r == 0)
		r = network_take_gateway(q->gateway, spec, err);
	return r < 0 ? r : network_take_driver(q, spec, err);
}

static void network_created(void *userdata, struct network *n, const struct error *err)
{
	Nacre__V1__CreateNetworkResponse m = NACRE__V1__CREATE_NETWORK_RESPONSE__INIT;
	struct rpc_call *call = userdata;

	if (err) {
		rpc_call_fail(call, err);
		return;
	}
	m.network = convert_network(rpc_call_arena(call), n);
	if (m.network)
		rpc_call_reply(call, &m.base);
	else
		network_no_memory(call);
}

static void network_create(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__CreateNetworkRequest *q =
		(const Nacre__V1__CreateNetworkRequest *)(const void *)request;
	const struct network_service *s = userdata;
	struct error err = ERROR_INIT;
	struct network_spec spec;
	int r = network_take(q, &spec, &err);

	if (r == 0)
		r = networks_create(s->networks, &spec, network_created, call, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- ListNetworks ---- */

static void network_list(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Nacre__V1__ListNetworksResponse m = NACRE__V1__LIST_NETWORKS_RESPONSE__INIT;
	const struct network_service *s = userdata;
	struct arena *a = rpc_call_arena(call);
	const struct network *n;

	(void)request;
	m.networks = arena_zalloc(a, NETWORKS_MAX, sizeof(*m.networks));
	if (!m.networks) {
		network_no_memory(call);
		return;
	}
	list_for_each (n, networks_list(s->networks), struct network, link) {
		m.networks[m.n_networks] = convert_network(a, n);
		if (!m.networks[m.n_networks++]) {
			network_no_memory(call);
			return;
		}
	}
	rpc_call_reply(call, &m.base);
}

/* ---- InspectNetwork ---- */

static int network_pods(struct arena *a, const struct workloads *all, const struct network *n,
			Nacre__V1__InspectNetworkResponse *m)
{
	const struct workload *w;

	m->pods = arena_zalloc(a, n->n_attached + 1, sizeof(*m->pods));
	if (!m->pods)
		return -ENOMEM;
	list_for_each (w, workloads_list(all), struct workload, link) {
		const struct attachment *on = w->attachment;

		while (on && on->network != n)
			on = on->next;
		if (!on || m->n_pods == n->n_attached)
			continue;
		m->pods[m->n_pods] = convert_network_pod(a, w, on);
		if (!m->pods[m->n_pods++])
			return -ENOMEM;
	}
	return 0;
}

static void network_inspect(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__InspectNetworkRequest *q =
		(const Nacre__V1__InspectNetworkRequest *)(const void *)request;
	Nacre__V1__InspectNetworkResponse m = NACRE__V1__INSPECT_NETWORK_RESPONSE__INIT;
	const struct network_service *s = userdata;
	struct arena *a = rpc_call_arena(call);
	const struct network *n = NULL;
	struct error err = ERROR_INIT;
	int r = network_check_name(q->name, &err);

	if (r == 0) {
		n = networks_find(s->networks, q->name);
		if (!n)
			r = error_field(&err, ERROR_NOT_FOUND, "name",
					"this node has no network %s", q->name);
	}
	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	m.network = convert_network(a, n);
	if (m.network && network_pods(a, s->workloads, n, &m) == 0)
		rpc_call_reply(call, &m.base);
	else
		network_no_memory(call);
}

/* ---- RemoveNetwork ---- */

static void network_removed(void *userdata, struct network *n, const struct error *err)
{
	Nacre__V1__RemoveNetworkResponse m = NACRE__V1__REMOVE_NETWORK_RESPONSE__INIT;
	struct rpc_call *call = userdata;

	(void)n;
	if (err)
		rpc_call_fail(call, err);
	else
		rpc_call_reply(call, &m.base);
}

static void network_remove(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__RemoveNetworkRequest *q =
		(const Nacre__V1__RemoveNetworkRequest *)(const void *)request;
	const struct network_service *s = userdata;
	struct error err = ERROR_INIT;
	int r = network_check_name(q->name, &err);

	if (r == 0)
		r = networks_remove(s->networks, q->name, network_removed, call, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- Connect, Disconnect ---- */

static int network_find_pod(const struct network_service *s, const char *target,
			    struct workload **ret, struct error *err)
{
	if (str_empty(target))
		return error_field(err, ERROR_INVALID, "target", "required");
	*ret = workloads_find(s->workloads, target);
	return *ret ? 0
		    : error_field(err, ERROR_NOT_FOUND, "target", "this node has no pod %.300s",
				  target);
}

/* The next one becomes the first; what was asked of the first alone is gone with it. */
static int network_settings_promote(struct arena *a, Nacre__V1__WorkloadNetwork *kept)
{
	const Aurae__Runtime__V0__FurtherNetwork *next =
		kept->n_further > 0 ? kept->further[0] : NULL;
	Aurae__Runtime__V0__PodNetwork *asked = kept->asked;

	if (!asked) {
		asked = arena_alloc(a, sizeof(*asked));
		if (!asked)
			return -ENOMEM;
		aurae__runtime__v0__pod_network__init(asked);
		kept->asked = asked;
	}
	asked->n_publish = 0;
	asked->rate_to_pod = asked->rate_from_pod = 0;
	if (!next) {
		kept->name = asked->ip = asked->ip6 = asked->mac = (char *)(uintptr_t) "";
		return 0;
	}
	kept->name = next->network;
	asked->ip = next->ip;
	asked->ip6 = next->ip6;
	asked->mac = next->mac;
	kept->further++;
	kept->n_further--;
	return 0;
}

/* What it was asked to be, with one network more. */
static const char *network_settings_with(struct arena *a, const struct workload *w,
					 Aurae__Runtime__V0__FurtherNetwork *one)
{
	Nacre__V1__WorkloadNetwork none = NACRE__V1__WORKLOAD_NETWORK__INIT;
	Nacre__V1__WorkloadNetwork *kept = settings_network(a, w->settings);
	Aurae__Runtime__V0__FurtherNetwork **list;

	kept = kept ? kept : &none;
	/* On none: this is the first. */
	if (str_empty(kept->name)) {
		if (network_settings_promote(a, kept) < 0)
			return NULL;
		kept->name = one->network;
		kept->asked->ip = one->ip;
		kept->asked->ip6 = one->ip6;
		kept->asked->mac = one->mac;
		return settings_with_network(a, w->settings, kept);
	}
	list = arena_zalloc(a, kept->n_further + 1, sizeof(*list));
	if (!list)
		return NULL;
	for (size_t i = 0; i < kept->n_further; i++)
		list[i] = kept->further[i];
	list[kept->n_further] = one;
	kept->further = list;
	kept->n_further++;
	return settings_with_network(a, w->settings, kept);
}

static const char *network_settings_without(struct arena *a, const struct workload *w,
					    const char *network)
{
	Nacre__V1__WorkloadNetwork none = NACRE__V1__WORKLOAD_NETWORK__INIT;
	Nacre__V1__WorkloadNetwork *kept = settings_network(a, w->settings);
	size_t n = 0;

	kept = kept ? kept : &none;
	if (str_eq(kept->name, network)) {
		if (network_settings_promote(a, kept) < 0)
			return NULL;
	} else {
		for (size_t i = 0; i < kept->n_further; i++)
			if (!str_eq(kept->further[i]->network, network))
				kept->further[n++] = kept->further[i];
		kept->n_further = n;
	}
	return settings_with_network(a, w->settings, kept);
}

/* A container can have its own /etc in the way of the one thread that writes the names of all:
 * callers whose network is changed do not wait for them longer than this. */
#define NETWORK_NAMES_WITHIN (2 * NSEC_PER_SEC)

/* The call, the network that it is about, and its answer; in its arena. */
struct network_change {
	struct rpc_call *call;
	const char *name;
	struct loop *loop;
	struct workloads *workloads;
	struct loop_timer patience;
	Nacre__V1__ConnectNetworkResponse connected;
	Nacre__V1__DisconnectNetworkResponse disconnected;
	const ProtobufCMessage *answer;
	struct names_wait wait;
};

static struct network_change *network_change_new(struct rpc_call *call, const char *name,
						 const struct network_service *s)
{
	struct network_change *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));

	if (!c)
		return NULL;
	c->call = call;
	c->name = name;
	c->loop = s->loop;
	c->workloads = s->workloads;
	nacre__v1__connect_network_response__init(&c->connected);
	nacre__v1__disconnect_network_response__init(&c->disconnected);
	return c;
}

static void network_changed(void *userdata)
{
	struct network_change *c = userdata;

	loop_timer_done(&c->patience);
	rpc_call_reply(c->call, c->answer);
}

static void network_on_patience(struct loop_timer *t)
{
	struct network_change *c = container_of(t, struct network_change, patience);

	names_forget(&c->wait);
	log_warn("who is on a network has changed, and the names in its pods have not yet",
		 LOG_STR("network", c->name));
	network_changed(c);
}

/* The caller that is told that it is done finds the names that go with it. */
static void network_answer(struct network_change *c, const ProtobufCMessage *answer)
{
	c->answer = answer;
	loop_timer_init(&c->patience, c->loop, network_on_patience);
	loop_timer_set(&c->patience, NETWORK_NAMES_WITHIN);
	c->wait = (struct names_wait){ .done = network_changed, .userdata = c };
	workloads_await_names(c->workloads, &c->wait);
}

static void network_connected(void *userdata, struct workload *w, const struct error *err)
{
	struct network_change *c = userdata;
	const struct attachment *on;

	if (err) {
		rpc_call_fail(c->call, err);
		return;
	}
	on = attachment_on(w->attachment, c->name);
	c->connected.attachment = on ? convert_attached(rpc_call_arena(c->call), on) : NULL;
	if (c->connected.attachment)
		network_answer(c, &c->connected.base);
	else
		network_no_memory(c->call);
}

static int network_connect_take(const Nacre__V1__ConnectNetworkRequest *q,
				const struct network_service *s,
				Aurae__Runtime__V0__FurtherNetwork *one, struct workload **w,
				struct network_wish *wish, struct error *err)
{
	int r = network_check_name(q->name, err);

	aurae__runtime__v0__further_network__init(one);
	one->network = q->name;
	one->ip = q->ip;
	one->ip6 = q->ip6;
	one->mac = q->mac;
	if (r == 0)
		r = pod_network_take_one(one, "", wish, err);
	if (r == 0)
		r = network_find_pod(s, q->target, w, err);
	if (r == 0 && !networks_find(s->networks, q->name))
		r = error_field(err, ERROR_NOT_FOUND, "name",
				"this node has no network %s (nacre network create makes one)",
				q->name);
	return r;
}

static void network_connect(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__ConnectNetworkRequest *q =
		(const Nacre__V1__ConnectNetworkRequest *)(const void *)request;
	struct arena *a = rpc_call_arena(call);
	const struct network_service *s = userdata;
	struct network_change *c = network_change_new(call, q->name, s);
	Aurae__Runtime__V0__FurtherNetwork one;
	const char *settings = NULL;
	struct error err = ERROR_INIT;
	struct workload *w = NULL;
	struct network_wish wish;
	int r = network_connect_take(q, s, &one, &w, &wish, &err);

	if (r == 0)
		settings = network_settings_with(a, w, &one);
	if (r == 0 && (!c || !settings))
		r = error_set(&err, -ENOMEM, "connect %s to a network", w->path);
	if (r == 0) {
		r = workload_connect(w, &wish, settings, network_connected, c, &err);
		if (str_eq(err.field, "network"))
			error_rename_field(&err, "name");
	}
	if (r < 0)
		rpc_call_fail(call, &err);
}

static void network_disconnected(void *userdata, struct workload *w, const struct error *err)
{
	struct network_change *c = userdata;

	(void)w;
	if (err)
		rpc_call_fail(c->call, err);
	else
		network_answer(c, &c->disconnected.base);
}

static void network_disconnect(struct rpc_call *call, const ProtobufCMessage *request,
			       void *userdata)
{
	const Nacre__V1__DisconnectNetworkRequest *q =
		(const Nacre__V1__DisconnectNetworkRequest *)(const void *)request;
	const struct network_service *s = userdata;
	struct network_change *c = network_change_new(call, q->name, s);
	const char *settings = NULL;
	struct error err = ERROR_INIT;
	struct workload *w = NULL;
	int r = network_check_name(q->name, &err);

	if (r == 0)
		r = network_find_pod(s, q->target, &w, &err);
	if (r == 0) {
		settings = network_settings_without(rpc_call_arena(call), w, q->name);
		if (!settings || !c)
			r = error_set(&err, -ENOMEM, "disconnect %s from a network", w->path);
	}
	if (r == 0)
		r = workload_disconnect(w, q->name, q->force, settings, network_disconnected, c,
					&err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

static const struct rpc_method network_methods[] = {
	{ "CreateNetwork", &nacre__v1__create_network_request__descriptor,
	  &nacre__v1__create_network_response__descriptor, false, network_create },
	{ "ListNetworks", &nacre__v1__list_networks_request__descriptor,
	  &nacre__v1__list_networks_response__descriptor, false, network_list },
	{ "InspectNetwork", &nacre__v1__inspect_network_request__descriptor,
	  &nacre__v1__inspect_network_response__descriptor, false, network_inspect },
	{ "RemoveNetwork", &nacre__v1__remove_network_request__descriptor,
	  &nacre__v1__remove_network_response__descriptor, false, network_remove },
	{ "Connect", &nacre__v1__connect_network_request__descriptor,
	  &nacre__v1__connect_network_response__descriptor, false, network_connect },
	{ "Disconnect", &nacre__v1__disconnect_network_request__descriptor,
	  &nacre__v1__disconnect_network_response__descriptor, false, network_disconnect },
};

const struct rpc_service network_service = {
	.name = "nacre.v1.NetworkService",
	.methods = network_methods,
	.n_methods = ARRAY_SIZE(network_methods),
};
