/* SPDX-License-Identifier: Apache-2.0 */
#include "net/netlink/link.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text/str.h"

/* Room for "set the link NAME". */
#define LINK_WHAT 64

static_assert(IF_NAMESIZE == IFNAMSIZ, "libc and the kernel agree");

/* ---- values ---- */

bool link_name_is_fine(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len >= IF_NAMESIZE || str_eq(name, ".") || str_eq(name, ".."))
		return false;
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] >= 0x7f || strchr("/:%", name[i]))
			return false;
	return true;
}

int link_parse_mac(const char *text, uint8_t ret[LINK_MAC_LEN])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t mac[LINK_MAC_LEN];

	if (strlen(text) != LINK_MAC_TEXT - 1)
		return -EINVAL;
	for (size_t i = 0; i < LINK_MAC_LEN; i++) {
		const char *high = strchr(digits, tolower((unsigned char)text[3 * i]));
		const char *low = strchr(digits, tolower((unsigned char)text[3 * i + 1]));

		if (!high || !low || text[3 * i + 2] != (i + 1 < LINK_MAC_LEN ? ':' : '\0'))
			return -EINVAL;
		mac[i] = (uint8_t)((high - digits) << 4 | (low - digits));
	}
	memcpy(ret, mac, sizeof(mac));
	return 0;
}

void link_print_mac(const uint8_t mac[LINK_MAC_LEN], char ret[LINK_MAC_TEXT])
{
	(void)snprintf(ret, LINK_MAC_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		       mac[3], mac[4], mac[5]);
}

/* ---- reading ---- */

static int link_read_info(struct link *l, struct netmsg_bytes rest)
{
	struct netattr a;
	int r;

	for (;;) {
		r = netattr_next(&rest, &a);
		if (r <= 0)
			return r;
		if (a.type != IFLA_INFO_KIND)
			continue;
		r = netattr_str(&a, l->kind, sizeof(l->kind));
		/* Kinds that we do not make may have longer names. */
		if (r < 0)
			l->kind[0] = '\0';
	}
}

static_assert(sizeof(struct link_counters) == 8 * sizeof(uint64_t) &&
		      offsetof(struct link_counters, tx_dropped) ==
			      offsetof(struct rtnl_link_stats64, tx_dropped),
	      "the first members of the kernel's");

/* Newer kernels have more members at its end. */
static void link_read_counters(struct link *l, const struct netattr *a)
{
	if (a->value.len >= sizeof(l->counters))
		memcpy(&l->counters, a->value.at, sizeof(l->counters));
}

static int link_read_attr(struct link *l, const struct netattr *a)
{
	uint8_t own_mac[LINK_MAC_LEN];

	switch (a->type) {
	case IFLA_IFNAME:
		return netattr_str(a, l->name, sizeof(l->name));
	case IFLA_MTU:
		return netattr_u32(a, &l->mtu);
	case IFLA_MASTER:
		return netattr_u32(a, &l->master);
	case IFLA_GROUP:
		return netattr_u32(a, &l->group);
	case IFLA_LINK:
		return netattr_u32(a, &l->peer);
	case IFLA_LINKINFO:
		return link_read_info(l, a->value);
	case IFLA_STATS64:
		link_read_counters(l, a);
		return 0;
	case IFLA_ADDRESS:
		l->has_mac = netattr_bytes(a, l->mac, sizeof(l->mac)) == 0;
		return 0;
	case IFLA_PERM_ADDRESS:
		if (netattr_bytes(a, own_mac, sizeof(own_mac)) == 0)
			memcpy(l->own_mac, own_mac, sizeof(own_mac));
		return 0;
	default:
		return 0;
	}
}

int link_read(const struct netmsg_head *answer, void *ret)
{
	struct link *to = ret;
	struct link l = { .index = 0 };
	struct netmsg_bytes rest = answer->body;
	struct ifinfomsg info;
	struct netattr a;
	int r;

	if (answer->type != RTM_NEWLINK)
		return -EBADMSG;
	r = netmsg_take(&rest, &info, sizeof(info));
	if (r < 0)
		return r;
	if (info.ifi_index <= 0)
		return -EBADMSG;
	l.index = (uint32_t)info.ifi_index;
	l.type = info.ifi_type;
	l.up = info.ifi_flags & IFF_UP;
	l.running = l.up && info.ifi_flags & IFF_RUNNING;
	do {
		r = netattr_next(&rest, &a);
		if (r > 0 && link_read_attr(&l, &a) < 0)
			r = -EBADMSG;
	} while (r > 0);
	if (r < 0)
		return r;
	if (l.name[0] == '\0')
		return -EBADMSG;
	*to = l;
	return 1;
}

static int link_take(const struct netmsg_head *answer, void *ret)
{
	int r = link_read(answer, ret);

	return r < 0 ? r : 0;
}

