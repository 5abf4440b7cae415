/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_POLICY_H
#define NACRE_NET_POLICY_H

#include <stddef.h>

#include "base/log/error.h"

/*
 * Chains of others in nf_tables (those of iptables are among them) that drop what is forwarded and
 * that none of their rules accepts. A packet of a pod that our table (net/filter/filter.h) lets
 * pass must pass these too.
 */

#define POLICY_NAME_SIZE 257

struct policy_chain {
	const char *family; /* "ip", "ip6" or "inet" */
	char table[POLICY_NAME_SIZE], chain[POLICY_NAME_SIZE];
};

/* In the network namespace of the calling thread; the caller frees *ret. Without nf_tables there
 * are none: 0. */
int policy_list(struct policy_chain **ret, size_t *ret_n, struct error *err) _must_check_;

#endif
