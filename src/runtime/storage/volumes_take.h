/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_VOLUMES_TAKE_H
#define NACRE_RUNTIME_VOLUMES_TAKE_H

struct volumes_opened;
struct workload_spec;

/* Gives the mounts and logs of a specification of the same request their descriptors, and its
 * containers their filters and secret variables, which live as long as go_on() runs
 * (runtime/storage/volumes_call.h). */
void volumes_call_take(struct workload_spec *spec, const struct volumes_opened *opened);

#endif
