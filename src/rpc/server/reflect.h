/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_REFLECT_H
#define NACRE_RPC_REFLECT_H

#include <stddef.h>
#include <stdint.h>

/*
 * grpc.reflection.v1.ServerReflection, and v1alpha, whose messages are the same: a value in the
 * server, the userdata of the input.
 */

#define REFLECT_SERVICE "grpc.reflection.v1.ServerReflection"
#define REFLECT_SERVICE_ALPHA "grpc.reflection.v1alpha.ServerReflection"

struct reflect {
	/* FileDescriptorSets: the user's, and that of rpc's own services. */
	struct reflect_set {
		const uint8_t *data;
		size_t len;
	} sets[2];
	/* The i-th service by its full name, NULL behind the last. */
	const char *(*service)(struct reflect *r, size_t i);
};

extern const struct call_input reflect_info;

#endif
