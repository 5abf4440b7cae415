/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_FORWARD_H
#define NACRE_NET_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * Forwarding between the node's ports (net/port/port.h) and its own links. It is turned on for each
 * link by itself, so that a host that is no router does not become one: IPv4 looks at the link by
 * which a packet came in, and so does IPv6 since Linux 6.17 (force_forwarding). Before that IPv6
 * knows only one switch for all links: it is turned on, the host goes on to take router
 * advertisements (accept_ra 2), and the setting for links to come (default) stays off, which tells
 * our switch from an administrator's.
 *
 * The node's own links are those that a route of the main table leaves by.
 */

#define FORWARD_LINKS_MAX 64

struct forward {
	uint32_t links[FORWARD_LINKS_MAX]; /* indexes of the node's own */
	size_t n_links;
	/* The host is no router but for us: what neither comes from a pod nor goes to one is not to
	 * be forwarded. */
	bool drop_transit4, drop_transit6;
	/* Links that were turned on, for forward_undo(); with those of an earlier daemon, which the
	 * caller fills in. */
	uint32_t turned4[FORWARD_LINKS_MAX], turned6[FORWARD_LINKS_MAX];
	size_t n_turned4, n_turned6;
	bool turned_all6;
	/* Given: force_forwarding is not used where there is one, as on an older kernel. */
	bool is_old6;
};

/* In the calling thread's network namespace; may be called again at any time. Some milliseconds at
 * most, not for a loop thread. */
int forward_settle(struct forward *f, struct error *err) _must_check_;

/* Turns off again what was turned on, whatever of it fails; false where more is on, as an earlier
 * daemon may have left it: then transit is to be dropped still. */
bool forward_undo(struct forward *f);

/*
 * A socket that becomes readable when others change settings or routes; it does not block.
 * forward_watch_read() reads what came, and says whether forward_settle() is due.
 */
int forward_watch_open(struct error *err) _must_check_;
bool forward_watch_read(int fd, const struct forward *f);

#endif
