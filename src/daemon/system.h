/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_SYSTEM_H
#define NACRE_DAEMON_SYSTEM_H

#include <stdbool.h>

#include "daemon/usage.h"

/* Whether this process is pid 1, and so is not the daemon but its parent (init/system_main.h). */
bool system_is_asked(void);
/* The same arguments as the daemon's. Its exit status, where it ends. */
int system_run(const struct daemon_options *options, int argc, char **argv);

#endif
