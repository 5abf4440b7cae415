/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STEPS_INSIDE_H
#define NACRE_ISOLATE_STEPS_INSIDE_H

#include "isolate/steps/step.h"

/* Steps into the user namespace of a container (plan.user_fd); each says in steps_inside.c what it
 * should and must not do. */
int isolate_step_file_ids(struct isolate_steps *s, struct error *err);
int isolate_step_enter_user(struct isolate_steps *s, struct error *err);

#endif
