/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_SYSCTL_H
#define NACRE_ISOLATE_SYSCTL_H

#include <stddef.h>

#include "isolate/plan/plan.h"

/* Names of sysctls; private to this area. */

#define SYSCTL_NAME_MAX 255
#define SYSCTL_VALUE_MAX 4095

/*
 * The path below /proc/sys of a name with slashes ("net/ipv4/conf/eth0.1/forwarding") or with dots
 * ("net.ipv4.conf.eth0/1.forwarding"): what comes first separates, the other one stands for a dot.
 * -EINVAL for a name that is no clean path.
 */
int sysctl_path(char *to, size_t size, const char *name);
/* The kind of namespace that a path belongs to; ISOLATE_NS_COUNT where it belongs to none, or is
 * not one of those that a plan may set. */
enum isolate_ns sysctl_kind(const char *path);

#endif
