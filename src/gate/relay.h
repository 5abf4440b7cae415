/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_RELAY_H
#define NACRE_GATE_RELAY_H

#include <sys/types.h>

#include "base/log/error.h"

/*
 * `nacre-gate relay`: the process between the daemon and a machine with a system of the user's in
 * it. It reads the console and the port of the guest agent; the daemon reads neither, it only
 * passes on what comes from here. It lives as long as its group, so that the end of a console can
 * be had when its machine has ended.
 *
 * console.sock: a client sends one byte, RELAY_REPLAY or RELAY_LIVE; then bytes go both ways. The
 * last RELAY_RING_MAX bytes of output are kept for RELAY_REPLAY; a client that reads more slowly
 * than the machine writes misses older ones. The end of the console is the end of the connection,
 * once all was read.
 *
 * agent.sock: a client is answered by one byte of the table below: the guest was asked to power
 * off, or why not; a refusal is followed by the agent's words. One at a time, others wait.
 */

enum relay_fd {
	RELAY_FD_CONSOLE_SOCK = 3, /* listening, SOCK_STREAM */
	RELAY_FD_AGENT_SOCK,       /* the same */
	RELAY_FD_CONSOLE,          /* connected to the console */
	RELAY_FD_AGENT,            /* connected to the port of the agent */
	RELAY_FD_END
};

int relay_run(uid_t uid, gid_t gid, struct error *err);

#endif
