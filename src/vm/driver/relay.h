/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_RELAY_H
#define NACRE_VM_RELAY_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "isolate/spawn/spawn.h"

/*
 * `nacre-gate relay` (gate/relay.h) as the daemon sees it: a process that reads what somebody's own
 * system says on its console and through its agent, and outlives the daemon. It is found by its two
 * sockets in the machine's directory.
 */

struct relay_start {
	const char *program; /* path of nacre-gate */
	const char *title;   /* of the machine, for ps */
	int dir_fd;          /* of the machine: the sockets are made there */
	int cgroup_fd;       /* -1: the daemon's own */
	int console_fd;      /* connected sockets of the monitor's */
	int agent_fd;
	uid_t uid; /* as whom it runs; not 0, and nobody else's */
	gid_t gid;
};

/* No descriptor is taken over; the child is the caller's. */
int relay_start(const struct relay_start *start, struct isolate_child *ret, struct error *err);

/* A connection to the console, on which bytes go both ways from here on; replay: first what it had
 * said before, as far as it is kept. ERROR_UNAVAILABLE where no relay is there. */
int relay_console(int dir_fd, bool replay, struct error *err);
/* A connection on which one of the answers of wire/message/relay.h comes. The guest is asked by
 * that. */
int relay_ask_agent(int dir_fd, struct error *err);

#endif
