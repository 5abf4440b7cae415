/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STEPS_ROOT_H
#define NACRE_ISOLATE_STEPS_ROOT_H

#include "isolate/steps/step.h"

/* The steps that make the file system tree; each says in steps_root.c what it should and must not
 * do. */
int isolate_step_place_root(struct isolate_steps *s, struct error *err);
int isolate_step_root(struct isolate_steps *s, struct error *err);
int isolate_step_read_only(struct isolate_steps *s, struct error *err);

#endif
