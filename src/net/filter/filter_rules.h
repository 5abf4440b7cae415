/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_FILTER_RULES_H
#define NACRE_NET_FILTER_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "net/netlink/nft.h"

/*
 * The constant part of the table `inet nacre`: its sets, chains and rules. Private to
 * net/filter/filter.h.
 */

#define FILTER_TABLE "nacre"
/* Connections that a pod may have through the node at once; those of the whole node have one table
 * of the kernel. */
#define FILTER_CONNECTIONS_MAX 8192

enum filter_set {
	FILTER_ADDR4, /* a port's link . source */
	FILTER_ADDR6,
	FILTER_POOL4, /* subnets of networks */
	FILTER_POOL6,
	FILTER_SAME,   /* groups of both links: of one network */
	FILTER_CLOSED, /* groups of internal networks */
	FILTER_OPEN,   /* groups that reach services of the node */
	FILTER_SELF4,  /* source . destination of a pod that speaks with itself */
	FILTER_SELF6,
	FILTER_PORT4, /* protocol . port: pod . port */
	FILTER_PORT6,
	FILTER_PORT4_AT, /* address of the host . protocol . port: pod . port */
	FILTER_PORT6_AT,
	FILTER_NEAR4, /* group . source, of a pod on a bridge */
	FILTER_NEAR6,
	FILTER_NOT6,         /* protocol . port, which ::1 does not lead to */
	FILTER_CONNECTIONS4, /* filled by packets: the source, a pod's */
	FILTER_CONNECTIONS6,
	/* Of the table of bridges: the link of a bridge's port with what is its pod's. */
	FILTER_LAN_MAC,
	FILTER_LAN4,
	FILTER_LAN6,
	FILTER_SET_COUNT
};

const char *filter_set_name(enum filter_set set);
/* NFPROTO_INET, or NFPROTO_BRIDGE. */
uint8_t filter_set_family(enum filter_set set);

/* Sets, chains and rules into a table that is empty. */
void filter_put_rules(struct nft_batch *b, bool drop_transit4, bool drop_transit6);
/* The same of the table `bridge nacre` (net/filter/bridge_rules.c). */
void filter_put_bridge_rules(struct nft_batch *b);

/* ---- for bridge_rules.c ---- */

struct filter_chain_row {
	const char *name;
	const char *type; /* NULL: rules of others lead here */
	int hook, priority;
};
void filter_put_sets(struct nft_batch *b, uint8_t family);
void filter_put_chain(struct nft_batch *b, uint8_t family, const struct filter_chain_row *row);

typedef void (*filter_part)(struct nft_batch *b);
#define FILTER_PARTS 5
/* jump: behind the parts, or NULL. */
void filter_put_rule(struct nft_batch *b, uint8_t family, const char *chain,
		     const filter_part parts[FILTER_PARTS], const char *jump);

/* Matches of a packet, for rules of both families. The group of a link is one of ports (differs: is
 * none). */
void filter_match_group(struct nft_batch *b, unsigned key, bool differs);
void filter_match_icmp(struct nft_batch *b, uint8_t protocol, uint8_t type);
void filter_match_u8(struct nft_batch *b, unsigned key, uint8_t value);

#endif
