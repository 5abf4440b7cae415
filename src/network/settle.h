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
/* Settles once the present run has ended; several calls are one. A failure is logged and tried
 * again. */
void networks_settle(struct networks *all);
/* The same once the loop turns: an attachment that is adopted until then from an earlier life of
 * the daemon keeps its state. */
void networks_settle_soon(struct networks *all);
/* At the end of a daemon, without threads: where nobody is on a network, the host becomes what it
 * was.
 */
void networks_leave(struct networks *all);
/* Watches for changes by other programs from now on; once. A watch that cannot be had is logged. */
void networks_watch(struct networks *all);

#endif
