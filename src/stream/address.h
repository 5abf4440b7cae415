/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_ADDRESS_H
#define NACRE_STREAM_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>

#define STREAM_HOST_SIZE (INET6_ADDRSTRLEN + 2)

/* A loopback address with a port, "127.0.0.1:0", "[::1]:10010", and what is before the port: 0 or
 * -EINVAL. Pure. */
int stream_address_read(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len,
			char host[STREAM_HOST_SIZE]);

#endif
