/* SPDX-License-Identifier: Apache-2.0 */
#include "net/filter/filter_rules.h"

/* Before the kernel's headers, which leave out what libc has said. */
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>

#include <assert.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/macros.h"
#include "net/netlink/nft_expr.h"
#include "net/port/port.h"

/* ---- sets: how nft(8) is to show a key is its own affair, six bits for each part of it ---- */

#define SHOW_IP4 7U
#define SHOW_IP6 8U
#define SHOW_MAC 9U
#define SHOW_PROTOCOL 12U
#define SHOW_PORT 13U
#define SHOW_LINK 20U
#define SHOW_GROUP 35U
#define SHOW_2(a, b) ((a) << 6 | (b))
#define SHOW_3(a, b, c) (SHOW_2(a, b) << 6 | (c))

static const struct {
	const char *name;
	uint32_t flags;
	uint32_t key_show, key_len, data_show, data_len;
} filter_sets[] = {
	[FILTER_ADDR4] = { "addr4", 0, SHOW_2(SHOW_LINK, SHOW_IP4), 8, 0, 0 },
	[FILTER_ADDR6] = { "addr6", 0, SHOW_2(SHOW_LINK, SHOW_IP6), 20, 0, 0 },
	[FILTER_POOL4] = { "pool4", NFT_SET_INTERVAL, SHOW_IP4, 4, 0, 0 },
	[FILTER_POOL6] = { "pool6", NFT_SET_INTERVAL, SHOW_IP6, 16, 0, 0 },
	[FILTER_SAME] = { "same", 0, SHOW_2(SHOW_GROUP, SHOW_GROUP), 8, 0, 0 },
	[FILTER_CLOSED] = { "closed", 0, SHOW_GROUP, 4, 0, 0 },
	[FILTER_OPEN] = { "open", 0, SHOW_GROUP, 4, 0, 0 },
	[FILTER_SELF4] = { "self4", 0, SHOW_2(SHOW_IP4, SHOW_IP4), 8, 0, 0 },
	[FILTER_SELF6] = { "self6", 0, SHOW_2(SHOW_IP6, SHOW_IP6), 32, 0, 0 },
	[FILTER_PORT4] = { "port4", NFT_SET_MAP, SHOW_2(SHOW_PROTOCOL, SHOW_PORT), 8,
			   SHOW_2(SHOW_IP4, SHOW_PORT), 8 },
	[FILTER_PORT6] = { "port6", NFT_SET_MAP, SHOW_2(SHOW_PROTOCOL, SHOW_PORT), 8,
			   SHOW_2(SHOW_IP6, SHOW_PORT), 20 },
	[FILTER_PORT4_AT] = { "port4_at", NFT_SET_MAP, SHOW_3(SHOW_IP4, SHOW_PROTOCOL, SHOW_PORT),
			      12, SHOW_2(SHOW_IP4, SHOW_PORT), 8 },
	[FILTER_PORT6_AT] = { "port6_at", NFT_SET_MAP, SHOW_3(SHOW_IP6, SHOW_PROTOCOL, SHOW_PORT),
			      24, SHOW_2(SHOW_IP6, SHOW_PORT), 20 },
	[FILTER_NEAR4] = { "near4", 0, SHOW_2(SHOW_GROUP, SHOW_IP4), 8, 0, 0 },
	[FILTER_NEAR6] = { "near6", 0, SHOW_2(SHOW_GROUP, SHOW_IP6), 20, 0, 0 },
	[FILTER_NOT6] = { "not6", 0, SHOW_2(SHOW_PROTOCOL, SHOW_PORT), 8, 0, 0 },
	[FILTER_CONNECTIONS4] = { "connections4", NFT_SET_EVAL, SHOW_IP4, 4, 0, 0 },
	[FILTER_CONNECTIONS6] = { "connections6", NFT_SET_EVAL, SHOW_IP6, 16, 0, 0 },
	[FILTER_LAN_MAC] = { "mac", 0, SHOW_2(SHOW_LINK, SHOW_MAC), 12, 0, 0 },
	[FILTER_LAN4] = { "addr4", 0, SHOW_2(SHOW_LINK, SHOW_IP4), 8, 0, 0 },
	[FILTER_LAN6] = { "addr6", 0, SHOW_2(SHOW_LINK, SHOW_IP6), 20, 0, 0 },
};
static_assert(ARRAY_SIZE(filter_sets) == FILTER_SET_COUNT, "a row for each set");

const char *filter_set_name(enum filter_set set)
{
	return filter_sets[set].name;
}

