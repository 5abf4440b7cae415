/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_ACCESS_H
#define NACRE_DAEMON_ACCESS_H

#include <stdbool.h>

#include "base/log/error.h"
#include "rpc/server/peer.h"

/* The methods that remote users may call, by the role in their certificate: "admin" all, "reader"
 * those that change nothing and hand out no files of workloads. */

/* Whether the text is the pattern, or begins as one that ends with '*'. */
bool access_matches(const char *pattern, const char *text);
bool access_is_read(const char *method);
/* 0, ERROR_DENIED or ERROR_UNAUTHENTICATED. method: "/package.Service/Method". */
int access_check(const struct rpc_remote *who, const char *method, struct error *err);

#endif
