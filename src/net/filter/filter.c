/* SPDX-License-Identifier: Apache-2.0 */
#include "net/filter/filter.h"

/* Before the kernel's headers, which leave out what libc has said. */
#include <arpa/inet.h>
#include <net/if.h>

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_bridge.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "net/filter/filter_rules.h"
#include "net/netlink/netlink.h"
#include "net/netlink/netmsg.h"
#include "net/port/port.h"

/* Of Linux 6.9; the headers of Debian 12 are older. */
#define FILTER_TABLE_PERSIST 0x4U
/* Elements of one message, whose list has at most 65,535 bytes. */
#define FILTER_ELEMENTS_MAX 400
#define FILTER_BYTES_MAX 32
#define FILTER_DATAGRAM 8192

struct filter {
	int fd;
	uint32_t flags; /* of the table, as this kernel takes them */
	bool bridges;   /* the table of bridges is there, or may be */
};

/* ---- elements ---- */

/* A message for elements of one set, as long as more come for it. */
struct filter_elements {
	struct nft_batch *b;
	unsigned verb; /* NFT_MSG_NEWSETELEM or NFT_MSG_DELSETELEM */
	enum filter_set set;
	size_t n, list;
};

static void filter_elements_end(struct filter_elements *e)
{
	if (e->n > 0)
		nft_close(e->b, e->list);
	e->n = 0;
}

static void filter_elements_begin(struct filter_elements *e, enum filter_set set)
{
	if (e->n > 0 && e->set == set && e->n < FILTER_ELEMENTS_MAX)
		return;
	filter_elements_end(e);
	e->set = set;
	nft_message(e->b, e->verb, e->verb == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0,
		    filter_set_family(set));
	nft_put_str(e->b, NFTA_SET_ELEM_LIST_TABLE, FILTER_TABLE);
	nft_put_str(e->b, NFTA_SET_ELEM_LIST_SET, filter_set_name(set));
	e->list = nft_open(e->b, NFTA_SET_ELEM_LIST_ELEMENTS);
}

/* A key, or the value of a map, that is put together from words of four bytes. */
struct filter_bytes {
	uint8_t data[FILTER_BYTES_MAX];
	size_t len;
};

static void filter_add_bytes(struct filter_bytes *k, const void *data, size_t len)
{
	memcpy(k->data + k->len, data, len);
	k->len += (len + 3) & ~(size_t)3;
}

static void filter_put_value(struct nft_batch *b, unsigned type, const struct filter_bytes *v)
{
	const size_t at = nft_open(b, type);

	nft_put(b, NFTA_DATA_VALUE, v->data, v->len);
	nft_close(b, at);
}

static void filter_put(struct filter_elements *e, enum filter_set set,
		       const struct filter_bytes *key, const struct filter_bytes *value,
		       uint32_t flags)
{
	size_t element;

	filter_elements_begin(e, set);
	element = nft_open(e->b, NFTA_LIST_ELEM);
	if (flags)
		nft_put_u32(e->b, NFTA_SET_ELEM_FLAGS, flags);
	filter_put_value(e->b, NFTA_SET_ELEM_KEY, key);
	if (value)
		filter_put_value(e->b, NFTA_SET_ELEM_DATA, value);
	nft_close(e->b, element);
	e->n++;
}

/* ---- those of a network ---- */

/* The address behind the last one of a subnet; false where there is none. */
static bool filter_behind(const struct prefix *subnet, struct filter_bytes *ret)
{
	size_t bit = subnet->length;
	bool carry = true;

	*ret = (struct filter_bytes){ .len = 0 };
	filter_add_bytes(ret, subnet->bytes, prefix_size(subnet));
	while (carry && bit-- > 0) {
		const uint8_t mask = (uint8_t)(0x80U >> bit % 8);

		carry = ret->data[bit / 8] & mask;
		ret->data[bit / 8] ^= mask;
	}
	return !carry;
}

static void filter_put_pool(struct filter_elements *e, enum filter_set set,
			    const struct prefix *pool)
{
	const struct prefix first = prefix_network(pool);
	struct filter_bytes key = { .len = 0 };

	if (prefix_size(pool) == 0)
		return;
	filter_add_bytes(&key, first.bytes, prefix_size(&first));
	filter_put(e, set, &key, NULL, 0);
	if (filter_behind(&first, &key))
		filter_put(e, set, &key, NULL, NFT_SET_ELEM_INTERVAL_END);
}