uint8_t filter_set_family(enum filter_set set)
{
	return set >= FILTER_LAN_MAC ? NFPROTO_BRIDGE : NFPROTO_INET;
}

void filter_put_sets(struct nft_batch *b, uint8_t family)
{
	for (size_t i = 0; i < FILTER_SET_COUNT; i++) {
		if (filter_set_family((enum filter_set)i) != family)
			continue;
		nft_message(b, NFT_MSG_NEWSET, NLM_F_CREATE, family);
		nft_put_str(b, NFTA_SET_TABLE, FILTER_TABLE);
		nft_put_str(b, NFTA_SET_NAME, filter_sets[i].name);
		nft_put_u32(b, NFTA_SET_FLAGS, filter_sets[i].flags);
		nft_put_u32(b, NFTA_SET_KEY_TYPE, filter_sets[i].key_show);
		nft_put_u32(b, NFTA_SET_KEY_LEN, filter_sets[i].key_len);
		nft_put_u32(b, NFTA_SET_ID, (uint32_t)i + 1);
		if (!filter_sets[i].data_len)
			continue;
		nft_put_u32(b, NFTA_SET_DATA_TYPE, filter_sets[i].data_show);
		nft_put_u32(b, NFTA_SET_DATA_LEN, filter_sets[i].data_len);
	}
}

/* ---- chains ---- */

enum filter_chain {
	CHAIN_RAW,
	CHAIN_LIMIT,
	CHAIN_INPUT,
	CHAIN_FORWARD,
	CHAIN_OUTPUT,
	CHAIN_NAT_IN,
	CHAIN_NAT_OWN,
	CHAIN_NAT_OUT,
	CHAIN_FROM_POD,
	CHAIN_TO_NODE,
	CHAIN_PODS,
	CHAIN_PUBLISHED,
	CHAIN_TO_POD,
	CHAIN_COUNT
};

static const struct filter_chain_row filter_chains[] = {
	[CHAIN_RAW] = { "raw", "filter", NF_INET_PRE_ROUTING, -300 },
	[CHAIN_LIMIT] = { "connections", "filter", NF_INET_PRE_ROUTING, -150 },
	[CHAIN_INPUT] = { "input", "filter", NF_INET_LOCAL_IN, 0 },
	[CHAIN_FORWARD] = { "forward", "filter", NF_INET_FORWARD, 0 },
	[CHAIN_OUTPUT] = { "output", "filter", NF_INET_LOCAL_OUT, 0 },
	[CHAIN_NAT_IN] = { "nat-in", "nat", NF_INET_PRE_ROUTING, -100 },
	[CHAIN_NAT_OWN] = { "nat-own", "nat", NF_INET_LOCAL_OUT, -100 },
	[CHAIN_NAT_OUT] = { "nat-out", "nat", NF_INET_POST_ROUTING, 100 },
	[CHAIN_FROM_POD] = { .name = "from-pod" },
	[CHAIN_TO_NODE] = { .name = "to-node" },
	[CHAIN_PODS] = { .name = "pods" },
	[CHAIN_PUBLISHED] = { .name = "published" },
	[CHAIN_TO_POD] = { .name = "to-pod" },
};
static_assert(ARRAY_SIZE(filter_chains) == CHAIN_COUNT, "a row for each chain");

void filter_put_chain(struct nft_batch *b, uint8_t family, const struct filter_chain_row *row)
{
	size_t hook;

	nft_message(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE, family);
	nft_put_str(b, NFTA_CHAIN_TABLE, FILTER_TABLE);
	nft_put_str(b, NFTA_CHAIN_NAME, row->name);
	if (!row->type)
		return;
	hook = nft_open(b, NFTA_CHAIN_HOOK);
	nft_put_u32(b, NFTA_HOOK_HOOKNUM, (uint32_t)row->hook);
	nft_put_u32(b, NFTA_HOOK_PRIORITY, (uint32_t)row->priority);
	nft_close(b, hook);
	nft_put_u32(b, NFTA_CHAIN_POLICY, NF_ACCEPT);
	nft_put_str(b, NFTA_CHAIN_TYPE, row->type);
}

/* ---- what a rule asks of a packet; each uses registers from 0 on ---- */

#define IP4_SOURCE 12
#define IP4_DESTINATION 16
#define IP6_SOURCE 8
#define IP6_DESTINATION 24
#define PORT_DESTINATION 2

