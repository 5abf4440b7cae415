/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_DESTROY_H
#define NACRE_OCI_DESTROY_H

#include <stdbool.h>

#include "base/log/error.h"
#include "oci/launch/container.h"

struct launched;

/*
 * Undoes what `create` did: kills what is left of the container's processes, removes its cgroup and
 * its directory, and runs the poststop hooks, whose failures are warnings. May be killed at any
 * point and called again.
 */
int container_destroy(struct container *c, struct error *err);

/*
 * Lets go of the lock and stays with the container's program, a child of this process, until it has
 * ended (terminal.h), and then destroys the container unless it is to be kept. Its exit status. All
 * signals must be blocked.
 */
int container_stay(struct container *c, struct launched *l, bool keep, struct error *err);

#endif
