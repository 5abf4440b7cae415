/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macros.h"
#include "cli/cmd/handlers.h"
#include "cli/table/command_groups.h"

#define OPTION_CONTAINER                                                                           \
	{                                                                                          \
		"container", 'c', "NAME", "the container, where there are several"                 \
	}

static const struct arg_option options_wait[] = {
	OPTION_CONTAINER,
	{ "condition", 0, "WORD", "stopped (unless given), running, healthy or unhealthy" },
	OPTION_END,
};

static const struct arg_option options_healthcheck[] = {
	OPTION_CONTAINER,
	OPTION_END,
};

static const struct command health_commands[] = {
	{
		.name = "wait",
		.operands = "TARGET",
		.summary = "wait until a workload has ended, print its exit code",
		.help = "128 + n where signal n ended it. The exit status of `nacre wait` itself "
			"is 0.\n"
			"With another --condition nothing is printed; 125: it ended before that.\n"
			"\n"
			"    nacre wait job\n"
			"    nacre wait --condition healthy web",
		.options = options_wait,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_wait,
	},
	{
		.name = "healthcheck run",
		.operands = "TARGET",
		.summary = "probe the health of a container once, now",
		.help = "Its probe is that of `nacre run --health-cmd` (or -http, -tcp, -grpc), or "
			"of its image's\n"
			"HEALTHCHECK; what it says counts as any other probe does. The exit status "
			"is 0 where\n"
			"it succeeded, 1 where it failed, and 125 where none could be made: the "
			"container has\n"
			"none, or does not run. What the probe wrote comes out here. `nacre ps` "
			"shows the\n"
			"health of all, `nacre inspect` the last five results, and `nacre wait "
			"--condition\n"
			"healthy` waits.\n"
			"\n"
			"    nacre healthcheck run web && echo fine\n"
			"    nacre healthcheck run shop --container db",
		.options = options_healthcheck,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_healthcheck_run,
	},
};

const struct command_group command_group_health = { health_commands, ARRAY_SIZE(health_commands) };
