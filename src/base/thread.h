/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_THREAD_H
#define NACRE_BASE_THREAD_H

#include <pthread.h>

/*
 * Starts a thread with every signal blocked, so that signals stay the loop's, and with a stack for
 * frames of ours, the largest of which has 16 KiB: only what is touched costs memory. To be joined.
 * 0 or a negative errno.
 */
int thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg);

#endif
