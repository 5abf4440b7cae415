/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_SYSTEM_NET_H
#define NACRE_INIT_SYSTEM_NET_H

#include <stdbool.h>
#include <sys/types.h>

#include "init/system_config.h"
#include "isolate/spawn/spawn.h"
#include "loop/loop.h"

/*
 * The network devices of a machine or container whose pid 1 is nacre, as its configuration names
 * them. A device is set up as soon as it is there: the kernel tells. Addresses of DHCP are the
 * business of a client (isc-dhcp-client, dhcpcd, busybox), which runs as long as pid 1 does: one
 * that ends, or has brought no address for too long, is started again.
 *
 * WAITING  the device is not there yet.
 * UP       it has what the configuration says; with dhcp, its client runs, or is due again.
 * FAILED   it cannot be set up, which was told; tried again when the kernel tells of a change.
 */

enum system_link_state { SYSTEM_LINK_WAITING, SYSTEM_LINK_UP, SYSTEM_LINK_FAILED };

struct system_net;

struct system_link {
	struct system_net *net;
	const struct system_interface *wanted;
	enum system_link_state state;
	bool told; /* that it is not there */
	uint32_t index;
	bool running; /* its client */
	struct isolate_child client;
	nsec_t delay;               /* before the client is started again */
	struct loop_timer again;    /* until that */
	struct loop_timer patience; /* for its address */
};

struct system_net {
	struct loop *loop;
	const struct system_config *config;
	struct system_link links[SYSTEM_INTERFACES_MAX];
	size_t n_links;
	int fd; /* what the kernel tells; -1: nothing */
	struct loop_fd source;
	bool ready, ending;
	void (*on_ready)(void *userdata);
	void *userdata;
};

/* Brings lo up, and listens. Nothing else until system_net_begin(). Failures are logged. */
void system_net_init(struct system_net *n, struct loop *l, void (*on_ready)(void *userdata),
		     void *userdata);
/* Sets up what `config` names, once. on_ready() is called, maybe at once, when each device is up
 * and those with dhcp have an address. */
void system_net_begin(struct system_net *n, const struct system_config *config);
/* A child of this process has ended: whether it was one of its clients. */
bool system_net_reaped(struct system_net *n, pid_t pid);
/* No client is started any more; those that run do until somebody ends them. */
void system_net_end(struct system_net *n);

#endif
