/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_API_DESCRIPTORS_H
#define NACRE_API_DESCRIPTORS_H

/* The serialised google.protobuf.FileDescriptorSet of our .proto files, for server reflection. */
extern const unsigned char api_descriptors[];
extern const unsigned long api_descriptors_len;

#endif
