/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault/failpoint.h"

#include <assert.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fault/failpoint_names.h"
#include "base/macros.h"
#include "base/text/str.h"

/* How often this process came to each, in front of the step and behind it. */
static atomic_uint failpoint_seen[ARRAY_SIZE(failpoint_names)][2];

/* By the raw call: also between clone and exec, and whatever sysio is told to fail. */
static void failpoint_say(const char *name, bool after)
{
	char line[80];
	int n = str_printf(line, sizeof(line), "failpoint %s%s of %d\n", name, after ? "+" : "",
			   (int)getpid());

	if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

static void failpoint_die(int sig)
{
	if (sig == SIGABRT)
		abort();
	(void)raise(SIGKILL);
	/* Pid 1 does not hear signals of its own namespace; what the processor raises it does. */
	__builtin_trap();
}

static int failpoint_act(const char *action, const char *name, bool after)
{
	bool crash = str_has_prefix(action, "crash"), fatal = str_has_prefix(action, "abort");

	if (crash || fatal || str_has_prefix(action, "trace"))
		failpoint_say(name, after);
	if (crash || fatal)
		failpoint_die(crash ? SIGKILL : SIGABRT);
	if (str_has_prefix(action, "error:"))
		return -(int)strtol(action + 6, NULL, 10);
	if (str_has_prefix(action, "sleep:")) {
		long ms = strtol(action + 6, NULL, 10);
		struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

		(void)nanosleep(&ts, NULL);
	}
	return 0;
}

/* The action of an entry of the plan that means this place, this time; else NULL. */
static const char *failpoint_match(const char *entry, const char *name, bool after, unsigned seen)
{
	size_t n = strlen(name);
	char *end;

	if (*entry == '*')
		entry++;
	else if (strncmp(entry, name, n) == 0)
		entry += n;
	else
		return NULL;
	if ((*entry == '+') != after)
		return NULL;
	entry += after;
	if (*entry == '@') {
		if (strtoul(entry + 1, &end, 10) != seen)
			return NULL;
		entry = end;
	}
	return *entry == '=' ? entry + 1 : NULL;
}

static size_t failpoint_index(const char *name)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(failpoint_names) && !str_eq(failpoint_names[i].name, name))
		i++;
	assert(i < ARRAY_SIZE(failpoint_names));
	return i;
}

static int failpoint_at(const char *name, bool after)
{
	unsigned seen = atomic_fetch_add(&failpoint_seen[failpoint_index(name)][after], 1) + 1;
	const char *at = getenv("NACRE_FAILPOINT");

	while (at && *at) {
		const char *action = failpoint_match(at, name, after, seen);

		if (action)
			return failpoint_act(action, name, after);
		at = strchr(at, ',');
		if (at)
			at++;
	}
	return 0;
}

int failpoint_hit(const char *name)
{
	return failpoint_at(name, false);
}

void failpoint_hit_after(const char *name)
{
	assert(failpoint_names[failpoint_index(name)].both);
	(void)failpoint_at(name, true);
}
