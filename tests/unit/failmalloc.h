/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_TESTS_FAILMALLOC_H
#define NACRE_TESTS_FAILMALLOC_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A unit test program with NACRE_FAILMALLOC=T:N in its environment runs its T-th test alone (from
 * 1), with the N-th allocation of that test failing, whoever asks: the program, a child that it
 * forked, or a library (not libev, libcrypto and jansson, see failmalloc.c). T:stacks fails none,
 * and tells of each different call stack that asks for memory the first N. tests/lib/failmalloc.py
 * goes through those that are not a test's own.
 *
 * A check that fails after that is no wonder. It ends the program with FAILMALLOC_UNMET, or with
 * FAILMALLOC_LEAKED where something has been lost by then: what the test itself still holds is
 * reachable at that point. The same goes for abort() out of a test's fixture; a failed assert() is
 * a failure as ever.
 *
 * Part of the builds with sanitizers, and of those that count branches; elsewhere the functions are
 * not there (weak).
 */

#define FAILMALLOC_UNMET 77
#define FAILMALLOC_LEAKED 78

/* Reads the environment. Processes that are started later know nothing of it. */
void failmalloc_begin(void) __attribute__((weak));
/* Whether this is not the test to be run; the one that is begins to count here. */
bool failmalloc_leaves_out(size_t number) __attribute__((weak));
void failmalloc_check_failed(void) __attribute__((weak));
/* Whether it was that one's turn already, in this process or another of its family. */
bool failmalloc_has_failed(void) __attribute__((weak));
/*
 * "# allocations: N", and for each stack a "# stack N WHERE WHICH": the address in the program, and
 * a number that is the same for the same stack in another run, as far as addresses are the same.
 */
void failmalloc_end(void) __attribute__((weak));

#endif