static void filter_put_network(struct filter_elements *e, const struct filter_network *n)
{
	const uint32_t group = PORT_GROUP + n->number;
	struct filter_bytes one = { .len = 0 }, two;

	filter_add_bytes(&one, &group, sizeof(group));
	two = one;
	filter_add_bytes(&two, &group, sizeof(group));
	filter_put_pool(e, FILTER_POOL4, &n->pool4);
	filter_put_pool(e, FILTER_POOL6, &n->pool6);
	filter_put(e, FILTER_SAME, &two, NULL, 0);
	if (n->internal)
		filter_put(e, FILTER_CLOSED, &one, NULL, 0);
	if (n->node_open)
		filter_put(e, FILTER_OPEN, &one, NULL, 0);
}

/* ---- those of a port ---- */

static void filter_put_address(struct filter_elements *e, const struct filter_port *p,
			       const struct prefix *address, enum filter_set own,
			       enum filter_set self)
{
	const uint32_t link = p->bridge ? p->bridge : p->link;
	struct filter_bytes key = { .len = 0 }, twice = { .len = 0 };

	filter_add_bytes(&key, &link, sizeof(link));
	filter_add_bytes(&key, address->bytes, prefix_size(address));
	filter_put(e, own, &key, NULL, 0);
	filter_add_bytes(&twice, address->bytes, prefix_size(address));
	filter_add_bytes(&twice, address->bytes, prefix_size(address));
	filter_put(e, self, &twice, NULL, 0);
}

static void filter_put_publish(struct filter_elements *e, const struct filter_publish *publish,
			       const struct prefix *pod)
{
	const bool is_4 = pod->family == AF_INET, at = publish->host.family != 0;
	const enum filter_set set = is_4 ? (at ? FILTER_PORT4_AT : FILTER_PORT4)
					 : (at ? FILTER_PORT6_AT : FILTER_PORT6);
	const uint16_t host_port = htons(publish->host_port), port = htons(publish->pod_port);
	struct filter_bytes key = { .len = 0 }, value = { .len = 0 };

	if (at && publish->host.family != pod->family)
		return;
	if (at)
		filter_add_bytes(&key, publish->host.bytes, prefix_size(pod));
	filter_add_bytes(&key, &publish->protocol, sizeof(publish->protocol));
	filter_add_bytes(&key, &host_port, sizeof(host_port));
	filter_add_bytes(&value, pod->bytes, prefix_size(pod));
	filter_add_bytes(&value, &port, sizeof(port));
	filter_put(e, set, &key, &value, 0);
}

/* In a set whose key is a word and bytes. */
static void filter_put_pair(struct filter_elements *e, enum filter_set set, uint32_t word,
			    const void *bytes, size_t len)
{
	struct filter_bytes key = { .len = 0 };

	filter_add_bytes(&key, &word, sizeof(word));
	filter_add_bytes(&key, bytes, len);
	filter_put(e, set, &key, NULL, 0);
}

static void filter_put_not6(struct filter_elements *e, const struct filter_publish *publish)
{
	const uint16_t port = htons(publish->host_port);
	struct filter_bytes key = { .len = 0 };

	if (publish->host.family)
		return;
	filter_add_bytes(&key, &publish->protocol, sizeof(publish->protocol));
	filter_add_bytes(&key, &port, sizeof(port));
	filter_put(e, FILTER_NOT6, &key, NULL, 0);
}

static void filter_put_bridged(struct filter_elements *e, const struct filter_port *p)
{
	const uint32_t group = PORT_GROUP + p->network;

	filter_put_pair(e, FILTER_NEAR4, group, p->ip4.bytes, 4);
	filter_put_pair(e, FILTER_LAN_MAC, p->link, p->mac, sizeof(p->mac));
	filter_put_pair(e, FILTER_LAN4, p->link, p->ip4.bytes, 4);
	if (!p->ip6.family)
		return;
	filter_put_pair(e, FILTER_NEAR6, group, p->ip6.bytes, 16);
	filter_put_pair(e, FILTER_LAN6, p->link, p->ip6.bytes, 16);
	for (size_t i = 0; i < p->n_publish; i++)
		filter_put_not6(e, &p->publish[i]);
}

