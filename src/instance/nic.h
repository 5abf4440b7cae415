/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_NIC_H
#define NACRE_INSTANCE_NIC_H

#include <net/if.h>
#include <stdint.h>

#define INSTANCE_ADDRESS_SIZE 64

/*
 * A network device that is handed to an instance beside the one that it is reached by: a port of a
 * bridge of the node. Checked by whoever takes it from a request (runtime/networks/nics.h).
 */
struct instance_nic {
	char bridge[IF_NAMESIZE];            /* "": there is none */
	char address[INSTANCE_ADDRESS_SIZE]; /* "10.1.2.3/24"; "": it gets none */
	char gateway[INSTANCE_ADDRESS_SIZE]; /* of the default route; "": there is none by it */
	uint8_t mac[6];                      /* all zeroes: one is made up */
};

#endif
