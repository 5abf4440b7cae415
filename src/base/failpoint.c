/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failpoint.h"

#include <assert.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/failpoint_names.h"
#include "base/macros.h"

void failpoint_list(FILE *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(failpoint_names); i++)
		(void)fprintf(to, "%-20s %s\n", failpoint_names[i].name, failpoint_names[i].about);
}

static bool failpoint_known(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(failpoint_names); i++)
		if (strcmp(failpoint_names[i].name, name) == 0)
			return true;
	return false;
}

static int failpoint_act(const char *action)
{
	if (strncmp(action, "crash", 5) == 0) {
		(void)raise(SIGKILL);
		/* Pid 1 does not hear signals of its own namespace; what the processor raises it
		 * does. */
		__builtin_trap();
	}
	if (strncmp(action, "abort", 5) == 0)
		abort();
	if (strncmp(action, "error:", 6) == 0)
		return -(int)strtol(action + 6, NULL, 10);
	if (strncmp(action, "sleep:", 6) == 0) {
		long ms = strtol(action + 6, NULL, 10);
		struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

		(void)nanosleep(&ts, NULL);
	}
	return 0;
}

int failpoint_hit(const char *name)
{
	const char *at = getenv("NACRE_FAILPOINT");
	size_t n = strlen(name);

	assert(failpoint_known(name));
	while (at && *at) {
		if (strncmp(at, name, n) == 0 && at[n] == '=')
			return failpoint_act(at + n + 1);
		at = strchr(at, ',');
		if (at)
			at++;
	}
	return 0;
}
