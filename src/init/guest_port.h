/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_GUEST_PORT_H
#define NACRE_INIT_GUEST_PORT_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/time/clock.h"
#include "wire/message/bootmsg.h"

/* The guest's end of the boot port. */
struct guest_port {
	int fd; /* non-blocking */
	struct buf in;
};

#define GUEST_PORT_INIT                                                                            \
	{                                                                                          \
		.fd = -1, .in = BUF_INIT_LIMIT(BOOTMSG_FRAME_MAX)                                  \
	}

/* Finds the port by its name and opens it; waits for it to come up, for a minute at most. */
int guest_port_open(struct guest_port *p, struct error *err);

/* Whether something is said there within this time. */
bool guest_port_is_spoken_to(const struct guest_port *p, nsec_t within);

/*
 * The next frame, where it is there whole: the bytes that it takes, which the caller drops by
 * buf_consume(&p->in) when it is done with *ret. 0: not yet. -EPIPE: the other end is closed now.
 * Errors of bootmsg_next(): nothing can be read from the port any more.
 */
int guest_port_read(struct guest_port *p, struct bootmsg *ret, struct error *err);
/* The same, and waits as long as it takes, also for somebody at the other end. */
int guest_port_wait(struct guest_port *p, struct bootmsg *ret, struct error *err);

/* Says it where the other end takes it within a second. */
int guest_port_say(struct guest_port *p, const struct bootmsg *m, struct error *err);

#endif
