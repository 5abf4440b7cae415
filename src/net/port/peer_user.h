/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_PEER_USER_H
#define NACRE_NET_PEER_USER_H

#include <sys/types.h>

#include "base/log/error.h"

/*
 * The user whose process made the other end of a TCP connection within this host, which must be in
 * the network namespace of the calling thread. The kernel finds the one socket by its addresses
 * (sock_diag(7)), in microseconds. -ENOENT: there is no such socket (any more), or the kernel does
 * not tell.
 */
int peer_user(int fd, uid_t *ret, struct error *err) _must_check_;

#endif