static void filter_put_port(struct filter_elements *e, const struct filter_port *p)
{
	if (p->bridge)
		filter_put_bridged(e, p);
	filter_put_address(e, p, &p->ip4, FILTER_ADDR4, FILTER_SELF4);
	if (p->ip6.family)
		filter_put_address(e, p, &p->ip6, FILTER_ADDR6, FILTER_SELF6);
	for (size_t i = 0; i < p->n_publish; i++) {
		filter_put_publish(e, &p->publish[i], &p->ip4);
		if (p->ip6.family)
			filter_put_publish(e, &p->publish[i], &p->ip6);
	}
}

static int filter_change_port(struct filter *f, unsigned verb, const struct filter_port *p,
			      const char *what, struct error *err)
{
	_cleanup_nft_batch_ struct nft_batch b = NFT_BATCH_INIT;
	struct filter_elements e = { .b = &b, .verb = verb };

	filter_put_port(&e, p);
	filter_elements_end(&e);
	return nft_commit(&b, f->fd, what, err);
}

int filter_add_port(struct filter *f, const struct filter_port *p, struct error *err)
{
	return filter_change_port(f, NFT_MSG_NEWSETELEM, p, "let the packets of a pod pass", err);
}

int filter_remove_port(struct filter *f, const struct filter_port *p, struct error *err)
{
	return filter_change_port(f, NFT_MSG_DELSETELEM, p, "remove the rules of a pod", err);
}

/* ---- the table ---- */

static void filter_put_table_of(struct nft_batch *b, uint8_t family, unsigned verb, uint32_t flags)
{
	nft_message(b, verb, verb == NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0, family);
	nft_put_str(b, NFTA_TABLE_NAME, FILTER_TABLE);
	if (verb == NFT_MSG_NEWTABLE)
		nft_put_u32(b, NFTA_TABLE_FLAGS, flags);
}

static void filter_put_table(struct nft_batch *b, unsigned verb, uint32_t flags)
{
	filter_put_table_of(b, NFPROTO_INET, verb, flags);
}

/* Anew, or away. Kernels without nf_tables for bridges are not asked where there are none. */
static void filter_put_bridges(const struct filter *f, struct nft_batch *b, bool wanted)
{
	if (!f->bridges && !wanted)
		return;
	filter_put_table_of(b, NFPROTO_BRIDGE, NFT_MSG_NEWTABLE, f->flags);
	filter_put_table_of(b, NFPROTO_BRIDGE, NFT_MSG_DELTABLE, 0);
	if (!wanted)
		return;
	filter_put_table_of(b, NFPROTO_BRIDGE, NFT_MSG_NEWTABLE, f->flags);
	filter_put_bridge_rules(b);
}

int filter_sync(struct filter *f, const struct filter_state *state, struct error *err)
{
	_cleanup_nft_batch_ struct nft_batch b = NFT_BATCH_INIT;
	struct filter_elements e = { .b = &b, .verb = NFT_MSG_NEWSETELEM };
	int r;

	/* The first one makes it where somebody has removed it. */
	filter_put_table(&b, NFT_MSG_NEWTABLE, f->flags);
	filter_put_table(&b, NFT_MSG_DELTABLE, 0);
	filter_put_table(&b, NFT_MSG_NEWTABLE, f->flags);
	filter_put_rules(&b, state->drop_transit4, state->drop_transit6);
	filter_put_bridges(f, &b, state->has_bridges);
	for (size_t i = 0; i < state->n_networks; i++)
		filter_put_network(&e, &state->networks[i]);
	for (size_t i = 0; i < state->n_ports; i++)
		filter_put_port(&e, &state->ports[i]);
	filter_elements_end(&e);
	r = nft_commit(&b, f->fd, "set the rules of the pods' network", err);
	if (r == 0)
		f->bridges = state->has_bridges;
	/* What it lacks the kernel calls a file that is not there. */
	return r == -ENOENT
		       ? error_refuse(err, ERROR_PRECONDITION,
				      "this kernel lacks a part of nf_tables; load the modules "
				      "nft_ct, nft_chain_nat, nft_nat, nft_masq, nft_fib_inet, "
				      "nft_reject_inet and nft_connlimit")
		       : r;
}

