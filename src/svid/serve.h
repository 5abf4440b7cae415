/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_SVID_SERVE_H
#define NACRE_SVID_SERVE_H

#include <sys/types.h>

#include "base/log/error.h"

/*
 * Serves SPIFFE's Workload API (svid/workload.proto) to connections that the daemon hands over,
 * with who is at the other end of each. What workloads say, HTTP/2 and messages, is read here
 * alone, in a process without privilege; the certificates come from the daemon. It lives as long as
 * the daemon that has started it.
 */

#define SERVE_FD_CONTROL 3 /* connected, SOCK_SEQPACKET */

/* Runs until the daemon hangs up. */
int serve_run(uid_t uid, gid_t gid, struct error *err);

#endif
