/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_AUDIT_H
#define NACRE_DAEMON_AUDIT_H

#include "base/log/error.h"
#include "rpc/message/status.h"
#include "rpc/server/peer.h"

/*
 * A line of JSON for each call that was refused to somebody, and for each that may have changed
 * something: when it ended, who made it, from where, what and with which status. Where the file
 * cannot be written, the line is one of the daemon's own log.
 */

/* Opens the file for appending, mode 0600, or makes it. A descriptor, which the caller closes, or
 * an error. */
int audit_open(const char *path, struct error *err);
/* fd -1: nothing. */
void audit_call(int fd, const struct rpc_peer *peer, const char *method, enum rpc_code code);

#endif
