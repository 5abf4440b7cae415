/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_SVID_H
#define NACRE_DAEMON_SVID_H

#include "base/log/error.h"

/* Identities of workloads: the directory of the socket that containers have mounted, and who
 * answers there. */

struct daemon;

/* daemon.identity_fd, whose directory is made where it is missing; -1 stays where this kernel
 * cannot say who connects. 0 or a negative errno. */
int svid_open_dir(struct daemon *d, struct error *err);
/* Listens; a failure is logged. */
void svid_begin(struct daemon *d);

#endif
