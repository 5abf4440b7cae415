/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_GIVE_H
#define NACRE_ISOLATE_GIVE_H

#include <stddef.h>
#include <sys/uio.h>

#include "base/log/error.h"

/* How a spawner gives its child descriptors, and what belongs to them, while the steps run; private
 * to this area. Nothing allocates. */
#define GIVE_FDS_MAX 4

struct give {
	int fds[GIVE_FDS_MAX];
	size_t n_fds; /* at least 1 */
};

/* The two ends of it. */
int give_open(int *ret_spawner_fd, int *ret_child_fd, struct error *err);
/* Copies of the descriptors with the bytes of data (one at least), at once. -EPIPE where the child
 * is gone. */
int give_send(int spawner_fd, const struct give *give, struct iovec *data, size_t n_data);
/* Waits for the descriptors, which an exec closes, and the data. The number of bytes; -EPIPE where
 * they cannot come any more, -EBADMSG where there are no descriptors or too many, or more bytes
 * than size. */
int give_receive(int child_fd, struct give *ret, void *data, size_t size);

#endif
