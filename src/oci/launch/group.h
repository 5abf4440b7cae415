/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_GROUP_H
#define NACRE_OCI_GROUP_H

#include <stdbool.h>

#include "base/log/error.h"
#include "oci/launch/container.h"

/*
 * Makes the cgroup that config.json wants, with its limits, and opens it. Its path is written down
 * before it is there. Where this fails group_remove() takes away what has come so far.
 * ERROR_PRECONDITION where processes are in it already.
 */
int group_make(struct container *c, bool systemd, struct error *err);

/* Its rules for devices, without which no program may run in it. */
int group_confine(struct container *c, int group_fd, struct error *err);

/* Ends all processes in the container's cgroup and removes it. */
int group_remove(struct container *c, struct error *err);

#endif
