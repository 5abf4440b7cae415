/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_CONVERT_H
#define NACRE_RUNTIME_CONVERT_H

#include "api/nacre.pb-c.h"
#include "api/runtime.pb-c.h"
#include "base/memory/arena.h"
#include "image/image.h"
#include "pod/workload/model.h"

/*
 * The only place where a message of the API meets an object of the domain. The results live in the
 * arena (strings may point into the object: the message is serialised before the loop turns). NULL
 * without memory.
 */

Nacre__V1__Workload *convert_workload(struct arena *a, struct workload *w);
/* One of its containers, likewise. */
Nacre__V1__Container *convert_one(struct arena *a, struct pod_container *c);
/* A set of fields of Workload by their numbers; ERROR_INVALID names the entry: "fields[2]". No
 * names are all of them. */
int convert_fields(char *const *names, size_t n, uint64_t *ret, struct error *err);
#define CONVERT_ALL UINT64_MAX
/* Either of the two, with only these fields filled in. */
struct target;
Nacre__V1__Workload *convert_target(struct arena *a, const struct target *t, uint64_t fields);
/* A plain instance: one that was not spawned for a pod. */
Nacre__V1__Workload *convert_instance(struct arena *a, struct instance *i);
Nacre__V1__Image *convert_image(struct arena *a, const struct image *image);
Nacre__V1__Verdict *convert_verdict(struct arena *a, const struct image_verdict *v);
/* n_containers statuses of the runtime core. */
Aurae__Runtime__V0__ContainerStatus **convert_statuses(struct arena *a, struct workload *w);
/* NULL: 0 to 0. */
struct terminal_size convert_terminal(const Aurae__Runtime__V0__TerminalSize *size);

#endif
