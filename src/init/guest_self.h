/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_GUEST_SELF_H
#define NACRE_INIT_GUEST_SELF_H

#include <stdbool.h>

#include "base/log/error.h"
#include "wire/message/bootmsg.h"

struct peer_link;

/*
 * The identity that sets this machine apart from every other one that began with the same memory (a
 * template is restored many times): to be set before anything secret is made. First random bytes,
 * then clock, host name and machine id.
 */
int guest_self_assume(const struct bootmsg_boot *boot, struct error *err);

/* Brings up lo, and the interface of the node's network, with its address; with the way out, too,
 * where there is no other one, and with that name. Returns the index of that interface. */
int guest_net_up(const struct bootmsg_boot *boot, bool is_way, const char *name, struct error *err);

/* The same for the second device, which is called "eth1" then. */
int guest_net_nic(const struct bootmsg_nic *nic, struct error *err);

/* The device of a pod's network, with all that it has there. */
int guest_net_link(const struct bootmsg_link *link, struct error *err);
/* The same of one that comes or goes later, in the keeper of the guest: see peer_ops.put_link(). */
int guest_net_put(const struct peer_link *link, struct error *err);

/* A TCP socket that listens on the address of the guest, for the node alone: it hears what comes
 * through that interface from the node's address, and no process of the guest
 * (net/port/peer_port.h). */
int guest_net_listen(const struct bootmsg_boot *boot, int device, uint16_t port, struct error *err);

#endif
