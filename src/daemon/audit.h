/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_AUDIT_H
#define NACRE_DAEMON_AUDIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "rpc/message/status.h"
#include "rpc/server/peer.h"

/*
 * A line of JSON for each call that was refused to somebody, and for each that may have changed
 * something: when it ended, who made it, from where, what and with which status. Where the file
 * cannot be written, the line is one of the daemon's own log; or calls that may change something
 * are refused until it can be. For that there is room for the lines of the calls that are under way
 * before one begins.
 */

#define AUDIT_AHEAD (4 << 20) /* bytes */
#define AUDIT_LINE_MAX 4096

struct audit {
	const char *path;
	int fd;      /* 0 and below: there is none */
	bool refuse; /* when it is full */
	size_t lost; /* bytes of a line that is still to be written, when it refuses */
	char line[AUDIT_LINE_MAX];
};

/* Opens the file for appending, mode 0600, or makes it. A descriptor, which the caller closes, or
 * an error. */
int audit_open(const char *path, struct error *err);
/* Whether the call may begin: 0, or ERROR_UNAVAILABLE. */
int audit_check(struct audit *a, const char *method, struct error *err);
/* Without a file: nothing. */
void audit_call(struct audit *a, const struct rpc_peer *peer, const char *method,
		enum rpc_code code);

#endif
