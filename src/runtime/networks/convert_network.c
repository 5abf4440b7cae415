/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/networks/convert_network.h"

#include <errno.h>

#include "base/text/str.h"
#include "network/attachment.h"
#include "network/driver.h"
#include "network/networks.h"
#include "pod/workload/model.h"
#include "runtime/start/settings.h"

/* protobuf-c's strings are not const, but serialising only reads them. */
static char *convert_str(const char *s)
{
	return (char *)(uintptr_t)(s ? s : "");
}

/* "" for none; NULL without memory. */
static char *convert_address(struct arena *a, const struct prefix *p)
{
	char text[PREFIX_TEXT_MAX] = "";

	if (p->family)
		prefix_print_address(p, text);
	return arena_strdup(a, text);
}

static char *convert_mac(struct arena *a, const uint8_t mac[LINK_MAC_LEN])
{
	char text[LINK_MAC_TEXT];

	link_print_mac(mac, text);
	return arena_strdup(a, text);
}

/* ---- networks ---- */

static char *convert_subnet(struct arena *a, const struct prefix *p)
{
	char text[PREFIX_TEXT_MAX];

	prefix_print(p, text);
	return arena_strdup(a, text);
}

static int convert_driver(struct arena *a, const struct network *n, Nacre__V1__Network *m)
{
	struct bridge_plan bridge;

	driver_plan_bridge(n, &bridge);
	m->driver = convert_str(network_driver_word(n->driver));
	m->parent = convert_str(n->parent);
	m->mode = convert_str(network_mode_word(n));
	m->ip_range = n->range4.family ? convert_subnet(a, &n->range4) : convert_str("");
	m->bridge = arena_strdup(a, n->driver == NETWORK_BRIDGE ? bridge.name : "");
	return m->ip_range && m->bridge ? 0 : -ENOMEM;
}

Nacre__V1__Network *convert_network(struct arena *a, const struct network *n)
{
	static const char *const states[NETWORK_STATE_COUNT] = {
		[NETWORK_MAKING] = "making",
		[NETWORK_READY] = "ready",
		[NETWORK_REMOVING] = "removing",
	};
	Nacre__V1__Network *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__network__init(m);
	m->name = convert_str(n->name);
	m->state = convert_str(states[n->state]);
	m->subnets = arena_zalloc(a, 2, sizeof(char *));
	if (!m->subnets)
		return NULL;
	m->subnets[m->n_subnets++] = convert_subnet(a, &n->pool4);
	if (n->pool6.family)
		m->subnets[m->n_subnets++] = convert_subnet(a, &n->pool6);
	m->gateway = convert_address(a, &n->gateway4);
	m->gateway6 = convert_address(a, &n->gateway6);
	m->mtu = n->mtu;
	m->internal = n->internal;
	m->node_open = n->node_open;
	m->created_at = n->created_at;
	m->pods = (uint32_t)n->n_attached;
	if (convert_driver(a, n, m) < 0)
		return NULL;
	return m->subnets[m->n_subnets - 1] && m->subnets[0] && m->gateway && m->gateway6 ? m
											  : NULL;
}

Nacre__V1__NetworkPod *convert_network_pod(struct arena *a, const struct workload *w,
					   const struct attachment *on)
{
	Nacre__V1__NetworkPod *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__network_pod__init(m);
	m->id = convert_str(w->id);
	m->name = convert_str(w->path);
	m->ip = convert_address(a, &on->ip4);
	m->ip6 = convert_address(a, &on->ip6);
	m->mac = convert_mac(a, on->mac);
	return m->ip && m->ip6 && m->mac ? m : NULL;
}

/* ---- who is on one ---- */

static Aurae__Runtime__V0__PublishedPort *convert_port(struct arena *a,
						       const struct filter_publish *p)
{
	Aurae__Runtime__V0__PublishedPort *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	aurae__runtime__v0__published_port__init(m);
	m->host_ip = convert_address(a, &p->host);
	m->host_port = p->host_port;
	m->port = p->pod_port;
	m->protocol = convert_str(publish_protocol_word(p->protocol));
	m->count = 1;
	return m->host_ip ? m : NULL;
}

static int convert_live(struct arena *a, const struct attachment *from,
			Nacre__V1__WorkloadNetwork *m)
{
	/* The network may be gone when the answer is sent. */
	m->name = arena_strdup(a, from->network->name);
	m->ip = convert_address(a, &from->ip4);
	m->ip6 = convert_address(a, &from->ip6);
	m->mac = convert_mac(a, from->mac);
	m->device = arena_printf(a, "eth%u", from->eth);
	m->publish = arena_zalloc(a, from->n_publish + 1, sizeof(*m->publish));
	if (!m->name || !m->ip || !m->ip6 || !m->mac || !m->publish || !m->device)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_publish; i++) {
		m->publish[i] = convert_port(a, &from->publish[i]);
		if (!m->publish[i])
			return -ENOMEM;
	}
	m->n_publish = from->n_publish;
	return 0;
}

Nacre__V1__WorkloadNetwork *convert_attached(struct arena *a, const struct attachment *from)
{
	Nacre__V1__WorkloadNetwork *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__workload_network__init(m);
	return convert_live(a, from, m) < 0 ? NULL : m;
}

static int convert_further(struct arena *a, const struct attachment *first, Nacre__V1__Workload *m)
{
	m->further_attachments =
		arena_zalloc(a, NETWORK_OF_ONE_MAX, sizeof(*m->further_attachments));
	if (!m->further_attachments)
		return -ENOMEM;
	for (const struct attachment *from = first; from; from = from->next) {
		if (from->is_half)
			continue;
		m->further_attachments[m->n_further_attachments] = convert_attached(a, from);
		if (!m->further_attachments[m->n_further_attachments++])
			return -ENOMEM;
	}
	return 0;
}

int convert_attachment(struct arena *a, const struct workload *w, Nacre__V1__Workload *m)
{
	const struct attachment *first = w->attachment;

	/* A network that comes or goes just now is none yet, or none any more. */
	while (first && first->is_half)
		first = first->next;
	m->attachment = settings_network(a, w->settings);
	if (first && !m->attachment) {
		m->attachment = arena_alloc(a, sizeof(*m->attachment));
		if (!m->attachment)
			return -ENOMEM;
		nacre__v1__workload_network__init(m->attachment);
	}
	if (first && convert_live(a, first, m->attachment) < 0)
		return -ENOMEM;
	if (first && first->next && convert_further(a, first->next, m) < 0)
		return -ENOMEM;
	if (m->attachment && !str_empty(m->attachment->name))
		m->network = m->attachment->name;
	return 0;
}
