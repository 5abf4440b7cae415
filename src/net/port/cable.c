/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/cable.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log/log.h"
#include "base/text/str.h"
#include "loop/pool.h"
#include "net/netlink/address.h"
#include "net/port/inside.h"

static int cable_plug(struct netlink *nl, const struct cable_end *end, struct error *err)
{
	struct link_change change = { .power = LINK_UP, .no_auto_ipv6 = end->bridge != NULL };
	struct link link, bridge;
	int r;

	r = link_find(nl, end->name, &link, err);
	if (r < 0)
		return r;
	if (end->bridge) {
		r = link_find(nl, end->bridge, &bridge, err);
		if (r < 0)
			return r;
		change.master = bridge.index;
	}
	r = link_set(nl, link.index, &change, err);
	if (r < 0)
		return error_wrap(err, r, "%s", end->name);
	return end->address ? address_add(nl, link.index, end->address, err) : 0;
}

static int cable_plug_both(struct netlink *nl, const struct cable_end ends[2], struct error *err)
{
	_cleanup_netlink_ struct netlink other = NETLINK_NONE;
	int r;

	r = cable_plug(nl, &ends[0], err);
	if (r < 0)
		return r;
	r = inside_netlink(&other, ends[1].ns_fd, err);
	if (r == 0)
		r = cable_plug(&other, &ends[1], err);
	return r < 0 ? error_wrap(err, r, "the other end of %s", ends[0].name) : 0;
}

int cable_lay(const struct cable_end ends[2], uint32_t mtu, struct error *err)
{
	const struct link_veth veth = {
		.name = ends[0].name,
		.peer = ends[1].name,
		.mac = ends[0].mac,
		.peer_mac = ends[1].mac,
		.mtu = mtu,
		.peer_ns_fd = ends[1].ns_fd,
	};
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	uint32_t index;
	int r;

	r = inside_netlink(&nl, ends[0].ns_fd, err);
	if (r == 0)
		r = link_add_veth(&nl, &veth, &index, err);
	if (r < 0)
		return r;
	r = cable_plug_both(&nl, ends, err);
	if (r < 0)
		(void)link_delete(&nl, index, NULL);
	return r;
}

/* ---- taking it away ---- */

struct cable_cutting {
	struct pool_work work;
	char name[IF_NAMESIZE];
};

static void cable_cut_now(struct pool_work *work)
{
	const struct cable_cutting *c = container_of(work, struct cable_cutting, work);
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct error err = ERROR_INIT;
	struct link link;
	int r;

	r = netlink_open(&nl, &err);
	if (r == 0)
		r = link_find(&nl, c->name, &link, &err);
	if (r == 0)
		r = link_delete(&nl, link.index, &err);
	if (r < 0 && r != -ENODEV)
		log_warn("a network device stays for a while", LOG_STR("device", c->name),
			 LOG_ERR(&err));
}

static void cable_is_cut(struct pool_work *work)
{
	free(container_of(work, struct cable_cutting, work));
}

void cable_cut(struct pool *pool, const char *name)
{
	struct cable_cutting *c = calloc(1, sizeof(*c));

	if (!c) {
		log_warn("out of memory: a network device stays for a while",
			 LOG_STR("device", name));
		return;
	}
	c->work = (struct pool_work){ .run = cable_cut_now, .done = cable_is_cut };
	(void)str_copy(c->name, sizeof(c->name), name);
	pool_submit(pool, &c->work);
}
