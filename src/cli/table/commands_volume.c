/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/command_groups.h"

#include "base/text/str.h"
#include "cli/cmd/handlers.h"

static const struct arg_option options_create[] = {
	{ "label", 'l', "NAME=VALUE", "a word about it, to find it by; may be given again" },
	OPTION_END,
};

static const struct arg_option options_ls[] = {
	{ "quiet", 'q', NULL, "print names alone" },
	{ "filter", 0, "WHAT=VALUE",
	  "only those of name=PART, label=NAME[=VALUE], dangling=true (that nobody has), "
	  "anonymous=true" },
	OPTION_END,
};

static const struct arg_option options_rm[] = {
	{ "force", 'f', NULL, "one that is not there is no error" },
	OPTION_END,
};

static const struct arg_option options_prune[] = {
	{ "all", 'a', NULL, "those with a name as well" },
	{ "force", 'f', NULL, "as docker has it: nothing is asked anyway" },
	OPTION_END,
};

static const struct arg_option options_export[] = {
	{ "file", 'O', "FILE", "write it there, when it is whole, else to standard output" },
	OPTION_END,
};

static const struct command volume_commands[] = {
	{
		.name = "volume create",
		.operands = "[NAME]",
		.summary = "make a volume",
		.help = "A directory of the node that outlives what has it mounted, until it is "
			"removed. Prints\n"
			"its name; without one it is called by an id. `nacre run -v NAME:/path` "
			"makes it too.\n"
			"\n"
			"    nacre volume create data\n"
			"    nacre run -d -v data:/var/lib/app app\n"
			"    nacre volume create --label owner=shop shop-files",
		.options = options_create,
		.n_max = 1,
		.run = cmd_volume_create,
	},
	{
		.name = "volume ls",
		.operands = "",
		.summary = "list volumes",
		.help = "With who has each: workloads that run, or that have ended and are not "
			"removed yet.\n"
			"\n"
			"    nacre volume ls --filter dangling=true\n"
			"    nacre volume ls -q --filter label=owner=shop",
		.options = options_ls,
		.run = cmd_volume_ls,
	},
	{
		.name = "volume inspect",
		.operands = "NAME…",
		.summary = "tell all about volumes, as JSON",
		.help = "Labels, who has it, and where its files are on the node.",
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_volume_inspect,
	},
	{
		.name = "volume rm",
		.operands = "NAME…",
		.summary = "remove volumes, with all that is in them",
		.help = "One that a workload has is not removed, also where that has ended: `nacre "
			"rm` that\n"
			"first.",
		.options = options_rm,
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_volume_rm,
	},
	{
		.name = "volume export",
		.operands = "NAME",
		.summary = "write what is in a volume as a tar archive",
		.help = "To standard output, or a file, which gets its name when all of it is "
			"there. Owners,\n"
			"modes, links and holes are in it. Exit status 1: something was left out, "
			"such as a\n"
			"socket, and is named.\n"
			"\n"
			"    nacre volume export data > data.tar\n"
			"    nacre volume export data | nacre --host other volume import data -",
		.options = options_export,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_volume_export,
	},
	{
		.name = "volume import",
		.operands = "NAME FILE",
		.summary = "put what a tar archive has into a volume",
		.help = "FILE is a tar, not compressed, \"-\" standard input. The volume must be "
			"there; a file in\n"
			"it is replaced by one of its name, and others stay.\n"
			"\n"
			"    nacre volume create data\n"
			"    nacre volume import data data.tar\n"
			"    zcat data.tar.gz | nacre volume import data -",
		.n_min = 2,
		.n_max = 2,
		.run = cmd_volume_import,
	},
	{
		.name = "volume prune",
		.operands = "",
		.summary = "remove volumes that nobody has",
		.help = "Those that were made without a name, for a `-v /path` or the VOLUME of an "
			"image; with\n"
			"--all every volume that no workload has. Prints the names of those that "
			"are gone.",
		.options = options_prune,
		.run = cmd_volume_prune,
	},
};

const struct command_group command_group_volume = { volume_commands, ARRAY_SIZE(volume_commands) };
