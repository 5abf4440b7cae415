/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_HANDSHAKE_H
#define NACRE_GATE_HANDSHAKE_H

#include "base/log/error.h"
#include "base/time/clock.h"
#include "identity/tls.h"
#include "loop/loop.h"

/*
 * A TLS connection that comes to be: the connect and the handshake, with a bound on their time.
 * Then its descriptor goes on to the unit that speaks over it. A value inside its owner.
 */

struct handshake;

/* Once. err NULL: the peer is who it must be, and handshake_take() gives the connection. Else, or
 * afterwards, handshake_done(). */
typedef void (*handshake_fn)(struct handshake *s, const struct error *err);

struct handshake {
	struct loop_fd source;
	struct loop_timer patience;
	handshake_fn fn;
	struct tls *tls;
	int fd;
};

#define HANDSHAKE_INIT                                                                             \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* Takes fd and tls over; patience is for connect and handshake together. A client's fd may still be
 * connecting. */
void handshake_init(struct handshake *s, struct loop *loop, int fd, struct tls *tls,
		    nsec_t patience, handshake_fn fn);
void handshake_done(struct handshake *s);
/* Both are the caller's then. */
void handshake_take(struct handshake *s, int *ret_fd, struct tls **ret_tls);

/* The events of a descriptor that a connection needs: for reading and writing, and for what TLS
 * itself waits for. */
unsigned handshake_events(const struct tls *tls, bool read, bool write);

#endif
