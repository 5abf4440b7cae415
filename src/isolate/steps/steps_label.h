/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STEPS_LABEL_H
#define NACRE_ISOLATE_STEPS_LABEL_H

#include "isolate/steps/step.h"

/* Each says in steps_label.c what it should and must not do. */
int isolate_step_modules(struct isolate_steps *s, struct error *err);
int isolate_step_labels(struct isolate_steps *s, struct error *err);

#endif
