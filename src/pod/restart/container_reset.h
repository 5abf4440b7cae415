/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_CONTAINER_RESET_H
#define NACRE_POD_CONTAINER_RESET_H

#include "pod/workload/model.h"

/* A container that has ended as one that is to be started; private to this area. */

/* What is there until a start goes from one that was made into one that is known; what that still
 * has of an earlier one comes back. */
void container_reset_move(struct pod_container *to, struct pod_container *from);
/* As one is that was never started. */
void container_reset(struct pod_container *c);

#endif
