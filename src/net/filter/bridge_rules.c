/* SPDX-License-Identifier: Apache-2.0 */
#include "net/filter/filter_rules.h"

/* Before the kernel's headers, which leave out what libc has said. */
#include <arpa/inet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>

#include <assert.h>
#include <linux/if_ether.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter_bridge.h>
#include <stddef.h>

#include "base/macros.h"
#include "net/netlink/nft_expr.h"

/*
 * What ports of a bridge of ours (net/port/bridge.h) take from their pods: frames of the pod's MAC,
 * in them IPv4, IPv6 and ARP alone, with the pod's addresses, which it can claim for no other MAC
 * and of which it claims no others. It is no router, and serves no addresses. Bridges of others
 * pass at the first rule.
 */

#define ETHER_SOURCE 6
#define ETHER_TYPE 12
#define IP4_SOURCE 12
#define IP6_SOURCE 8
#define ARP_SENDER_MAC 8
#define ARP_SENDER_IP4 14
#define ND_TARGET 8 /* behind the head of ICMP */
#define UDP_SOURCE 0
#define DHCP_SERVER 67
#define DHCP6_SERVER 547

enum bridge_chain { BRIDGE_IN, BRIDGE_FROM_POD, BRIDGE_WITH_MAC, BRIDGE_IP6, BRIDGE_CHAIN_COUNT };

static const struct filter_chain_row bridge_chains[] = {
	[BRIDGE_IN] = { "in", "filter", NF_BR_PRE_ROUTING, -300 },
	[BRIDGE_FROM_POD] = { .name = "from-pod" },
	[BRIDGE_WITH_MAC] = { .name = "with-mac" },
	[BRIDGE_IP6] = { .name = "ip6" },
};
static_assert(ARRAY_SIZE(bridge_chains) == BRIDGE_CHAIN_COUNT, "a row for each chain");

static void from_port(struct nft_batch *b)
{
	filter_match_group(b, NFT_META_IIFGROUP, false);
}

static void accept_it(struct nft_batch *b)
{
	nft_expr_verdict(b, NF_ACCEPT, NULL);
}

static void drop_it(struct nft_batch *b)
{
	nft_expr_verdict(b, NF_DROP, NULL);
}

/* Something of the frame stands beside its link in the set. */
static void bridge_match_own(struct nft_batch *b, enum filter_set set, unsigned base,
			     unsigned offset, unsigned len)
{
	nft_expr_meta(b, NFT_META_IIF, 0);
	nft_expr_payload(b, base, offset, len, 1);
	nft_expr_lookup(b, filter_set_name(set), 0);
}

static void has_own_address4(struct nft_batch *b)
{
	bridge_match_own(b, FILTER_LAN4, NFT_PAYLOAD_NETWORK_HEADER, IP4_SOURCE, 4);
}

static void has_own_address6(struct nft_batch *b)
{
	bridge_match_own(b, FILTER_LAN6, NFT_PAYLOAD_NETWORK_HEADER, IP6_SOURCE, 16);
}

static void has_own_mac(struct nft_batch *b)
{
	bridge_match_own(b, FILTER_LAN_MAC, NFT_PAYLOAD_LL_HEADER, ETHER_SOURCE, 6);
}

/* Not what the kernel calls the protocol, which a tag of a VLAN is no part of. */
static void bridge_match_type(struct nft_batch *b, uint16_t type)
{
	const uint16_t wanted = htons(type);

	nft_expr_payload(b, NFT_PAYLOAD_LL_HEADER, ETHER_TYPE, 2, 0);
	nft_expr_cmp(b, 0, false, &wanted, sizeof(wanted));
}

static void is_arp(struct nft_batch *b)
{
	bridge_match_type(b, ETH_P_ARP);
}

static void has_ip4(struct nft_batch *b)
{
	bridge_match_type(b, ETH_P_IP);
}

static void has_ip6(struct nft_batch *b)
{
	bridge_match_type(b, ETH_P_IPV6);
}

