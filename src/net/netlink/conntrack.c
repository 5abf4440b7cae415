/* SPDX-License-Identifier: Apache-2.0 */
#include "net/netlink/conntrack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/macros.h"
#include "base/memory/buf.h"
#include "net/netlink/netlink.h"

#define CONNTRACK_TUPLE_MAX 128

/* One direction of a connection. */
struct conntrack_tuple {
	struct prefix source, destination;
	uint8_t protocol;
	uint16_t destination_port;
};

struct conntrack_entry {
	struct conntrack_tuple original, reply;
	uint8_t raw[CONNTRACK_TUPLE_MAX]; /* of the original direction, as the kernel wrote it */
	size_t raw_len;
	uint32_t id;
	uint8_t family;
};

static int conntrack_read_ip(struct netmsg_bytes rest, struct conntrack_tuple *t)
{
	static const struct {
		uint16_t type;
		uint8_t family;
		bool is_source;
	} kinds[] = { { CTA_IP_V4_SRC, AF_INET, true },
		      { CTA_IP_V4_DST, AF_INET, false },
		      { CTA_IP_V6_SRC, AF_INET6, true },
		      { CTA_IP_V6_DST, AF_INET6, false } };
	struct netattr a;
	int r;

	while ((r = netattr_next(&rest, &a)) > 0)
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
			struct prefix *p = kinds[i].is_source ? &t->source : &t->destination;

			if (a.type != kinds[i].type)
				continue;
			*p = (struct prefix){ .family = kinds[i].family };
			if (netattr_bytes(&a, p->bytes, prefix_size(p)) < 0)
				return -EBADMSG;
		}
	return r;
}

static int conntrack_read_proto(struct netmsg_bytes rest, struct conntrack_tuple *t)
{
	struct netattr a;
	int r;

	while ((r = netattr_next(&rest, &a)) > 0) {
		if (a.type == CTA_PROTO_NUM && netattr_bytes(&a, &t->protocol, 1) < 0)
			return -EBADMSG;
		if (a.type != CTA_PROTO_DST_PORT)
			continue;
		if (netattr_bytes(&a, &t->destination_port, 2) < 0)
			return -EBADMSG;
		t->destination_port = ntohs(t->destination_port);
	}
	return r;
}

static int conntrack_read_tuple(struct netmsg_bytes rest, struct conntrack_tuple *t)
{
	struct netattr a;
	int r;

	while ((r = netattr_next(&rest, &a)) > 0) {
		if (a.type == CTA_TUPLE_IP)
			r = conntrack_read_ip(a.value, t);
		else if (a.type == CTA_TUPLE_PROTO)
			r = conntrack_read_proto(a.value, t);
		if (r < 0)
			return r;
	}
	return r;
}

static int conntrack_read_attr(const struct netattr *a, struct conntrack_entry *e)
{
	switch (a->type) {
	case CTA_TUPLE_ORIG:
		if (a->value.len > sizeof(e->raw))
			return -EBADMSG;
		memcpy(e->raw, a->value.at, a->value.len);
		e->raw_len = a->value.len;
		return conntrack_read_tuple(a->value, &e->original);
	case CTA_TUPLE_REPLY:
		return conntrack_read_tuple(a->value, &e->reply);
	case CTA_ID:
		return netattr_u32(a, &e->id);
	default:
		return 0;
	}
}

static int conntrack_read(const struct netmsg_head *answer, struct conntrack_entry *e)
{
	struct netmsg_bytes rest = answer->body;
	struct nfgenmsg info;
	struct netattr a;
	int r;

	if (answer->type != (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW) ||
	    netmsg_take(&rest, &info, sizeof(info)) < 0)
		return -EBADMSG;
	*e = (struct conntrack_entry){ .family = info.nfgen_family };
	while ((r = netattr_next(&rest, &a)) > 0) {
		r = conntrack_read_attr(&a, e);
		if (r < 0)
			return r;
	}
	return r;
}

static bool conntrack_is_stale(const struct conntrack_entry *e, const struct conntrack_stale *s)
{
	return e->original.protocol == s->protocol &&
	       e->original.destination_port == s->host_port &&
	       e->reply.source.family == s->pod.family &&
	       (prefix_same_address(&e->reply.source, &s->pod) ||
		prefix_same_address(&e->reply.source, &e->original.destination));
}

static int conntrack_delete(struct netlink *nl, const struct conntrack_entry *e, struct error *err)
{
	const struct nfgenmsg info = { .nfgen_family = e->family };
	struct error own = ERROR_INIT;
	struct netmsg m;
	int r;

	netmsg_begin(&m, NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE,
		     NLM_F_REQUEST | NLM_F_ACK, &info, sizeof(info));
	netmsg_put(&m, CTA_TUPLE_ORIG | NLA_F_NESTED, e->raw, e->raw_len);
	netmsg_put_u32(&m, CTA_ID, e->id);
	r = netlink_ask(nl, &m, NULL, NULL, "forget a connection", &own);
	/* It ended meanwhile. */
	return r < 0 && r != -ENOENT ? error_copy(err, &own) : 0;
}

/* Those that are to go, out of the hundred thousands that a host may have. */
struct conntrack_search {
	const struct conntrack_stale *list;
	size_t n_list;
	struct buf found; /* of struct conntrack_entry */
};

static int conntrack_look(const struct netmsg_head *answer, void *arg)
{
	struct conntrack_search *s = arg;
	struct conntrack_entry e;
	int r;

	r = conntrack_read(answer, &e);
	for (size_t i = 0; r == 0 && i < s->n_list; i++)
		if (conntrack_is_stale(&e, &s->list[i]))
			return buf_add(&s->found, &e, sizeof(e));
	return r;
}

static int conntrack_search(struct netlink *nl, struct conntrack_search *s, struct error *err)
{
	const struct nfgenmsg info = { .nfgen_family = AF_UNSPEC };
	struct netmsg m;

	netmsg_begin(&m, NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET, NLM_F_REQUEST | NLM_F_DUMP,
		     &info, sizeof(info));
	return netlink_ask(nl, &m, conntrack_look, s, "list the connections", err);
}

int conntrack_forget(const struct conntrack_stale *list, size_t n, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct conntrack_search s = { .list = list, .n_list = n, .found = BUF_INIT };
	struct conntrack_entry e;
	int r;

	r = netlink_open_for(&nl, NETLINK_NETFILTER, err);
	if (r == 0)
		r = conntrack_search(&nl, &s, err);
	for (; r == 0 && s.found.len > 0; buf_consume(&s.found, sizeof(e))) {
		memcpy(&e, buf_data(&s.found), sizeof(e));
		r = conntrack_delete(&nl, &e, err);
	}
	buf_done(&s.found);
	return r;
}
