/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_CONTAINER_RESET_H
#define NACRE_POD_CONTAINER_RESET_H

#include "pod/workload/model.h"

/* A container that has ended as one that is to be started; private to this area. */

/* Moves descriptors, mounts, program and settings of a new start from `from`, which was made for
 * it, to `to`. `from` gets those of the previous start, and its free releases them. */
void container_reset_move(struct pod_container *to, struct pod_container *from);
/* Resets the state to that of a container that was never started. */
void container_reset(struct pod_container *c);

#endif
