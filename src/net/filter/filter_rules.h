/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_FILTER_RULES_H
#define NACRE_NET_FILTER_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "net/netlink/nft.h"

/*
 * What is always the same in the table `inet nacre`: its sets, chains and rules. Private to
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
	FILTER_CONNECTIONS, /* filled by packets: a port's link */
	FILTER_SET_COUNT
};

const char *filter_set_name(enum filter_set set);

/* Sets, chains and rules into a table that is empty. */
void filter_put_rules(struct nft_batch *b, bool drop_transit4, bool drop_transit6);

#endif
