/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_FAILPOINT_H
#define NACRE_BASE_FAILPOINT_H

#include <stdio.h>

/*
 * Named places where a test makes the program fail. In the product FAILPOINT() is the constant 0;
 * in a build with -Dfaults=true it looks into the environment:
 *
 *   NACRE_FAILPOINT="NAME=ACTION[,...]"   ACTION: crash | abort | sleep:MS | error:NUMBER
 *
 * `crash` is SIGKILL to this process (SIGILL where it is pid 1 of a namespace). FAILPOINT() yields
 * 0, or a negative errno that the caller treats as the failure of the step that it stands in front
 * of. All names stand in failpoint_names.h; `nacre daemon
 * --list-failpoints` prints them.
 */

#ifdef NACRE_FAULTS
int failpoint_hit(const char *name);
#define FAILPOINT(name) failpoint_hit(name)
#else
#define FAILPOINT(name) 0
#endif

void failpoint_list(FILE *to);

#endif
