/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_SETTLE_H
#define NACRE_NETWORK_SETTLE_H

/*
 * Brings what the kernel has to what the networks say: the packet filter's table, forwarding,
 * routes for unused addresses, and ports that nobody has any more. Done when a daemon begins, after
 * a network came or went, and when somebody else changed something of it (a flushed ruleset, a
 * sysctl, a default route). Work that needs the kernel as it is goes through networks_submit()
 * (network/state.h), which holds it back meanwhile.
 *
 * Private to this area.
 */

struct error;
struct networks;

void networks_init_settle(struct networks *all);
void networks_done_settle(struct networks *all);
/* Reads what an earlier daemon has turned on at this host. */
int networks_load_forward(struct networks *all, struct error *err);
/* When what runs now has ended; several are one. What fails is logged and tried again. */
void networks_settle(struct networks *all);
/* The same once the loop turns: who is taken up from an earlier life of the daemon until then keeps
 * what it has. */
void networks_settle_soon(struct networks *all);
/* At the end of a daemon, without threads: where nobody is on a network, the host becomes what it
 * was.
 */
void networks_leave(struct networks *all);
/* Watches what others do from now on; once. What cannot be watched is logged. */
void networks_watch(struct networks *all);

#endif