static void filter_match_u32(struct nft_batch *b, bool differs, uint32_t value)
{
	nft_expr_cmp(b, 0, differs, &value, sizeof(value));
}

void filter_match_group(struct nft_batch *b, unsigned key, bool differs)
{
	const uint32_t mask = 0xffff0000U;

	nft_expr_meta(b, key, 0);
	nft_expr_mask(b, 0, &mask, sizeof(mask));
	filter_match_u32(b, differs, PORT_GROUP);
}

static void from_port(struct nft_batch *b)
{
	filter_match_group(b, NFT_META_IIFGROUP, false);
}

static void from_elsewhere(struct nft_batch *b)
{
	filter_match_group(b, NFT_META_IIFGROUP, true);
}

static void to_port(struct nft_batch *b)
{
	filter_match_group(b, NFT_META_OIFGROUP, false);
}

static void to_elsewhere(struct nft_batch *b)
{
	filter_match_group(b, NFT_META_OIFGROUP, true);
}

static void from_loopback(struct nft_batch *b)
{
	nft_expr_meta(b, NFT_META_IIF, 0);
	filter_match_u32(b, false, 1);
}

void filter_match_u8(struct nft_batch *b, unsigned key, uint8_t value)
{
	nft_expr_meta(b, key, 0);
	nft_expr_cmp(b, 0, false, &value, sizeof(value));
}

static void is_ip4(struct nft_batch *b)
{
	filter_match_u8(b, NFT_META_NFPROTO, NFPROTO_IPV4);
}

static void is_ip6(struct nft_batch *b)
{
	filter_match_u8(b, NFT_META_NFPROTO, NFPROTO_IPV6);
}

/* An address whose first bytes are those. */
static void filter_match_address(struct nft_batch *b, unsigned offset, const uint8_t *bytes,
				 unsigned len)
{
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, offset, len, 0);
	nft_expr_cmp(b, 0, false, bytes, len);
}

static void to_127(struct nft_batch *b)
{
	filter_match_address(b, IP4_DESTINATION, (const uint8_t[]){ 127 }, 1);
}

static void from_127(struct nft_batch *b)
{
	filter_match_address(b, IP4_SOURCE, (const uint8_t[]){ 127 }, 1);
}

static void from_loopback6(struct nft_batch *b)
{
	static const uint8_t loopback[16] = { [15] = 1 };

	filter_match_address(b, IP6_SOURCE, loopback, sizeof(loopback));
}

static void to_loopback6(struct nft_batch *b)
{
	static const uint8_t loopback[16] = { [15] = 1 };

	filter_match_address(b, IP6_DESTINATION, loopback, sizeof(loopback));
}

static void to_metadata4(struct nft_batch *b)
{
	filter_match_address(b, IP4_DESTINATION, (const uint8_t[]){ 169, 254 }, 2);
}

static void to_metadata6(struct nft_batch *b)
{
	filter_match_address(b, IP6_DESTINATION, (const uint8_t[]){ 0xfd, 0, 0x0e, 0xc2 }, 4);
}

static void has_own_address4(struct nft_batch *b)
{
	nft_expr_meta(b, NFT_META_IIF, 0);
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IP4_SOURCE, 4, 1);
	nft_expr_lookup(b, filter_set_name(FILTER_ADDR4), 0);
}

static void has_own_address6(struct nft_batch *b)
{
	nft_expr_meta(b, NFT_META_IIF, 0);
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IP6_SOURCE, 16, 1);
	nft_expr_lookup(b, filter_set_name(FILTER_ADDR6), 0);
}

static void filter_match_pool(struct nft_batch *b, unsigned offset, unsigned len,
			      enum filter_set set)
{
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, offset, len, 0);
	nft_expr_lookup(b, filter_set_name(set), 0);
}

static void to_pool4(struct nft_batch *b)
{
	filter_match_pool(b, IP4_DESTINATION, 4, FILTER_POOL4);
}

static void to_pool6(struct nft_batch *b)
{
	filter_match_pool(b, IP6_DESTINATION, 16, FILTER_POOL6);
}

static void from_pool4(struct nft_batch *b)
{
	filter_match_pool(b, IP4_SOURCE, 4, FILTER_POOL4);
}

static void from_pool6(struct nft_batch *b)
{
	filter_match_pool(b, IP6_SOURCE, 16, FILTER_POOL6);
}

static void is_tcp(struct nft_batch *b)
{
	filter_match_u8(b, NFT_META_L4PROTO, IPPROTO_TCP);
}

