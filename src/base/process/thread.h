/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_THREAD_H
#define NACRE_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

#include "base/time/clock.h"

/*
 * Starts a thread with every signal blocked, so that signals stay the loop's, and with a stack for
 * frames of ours, the largest of which has 16 KiB: only what is touched costs memory. To be joined.
 * 0 or a negative errno.
 */
int thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg);

/* The argument of sched_getattr() and sched_setattr(), without the clamps of utilisation. libc has
 * no type for it. */
struct thread_sched {
	uint32_t size; /* of this */
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};
_Static_assert(sizeof(struct thread_sched) == 48, "SCHED_ATTR_SIZE_VER0 of the kernel");

/* The slice that thread_be_prompt() asks for: the least that the kernel gives (sched(7),
 * sched_runtime). */
#define THREAD_PROMPT_SLICE (100 * NSEC_PER_USEC)

/*
 * For a thread that does little each time, and others wait for it: from now on the kernel gives it
 * short turns, and lets it run before a program that is in the middle of a long one (since 6.12;
 * before, nothing changes). Its share of the processor stays the same, and so does all that it
 * starts. A thread that somebody has given another policy is left alone. 0 or a negative errno.
 */
int thread_be_prompt(void);

/* The opposite, for one that makes what nobody waits for: it gets a tenth of the processor beside
 * others that want it, and never runs before them. What it starts is so too. 0 or a negative errno.
 */
int thread_be_patient(void);

#endif
