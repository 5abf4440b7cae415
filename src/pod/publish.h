/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_PUBLISH_H
#define NACRE_POD_PUBLISH_H

#include "pod/model.h"

struct events;

/* Tells whoever listens about a state: that of the object, or a word such as "removed". */
void publish_workload(struct events *events, const struct workload *w, const char *state);
void publish_container(struct events *events, const struct pod_container *c, const char *state);

#endif
