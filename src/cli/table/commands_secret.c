/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/command_groups.h"

#include "base/text/str.h"
#include "cli/cmd/handlers.h"

static const struct arg_option options_create[] = {
	{ "env", 0, NULL, "FILE is the name of a variable of this command" },
	{ "replace", 0, NULL, "one that is there gets these bytes" },
	OPTION_END,
};

static const struct arg_option options_ls[] = {
	{ "quiet", 'q', NULL, "print ids alone" },
	OPTION_END,
};

static const struct arg_option options_rm[] = {
	{ "ignore", 'i', NULL, "one that is not there is no error" },
	OPTION_END,
};

static const struct command secret_commands[] = {
	{
		.name = "secret create",
		.operands = "NAME [FILE]",
		.summary = "keep a secret on the node",
		.help = "Its bytes are those of FILE, or standard input (\"-\"). No command shows "
			"them "
			"again;\n"
			"containers have them by `nacre run --secret`. Prints its id.\n"
			"\n"
			"With --replace containers that run have the new bytes at once in their "
			"/run/secrets,\n"
			"each file as a whole; variables and files elsewhere stay as they are "
			"until\n"
			"the next start.\n"
			"\n"
			"    nacre secret create db-password ./password\n"
			"    pwgen 20 1 | nacre secret create --replace db-password -\n"
			"    nacre run -d --secret db-password app",
		.options = options_create,
		.n_min = 1,
		.n_max = 2,
		.run = cmd_secret_create,
	},
	{
		.name = "secret ls",
		.operands = "",
		.summary = "list secrets",
		.help = "Names, ids, sizes, and when each was made and last replaced.",
		.options = options_ls,
		.run = cmd_secret_ls,
	},
	{
		.name = "secret inspect",
		.operands = "NAME…",
		.summary = "tell all about secrets but their bytes, as JSON",
		.help = "Names, ids, sizes, and when each was made and last replaced.",
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_secret_inspect,
	},
	{
		.name = "secret rm",
		.operands = "NAME…",
		.summary = "remove secrets",
		.help = "Containers that have one keep it until they end, and cannot be started "
			"again "
			"then.",
		.options = options_rm,
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_secret_rm,
	},
};

const struct command_group command_group_secret = { secret_commands, ARRAY_SIZE(secret_commands) };
