/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_METRICS_H
#define NACRE_GATE_METRICS_H

#include <sys/types.h>

#include "base/log/error.h"
#include "base/time/clock.h"

/*
 * `nacre-gate metrics`: where Prometheus scrapes the node. It accepts TCP connections on a socket
 * that the daemon has made, and reads one request of HTTP/1.1 from each. For GET and HEAD of
 * /metrics it asks the daemon for the page: GATEMSG_SCRAPE with one end of a socket pair, through
 * which the page comes until its end (EXPOSITION_END, or it was none). All who wait get the same
 * page; one that is younger than METRICS_FRESH is used again, so that nobody can make the daemon
 * work all the time. It lives as long as the daemon that has started it.
 *
 * Any user of the host may connect: of METRICS_CLIENTS_MAX connections the oldest makes room that
 * has made no request yet; where each has, a further one is closed.
 */

enum metrics_fd {
	METRICS_FD_CONTROL = 3, /* connected, SOCK_SEQPACKET */
	METRICS_FD_LISTEN,      /* listening, TCP */
};

#define METRICS_CLIENTS_MAX 64
#define METRICS_FRESH (250 * NSEC_PER_MSEC)
/* For a request to come, and for the answer to be taken, once both ends are at it. */
#define METRICS_PATIENCE (10 * NSEC_PER_SEC)
/* For the daemon to tell the page. */
#define METRICS_PAGE_PATIENCE (8 * NSEC_PER_SEC)

/* Runs until the daemon hangs up. */
int metrics_run(uid_t uid, gid_t gid, struct error *err);

#endif
