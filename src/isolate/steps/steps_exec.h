/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STEPS_EXEC_H
#define NACRE_ISOLATE_STEPS_EXEC_H

#include "isolate/steps/step.h"

/* The last steps; each says in steps_exec.c what it should and must not do. */
/* Fills plan.home. */
int isolate_step_home(struct isolate_steps *s, struct error *err);
int isolate_step_cwd(struct isolate_steps *s, struct error *err);
int isolate_step_exec(struct isolate_steps *s, struct error *err);

#endif
