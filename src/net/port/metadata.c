/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/metadata.h"

/* Before the kernel's headers, which leave out what libc has said. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "net/netlink/address.h"
#include "net/netlink/nft_expr.h"
#include "net/port/inside.h"

#define METADATA_TABLE "nacre-metadata"
#define METADATA_CHAIN "to-service"
/* That of destination NAT, as nft(8) calls it. */
#define METADATA_PRIORITY (-100)
#define METADATA_BACKLOG 16
#define METADATA_HOPS 1

#define IP4_DESTINATION 16
#define IP6_DESTINATION 24
#define PORT_DESTINATION 2

/* One of the two, while it is made. */
struct metadata_end {
	int family;
	const char *address;
	union {
		struct sockaddr any;
		struct sockaddr_in ip4;
		struct sockaddr_in6 ip6;
	} at;
	socklen_t len;
	int fd;
};

/* ---- the addresses ---- */

static int metadata_put_address(struct netlink *nl, uint32_t lo, const struct metadata_end *e,
				struct error *err)
{
	struct error own = ERROR_INIT;
	struct prefix p;
	int r = prefix_parse(e->address, &p);

	if (r == 0)
		r = address_add(nl, lo, &p, &own);
	return r == -EEXIST ? 0 : r < 0 ? error_copy(err, &own) : 0;
}

static int metadata_find_lo(struct netlink *nl, uint32_t *ret, struct error *err)
{
	const struct link_change up = { .power = LINK_UP };
	struct link lo;
	int r = link_find(nl, "lo", &lo, err);

	if (r == 0)
		r = link_set(nl, lo.index, &up, err);
	*ret = r == 0 ? lo.index : 0;
	return r;
}

/* ---- the sockets ---- */

static void metadata_aim(struct metadata_end *e)
{
	if (e->family == AF_INET) {
		e->at.ip4 = (struct sockaddr_in){ .sin_family = AF_INET };
		(void)inet_pton(AF_INET, e->address, &e->at.ip4.sin_addr);
		e->len = sizeof(e->at.ip4);
	} else {
		e->at.ip6 = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
		(void)inet_pton(AF_INET6, e->address, &e->at.ip6.sin6_addr);
		e->len = sizeof(e->at.ip6);
	}
}

/* The device is said before there is an address: what comes in by another one finds no socket. */
static int metadata_listen_at(struct metadata_end *e, struct error *err)
{
	static const char lo[] = "lo";
	const int hops = METADATA_HOPS;
	const bool is4 = e->family == AF_INET;
	_cleanup_fd_ int fd =
		socket(e->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

	metadata_aim(e);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, lo, sizeof(lo)) < 0 ||
	    setsockopt(fd, is4 ? IPPROTO_IP : IPPROTO_IPV6, is4 ? IP_TTL : IPV6_UNICAST_HOPS, &hops,
		       sizeof(hops)) < 0 ||
	    bind(fd, &e->at.any, e->len) < 0 || listen(fd, METADATA_BACKLOG) < 0 ||
	    getsockname(fd, &e->at.any, &e->len) < 0)
		return error_set(err, -errno, "listen at %s", e->address);
	e->fd = TAKE_FD(fd);
	return 0;
}

/* ---- the way there ---- */

static void metadata_put_table(struct nft_batch *b, unsigned verb)
{
	nft_message(b, verb, verb == NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0, NFPROTO_INET);
	nft_put_str(b, NFTA_TABLE_NAME, METADATA_TABLE);
}

