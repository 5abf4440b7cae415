/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_FAILPOINT_H
#define NACRE_BASE_FAILPOINT_H

#include <stdio.h>

/*
 * Named places where a test makes the program fail. In the product all of this is nothing; in a
 * build with -Dfaults=true it looks into the environment:
 *
 *   NACRE_FAILPOINT="NAME[+][@K]=ACTION[,...]"
 *   ACTION: crash | abort | sleep:MS | error:NUMBER | trace
 *
 * Without '+' it is meant in front of the step, with '+' behind it. With @K only the K-th time that
 * this process comes there counts (from 1), else every time. NAME "*" is all of them, with its '+'.
 *
 * `crash` is SIGKILL to this process (SIGILL where it is pid 1 of a namespace). crash, abort and
 * trace write a line "failpoint NAME[+] of PID" to standard error first, so that a test sees which
 * process came there. FAILPOINT() yields 0, or a negative errno that the caller treats as the
 * failure of the step that it stands in front of; the other two stand where nothing can fail, or
 * the step is over. All names stand in failpoint_names.h; `nacre daemon --list-failpoints` prints
 * them: name, who comes there, sides ("both": '+' too), and what the step is.
 */

#ifdef NACRE_FAULTS
int failpoint_hit(const char *name);
void failpoint_hit_after(const char *name);
#define FAILPOINT(name) failpoint_hit(name)
#define FAILPOINT_BEFORE(name) ((void)failpoint_hit(name))
#define FAILPOINT_AFTER(name) failpoint_hit_after(name)
#else
#define FAILPOINT(name) 0
#define FAILPOINT_BEFORE(name) ((void)0)
#define FAILPOINT_AFTER(name) ((void)0)
#endif

void failpoint_list(FILE *to);

#endif
