/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STEPS_USER_H
#define NACRE_ISOLATE_STEPS_USER_H

#include "isolate/steps/step.h"

/* Steps into user and time namespaces, and what is set in new namespaces through /proc; each says
 * in steps_user.c what it should and must not do. */
int isolate_step_ids(struct isolate_steps *s, struct error *err);
int isolate_step_time(struct isolate_steps *s, struct error *err);
int isolate_step_inside(struct isolate_steps *s, struct error *err);
int isolate_step_sysctls(struct isolate_steps *s, struct error *err);

#endif
