/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_METADATA_H
#define NACRE_NET_METADATA_H

#include "base/log/error.h"

/*
 * The addresses at which a pod reaches its metadata service, 169.254.169.254 and fd00:ec2::254,
 * port 80: on the loopback device of its own network namespace, so that no packet leaves it and
 * none from elsewhere is taken. The sockets listen at a port that the kernel chooses, to which a
 * rule of the packet filter there leads: a server of the pod can have port 80 of all addresses. An
 * answer has a hop limit of 1.
 */
#define METADATA_ADDRESS4 "169.254.169.254"
#define METADATA_ADDRESS6 "fd00:ec2::254"
#define METADATA_PORT 80

struct metadata_sockets {
	int fd4;
	int fd6; /* -1: the pod has no IPv6 */
};

#define METADATA_SOCKETS_NONE                                                                      \
	{                                                                                          \
		-1, -1                                                                             \
	}

/*
 * Makes them in that namespace, in place of those of an earlier call. Waits for a thread
 * (net/port/inside.h): not for a loop thread. ERROR_PRECONDITION: this kernel lacks a part of
 * nf_tables.
 *
 * Should: need CAP_NET_ADMIN over the namespace. Must not: change what a pod reaches beside these
 * two addresses.
 */
int metadata_listen(int ns_fd, struct metadata_sockets *ret, struct error *err) _must_check_;
void metadata_sockets_close(struct metadata_sockets *s);

#endif
