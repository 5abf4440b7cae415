/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_PUBLISH_H
#define NACRE_POD_PUBLISH_H

#include "pod/workload/model.h"

struct events;

/* Tells whoever listens about a state: that of the object, or a word such as "removed". */
void publish_workload(struct events *events, const struct workload *w, const char *state);
/* Something that is no state of it, in a sentence: the reason of an event with the state that it
 * has. */
void publish_workload_note(struct events *events, const struct workload *w, const char *note);
void publish_container(struct events *events, const struct pod_container *c, const char *state);
/* "health_status: WORD", as a note of a container. */
void publish_container_health(struct events *events, const struct pod_container *c,
			      const char *word);

#endif
