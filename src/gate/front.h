/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_FRONT_H
#define NACRE_GATE_FRONT_H

#include <sys/types.h>

#include "base/log/error.h"
#include "base/time/clock.h"

/*
 * Where users from elsewhere meet the node: it accepts TCP connections on a socket that the daemon
 * has made, ends their TLS, learns from the certificate who the user is, and hands the daemon one
 * end of a socket pair with that (GATEMSG_VISITOR), to which it passes well-formed HTTP/2 frames
 * only (wire/format/h2frame.h). Its own key is made here; the certificate for it comes from the
 * daemon, and is renewed at half of its life. It lives as long as the daemon that has started it.
 *
 * Of strangers it holds at most: FRONT_SHAKES_MAX handshakes, FRONT_SHAKES_ADDRESS_MAX of one
 * address (of one /64 of IPv6), each for `patience`; where there are more, the oldest of all makes
 * room. Of FRONT_VISITORS_MAX connections of users no id has more than are free: half of them
 * alone, a third beside one as greedy. A user's connection that has made no request after
 * FRONT_REQUEST_PATIENCE is closed, as is one whose certificate ends or is revoked.
 */

enum front_fd {
	FRONT_FD_CONTROL = 3, /* connected, SOCK_SEQPACKET */
	FRONT_FD_LISTEN,      /* listening, TCP */
};

#define FRONT_SHAKES_MAX 128
#define FRONT_SHAKES_ADDRESS_MAX 16
#define FRONT_VISITORS_MAX 1024
#define FRONT_PATIENCE_SECONDS 10
#define FRONT_REQUEST_PATIENCE (30 * NSEC_PER_SEC)

/* Runs until the daemon hangs up. */
int front_run(uid_t uid, gid_t gid, struct error *err);

#endif
