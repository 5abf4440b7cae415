/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_WISH_H
#define NACRE_NETWORK_WISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/filter/filter.h"
#include "net/netlink/link.h"
#include "net/range/prefix.h"

/*
 * A workload's request for an attachment to a network. Values without ownership: the names and
 * lists stay the caller's.
 */

/* A network's name is a label of DNS (base/text/parse.h). */
#define NETWORK_NAME_SIZE 64
#define NETWORK_PUBLISH_MAX 1024 /* ports of one workload; a range counts each */
/* One workload is on at most so many networks at once, its devices eth0 to eth15. */
#define NETWORK_OF_ONE_MAX 16
/* The network of a workload that names none; exists always. */
#define NETWORK_DEFAULT "default"

struct network_wish {
	const char *network;    /* of the node; "cni" or "cni:NAME": one that plugins make */
	struct prefix ip4, ip6; /* family 0: the network's next one; the length does not count */
	bool has_mac;
	uint8_t mac[LINK_MAC_LEN]; /* of one device, not of a group */
	/* host_port 0: a free one of 32768 to 60999 is chosen. */
	const struct filter_publish *publish;
	size_t n_publish;
	uint64_t rate_to_pod, rate_from_pod; /* bits per second; 0: no limit */
	bool of_machine;                     /* as attachment.of_machine */

	/* The arguments of plugins; each may be NULL but the id. */
	const char *id, *pod, *pod_namespace, *uid;
	char *const *servers, *const *search, *const *options;
};

#endif
