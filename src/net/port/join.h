/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_JOIN_H
#define NACRE_NET_JOIN_H

#include <stdint.h>

#include "base/log/error.h"
#include "net/netlink/netlink.h"

/*
 * Two links of one namespace made into one wire: each frame that arrives on one leaves by the
 * other as it is, before the namespace's own stack sees it. Needs CAP_NET_ADMIN there and the
 * kernel's sch_ingress, cls_u32 and act_mirred: -ENOENT names the one that is missing. It ends with
 * either link, and takes the place of an earlier one; what fails may leave one direction.
 */
int join_links(struct netlink *nl, uint32_t a, uint32_t b, struct error *err) _must_check_;

#endif