/* An ICMP message of that type. */
void filter_match_icmp(struct nft_batch *b, uint8_t protocol, uint8_t type)
{
	filter_match_u8(b, NFT_META_L4PROTO, protocol);
	nft_expr_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1, 0);
	nft_expr_cmp(b, 0, false, &type, sizeof(type));
}

static void is_echo4(struct nft_batch *b)
{
	filter_match_icmp(b, IPPROTO_ICMP, ICMP_ECHO);
}

static void is_echo6(struct nft_batch *b)
{
	filter_match_icmp(b, IPPROTO_ICMPV6, ICMP6_ECHO_REQUEST);
}

static void is_redirect4(struct nft_batch *b)
{
	filter_match_icmp(b, IPPROTO_ICMP, ICMP_REDIRECT);
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

/* One of these bits, of a word of connection tracking. */
static void filter_match_ct(struct nft_batch *b, unsigned key, uint32_t bits)
{
	nft_expr_ct(b, key, 0);
	nft_expr_mask(b, 0, &bits, sizeof(bits));
	filter_match_u32(b, true, 0);
}

static void is_known(struct nft_batch *b)
{
	filter_match_ct(b, NFT_CT_STATE,
			NF_CT_STATE_BIT(IP_CT_ESTABLISHED) | NF_CT_STATE_BIT(IP_CT_RELATED));
}

static void is_new(struct nft_batch *b)
{
	filter_match_ct(b, NFT_CT_STATE, NF_CT_STATE_BIT(IP_CT_NEW));
}

static void is_invalid(struct nft_batch *b)
{
	filter_match_ct(b, NFT_CT_STATE, NF_CT_STATE_INVALID_BIT);
}

static void is_published(struct nft_batch *b)
{
	filter_match_ct(b, NFT_CT_STATUS, IPS_DST_NAT);
}

/* By the source, which is the pod's own by then: pods on a bridge come in by one link. */
static void is_over_limit4(struct nft_batch *b)
{
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IP4_SOURCE, 4, 0);
	nft_expr_count_over(b, filter_set_name(FILTER_CONNECTIONS4), 0, FILTER_CONNECTIONS_MAX);
}

static void is_over_limit6(struct nft_batch *b)
{
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IP6_SOURCE, 16, 0);
	nft_expr_count_over(b, filter_set_name(FILTER_CONNECTIONS6), 0, FILTER_CONNECTIONS_MAX);
}

static void is_of_one_network(struct nft_batch *b)
{
	nft_expr_meta(b, NFT_META_IIFGROUP, 0);
	nft_expr_meta(b, NFT_META_OIFGROUP, 1);
	nft_expr_lookup(b, filter_set_name(FILTER_SAME), 0);
}

static void from_internal(struct nft_batch *b)
{
	nft_expr_meta(b, NFT_META_IIFGROUP, 0);
	nft_expr_lookup(b, filter_set_name(FILTER_CLOSED), 0);
}

static void from_open(struct nft_batch *b)
{
	nft_expr_meta(b, NFT_META_IIFGROUP, 0);
	nft_expr_lookup(b, filter_set_name(FILTER_OPEN), 0);
}

/* Without this, what only passes the host would be led to pods. */
static void to_host(struct nft_batch *b)
{
	nft_expr_fib_type(b, NFTA_FIB_F_DADDR, 0);
	filter_match_u32(b, false, RTN_LOCAL);
}

/* Back to the bridge that it came from: the answer would not pass the node. */
static void to_own_bridge4(struct nft_batch *b)
{
	nft_expr_meta(b, NFT_META_OIFGROUP, 0);
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IP4_SOURCE, 4, 1);
	nft_expr_lookup(b, filter_set_name(FILTER_NEAR4), 0);
}

static void to_own_bridge6(struct nft_batch *b)
{
	nft_expr_meta(b, NFT_META_OIFGROUP, 0);
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IP6_SOURCE, 16, 1);
	nft_expr_lookup(b, filter_set_name(FILTER_NEAR6), 0);
}

static void to_itself4(struct nft_batch *b)
{
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IP4_SOURCE, 4, 0);
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IP4_DESTINATION, 4, 1);
	nft_expr_lookup(b, filter_set_name(FILTER_SELF4), 0);
}

static void to_itself6(struct nft_batch *b)
{
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IP6_SOURCE, 16, 0);
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IP6_DESTINATION, 16, 4);
	nft_expr_lookup(b, filter_set_name(FILTER_SELF6), 0);
}

/* ---- what is done with it ---- */

