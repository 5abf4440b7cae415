/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STEPS_PRIVILEGE_H
#define NACRE_ISOLATE_STEPS_PRIVILEGE_H

#include "isolate/steps/step.h"

/* Steps that drop privilege; each says in steps_privilege.c what it should and must not do. */
int isolate_step_bounding(struct isolate_steps *s, struct error *err);
int isolate_step_seccomp_early(struct isolate_steps *s, struct error *err);
int isolate_step_user(struct isolate_steps *s, struct error *err);
int isolate_step_caps(struct isolate_steps *s, struct error *err);
int isolate_step_no_new_privs(struct isolate_steps *s, struct error *err);
int isolate_step_seccomp(struct isolate_steps *s, struct error *err);

#endif
