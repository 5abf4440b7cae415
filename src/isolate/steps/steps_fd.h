/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STEPS_FD_H
#define NACRE_ISOLATE_STEPS_FD_H

#include "isolate/steps/step.h"

/* Steps on descriptors; each says in steps_fd.c what it should and must not do. */
int isolate_step_close(struct isolate_steps *s, struct error *err);
int isolate_step_stdio_null(struct isolate_steps *s, struct error *err);
int isolate_step_stdio_owner(struct isolate_steps *s, struct error *err);
int isolate_step_place(struct isolate_steps *s, struct error *err);

#endif
