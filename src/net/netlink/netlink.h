/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_NETLINK_H
#define NACRE_NET_NETLINK_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/macros.h"
#include "net/netlink/netmsg.h"

/*
 * A conversation with the kernel about the links, addresses and routes of one network namespace
 * (rtnetlink(7)): one request, its answers, one verdict. The calls are synchronous and take
 * microseconds, since the kernel does the work while it is asked; only making and deleting links
 * may take milliseconds, so a loop thread leaves that to another one.
 *
 * A socket belongs to the namespace in which it was opened, whichever thread uses it: see
 * net/port/inside.h for one of a namespace elsewhere.
 */
struct netlink {
	int fd;
	uint32_t seq, port;
};

#define NETLINK_NONE                                                                               \
	{                                                                                          \
		.fd = -1, .seq = 0, .port = 0                                                      \
	}

/* In the namespace of the calling thread. */
int netlink_open(struct netlink *ret, struct error *err) _must_check_;
/* The same for another family of requests than rtnetlink(7), NETLINK_*. */
int netlink_open_for(struct netlink *ret, int protocol, struct error *err) _must_check_;
/* May be called twice, and on NETLINK_NONE. */
void netlink_done(struct netlink *nl);
#define _cleanup_netlink_ _cleanup_(netlink_done)

/* One answer that is not the verdict: 0, or a negative errno, which ends the conversation with
 * "what the kernel says makes no sense" or the like. */
typedef int (*netlink_fn)(const struct netmsg_head *answer, void *arg);

/*
 * Asks, gives each answer to fn (NULL: none is expected), and returns the verdict: 0, or the
 * negative errno of the kernel, in `err` with its own words behind `what` ("add the bridge
 * nacre0"). -EMSGSIZE: the request or an answer is too large. -EINTR: a list that changed while it
 * was read, so that something may be missing or twice. -EBADMSG: an answer that makes no sense.
 */
int netlink_ask(struct netlink *nl, struct netmsg *m, netlink_fn fn, void *arg, const char *what,
		struct error *err) _must_check_;

#define NETLINK_LIST_MAX 65536 /* elements */

/* Reads an answer into an element: 1, 0 where it is of no interest, or a negative errno. */
typedef int (*netlink_read_fn)(const struct netmsg_head *answer, void *element);

/*
 * Asks for a list (a request with NLM_F_DUMP), again where it changed meanwhile: *ret, which the
 * caller frees, has *ret_n elements of `size` bytes. NULL for none. -ENOBUFS past NETLINK_LIST_MAX.
 */
int netlink_list(struct netlink *nl, struct netmsg *m, netlink_read_fn read, size_t size,
		 void **ret, size_t *ret_n, const char *what, struct error *err) _must_check_;

#endif
