/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"

#define THREAD_SCHED_RESET_ON_FORK 1
#define THREAD_PATIENT_NICE 10
#define THREAD_STACK ((size_t)128 * 1024)

int thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg)
{
	pthread_attr_t attr;
	sigset_t all;
	long least = sysconf(_SC_THREAD_STACK_MIN);
	size_t stack = MAX(THREAD_STACK, least > 0 ? (size_t)least * 2 : 0);
	int r;

	(void)sigfillset(&all);
	r = pthread_attr_init(&attr);
	if (r != 0)
		return -r;
	r = pthread_attr_setstacksize(&attr, stack);
	if (r == 0)
		r = pthread_attr_setsigmask_np(&attr, &all);
	if (r == 0)
		r = pthread_create(ret, &attr, fn, arg);
	(void)pthread_attr_destroy(&attr);
	return -r;
}

int thread_be_prompt(void)
{
	struct thread_sched attr = { .size = sizeof(attr) };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0)
		return -errno;
	if (attr.policy != SCHED_OTHER)
		return 0;
	attr.flags |= THREAD_SCHED_RESET_ON_FORK;
	attr.runtime = THREAD_PROMPT_SLICE;
	return syscall(SYS_sched_setattr, 0, &attr, 0) < 0 ? -errno : 0;
}

int thread_be_patient(void)
{
	/* Of the calling thread alone, as Linux has it. */
	int nice = getpriority(PRIO_PROCESS, 0);

	if (nice >= THREAD_PATIENT_NICE)
		return 0;
	return setpriority(PRIO_PROCESS, 0, THREAD_PATIENT_NICE) < 0 ? -errno : 0;
}