static int link_ask(struct netlink *nl, struct netmsg *m, struct link *ret, const char *what,
		    struct error *err)
{
	struct link l = { .index = 0 };
	int r;

	r = netlink_ask(nl, m, link_take, &l, what, err);
	if (r < 0)
		return r;
	if (l.index == 0)
		return error_set(err, -EBADMSG, "%s: no answer", what);
	*ret = l;
	return 0;
}

int link_find(struct netlink *nl, const char *name, struct link *ret, struct error *err)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC };
	char what[LINK_WHAT];
	struct netmsg m;

	if (!link_name_is_fine(name))
		return error_set(err, -ENODEV, "find a link by such a name");
	(void)str_printf(what, sizeof(what), "find the link %s", name);
	netmsg_begin(&m, RTM_GETLINK, NLM_F_REQUEST | NLM_F_ACK, &info, sizeof(info));
	netmsg_put_str(&m, IFLA_IFNAME, name);
	return link_ask(nl, &m, ret, what, err);
}

int link_get(struct netlink *nl, uint32_t index, struct link *ret, struct error *err)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC, .ifi_index = (int)index };
	char what[LINK_WHAT];
	struct netmsg m;

	(void)str_printf(what, sizeof(what), "find link %u", index);
	netmsg_begin(&m, RTM_GETLINK, NLM_F_REQUEST | NLM_F_ACK, &info, sizeof(info));
	return link_ask(nl, &m, ret, what, err);
}

int link_list(struct netlink *nl, struct link **ret, size_t *ret_n, struct error *err)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC };
	struct netmsg m;
	void *list;
	int r;

	netmsg_begin(&m, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, &info, sizeof(info));
	r = netlink_list(nl, &m, link_read, sizeof(**ret), &list, ret_n, "list the links", err);
	if (r < 0)
		return r;
	*ret = list;
	return 0;
}

/* ---- making ---- */

static void link_begin_new(struct netmsg *m, const char *name, const uint8_t *mac)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC };

	netmsg_begin(m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &info,
		     sizeof(info));
	netmsg_put_str(m, IFLA_IFNAME, name);
	if (mac)
		netmsg_put(m, IFLA_ADDRESS, mac, LINK_MAC_LEN);
}

/* Kernels before 6.1 do not say what index the new one has got. */
static int link_make(struct netlink *nl, struct netmsg *m, const char *kind, const char *name,
		     uint32_t *ret, struct error *err)
{
	char what[LINK_WHAT];
	struct link l;
	int r;

	if (!link_name_is_fine(name))
		return error_set(err, -EINVAL, "name a %s so", kind);
	(void)str_printf(what, sizeof(what), "add the %s %s", kind, name);
	r = netlink_ask(nl, m, NULL, NULL, what, err);
	if (r < 0 || !ret)
		return r;
	r = link_find(nl, name, &l, err);
	if (r < 0)
		return r;
	*ret = l.index;
	return 0;
}

int link_add_bridge(struct netlink *nl, const char *name, const uint8_t *mac, uint32_t *ret,
		    struct error *err)
{
	struct netmsg m;
	size_t info, data;

	link_begin_new(&m, name, mac);
	info = netmsg_open(&m, IFLA_LINKINFO);
	netmsg_put_str(&m, IFLA_INFO_KIND, "bridge");
	data = netmsg_open(&m, IFLA_INFO_DATA);
	netmsg_put_u32(&m, IFLA_BR_FORWARD_DELAY, 0);
	netmsg_put_u32(&m, IFLA_BR_STP_STATE, 0);
	netmsg_put_u8(&m, IFLA_BR_MCAST_SNOOPING, 0);
	netmsg_close(&m, data);
	netmsg_close(&m, info);
	return link_make(nl, &m, "bridge", name, ret, err);
}

int link_add_dummy(struct netlink *nl, const char *name, uint32_t *ret, struct error *err)
{
	struct netmsg m;
	size_t info;

	link_begin_new(&m, name, NULL);
	info = netmsg_open(&m, IFLA_LINKINFO);
	netmsg_put_str(&m, IFLA_INFO_KIND, "dummy");
	netmsg_close(&m, info);
	return link_make(nl, &m, "dummy", name, ret, err);
}

int link_add_veth(struct netlink *nl, const struct link_veth *veth, uint32_t *ret,
		  struct error *err)
{
	const struct ifinfomsg peer_info = { .ifi_family = AF_UNSPEC };
	struct netmsg m;
	size_t info, data, peer;

