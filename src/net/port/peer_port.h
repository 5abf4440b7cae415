/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_PEER_PORT_H
#define NACRE_NET_PEER_PORT_H

#include <stdint.h>

#include "base/log/error.h"

/*
 * A TCP port for one peer at the other end of one device. Processes in the same network namespace
 * cannot connect to it, although the address is theirs too: they get no answer.
 */
struct peer_port_plan {
	uint32_t device;    /* its index */
	uint8_t address[4]; /* of IPv4, as all here */
	uint16_t port;
	uint8_t peer[4]; /* the only source that is heard; zeroes: any */
	int backlog;
};

/* In the namespace of the calling thread. Returns the socket, which does not block. */
int peer_port_listen(const struct peer_port_plan *plan, struct error *err) _must_check_;

#endif
