/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_SOCKETS_H
#define NACRE_NET_SOCKETS_H

#include "base/log/error.h"
#include "loop/pool.h"
#include "net/range/prefix.h"

/*
 * Sockets for one connection to a port in another network namespace, made on a thread of the pool:
 * a value inside its owner, who stays until `done`.
 */

enum { SOCKETS_IP4, SOCKETS_IP6, SOCKETS_COUNT };

struct sockets {
	struct pool_work work;
	int netns_fd;
	/* Of TCP, not connected, non-blocking; -1: a kernel may know only one of the two. The
	 * owner's from done() on. */
	int fds[SOCKETS_COUNT];
	struct error err; /* code 0: none */
	void (*done)(struct sockets *s);
};

/* Takes netns_fd over. done comes on the loop thread, later. */
void sockets_make(struct sockets *s, struct pool *pool, int netns_fd,
		  void (*done)(struct sockets *s));
/* Connects to 127.0.0.1 or ::1, as the socket can: 0, also while that is under way, or why not. */
int sockets_connect(int fd, int which, uint16_t port);
const struct prefix *sockets_loopback(int which);
/* To that address of the family that the socket has; also of one whose connection failed. */
int sockets_connect_to(int fd, const struct prefix *address, uint16_t port);

#endif
