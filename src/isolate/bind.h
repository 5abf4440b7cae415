/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_BIND_H
#define NACRE_ISOLATE_BIND_H

#include <stdbool.h>

#include "base/error.h"

/*
 * What of this process's own tree goes into a container: a detached copy of the mounts, with all
 * that is mounted below. Private, so that neither side sees what the other one mounts later;
 * set-user-ID bits and device nodes mean nothing there. source_fd: the directory or file (O_PATH is
 * enough). The descriptor of the copy.
 */
int isolate_bind(int source_fd, bool read_only, bool no_exec, struct error *err);
/* Makes such a copy read-only itself, and leaves what is mounted below it as it is. */
int isolate_bind_read_only(int fd, struct error *err);

#endif
