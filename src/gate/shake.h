/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_SHAKE_H
#define NACRE_GATE_SHAKE_H

#include "base/log/error.h"
#include "base/time/clock.h"
#include "identity/tls.h"
#include "loop/loop.h"

/*
 * A TLS connection that comes to be: the connect and the handshake, with a bound on their time.
 * Then its descriptor goes on to the unit that speaks over it. A value inside its owner.
 */

struct shake;

/* Once. err NULL: the peer is who it must be, and shake_take() gives the connection. Else, or
 * afterwards, shake_done(). */
typedef void (*shake_fn)(struct shake *s, const struct error *err);

struct shake {
	struct loop_fd source;
	struct loop_timer patience;
	shake_fn fn;
	struct tls *tls;
	int fd;
};

#define SHAKE_INIT                                                                                 \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* Takes fd and tls over; patience is for connect and handshake together. A client's fd may still be
 * connecting. */
void shake_init(struct shake *s, struct loop *loop, int fd, struct tls *tls, nsec_t patience,
		shake_fn fn);
void shake_done(struct shake *s);
/* Both are the caller's then. */
void shake_take(struct shake *s, int *ret_fd, struct tls **ret_tls);

/* The events of a descriptor that a connection needs: for reading and writing, and for what TLS
 * itself waits for. */
unsigned shake_events(const struct tls *tls, bool read, bool write);

#endif
