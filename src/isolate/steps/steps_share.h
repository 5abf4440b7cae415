/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STEPS_SHARE_H
#define NACRE_ISOLATE_STEPS_SHARE_H

#include "isolate/steps/step.h"

/* Steps that say how much of the machine the program gets, and how; each says in steps_share.c what
 * it should and must not do. */
int isolate_step_rlimits_raise(struct isolate_steps *s, struct error *err);
int isolate_step_rlimits(struct isolate_steps *s, struct error *err);
int isolate_step_share(struct isolate_steps *s, struct error *err);
int isolate_step_personality(struct isolate_steps *s, struct error *err);

#endif
