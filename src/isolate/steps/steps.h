/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STEPS_H
#define NACRE_ISOLATE_STEPS_H

#include "base/macros.h"
#include "isolate/steps/step.h"

/* Runs the table of steps in a child that was just cloned, with all signals blocked. The last step
 * is the program. Ends in _exit(), with the report written, where one has failed. */
_noreturn_ void isolate_steps_run(struct isolate_steps *s);

#endif
