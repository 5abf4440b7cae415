/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_DESTROY_H
#define NACRE_OCI_DESTROY_H

#include "base/error.h"
#include "oci/container.h"

/*
 * Undoes what `create` did: kills what is left of the container's processes, removes its cgroup and
 * its directory, and runs the poststop hooks, whose failures are warnings. May be killed at any
 * point and called again.
 */
int container_destroy(struct container *c, struct error *err);

#endif
