/* SPDX-License-Identifier: Apache-2.0 */
#include "network/guest_end.h"

#include <errno.h>
#include <string.h>

#include "base/file/fd.h"
#include "net/netlink/netlink.h"
#include "net/port/inside.h"
#include "net/port/join.h"
#include "net/port/port_parts.h"
#include "net/port/sysctl.h"
#include "network/model.h"

void guest_end_plan(const struct attachment *a, struct guest_end *ret)
{
	*ret = (struct guest_end){ .by_plugins = a->network->plugins != NULL,
				   .leads_out = a->leads_out };
	driver_plan(a, &ret->plan);
	ret->plan.port.alias = NULL;
}

bool guest_end_is_known(const struct attachment *a)
{
	return !a->network->plugins && a->network->driver == NETWORK_ROUTED;
}

/* ---- a routed port ---- */

static void guest_end_add_route(struct setup *s, const struct prefix *pool,
				const struct prefix *gateway, bool is_default)
{
	const struct prefix all = { .family = pool->family };
	const struct setup_neighbour neighbour = { .address = *gateway };

	s->routes[s->n_routes++] =
		(struct setup_route){ .to = is_default ? all : prefix_network(pool),
				      .via = *gateway };
	s->neighbours[s->n_neighbours] = neighbour;
	memcpy(s->neighbours[s->n_neighbours++].mac, port_node_mac, LINK_MAC_LEN);
}

/* As port_open_inside() has it. */
static void guest_end_of_port(const struct port_plan *plan, struct setup *s)
{
	const struct prefix ip4 = port_host(&plan->ip4), ip6 = port_host(&plan->ip6);

	*s = (struct setup){ .mtu = plan->mtu };
	memcpy(s->mac, plan->mac, sizeof(s->mac));
	s->addresses[s->n_addresses++] = ip4;
	guest_end_add_route(s, &plan->pool4, &plan->gateway4, plan->is_default);
	if (!plan->ip6.family)
		return;
	s->addresses[s->n_addresses++] = ip6;
	guest_end_add_route(s, &plan->pool6, &port_gateway6, plan->is_default);
}

/* ---- all others, on a thread that stands in the machine's namespace ---- */

struct guest_end_work {
	const struct guest_end *end;
	struct setup *setup;
};

/* A guest that sends to the node's end of its other device does not come out here. */
static int guest_end_close_way(struct error *err)
{
	_cleanup_fd_ int proc_fd = sysctl_open(err);

	return proc_fd < 0 ? proc_fd : sysctl_write(proc_fd, "ipv4/ip_forward", "0", err);
}

static int guest_end_work(void *arg, struct error *err)
{
	const struct guest_end_work *w = arg;
	const struct port_plan *plan = &w->end->plan.port;
	struct link_change as_long = { .mtu = 0 };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link device, tap;
	int r;

	r = netlink_open(&nl, err);
	if (r == 0)
		r = guest_end_close_way(err);
	if (r == 0)
		r = link_find(&nl, plan->pod_name, &device, err);
	if (r == 0)
		r = link_find(&nl, plan->tap, &tap, err);
	if (r == 0)
		r = setup_read(&nl, device.index, w->setup, err);
	if (r < 0)
		return r;
	as_long.mtu = device.mtu;
	r = link_set(&nl, tap.index, &as_long, err);
	return r == 0 ? join_links(&nl, tap.index, device.index, err) : r;
}

int guest_end_join(const struct guest_end *g, int netns_fd, struct setup *ret, struct error *err)
{
	struct guest_end_work w = { .end = g, .setup = ret };
	int r;

	if (!g->by_plugins && g->plan.driver == NETWORK_ROUTED) {
		guest_end_of_port(&g->plan.port, ret);
		return 0;
	}
	r = g->leads_out && !g->by_plugins ? driver_lead_out(&g->plan, netns_fd, err) : 0;
	if (r == 0)
		r = inside_run(netns_fd, guest_end_work, &w, err);
	return r == -ENOENT ? error_refuse(err, ERROR_PRECONDITION,
					   "this kernel cannot join a pod's device to its machine: "
					   "load the modules sch_ingress, cls_u32 and act_mirred")
			    : r;
}
