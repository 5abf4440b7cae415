/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_IPV6_H
#define NACRE_NET_IPV6_H

#include "base/log/error.h"

/*
 * Turns IPv6 off for all devices of the calling thread's network namespace, also for those that
 * come later: the kernel looks at no packet of it, and takes no address that a router advertises.
 * Frames that a bridge forwards are not affected. Nothing to do where the kernel has no IPv6.
 *
 * Should: be told to the kernel in a /proc of its own, which nobody can have mounted upon, and read
 * back. Must not: be called in the namespace of the host.
 */
int ipv6_off(struct error *err) _must_check_;
/* Devices that come later have it again. */
int ipv6_of_later(struct error *err) _must_check_;

#endif
