/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/command_groups.h"

#include "base/text/str.h"
#include "cli/cmd/handlers.h"

static const struct arg_option options_run[] = {
	{ "name", 'n', "NAME", "its name: a-z, 0-9 and '-'; else one is made up" },
	{ "type", 't', "TYPE", "of the machine, as the cloud calls it" },
	{ "cpus", 0, "N", "or: the cheapest type of the configuration with so many processors" },
	{ "memory", 'm', "SIZE", "and so much memory" },
	{ "dry-run", 0, NULL, "ask the cloud whether it would, and make nothing" },
	OPTION_END,
};

static const struct arg_option options_gc[] = {
	{ "dry-run", 0, NULL, "end nothing, and just tell" },
	{ "expired", 0, NULL, "of any node, where the lease has ended" },
	{ "node", 0, "ID",
	  "another node, which never comes back, by its tag nacre-node; else this one" },
	OPTION_END,
};

static const struct arg_option options_rm[] = {
	{ "force", 'f', NULL, "end it first where it has not ended" },
	OPTION_END,
};

static const struct command cloud_commands[] = {
	{
		.name = "cloud run",
		.operands = "IMAGE",
		.summary = "run an image of a cloud as a machine there",
		.help = "IMAGE is an image of Amazon's EC2. The machine has the system of the "
			"image, and no nacre\n"
			"in it. It is ended by `nacre cloud stop` or rm, and in no other case "
			"left behind: also\n"
			"where this node dies in the middle. The configuration says which "
			"region, subnet and\n"
			"groups (doc/cloud.md). Prints its name when the cloud has made it.\n"
			"\n"
			"    nacre cloud run --name web --cpus 2 --memory 4g "
			"ami-0abcdef0123456789\n"
			"    nacre cloud ls\n"
			"    nacre cloud logs web\n"
			"    nacre cloud rm -f web",
		.options = options_run,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_cloud_run,
	},
	{
		.name = "cloud ls",
		.operands = "",
		.summary = "list the machines of this node in the cloud",
		.help = "With what the cloud says of them, and why one failed or ended. Those "
			"that have ended\n"
			"are shown until they are removed.",
		.run = cmd_cloud_ls,
	},
	{
		.name = "cloud logs",
		.operands = "TARGET",
		.summary = "print what the console of a machine in the cloud has said",
		.help = "As far as the cloud has read it, which may be minutes ago: its last 64 "
			"KiB.",
		.n_min = 1,
		.n_max = 1,
		.run = cmd_cloud_logs,
	},
	{
		.name = "cloud stop",
		.operands = "TARGET…",
		.summary = "end machines in the cloud",
		.help = "Their disks go with them. Returns when the cloud says that they have "
			"gone.",
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_cloud_stop,
	},
	{
		.name = "cloud rm",
		.operands = "TARGET…",
		.summary = "remove machines in the cloud that have ended",
		.help = "With --force also those that have not: they are ended first.",
		.options = options_rm,
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_cloud_rm,
	},
	{
		.name = "cloud gc",
		.operands = "",
		.summary = "end machines in the cloud that nobody has a record of",
		.help = "Machines have tags that say which node has made them. Where a node has "
			"lost its disk\n"
			"they go on, and cost. This ends those of this node (or of another one) "
			"that this node\n"
			"has no record of, and prints them.\n"
			"\n"
			"A node renews the lease of its machines, a tag, while it lives. With "
			"--expired those of\n"
			"all nodes are ended whose lease has ended by the clock of the cloud.\n"
			"\n"
			"    nacre cloud gc --dry-run\n"
			"    nacre cloud gc --expired\n"
			"    nacre cloud gc --node 5f0c2b7d9e1a3c48",
		.options = options_gc,
		.run = cmd_cloud_gc,
	},
};

const struct command_group command_group_cloud = { cloud_commands, ARRAY_SIZE(cloud_commands) };
