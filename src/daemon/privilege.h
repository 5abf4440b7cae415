/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_PRIVILEGE_H
#define NACRE_DAEMON_PRIVILEGE_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether a process has a smaller bounding set than this one, or filters that this one has not: so
 * have all that it starts. false where that cannot be told. */
bool privilege_is_less(pid_t pid);

/* The text that NodeService.Info has for a node whose keeper is such a process. */
extern const char *const privilege_lacks[1];

/* Each pod takes a handful of descriptors: as many as the host allows. */
void privilege_raise_limits(void);

#endif