/* The netlink port of the socket that the table belongs to. */
static int filter_read_owner(const struct netmsg_head *answer, void *arg)
{
	struct netmsg_bytes rest = answer->body;
	uint32_t *owner = arg, value;
	struct nfgenmsg info;
	struct netattr a;
	int r;

	r = netmsg_take(&rest, &info, sizeof(info));
	while (r >= 0 && (r = netattr_next(&rest, &a)) > 0) {
		if (a.type != NFTA_TABLE_OWNER)
			continue;
		r = netattr_u32(&a, &value);
		*owner = r < 0 ? 0 : ntohl(value);
	}
	return r;
}

/* Whether there is one of that family, and in *owner whose it is; 0: nobody's, or it cannot be
 * told.
 */
static bool filter_look(uint8_t family, uint32_t *owner)
{
	const struct nfgenmsg info = { .nfgen_family = family, .version = NFNETLINK_V0 };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct netmsg m;

	*owner = 0;
	if (netlink_open_for(&nl, NETLINK_NETFILTER, NULL) < 0)
		return false;
	netmsg_begin(&m, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE, NLM_F_REQUEST | NLM_F_ACK,
		     &info, sizeof(info));
	netmsg_put_str(&m, NFTA_TABLE_NAME, FILTER_TABLE);
	return netlink_ask(&nl, &m, filter_read_owner, owner, "look for a table", NULL) == 0;
}

int filter_remove(struct filter *f, struct error *err)
{
	_cleanup_nft_batch_ struct nft_batch b = NFT_BATCH_INIT;

	filter_put_table(&b, NFT_MSG_DELTABLE, 0);
	filter_put_bridges(f, &b, false);
	return nft_commit(&b, f->fd, "remove the table inet " FILTER_TABLE, err);
}

static int filter_refuse(int r, struct error *err)
{
	uint32_t owner;

	if (r == -EPROTONOSUPPORT || r == -EOPNOTSUPP || r == -EAFNOSUPPORT)
		return error_refuse(err, ERROR_PRECONDITION,
				    "this kernel has no nf_tables for networks of pods; load the "
				    "module nf_tables, or use --network none or host");
	if (r != -EPERM)
		return r;
	if (filter_look(NFPROTO_INET, &owner) && owner != 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the table inet " FILTER_TABLE " of nf_tables belongs to the "
				    "netlink socket %u, as a rule that of process %u; end that "
				    "process, such as a second daemon",
				    owner, owner);
	return error_refuse(err, ERROR_PRECONDITION,
			    "networks of pods need nf_tables, which needs CAP_NET_ADMIN");
}

/* What the kernel does not know among the flags it refuses as a whole; before 5.12 as -EINVAL. */
static bool filter_is_flag_unknown(int r)
{
	return r == -EOPNOTSUPP || r == -EINVAL;
}

/* A table that nobody owns, as of a saved set of rules, cannot become ours: in its place then,
 * which filter_sync() fills. */
static int filter_take(struct filter *f, uint32_t flags, struct error *err)
{
	_cleanup_nft_batch_ struct nft_batch b = NFT_BATCH_INIT;
	int r;

	f->flags = flags;
	filter_put_table(&b, NFT_MSG_NEWTABLE, flags);
	r = nft_commit(&b, f->fd, "make the table inet " FILTER_TABLE, err);
	if (!filter_is_flag_unknown(r) || !flags)
		return r;
	filter_put_table(&b, NFT_MSG_NEWTABLE, 0);
	filter_put_table(&b, NFT_MSG_DELTABLE, 0);
	filter_put_table(&b, NFT_MSG_NEWTABLE, flags);
	return nft_commit(&b, f->fd, "make the table inet " FILTER_TABLE, err);
}

int filter_new(struct filter **ret, struct error *err)
{
	static const uint32_t flags[] = { NFT_TABLE_F_OWNER | FILTER_TABLE_PERSIST,
					  NFT_TABLE_F_OWNER, 0 };
	struct error why = ERROR_INIT;
	struct filter *f = calloc(1, sizeof(*f));
	uint32_t owner;
	int r = -EINVAL;

	if (!f)
		return error_set(err, -ENOMEM, "open the packet filter");
	f->fd = nft_socket(&why);
	if (f->fd < 0)
		r = f->fd;
	for (size_t i = 0; f->fd >= 0 && i < ARRAY_SIZE(flags) && filter_is_flag_unknown(r); i++)
		r = filter_take(f, flags[i], &why);
	if (r < 0) {
		(void)filter_free(f);
		(void)filter_refuse(r, &why);
		return error_copy(err, &why);
	}
	f->bridges = filter_look(NFPROTO_BRIDGE, &owner);
	*ret = f;
	return 0;
}

