/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_ATTACHMENT_H
#define NACRE_NETWORK_ATTACHMENT_H

#include <net/if.h>

#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "net/port/lan.h"
#include "network/wish.h"

/*
 * That a workload is on a network: what it got. network_attach() (network/attach.h) reserves
 * addresses and ports for it, attachment_plug() (network/plug.h) brings it into the kernel,
 * attachment_unplug() takes it out and gives everything back. Its text is part of the workload's
 * record.
 *
 * RESERVED   addresses and ports are its own; nothing of it is in the kernel
 * PLUGGING   a thread makes its port
 * PLUGGED    packets flow
 * UNPLUGGING a thread takes its rules away; it is freed at the end of that
 */
enum attachment_state {
	ATTACHMENT_RESERVED,
	ATTACHMENT_PLUGGING,
	ATTACHMENT_PLUGGED,
	ATTACHMENT_UNPLUGGING,
	ATTACHMENT_STATE_COUNT
};

struct network;
struct plugin_part;

struct attachment {
	struct list link; /* of the network's */
	/* Further ones of the same workload, in the order in which it got them; `at` is what points
	 * here, or NULL. attachment_free() takes it out. */
	struct attachment *next, **at;
	struct network *network;
	enum attachment_state state;
	char *owner;              /* the workload's path */
	char device[IF_NAMESIZE]; /* the node's end */
	uint32_t index;           /* of that; 0: it is not there, or there is none */
	uint32_t bridge;          /* the index of the bridge that it is a port of; or 0 */
	unsigned eth;             /* the pod's end is ethN */
	bool leads_out;           /* the pod's default routes are here */
	/* Another pod is, or was, in the namespace of its owner, which may outlast that: its device
	 * is removed with it. */
	bool is_shared;
	/* It was begun, or is being ended, while the pod runs: a daemon that starts takes it out.
	 */
	bool is_half;
	/* Of a pod in a machine: its guest has the addresses. The workload's kind says it, and not
	 * its text. */
	bool of_machine;
	bool guest_knows;       /* the guest has its configuration (pod/networks/guest.h) */
	bool tells_guest;       /* or is being told; nothing else begins with it meanwhile */
	struct prefix ip4, ip6; /* with the lengths of the network's; ip6: may be family 0 */
	uint8_t mac[LINK_MAC_LEN];
	/* As asked, host_port filled in where it was 0. */
	struct filter_publish *publish;
	size_t n_publish;
	uint64_t rate_to_pod, rate_from_pod;
	/* The network namespace of the pod that a device of the node is lent to, held so that it
	 * comes back, whatever becomes of the pod; and that of a machine with a device that nobody
	 * would remove from there. -1. */
	int home_fd;

	/* Private to this area. */
	struct plugin_part *part; /* where plugins make its network, which is its own; or NULL */
	struct lan_home home;     /* of a device that is lent: what it was */
	int *sockets;   /* one for each of publish, which holds the host's port; -1: none does */
	bool abandoned; /* nobody waits for what goes on with it */
};

/* Gives back what was reserved, and leaves the kernel as it is: of one that is RESERVED, or where
 * the daemon ends. Work of a thread goes with networks_free(), and no callback comes. NULL is fine.
 */
struct attachment *attachment_free(struct attachment *a);

/* One with nothing, and room for that many ports; NULL without memory. */
struct attachment *attachment_new(struct network *n, const char *owner, size_t n_publish);
/* Puts it at the end of the list that begins with *first. */
void attachment_append(struct attachment **first, struct attachment *a);
/* Whether its device is one of the node's, lent. */
bool attachment_is_lent(const struct attachment *a);
/* Whether home_fd is to be held while it is PLUGGED. */
bool attachment_holds_netns(const struct attachment *a);
/* Its device in the pod goes only with the pod's network namespace, or by the plugins that made it:
 * nobody else may be in that. */
bool attachment_ends_with_netns(const struct attachment *a);
/* Of the list; NULL: it is not on that network. */
struct attachment *attachment_on(struct attachment *first, const char *network);

static inline void attachment_freep(struct attachment **a)
{
	*a = attachment_free(*a);
}
/* As one line, which network_adopt() takes. -ENOMEM. */
int attachment_print(const struct attachment *a, struct buf *b);

/* The word of the protocol, "tcp", "udp" or "sctp"; and back, 0 where it is none. */
const char *publish_protocol_word(uint8_t protocol);
uint8_t publish_protocol_of(const char *word);

#endif
