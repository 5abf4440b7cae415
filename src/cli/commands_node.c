/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command_groups.h"

#include "base/str.h"
#include "cli/handlers.h"

static const struct arg_option options_completion[] = {
	{ "names", 0, "WHAT",
	  "workloads, places (for cp), images, commands or shells: a name in each line" },
	OPTION_END,
};

static const struct arg_option options_daemon[] = {
	{ "config", 0, "FILE", "configuration, else /etc/nacre/config.yaml" },
	{ "root", 0, "DIR", "what outlives a reboot (images), else /var/lib/nacre" },
	{ "run", 0, "DIR", "what does not (state, sockets), else /run/nacre" },
	{ "socket", 0, "PATH", "where to serve, else " CLI_SOCKET_DEFAULT },
	OPTION_END,
};

static const struct command node_commands[] = {
	{
		.name = "daemon",
		.operands = "",
		.summary = "be the node: serve the API and own the workloads",
		.help = "Usually started as a service (systemd: Type=notify, KillMode=process). It "
			"can be\n"
			"stopped, upgraded and started again while every workload goes on.",
		.options = options_daemon,
	},
	{
		.name = "doctor",
		.operands = "",
		.summary = "look whether this host has what nacre needs",
		.help = "Each thing that lacks comes with its cause, with what follows from it, "
			"and with what\n"
			"to do about it. The exit status is 1 where something essential lacks, "
			"else 0. Changes\n"
			"nothing.",
		.run = cmd_doctor,
	},
	{
		.name = "check",
		.operands = "",
		.summary = "compare what the node has recorded with what is there",
		.help = "Records against keepers, cgroups, mounts, directories, logs and images. "
			"Prints\n"
			"nothing and exits with 0 where all is whole; otherwise a line for each\n"
			"difference, and the exit status is 1. Changes nothing.",
		.run = cmd_check,
	},
	{
		.name = "info",
		.operands = "",
		.summary = "tell about the daemon",
		.help = "Its version, directories, cgroup and process, and what its host lacks.",
		.run = cmd_info,
	},
	{
		.name = "version",
		.operands = "",
		.summary = "print the version of this program and of the daemon",
		.help = "The daemon's only where it can be reached.",
		.run = cmd_version,
	},
	{
		.name = "help",
		.operands = "[COMMAND]",
		.summary = "list the commands, or teach one",
		.help = "    nacre help run",
		.n_max = 2,
		.run = cmd_help,
	},
	{
		.name = "completion",
		.operands = "bash|zsh|fish",
		.summary = "print what makes a shell complete the commands",
		.help = "It completes commands, options, and names of workloads and images, which "
			"it asks the\n"
			"daemon for by --names.\n"
			"\n"
			"    source <(nacre completion bash)\n"
			"    nacre completion zsh > ~/.zfunc/_nacre\n"
			"    nacre completion fish > ~/.config/fish/completions/nacre.fish",
		.options = options_completion,
		.n_max = 1,
		.run = cmd_completion,
	},
	{
		.name = "man",
		.operands = "",
		.summary = "print the manual page nacre(1)",
		.help = "    nacre man | man -l -",
		.run = cmd_man,
	},
};

const struct command_group command_group_node = { node_commands, ARRAY_SIZE(node_commands) };
