/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STRICT_H
#define NACRE_ISOLATE_STRICT_H

#include "base/log/error.h"

/*
 * For a process that parses what a stranger wrote.
 *
 * Should: close every descriptor but 0, 1 and 2, be looked into by nobody, and from then on be able
 * to read, write and end, and nothing else: any other call kills it. Must not: be entered by a
 * process with threads, or before it has all the memory that it needs.
 */
int strict_enter(struct error *err);
/* The end of such a process, without what libc does at the end. */
_Noreturn void strict_exit(int status);

#endif
