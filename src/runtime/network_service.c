/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/socket.h>

#include "api/nacre.pb-c.h"
#include "base/macros.h"
#include "base/parse.h"
#include "base/str.h"
#include "network/attachment.h"
#include "network/networks.h"
#include "pod/workload.h"
#include "rpc/server.h"
#include "runtime/check.h"
#include "runtime/convert_network.h"
#include "runtime/services.h"

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
	return r < 0 ? r : network_take_gateway(q->gateway, spec, err);
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
		if (!w->attachment || w->attachment->network != n || m->n_pods == n->n_attached)
			continue;
		m->pods[m->n_pods] = convert_network_pod(a, w);
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

static const struct rpc_method network_methods[] = {
	{ "CreateNetwork", &nacre__v1__create_network_request__descriptor,
	  &nacre__v1__create_network_response__descriptor, false, network_create },
	{ "ListNetworks", &nacre__v1__list_networks_request__descriptor,
	  &nacre__v1__list_networks_response__descriptor, false, network_list },
	{ "InspectNetwork", &nacre__v1__inspect_network_request__descriptor,
	  &nacre__v1__inspect_network_response__descriptor, false, network_inspect },
	{ "RemoveNetwork", &nacre__v1__remove_network_request__descriptor,
	  &nacre__v1__remove_network_response__descriptor, false, network_remove },
};

const struct rpc_service network_service = {
	.name = "nacre.v1.NetworkService",
	.methods = network_methods,
	.n_methods = ARRAY_SIZE(network_methods),
};