static void accept_it(struct nft_batch *b)
{
	nft_expr_verdict(b, NF_ACCEPT, NULL);
}

static void drop_it(struct nft_batch *b)
{
	nft_expr_verdict(b, NF_DROP, NULL);
}

/* To ::1 a bridge cannot answer (net/port/bridge.h): the socket that holds the port refuses. */
static void leave_if_not6(struct nft_batch *b)
{
	nft_expr_meta(b, NFT_META_L4PROTO, 0);
	nft_expr_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, PORT_DESTINATION, 2, 1);
	nft_expr_lookup(b, filter_set_name(FILTER_NOT6), 0);
	nft_expr_verdict(b, NFT_RETURN, NULL);
}

/* Protocol and port into two registers, the map's value into the first ones. */
static void filter_publish_by(struct nft_batch *b, enum filter_set map, unsigned reg,
			      uint8_t family)
{
	nft_expr_meta(b, NFT_META_L4PROTO, reg);
	nft_expr_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, PORT_DESTINATION, 2, reg + 1);
	nft_expr_map(b, filter_set_name(map), 0, 0);
	nft_expr_dnat(b, family, 0, family == NFPROTO_IPV4 ? 1 : 4);
}

static void publish4_at(struct nft_batch *b)
{
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IP4_DESTINATION, 4, 0);
	filter_publish_by(b, FILTER_PORT4_AT, 1, NFPROTO_IPV4);
}

static void publish4(struct nft_batch *b)
{
	filter_publish_by(b, FILTER_PORT4, 0, NFPROTO_IPV4);
}

static void publish6_at(struct nft_batch *b)
{
	nft_expr_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IP6_DESTINATION, 16, 0);
	filter_publish_by(b, FILTER_PORT6_AT, 4, NFPROTO_IPV6);
}

static void publish6(struct nft_batch *b)
{
	filter_publish_by(b, FILTER_PORT6, 0, NFPROTO_IPV6);
}

/* ---- the rules ---- */

static const struct filter_rule {
	enum filter_chain chain;
	filter_part parts[FILTER_PARTS];
	enum filter_chain jump; /* behind the parts; 0, which nothing jumps to: none */
} filter_rules[] = {
	{ CHAIN_RAW, { from_port }, CHAIN_FROM_POD },
	{ CHAIN_RAW, { from_loopback, accept_it }, 0 },
	{ CHAIN_RAW, { is_ip4, to_pool4, drop_it }, 0 },
	{ CHAIN_RAW, { is_ip6, to_pool6, drop_it }, 0 },

	{ CHAIN_FROM_POD, { is_ip4, to_127, drop_it }, 0 },
	{ CHAIN_FROM_POD, { is_ip4, to_metadata4, drop_it }, 0 },
	{ CHAIN_FROM_POD, { is_ip6, to_metadata6, drop_it }, 0 },
	{ CHAIN_FROM_POD, { is_ip4, has_own_address4, accept_it }, 0 },
	{ CHAIN_FROM_POD, { is_router_solicitation, drop_it }, 0 },
	{ CHAIN_FROM_POD, { is_router_advertisement, drop_it }, 0 },
	{ CHAIN_FROM_POD, { is_redirect6, drop_it }, 0 },
	{ CHAIN_FROM_POD, { is_ip6, has_own_address6, accept_it }, 0 },
	{ CHAIN_FROM_POD, { drop_it }, 0 },

	{ CHAIN_LIMIT, { from_port, is_ip4, is_new, is_over_limit4, drop_it }, 0 },
	{ CHAIN_LIMIT, { from_port, is_ip6, is_new, is_over_limit6, drop_it }, 0 },

	{ CHAIN_INPUT, { from_port }, CHAIN_TO_NODE },
	{ CHAIN_TO_NODE, { is_known, accept_it }, 0 },
	{ CHAIN_TO_NODE, { is_echo4, accept_it }, 0 },
	{ CHAIN_TO_NODE, { is_echo6, accept_it }, 0 },
	{ CHAIN_TO_NODE, { from_open, accept_it }, 0 },
	{ CHAIN_TO_NODE, { is_tcp, nft_expr_reset }, 0 },
	{ CHAIN_TO_NODE, { nft_expr_reject }, 0 },

	{ CHAIN_FORWARD, { from_port }, CHAIN_PODS },
	{ CHAIN_FORWARD, { to_port }, CHAIN_PODS },
	{ CHAIN_PODS, { is_known, accept_it }, 0 },
	{ CHAIN_PODS, { is_invalid, drop_it }, 0 },
	{ CHAIN_PODS, { is_published, accept_it }, 0 },
	{ CHAIN_PODS, { is_of_one_network, accept_it }, 0 },
	{ CHAIN_PODS, { to_port, drop_it }, 0 },
	{ CHAIN_PODS, { from_internal, is_tcp, nft_expr_reset }, 0 },
	{ CHAIN_PODS, { from_internal, nft_expr_reject }, 0 },
	{ CHAIN_PODS, { accept_it }, 0 },

	{ CHAIN_OUTPUT, { to_port, is_redirect4, drop_it }, 0 },
	{ CHAIN_OUTPUT, { to_port, is_redirect6, drop_it }, 0 },
	{ CHAIN_OUTPUT, { to_port, is_router_advertisement, drop_it }, 0 },

	{ CHAIN_NAT_IN, { to_host }, CHAIN_PUBLISHED },
	{ CHAIN_NAT_OWN, { to_host }, CHAIN_PUBLISHED },
	{ CHAIN_PUBLISHED, { is_ip4, publish4_at }, 0 },
	{ CHAIN_PUBLISHED, { is_ip4, publish4 }, 0 },
	{ CHAIN_PUBLISHED, { is_ip6, to_loopback6, leave_if_not6 }, 0 },
	{ CHAIN_PUBLISHED, { is_ip6, publish6_at }, 0 },
	{ CHAIN_PUBLISHED, { is_ip6, publish6 }, 0 },

	{ CHAIN_NAT_OUT, { to_port }, CHAIN_TO_POD },
	{ CHAIN_NAT_OUT, { is_ip4, from_pool4, nft_expr_masquerade }, 0 },
	{ CHAIN_NAT_OUT, { is_ip6, from_pool6, nft_expr_masquerade }, 0 },
	{ CHAIN_TO_POD, { is_ip4, from_127, nft_expr_masquerade }, 0 },
	{ CHAIN_TO_POD, { is_ip6, from_loopback6, nft_expr_masquerade }, 0 },
	{ CHAIN_TO_POD, { is_ip4, to_itself4, nft_expr_masquerade }, 0 },
	{ CHAIN_TO_POD, { is_ip6, to_itself6, nft_expr_masquerade }, 0 },
	{ CHAIN_TO_POD, { is_ip4, is_published, to_own_bridge4, nft_expr_masquerade }, 0 },
	{ CHAIN_TO_POD, { is_ip6, is_published, to_own_bridge6, nft_expr_masquerade }, 0 },
	{ CHAIN_TO_POD, { accept_it }, 0 },
};

