/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_TERMINAL_H
#define NACRE_OCI_TERMINAL_H

#include <sys/types.h>

#include "base/log/error.h"
#include "isolate/spawn/pty.h"
#include "wire/document/oci_config.h"

/* Sends the master to the socket of --console-socket, and forgets it here. */
int terminal_send(struct isolate_pty *pty, const char *socket, struct error *err);
int terminal_set_size(const struct isolate_pty *pty, const struct oci_console_size *size,
		      struct error *err);

/*
 * Stays with a program in the foreground until it has ended: signals that come here go to it, and
 * with a master (>= 0) this terminal is its own, raw (oci/launch/relay.h). When nobody can read
 * standard output any more the master is closed, and -1: the program gets SIGHUP. Its exit status
 * as a shell would say it, or a negative errno. All signals must be blocked.
 */
int terminal_stay(int pidfd, int *master_fd, struct error *err);
/* Blocks all signals, for terminal_stay(). */
void terminal_block_signals(void);

#endif
