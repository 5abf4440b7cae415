/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_INSIDE_H
#define NACRE_NET_INSIDE_H

#include "base/log/error.h"
#include "net/netlink/netlink.h"

/*
 * Work that a thread must do in another network namespace. The caller never goes there: a thread is
 * made for it, goes, and ends. A socket or device that it opened there belongs to that namespace
 * for good, and any thread can use it.
 *
 * These calls wait for that thread: microseconds for a namespace that is there, some milliseconds
 * for a new one. They are not for a loop thread.
 *
 * Should: need CAP_SYS_ADMIN; leave the caller's own namespace, credentials and signals alone.
 * Must not: leave a thread behind, or anything of a new namespace but what was opened in it.
 */

typedef int (*inside_fn)(void *arg, struct error *err);

/* A namespace that nobody was in before, in the place of a descriptor. */
#define INSIDE_NEW (-1)

/*
 * Runs fn in the namespace ns_fd, or in a new one, and returns what it returned. fn gets the
 * caller's `err`, allocates nothing, and finds all signals blocked.
 */
int inside_run(int ns_fd, inside_fn fn, void *arg, struct error *err) _must_check_;

/* netlink_open() there. */
int inside_netlink(struct netlink *ret, int ns_fd, struct error *err) _must_check_;

/* The namespace in which a socket was opened, as a descriptor; since Linux 4.9, with CAP_NET_ADMIN
 * over it. */
int inside_of_socket(int socket_fd, struct error *err) _must_check_;

#endif
