/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>
#include <stddef.h>

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

UNIT_MAIN({ "takes no signals", takes_no_signals })
