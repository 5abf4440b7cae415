/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/command_groups.h"

#include "base/text/str.h"
#include "cli/cmd/handlers.h"

#define OPTION_FORCE                                                                               \
	{                                                                                          \
		"force", 'f', NULL, "do not ask"                                                   \
	}
#define OPTION_FILTER                                                                              \
	{                                                                                          \
		"filter", 0, "KEY=VALUE",                                                          \
			"only what was made before until=TIME (24h: so long ago), or has "         \
			"label=NAME[=VALUE]; may be given again"                                   \
	}

static const struct arg_option options_export[] = {
	{ "file", 'O', "FILE", "write it there, when it is whole, else to standard output" },
	{ "container", 'c', "NAME", "the container, where there are several" },
	OPTION_END,
};

static const struct arg_option options_processes[] = {
	{ "container", 'c', "NAME", "only those of this container" },
	OPTION_END,
};

static const struct arg_option options_prune[] = {
	OPTION_FORCE,
	OPTION_FILTER,
	{ "kind", 'k', "KIND", "only pod, cell or executable" },
	OPTION_END,
};

static const struct arg_option options_system_prune[] = {
	OPTION_FORCE,
	OPTION_FILTER,
	{ "all", 'a', NULL, "also images that have a name and that nothing is made of" },
	{ "volumes", 0, NULL, "also volumes without a name that nobody has" },
	OPTION_END,
};

static const struct command system_commands[] = {
	{
		.name = "export",
		.operands = "TARGET",
		.summary = "write all files of a container as a tar archive",
		.help = "Those of its image with what it has changed, without what is mounted in "
			"it: there is an\n"
			"empty directory or file in that place. It may run, or have ended.\n"
			"\n"
			"    nacre export web | tar -tv\n"
			"    nacre export --file web.tar web",
		.options = options_export,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_export,
	},
	{
		.name = "processes",
		.operands = "TARGET",
		.summary = "list the processes of a workload",
		.help = "As they are at that moment, with their process ids of the node: what "
			"`docker top` shows.\n"
			"`nacre top` watches what they use.\n"
			"\n"
			"    nacre processes web",
		.options = options_processes,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_processes,
	},
	{
		.name = "prune",
		.operands = "",
		.summary = "remove workloads that have ended",
		.help = "Pods, cells and executables, with their logs and files; machines stay. "
			"Asks first, where\n"
			"there is a terminal. Prints the id of each. One that cannot be removed "
			"is told, and the\n"
			"others go.\n"
			"\n"
			"    nacre prune --force --filter until=24h --filter label=env=test",
		.options = options_prune,
		.run = cmd_prune,
	},
	{
		.name = "system df",
		.operands = "",
		.summary = "tell what images, containers and volumes take on the disk",
		.help = "ACTIVE are images that something is made of, containers that run, and "
			"volumes that\n"
			"somebody has. RECLAIMABLE is what `nacre image prune --all`, `nacre "
			"prune` and\n"
			"`nacre volume rm` would free; `nacre image df` says more.",
		.run = cmd_system_df,
	},
	{
		.name = "system prune",
		.operands = "",
		.summary = "remove what nobody needs",
		.help = "Workloads that have ended, networks that nobody is on, and images without "
			"a name (with\n"
			"--all: all that nothing is made of), in this order. Asks first, on a "
			"terminal.\n"
			"A label is something that workloads alone have: with that filter nothing "
			"else goes.\n"
			"\n"
			"    nacre system prune --all --force",
		.options = options_system_prune,
		.run = cmd_system_prune,
	},
};

const struct command_group command_group_system = { system_commands, ARRAY_SIZE(system_commands) };
