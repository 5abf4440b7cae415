/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_DHCP_H
#define NACRE_WIRE_DHCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * DHCP (RFC 2131) as far as a machine in a cloud needs it: an address for one Ethernet device,
 * asked for once. Packets are whole ones of IP, for a socket of packets: the device has no address
 * yet. Without memory and descriptors.
 */

#define DHCP_PACKET_SIZE 328 /* of what is asked: 20 of IP, 8 of UDP, 300 of DHCP */

enum dhcp_type { DHCP_DISCOVER = 1, DHCP_OFFER, DHCP_REQUEST, DHCP_ACK = 5, DHCP_NAK };

struct dhcp_ask {
	enum dhcp_type type; /* DHCP_DISCOVER or DHCP_REQUEST */
	uint32_t number;     /* that the answer has again */
	uint8_t mac[6];
	uint8_t address[4], server[4]; /* of the offer that is taken, with DHCP_REQUEST */
};

struct dhcp_answer {
	enum dhcp_type type; /* DHCP_OFFER, DHCP_ACK or DHCP_NAK */
	uint8_t address[4], server[4];
	uint8_t gateway[4]; /* 0.0.0.0: none */
	uint32_t prefix;    /* 1 to 32 */
	uint32_t mtu;       /* 0: not told */
};

void dhcp_encode(const struct dhcp_ask *ask, uint8_t packet[DHCP_PACKET_SIZE]);
/* Whether the packet is an answer to that question, and the first whole one of its kind. Anything
 * else that comes by is none. */
bool dhcp_decode(struct dhcp_answer *ret, const struct dhcp_ask *ask, const uint8_t *packet,
		 size_t len);

#endif
