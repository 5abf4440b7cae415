/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_SECCOMP_AGENT_H
#define NACRE_OCI_SECCOMP_AGENT_H

#include <sys/types.h>

#include "base/log/error.h"
#include "isolate/spawn/spawn.h"
#include "oci/launch/container.h"

/* Sends the listener of a process's filter to linux.seccomp.listenerPath, with the state. */
int seccomp_agent_send(const struct container *c, pid_t pid, int listener_fd, struct error *err);

/* Follows a process until its program is executed, and sends the listener on where one comes out of
 * socket_fd meanwhile. 0, or the error of the process. */
int seccomp_agent_watch(const struct container *c, pid_t pid, int socket_fd,
			struct isolate_child *child, struct error *err);

#endif
