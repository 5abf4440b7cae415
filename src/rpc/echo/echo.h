/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_ECHO_H
#define NACRE_RPC_ECHO_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The service of rpc_test.proto, for tests. The userdata of the service is a struct echo. */

struct loop;

struct echo {
	struct loop *loop;
	size_t n_cancelled;
	size_t n_sent; /* answers of Count and Talk that were queued */
};

extern const struct rpc_service echo_service;

/* The FileDescriptorSet of rpc_test.proto. */
extern const unsigned char rpc_test_descriptors[];
extern const unsigned long rpc_test_descriptors_len;

/* A socket to listen on under a name that the kernel makes up, which leaves no file behind. */
struct echo_address {
	struct sockaddr_un address;
	socklen_t len;
};
int echo_listen(struct echo_address *ret);
int echo_connect(const struct echo_address *to);

#endif
