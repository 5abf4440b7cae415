/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/thread.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unit.h"

static void *look(void *arg)
{
	CHECK_INT(pthread_sigmask(SIG_SETMASK, NULL, arg), 0);
	return arg;
}

/* Also where the one that starts it takes signals. */
static void takes_no_signals(void)
{
	sigset_t none, seen;
	pthread_t thread;
	void *back = NULL;

	(void)sigemptyset(&none);
	(void)sigemptyset(&seen);
	CHECK_INT(pthread_sigmask(SIG_SETMASK, &none, NULL), 0);
	CHECK_INT(thread_start(&thread, look, &seen), 0);
	CHECK_INT(pthread_join(thread, &back), 0);
	CHECK(back == &seen);
	CHECK(sigismember(&seen, SIGTERM) == 1 && sigismember(&seen, SIGCHLD) == 1);
	CHECK_INT(pthread_sigmask(SIG_SETMASK, NULL, &seen), 0);
	CHECK_INT(sigismember(&seen, SIGTERM), 0);
}

static struct thread_sched sched_now(void)
{
	struct thread_sched now = { .size = sizeof(now) };

	CHECK_INT(syscall(SYS_sched_getattr, 0, &now, sizeof(now), 0), 0);
	return now;
}

static void *look_at_sched(void *arg)
{
	*(struct thread_sched *)arg = sched_now();
	return arg;
}

/* The turns are short, and of the length that they had for what this thread starts. A kernel before
 * 6.12 tells no length at all. */
static void is_prompt(void)
{
	struct thread_sched before = sched_now(), now, child = { .size = 0 };
	pthread_t thread;

	CHECK_INT(thread_be_prompt(), 0);
	now = sched_now();
	CHECK_INT(now.policy, before.policy);
	CHECK_INT(now.nice, before.nice);
	CHECK(before.runtime == 0 || now.runtime == THREAD_PROMPT_SLICE);
	CHECK_INT(thread_start(&thread, look_at_sched, &child), 0);
	CHECK_INT(pthread_join(thread, NULL), 0);
	CHECK_INT(child.policy, before.policy);
	CHECK(child.runtime == before.runtime);
}

/* What somebody has chosen for it stays. */
static void keeps_another_policy(void)
{
	struct sched_param none = { .sched_priority = 0 };
	struct thread_sched now;

	CHECK_INT(sched_setscheduler(0, SCHED_BATCH, &none), 0);
	CHECK_INT(thread_be_prompt(), 0);
	now = sched_now();
	CHECK_INT(now.policy, SCHED_BATCH);
	CHECK(now.flags == 0);
}

static void *look_patiently(void *arg)
{
	int *nice = arg;

	CHECK_INT(thread_be_patient(), 0);
	*nice = getpriority(PRIO_PROCESS, 0);
	return arg;
}

/* The thread alone. */
static void is_patient(void)
{
	int before = getpriority(PRIO_PROCESS, 0), nice = 0;
	pthread_t thread;

	CHECK_INT(thread_start(&thread, look_patiently, &nice), 0);
	CHECK_INT(pthread_join(thread, NULL), 0);
	CHECK(nice >= 10);
	CHECK_INT(getpriority(PRIO_PROCESS, 0), before);
}

UNIT_MAIN({ "takes no signals", takes_no_signals }, { "is prompt", is_prompt },
	  { "is patient", is_patient }, { "keeps another policy", keeps_another_policy })
