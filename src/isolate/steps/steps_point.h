/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STEPS_POINT_H
#define NACRE_ISOLATE_STEPS_POINT_H

#include "isolate/steps/step.h"

/* Where the caller of the spawner gets a word in the child. */
int isolate_step_namespaces(struct isolate_steps *s, struct error *err);
int isolate_step_ready(struct isolate_steps *s, struct error *err);
/* Not a step by itself: the tree calls it when all is mounted. */
int isolate_steps_mounted(struct isolate_steps *s, struct error *err);

#endif