	if (!link_name_is_fine(veth->peer))
		return error_set(err, -EINVAL, "name the other end of a veth so");
	link_begin_new(&m, veth->name, veth->mac);
	if (veth->mtu > 0)
		netmsg_put_u32(&m, IFLA_MTU, veth->mtu);
	info = netmsg_open(&m, IFLA_LINKINFO);
	netmsg_put_str(&m, IFLA_INFO_KIND, "veth");
	data = netmsg_open(&m, IFLA_INFO_DATA);
	peer = netmsg_open(&m, VETH_INFO_PEER);
	netmsg_put_raw(&m, &peer_info, sizeof(peer_info));
	netmsg_put_str(&m, IFLA_IFNAME, veth->peer);
	if (veth->peer_mac)
		netmsg_put(&m, IFLA_ADDRESS, veth->peer_mac, LINK_MAC_LEN);
	if (veth->mtu > 0)
		netmsg_put_u32(&m, IFLA_MTU, veth->mtu);
	if (veth->peer_ns_fd >= 0)
		netmsg_put_u32(&m, IFLA_NET_NS_FD, (uint32_t)veth->peer_ns_fd);
	netmsg_close(&m, peer);
	netmsg_close(&m, data);
	netmsg_close(&m, info);
	return link_make(nl, &m, "veth", veth->name, ret, err);
}

int link_delete(struct netlink *nl, uint32_t index, struct error *err)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC, .ifi_index = (int)index };
	char what[LINK_WHAT];
	struct netmsg m;

	(void)str_printf(what, sizeof(what), "delete link %u", index);
	netmsg_begin(&m, RTM_DELLINK, NLM_F_REQUEST | NLM_F_ACK, &info, sizeof(info));
	return netlink_ask(nl, &m, NULL, NULL, what, err);
}

/* ---- changing ---- */

/* A kernel without IPv6 makes no such addresses either. */
static int link_set_no_auto_ipv6(struct netlink *nl, uint32_t index, struct error *err)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC, .ifi_index = (int)index };
	char what[LINK_WHAT];
	struct netmsg m;
	size_t all, inet6;
	int r;

	(void)str_printf(what, sizeof(what), "keep IPv6 off link %u", index);
	netmsg_begin(&m, RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, &info, sizeof(info));
	all = netmsg_open(&m, IFLA_AF_SPEC);
	inet6 = netmsg_open(&m, AF_INET6);
	netmsg_put_u8(&m, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
	netmsg_close(&m, inet6);
	netmsg_close(&m, all);
	r = netlink_ask(nl, &m, NULL, NULL, what, err);
	return r == -EAFNOSUPPORT ? 0 : r;
}

int link_set(struct netlink *nl, uint32_t index, const struct link_change *change,
	     struct error *err)
{
	struct ifinfomsg info = { .ifi_family = AF_UNSPEC, .ifi_index = (int)index };
	char what[LINK_WHAT];
	struct netmsg m;
	int r;

	if (change->name && !link_name_is_fine(change->name))
		return error_set(err, -EINVAL, "name link %u so", index);
	/* By itself, since the kernel sets flags before it looks at this one. */
	if (change->no_auto_ipv6) {
		r = link_set_no_auto_ipv6(nl, index, err);
		if (r < 0)
			return r;
	}
	if (change->power != LINK_AS_IT_IS) {
		info.ifi_change = IFF_UP;
		info.ifi_flags = change->power == LINK_UP ? IFF_UP : 0;
	}
	(void)str_printf(what, sizeof(what), "set link %u", index);
	netmsg_begin(&m, RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, &info, sizeof(info));
	if (change->name)
		netmsg_put_str(&m, IFLA_IFNAME, change->name);
	if (change->mac)
		netmsg_put(&m, IFLA_ADDRESS, change->mac, LINK_MAC_LEN);
	if (change->mtu > 0)
		netmsg_put_u32(&m, IFLA_MTU, change->mtu);
	if (change->master > 0)
		netmsg_put_u32(&m, IFLA_MASTER,
			       change->master == LINK_NO_MASTER ? 0 : change->master);
	if (change->no_group)
		netmsg_put_u32(&m, IFLA_GROUP, 0);
	return netlink_ask(nl, &m, NULL, NULL, what, err);
}

int link_move(struct netlink *nl, uint32_t index, int ns_fd, const char *name, struct error *err)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC, .ifi_index = (int)index };
	char what[LINK_WHAT];
	struct netmsg m;

	if (name && !link_name_is_fine(name))
		return error_set(err, -EINVAL, "name link %u so", index);
	(void)str_printf(what, sizeof(what), "move link %u to another namespace", index);
	netmsg_begin(&m, RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, &info, sizeof(info));
	netmsg_put_u32(&m, IFLA_NET_NS_FD, (uint32_t)ns_fd);
	if (name)
		netmsg_put_str(&m, IFLA_IFNAME, name);
	return netlink_ask(nl, &m, NULL, NULL, what, err);
}
