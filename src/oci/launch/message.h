/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_MESSAGE_H
#define NACRE_OCI_MESSAGE_H

#include <stddef.h>

#include "base/log/error.h"

/*
 * Bytes with descriptors over unix sockets: between the first process of a container and the
 * commands that make and start it, and to the sockets that callers name.
 */

#define MESSAGE_FDS_MAX 4

/* Sends all of it, the descriptors with the first byte. 0 or a negative errno. */
int message_send(int socket_fd, const void *data, size_t len, const int *fds, size_t n_fds);

/*
 * Receives one byte with at most MESSAGE_FDS_MAX descriptors, O_CLOEXEC: 1 with *ret_byte, 0 at the
 * end of the stream, or a negative errno. ret_fds is filled up with -1.
 */
int message_receive(int socket_fd, char *ret_byte, int ret_fds[MESSAGE_FDS_MAX]);
void message_close(int fds[MESSAGE_FDS_MAX]);

/* A socket of type SOCK_STREAM; names that are too long for sockaddr_un work too. dir_fd: AT_FDCWD,
 * or of the directory that `path` is a name in. */
int message_connect(int dir_fd, const char *path, struct error *err);
int message_listen(int dir_fd, const char *name, struct error *err);

#endif
