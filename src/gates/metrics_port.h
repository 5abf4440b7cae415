/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATES_METRICS_PORT_H
#define NACRE_GATES_METRICS_PORT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"

/*
 * The address at which Prometheus scrapes this node: a listening socket, made here, and the process
 * of nacre-gate that serves it (gate/metrics.h), started again where it ends. An address that
 * cannot be had now (it is in use, or is none of this host yet) is tried until it can.
 */

struct loop;
struct metrics_port;

struct metrics_port_config {
	struct loop *loop;
	const char *program; /* path of nacre-gate */
	const char *address; /* metrics_port_address_is_valid() */
	uid_t uid;
	gid_t gid;
	/* Somebody scrapes: the page goes into fd, a stream socket, which is the callee's. */
	void (*on_scrape)(void *userdata, int fd);
	void *userdata;
};

/* "127.0.0.1:9464", "[::1]:9464": of one interface, never of all. */
bool metrics_port_address_is_valid(const char *text);

/* All of config is copied. Begins in the loop. 0, -EINVAL or -ENOMEM. */
int metrics_port_new(struct metrics_port **ret, const struct metrics_port_config *config);
/* Ends the process, and with it each connection. */
struct metrics_port *metrics_port_free(struct metrics_port *p);

#endif
