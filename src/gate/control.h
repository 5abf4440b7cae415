/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_CONTROL_H
#define NACRE_GATE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "loop/loop.h"
#include "wire/message/gatemsg.h"

/*
 * Where the daemon speaks to a gate: a listening socket (SOCK_SEQPACKET), and the one connection
 * that counts, the newest. Nothing is queued for a daemon: it is asked what there is to tell
 * whenever the daemon can take something, so that a daemon which does not read costs nothing. A
 * value inside its owner.
 */

struct control;

struct control_ops {
	/* A new daemon: what was told before is to be told again. */
	void (*on_connect)(struct control *c);
	void (*on_message)(struct control *c, const struct gatemsg *m);
	/* The next thing to tell; false where there is none. It is told then, or the connection
	 * ends. */
	bool (*next)(struct control *c, struct gatemsg *m);
};

struct control {
	const struct control_ops *ops;
	struct loop *loop;
	struct loop_fd listener, source;
	int listen_fd, fd;
	uint8_t *packet; /* that could not be sent yet */
	size_t len;
};

/* Takes listen_fd over. 0 or -ENOMEM. */
int control_init(struct control *c, struct loop *loop, int listen_fd,
		 const struct control_ops *ops);
/* There is something to tell. */
void control_kick(struct control *c);

/* A packet from a daemon whose socketpair was inherited, with the descriptor that came with it; -1:
 * none. Its length, 0 at the end, or a negative errno; -EMSGSIZE: it is larger. */
ssize_t control_receive(int socket_fd, uint8_t *packet, size_t size, int *ret_fd);

#endif
