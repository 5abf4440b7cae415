/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_SVID_DESCRIPTORS_H
#define NACRE_SVID_DESCRIPTORS_H

#include <stddef.h>
#include <stdint.h>

/* The descriptors of workload.proto as it is written, for server reflection. */
extern const uint8_t workload_descriptors[];
extern const size_t workload_descriptors_len;

#endif
