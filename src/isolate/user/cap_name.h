/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_CAP_NAME_H
#define NACRE_ISOLATE_CAP_NAME_H

#include <stdint.h>

/*
 * Capabilities by name: "CAP_NET_RAW", "NET_RAW", in any case (capabilities(7)).
 */

/* The number; -EINVAL for what is none. */
int cap_number(const char *name);
/* "NET_RAW"; NULL for a number that has no name here. */
const char *cap_name(unsigned number);

/* The fourteen that a container has with Docker, podman and Kubernetes. A bit for each number. */
extern const uint64_t cap_baseline;

#endif