static void tells_own_mac(struct nft_batch *b)
{
	bridge_match_own(b, FILTER_LAN_MAC, NFT_PAYLOAD_NETWORK_HEADER, ARP_SENDER_MAC, 6);
}

static void tells_own_ip4(struct nft_batch *b)
{
	bridge_match_own(b, FILTER_LAN4, NFT_PAYLOAD_NETWORK_HEADER, ARP_SENDER_IP4, 4);
}

static void tells_own_ip6(struct nft_batch *b)
{
	bridge_match_own(b, FILTER_LAN6, NFT_PAYLOAD_TRANSPORT_HEADER, ND_TARGET, 16);
}

static void is_redirect6(struct nft_batch *b)
{
	filter_match_icmp(b, IPPROTO_ICMPV6, ND_REDIRECT);
}

static void is_router_solicitation(struct nft_batch *b)
{
	filter_match_icmp(b, IPPROTO_ICMPV6, ND_ROUTER_SOLICIT);
}

static void is_router_advertisement(struct nft_batch *b)
{
	filter_match_icmp(b, IPPROTO_ICMPV6, ND_ROUTER_ADVERT);
}

static void is_neighbour_advertisement(struct nft_batch *b)
{
	filter_match_icmp(b, IPPROTO_ICMPV6, ND_NEIGHBOR_ADVERT);
}

static void bridge_match_server(struct nft_batch *b, uint16_t port)
{
	const uint16_t wanted = htons(port);

	filter_match_u8(b, NFT_META_L4PROTO, IPPROTO_UDP);
	nft_expr_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, UDP_SOURCE, 2, 0);
	nft_expr_cmp(b, 0, false, &wanted, sizeof(wanted));
}

static void is_dhcp_server(struct nft_batch *b)
{
	bridge_match_server(b, DHCP_SERVER);
}

static void is_dhcp6_server(struct nft_batch *b)
{
	bridge_match_server(b, DHCP6_SERVER);
}

static const struct {
	enum bridge_chain chain;
	filter_part parts[FILTER_PARTS];
	enum bridge_chain jump; /* 0, which nothing jumps to: none */
} bridge_rules[] = {
	{ BRIDGE_IN, { from_port }, BRIDGE_FROM_POD },

	{ BRIDGE_FROM_POD, { has_own_mac }, BRIDGE_WITH_MAC },
	{ BRIDGE_FROM_POD, { drop_it }, 0 },

	{ BRIDGE_WITH_MAC, { is_arp, tells_own_mac, tells_own_ip4, accept_it }, 0 },
	{ BRIDGE_WITH_MAC, { is_dhcp_server, drop_it }, 0 },
	{ BRIDGE_WITH_MAC, { is_dhcp6_server, drop_it }, 0 },
	{ BRIDGE_WITH_MAC, { has_ip4, has_own_address4, accept_it }, 0 },
	{ BRIDGE_WITH_MAC, { has_ip6, has_own_address6 }, BRIDGE_IP6 },
	{ BRIDGE_WITH_MAC, { drop_it }, 0 },

	{ BRIDGE_IP6, { is_router_advertisement, drop_it }, 0 },
	{ BRIDGE_IP6, { is_router_solicitation, drop_it }, 0 },
	{ BRIDGE_IP6, { is_redirect6, drop_it }, 0 },
	{ BRIDGE_IP6, { is_neighbour_advertisement, tells_own_ip6, accept_it }, 0 },
	{ BRIDGE_IP6, { is_neighbour_advertisement, drop_it }, 0 },
	{ BRIDGE_IP6, { accept_it }, 0 },
};

void filter_put_bridge_rules(struct nft_batch *b)
{
	filter_put_sets(b, NFPROTO_BRIDGE);
	for (size_t i = 0; i < BRIDGE_CHAIN_COUNT; i++)
		filter_put_chain(b, NFPROTO_BRIDGE, &bridge_chains[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bridge_rules); i++)
		filter_put_rule(b, NFPROTO_BRIDGE, bridge_chains[bridge_rules[i].chain].name,
				bridge_rules[i].parts,
				bridge_rules[i].jump ? bridge_chains[bridge_rules[i].jump].name
						     : NULL);
}
