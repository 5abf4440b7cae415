/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_NOTIFY_H
#define NACRE_DAEMON_NOTIFY_H

/* Tells the service manager a state ("READY=1") through the datagram socket in NOTIFY_SOCKET
 * (sd_notify(3)); does nothing where there is none. A failure is logged. -EAGAIN: there was no room
 * for it, to be told again in a while; else 0. */
int notify_send(const char *state);

#endif
