/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_FILTER_H
#define NACRE_NET_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "net/range/prefix.h"

/*
 * The packet filter of the node's ports (net/port/port.h): the table `inet nacre` of nf_tables. Its
 * rules are always the same (net/filter/filter_rules.c) and match groups of links; who is who
 * stands in its sets, of which a pod that comes or goes changes a few elements. Chains of others
 * are not touched, and packets of others pass.
 *
 * Its effect: a port's pod has its own addresses as source, and no others; it reaches pods of its
 * network and the world, behind the node's address, but no other network, no service of the node,
 * and not the metadata service of a cloud (169.254.0.0/16, fd00:ec2::/32); from outside only
 * published ports lead to it.
 *
 * The table belongs to the socket (NFT_TABLE_F_OWNER, Linux 5.12): nobody else can change or flush
 * it. Since 6.9 it stays when the daemon ends, and the next one takes it over.
 *
 * Where a network is a bridge (net/port/bridge.h) there is a second table, `bridge nacre`: what a
 * pod sends into it has the pod's own MAC and addresses, also where ARP and neighbour discovery
 * speak of them, and nothing of it is a router's or a DHCP server's.
 *
 * In the network namespace of the thread that made it. Calls take microseconds to milliseconds; not
 * for a loop thread. One at a time.
 */

struct filter_network {
	uint32_t number;            /* its ports have the group PORT_GROUP + number */
	struct prefix pool4, pool6; /* family 0: none */
	bool internal;              /* no way out */
	bool node_open;             /* its pods reach services on the node's addresses */
};

struct filter_publish {
	uint8_t protocol; /* IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP */
	struct prefix
		host; /* family 0: each address of the host, of the families that the pod has */
	uint16_t host_port, pod_port;
};

struct filter_port {
	uint32_t link; /* index of the node's end */
	uint32_t network;
	struct prefix ip4, ip6; /* lengths do not count; ip6: family 0 for none */
	const struct filter_publish *publish;
	size_t n_publish;
	/* Of a port of a bridge: the bridge's index, and the pod's MAC. */
	uint32_t bridge;
	uint8_t mac[6];
};

struct filter_state {
	const struct filter_network *networks;
	size_t n_networks;
	const struct filter_port *ports;
	size_t n_ports;
	bool drop_transit4, drop_transit6; /* net/filter/forward.h */
	bool has_bridges;                  /* networks that are bridges */
};

struct filter;

/* Takes over what an earlier daemon has left, or begins with nothing. ERROR_PRECONDITION, with the
 * cure: no nf_tables here, no privilege, or the table is owned by another process. */
int filter_new(struct filter **ret, struct error *err) _must_check_;
/* The table stays where the kernel keeps it for the next owner. */
struct filter *filter_free(struct filter *f);

/* The whole table anew, in one step: no packet sees it half done. */
int filter_sync(struct filter *f, const struct filter_state *state, struct error *err) _must_check_;
/* Takes the table away: for a node without pods. */
int filter_remove(struct filter *f, struct error *err);
/* One pod comes or goes. A failure changes nothing: filter_sync() repairs it. */
int filter_add_port(struct filter *f, const struct filter_port *p, struct error *err) _must_check_;
int filter_remove_port(struct filter *f, const struct filter_port *p, struct error *err);

/* Whether this kernel has what bridges need: 0, or ERROR_PRECONDITION with the cure. In the calling
 * thread's network namespace, some 100 us. */
int filter_has_bridges(struct error *err) _must_check_;

/* Whether nobody else can change the table. */
bool filter_is_owned(const struct filter *f);
/*
 * Else: a socket that becomes readable when rules of any table change; it does not block.
 * filter_watch_read() reads what came, and says whether our table was removed; filter_sync() says
 * that too, since it removes it and makes it anew.
 */
int filter_watch_open(struct error *err) _must_check_;
bool filter_watch_read(int fd);

#endif
