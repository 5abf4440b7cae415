/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_GIVE_H
#define NACRE_ISOLATE_GIVE_H

#include "base/error.h"

/* How a spawner gives its child one descriptor while the steps run; private to this area. Nothing
 * allocates. */

/* The two ends of it. */
int give_open(int *ret_spawner_fd, int *ret_child_fd, struct error *err);
/* A copy of fd, at once. -EPIPE where the child is gone. */
int give_send(int spawner_fd, int fd);
/* The descriptor, closed by an exec; waits for it. -EPIPE where it cannot come any more. */
int give_receive(int child_fd);

#endif
