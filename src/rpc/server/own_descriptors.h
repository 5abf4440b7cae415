/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_OWN_DESCRIPTORS_H
#define NACRE_RPC_OWN_DESCRIPTORS_H

/* The serialised FileDescriptorSet of src/rpc/proto, made by the build. */
extern const unsigned char own_descriptors[];
extern const unsigned long own_descriptors_len;

#endif
