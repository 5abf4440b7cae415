/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_LINK_H
#define NACRE_NET_LINK_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "net/netlink/netlink.h"

/*
 * Network devices ("links") of the namespace that a struct netlink talks to. A link is named by its
 * index, which belongs to one namespace and which the kernel does not use again soon; a name is
 * only looked up. All calls need CAP_NET_ADMIN in the namespace, but for finding and listing.
 *
 * Errors that callers tell apart: -ENODEV, there is no such link; -EEXIST, the name is taken;
 * -EOPNOTSUPP, the kernel has no such kind of link. The error names the link.
 */

#define LINK_MAC_LEN 6
#define LINK_KIND_MAX 16

/* Since it exists, as the kernel tells them; one that tells none has 0. */
struct link_counters {
	uint64_t rx_packets, tx_packets, rx_bytes, tx_bytes;
	uint64_t rx_errors, tx_errors, rx_dropped, tx_dropped;
};

struct link {
	uint32_t index;
	char name[IF_NAMESIZE];
	char kind[LINK_KIND_MAX]; /* "bridge", "veth", "tun", ...; "" for what has no kind, as lo */
	uint16_t type;            /* ARPHRD_ETHER, ARPHRD_LOOPBACK, ... */
	bool up;                  /* it is meant to be */
	bool running;             /* it has a carrier, too */
	bool has_mac;             /* of six bytes */
	uint8_t mac[LINK_MAC_LEN];
	uint8_t own_mac[LINK_MAC_LEN]; /* that of the hardware, or zeroes */
	uint32_t mtu;
	uint32_t master; /* the index of the bridge in which it is, or 0 */
	uint32_t group;
	struct link_counters counters;
	uint32_t peer; /* of a veth: the index of its other end, in whatever namespace that is */
};

/* A name that the kernel takes: 1 to 15 bytes, no slash, colon or white space, not "." or "..". */
bool link_name_is_fine(const char *name);

/* An absent one is -ENODEV. */
int link_find(struct netlink *nl, const char *name, struct link *ret,
	      struct error *err) _must_check_;
int link_get(struct netlink *nl, uint32_t index, struct link *ret, struct error *err) _must_check_;
/* All of them, in the kernel's order; the caller frees *ret. */
int link_list(struct netlink *nl, struct link **ret, size_t *ret_n, struct error *err) _must_check_;

/* ---- making: the link is down, and its index is returned in *ret (which may be NULL) ---- */

/*
 * A bridge that forwards at once (no spanning tree, no delay) and does not look into multicast.
 * With a MAC it keeps that whatever is put into it; without (NULL) it takes the lowest of its
 * ports'.
 */
int link_add_bridge(struct netlink *nl, const char *name, const uint8_t *mac, uint32_t *ret,
		    struct error *err) _must_check_;
int link_add_dummy(struct netlink *nl, const char *name, uint32_t *ret,
		   struct error *err) _must_check_;
/* A pair: `name` here, `peer` in the namespace peer_ns_fd, or here too (-1). MACs may be NULL. */
struct link_veth {
	const char *name, *peer;
	const uint8_t *mac, *peer_mac;
	uint32_t mtu; /* of both; 0: the kernel's */
	int peer_ns_fd;
};
int link_add_veth(struct netlink *nl, const struct link_veth *veth, uint32_t *ret,
		  struct error *err) _must_check_;
int link_delete(struct netlink *nl, uint32_t index, struct error *err);

/* ---- changing ---- */

enum link_power { LINK_AS_IT_IS, LINK_UP, LINK_DOWN };

/* The changes to a link: a member that is 0 or NULL leaves its property as it is. */
struct link_change {
	const char *name;
	const uint8_t *mac;
	uint32_t mtu;
	uint32_t master; /* the bridge to be put into; LINK_NO_MASTER takes it out */
	enum link_power power;
	bool no_group; /* out of the group that it is in, into 0 */
	/* No address of IPv6 of its own making: for ports, and for links to strangers. */
	bool no_auto_ipv6;
};
#define LINK_NO_MASTER UINT32_MAX

/* Not atomic: where it fails, a part may have been done. */
int link_set(struct netlink *nl, uint32_t index, const struct link_change *change,
	     struct error *err) _must_check_;
/* Into another namespace, there by that name (NULL: the same), down and without its addresses. */
int link_move(struct netlink *nl, uint32_t index, int ns_fd, const char *name,
	      struct error *err) _must_check_;

/* "02:6e:61:63:72:02", all of it: 0 or -EINVAL. */
int link_parse_mac(const char *text, uint8_t ret[LINK_MAC_LEN]) _must_check_;
#define LINK_MAC_TEXT 18
void link_print_mac(const uint8_t mac[LINK_MAC_LEN], char ret[LINK_MAC_TEXT]);

/* Decodes an answer, without a socket: 1, or -EBADMSG. The `read` of netlink_list(). */
int link_read(const struct netmsg_head *answer, void *ret) _must_check_;

#endif