#define FILTER_LOOK FILTER_TABLE "-look"

/* With a chain: a kernel without CONFIG_NF_TABLES_BRIDGE may take the table alone. */
static void filter_put_look(struct nft_batch *b)
{
	size_t hook;

	nft_message(b, NFT_MSG_NEWTABLE, NLM_F_CREATE, NFPROTO_BRIDGE);
	nft_put_str(b, NFTA_TABLE_NAME, FILTER_LOOK);
	nft_message(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE, NFPROTO_BRIDGE);
	nft_put_str(b, NFTA_CHAIN_TABLE, FILTER_LOOK);
	nft_put_str(b, NFTA_CHAIN_NAME, "look");
	hook = nft_open(b, NFTA_CHAIN_HOOK);
	nft_put_u32(b, NFTA_HOOK_HOOKNUM, NF_BR_FORWARD);
	nft_put_u32(b, NFTA_HOOK_PRIORITY, 0);
	nft_close(b, hook);
	nft_put_str(b, NFTA_CHAIN_TYPE, "filter");
	nft_message(b, NFT_MSG_DELTABLE, 0, NFPROTO_BRIDGE);
	nft_put_str(b, NFTA_TABLE_NAME, FILTER_LOOK);
}

int filter_has_bridges(struct error *err)
{
	_cleanup_nft_batch_ struct nft_batch b = NFT_BATCH_INIT;
	_cleanup_fd_ int fd = nft_socket(err);
	struct error why = ERROR_INIT;

	if (fd < 0)
		return fd;
	filter_put_look(&b);
	return nft_commit(&b, fd, "make a chain for bridges", &why) == 0
		       ? 0
		       : error_refuse(err, ERROR_PRECONDITION,
				      "this kernel has no nf_tables for bridges (%.200s); load the "
				      "module nf_tables_bridge, or use --driver routed",
				      error_text(&why));
}

struct filter *filter_free(struct filter *f)
{
	if (!f)
		return NULL;
	(void)fd_close(f->fd);
	free(f);
	return NULL;
}

/* ---- what others change ---- */

int filter_watch_open(struct error *err)
{
	const struct sockaddr_nl at = { .nl_family = AF_NETLINK };
	const int group = NFNLGRP_NFTABLES;
	_cleanup_fd_ int fd = sysio_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
					   NETLINK_NETFILTER);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
		return error_set(err, -errno, "watch the rules of nf_tables");
	return TAKE_FD(fd);
}

bool filter_is_owned(const struct filter *f)
{
	return f->flags != 0;
}

/* Whether it says that our table went. What else is changed in it is not looked for. */
static bool filter_is_loss(const struct netmsg_head *head)
{
	struct netmsg_bytes rest = head->body;
	char name[sizeof(FILTER_TABLE)];
	struct nfgenmsg info;
	struct netattr a;

	if (head->type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE) ||
	    netmsg_take(&rest, &info, sizeof(info)) < 0)
		return false;
	while (netattr_next(&rest, &a) > 0)
		if (a.type == NFTA_TABLE_NAME)
			return netattr_str(&a, name, sizeof(name)) == 0 &&
			       strcmp(name, FILTER_TABLE) == 0;
	return false;
}

bool filter_watch_read(int fd)
{
	_Alignas(4) uint8_t data[FILTER_DATAGRAM];
	struct netmsg_head head;
	bool lost = false;
	ssize_t n;

	for (;;) {
		struct netmsg_bytes rest;

		n = recv(fd, data, sizeof(data), MSG_DONTWAIT);
		/* What was lost may have said it. */
		lost = lost || (n < 0 && errno == ENOBUFS);
		if (n < 0 && errno != EINTR && errno != ENOBUFS)
			return lost;
		rest = (struct netmsg_bytes){ data, n < 0 ? 0 : (size_t)n };
		while (netmsg_next(&rest, &head) > 0)
			lost = lost || filter_is_loss(&head);
	}
}