/* What neither comes from a pod nor goes to one, where forwarding is our doing. */
static const struct filter_rule filter_transit4 = {
	CHAIN_FORWARD, { is_ip4, from_elsewhere, to_elsewhere, drop_it }, 0
};
static const struct filter_rule filter_transit6 = {
	CHAIN_FORWARD, { is_ip6, from_elsewhere, to_elsewhere, drop_it }, 0
};

void filter_put_rule(struct nft_batch *b, uint8_t family, const char *chain,
		     const filter_part parts[FILTER_PARTS], const char *jump)
{
	size_t expressions;

	nft_message(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, family);
	nft_put_str(b, NFTA_RULE_TABLE, FILTER_TABLE);
	nft_put_str(b, NFTA_RULE_CHAIN, chain);
	expressions = nft_open(b, NFTA_RULE_EXPRESSIONS);
	for (size_t i = 0; i < FILTER_PARTS && parts[i]; i++)
		parts[i](b);
	if (jump)
		nft_expr_verdict(b, NFT_JUMP, jump);
	nft_close(b, expressions);
}

static void filter_put_row(struct nft_batch *b, const struct filter_rule *rule)
{
	filter_put_rule(b, NFPROTO_INET, filter_chains[rule->chain].name, rule->parts,
			rule->jump ? filter_chains[rule->jump].name : NULL);
}

void filter_put_rules(struct nft_batch *b, bool drop_transit4, bool drop_transit6)
{
	filter_put_sets(b, NFPROTO_INET);
	for (size_t i = 0; i < CHAIN_COUNT; i++)
		filter_put_chain(b, NFPROTO_INET, &filter_chains[i]);
	for (size_t i = 0; i < ARRAY_SIZE(filter_rules); i++)
		filter_put_row(b, &filter_rules[i]);
	if (drop_transit4)
		filter_put_row(b, &filter_transit4);
	if (drop_transit6)
		filter_put_row(b, &filter_transit6);
}
