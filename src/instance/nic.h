/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_NIC_H
#define NACRE_INSTANCE_NIC_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#define INSTANCE_ADDRESS_SIZE 64

/*
 * A network device that is handed to an instance beside the one that it is reached by: a port of a
 * bridge of the node. Checked where it is taken from a request (runtime/networks/nics.h).
 */
struct instance_nic {
	char bridge[IF_NAMESIZE];            /* "": there is none */
	char address[INSTANCE_ADDRESS_SIZE]; /* "10.1.2.3/24"; "": it gets none */
	char gateway[INSTANCE_ADDRESS_SIZE]; /* of the default route; "": there is none by it */
	uint8_t mac[6];                      /* all zeroes: one is made up */
};

/*
 * The network device of a pod in a machine, which the node's network leads to: what its guest is to
 * make of it. The port of the node (net/port/port.h) is joined to it when the instance is READY.
 */
struct instance_link {
	bool is_wanted;
	bool leads_out; /* the guest's default routes are by it */
	uint8_t mac[6];
	uint32_t mtu;
	char name[IF_NAMESIZE];
	char address[INSTANCE_ADDRESS_SIZE], gateway[INSTANCE_ADDRESS_SIZE];
	char address6[INSTANCE_ADDRESS_SIZE]; /* "": none */
};

#endif