static void metadata_put_chain(struct nft_batch *b)
{
	size_t hook;

	nft_message(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE, NFPROTO_INET);
	nft_put_str(b, NFTA_CHAIN_TABLE, METADATA_TABLE);
	nft_put_str(b, NFTA_CHAIN_NAME, METADATA_CHAIN);
	hook = nft_open(b, NFTA_CHAIN_HOOK);
	nft_put_u32(b, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
	nft_put_u32(b, NFTA_HOOK_PRIORITY, (uint32_t)METADATA_PRIORITY);
	nft_close(b, hook);
	nft_put_u32(b, NFTA_CHAIN_POLICY, NF_ACCEPT);
	nft_put_str(b, NFTA_CHAIN_TYPE, "nat");
}

/* What goes to the address and port 80 goes to the port of the socket. */
static void metadata_put_rule(struct nft_batch *b, const struct metadata_end *e)
{
	const bool is4 = e->family == AF_INET;
	const uint8_t family = is4 ? NFPROTO_IPV4 : NFPROTO_IPV6, tcp = IPPROTO_TCP;
	const void *address =
		is4 ? (const void *)&e->at.ip4.sin_addr : (const void *)&e->at.ip6.sin6_addr;
	const void *port =
		is4 ? (const void *)&e->at.ip4.sin_port : (const void *)&e->at.ip6.sin6_port;
	const uint16_t asked = htons(METADATA_PORT);
	const unsigned len = is4 ? sizeof(e->at.ip4.sin_addr) : sizeof(e->at.ip6.sin6_addr);
	size_t list;

	nft_message(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, NFPROTO_INET);
	nft_put_str(b, NFTA_RULE_TABLE, METADATA_TABLE);
	nft_put_str(b, NFTA_RULE_CHAIN, METADATA_CHAIN);
	list = nft_open(b, NFTA_RULE_EXPRESSIONS);
	nft_expr_meta(b, NFT_META_NFPROTO, 0);
	nft_expr_cmp(b, 0, false, &family, sizeof(family));
	nft_expr_meta(b, NFT_META_L4PROTO, 0);
	nft_expr_cmp(b, 0, false, &tcp, sizeof(tcp));
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, is4 ? IP4_DESTINATION : IP6_DESTINATION,
			 len, 0);
	nft_expr_cmp(b, 0, false, address, len);
	nft_expr_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, PORT_DESTINATION, sizeof(asked), 0);
	nft_expr_cmp(b, 0, false, &asked, sizeof(asked));
	nft_expr_value(b, 0, address, len);
	nft_expr_value(b, 4, port, sizeof(asked));
	nft_expr_dnat(b, family, 0, 4);
	nft_close(b, list);
}

static int metadata_lead(const struct metadata_end *ends, size_t n, struct error *err)
{
	_cleanup_nft_batch_ struct nft_batch b = NFT_BATCH_INIT;
	_cleanup_fd_ int fd = nft_socket(err);
	int r;

	if (fd < 0)
		return fd;
	/* The first one makes it where there was none. */
	metadata_put_table(&b, NFT_MSG_NEWTABLE);
	metadata_put_table(&b, NFT_MSG_DELTABLE);
	metadata_put_table(&b, NFT_MSG_NEWTABLE);
	metadata_put_chain(&b);
	for (size_t i = 0; i < n; i++)
		if (ends[i].fd >= 0)
			metadata_put_rule(&b, &ends[i]);
	r = nft_commit(&b, fd, "lead to the metadata service", err);
	return r == -ENOENT || r == -EPROTONOSUPPORT
		       ? error_refuse(err, ERROR_PRECONDITION,
				      "the metadata service needs nf_tables with NAT in the kernel "
				      "(load the modules nft_chain_nat and nft_nat)")
		       : r;
}

/* ---- all of it ---- */

static int metadata_make(void *arg, struct error *err)
{
	struct metadata_end ends[] = {
		{ .family = AF_INET, .address = METADATA_ADDRESS4, .fd = -1 },
		{ .family = AF_INET6, .address = METADATA_ADDRESS6, .fd = -1 }
	};
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct metadata_sockets *ret = arg;
	uint32_t lo = 0;
	int r = netlink_open(&nl, err);

	if (r == 0)
		r = metadata_find_lo(&nl, &lo, err);
	if (r == 0)
		r = metadata_put_address(&nl, lo, &ends[0], err);
	if (r == 0)
		r = metadata_listen_at(&ends[0], err);
	/* A namespace in which IPv6 is off refuses the address. */
	if (r == 0 && metadata_put_address(&nl, lo, &ends[1], NULL) == 0)
		r = metadata_listen_at(&ends[1], err);
	if (r == 0)
		r = metadata_lead(ends, ARRAY_SIZE(ends), err);
	*ret = (struct metadata_sockets){ ends[0].fd, ends[1].fd };
	if (r < 0)
		metadata_sockets_close(ret);
	return r;
}

int metadata_listen(int ns_fd, struct metadata_sockets *ret, struct error *err)
{
	return inside_run(ns_fd, metadata_make, ret, err);
}

void metadata_sockets_close(struct metadata_sockets *s)
{
	s->fd4 = fd_close(s->fd4);
	s->fd6 = fd_close(s->fd6);
}
