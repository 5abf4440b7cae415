/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_MODEL_H
#define NACRE_NETWORK_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "net/port/lan.h"
#include "network/wish.h"

/*
 * A network of the node, as everybody may read it.
 *
 * MAKING    its record is on its way to the disk; workloads may be attached to it already READY
 * recorded REMOVING  nobody can be attached any more; freed when its record is gone
 */
enum network_state { NETWORK_MAKING, NETWORK_READY, NETWORK_REMOVING, NETWORK_STATE_COUNT };

#define NETWORKS_MAX 255

/* The kinds of devices that a network is made of (network/driver.h). */
enum network_driver {
	NETWORK_ROUTED,
	NETWORK_BRIDGE,
	NETWORK_MACVLAN,
	NETWORK_IPVLAN,
	NETWORK_DEVICE,
	NETWORK_DRIVER_COUNT
};

struct address_pool;
struct loop;
struct network;
struct networks;
struct plugins;
struct pool;
struct root_store;
struct run_store;

struct networks_config {
	struct loop *loop;
	struct pool *pool;
	struct root_store *store;
	struct run_store *run_store;
	struct plugins *plugins; /* of CNI; NULL: this node runs none */
};

/* err NULL for success. */
typedef void (*network_fn)(void *userdata, struct network *n, const struct error *err);

struct network {
	struct list link; /* in order of number */
	struct networks *all;
	struct plugins *plugins; /* that make it, in the place of this node; NULL: it does */
	char name[NETWORK_NAME_SIZE];
	uint32_t number; /* 1 to NETWORKS_MAX; the default network is 1 */
	enum network_state state;
	enum network_driver driver;
	char parent[IF_NAMESIZE];   /* of macvlan, ipvlan and device; "" */
	enum lan_kind kind;         /* of macvlan and ipvlan */
	struct prefix pool4, pool6; /* pool6: family 0 where there is no IPv6 */
	struct prefix range4;       /* of pool4, what pods get; family 0: all of it */
	/* gateway6: fe80::1, or that of the parent's network; family 0: there is none. */
	struct prefix gateway4, gateway6;
	uint32_t mtu;        /* as its pods have it */
	bool asked_mtu;      /* it was named, and does not follow the host's */
	bool internal;       /* no way out, no published ports */
	bool node_open;      /* services on the node's addresses can be reached */
	uint64_t created_at; /* clock_real() */
	size_t n_attached;
	/* Why nobody can come to it for now; code 0: everybody can. The loop thread writes it when
	 * a settling ends; the jobs of plugs, none of which runs then, read it. */
	struct error trouble;

	/* Private to this area. */
	struct address_pool *free4, *free6;
	struct list attachments;
	/* The callback of the caller that waits for its record to be written or dropped; NULL:
	 * none. */
	network_fn done;
	void *userdata;
};

#endif
