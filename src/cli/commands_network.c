/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command_groups.h"

#include "base/str.h"
#include "cli/handlers.h"

static const struct arg_option options_create[] = {
	{ "subnet", 0, "ADDRESS/LENGTH", "of its pods, else one that is free; also one of IPv6" },
	{ "gateway", 0, "ADDRESS", "of the subnet of IPv4, else its first" },
	{ "internal", 0, NULL, "nothing leads out of it, and nothing into it" },
	{ "node", 0, NULL, "its pods reach services on the node's addresses" },
	{ "ipv6", 0, "WHETHER", "false: no addresses of IPv6" },
	{ "mtu", 0, "BYTES", "of a packet, else as the host's way out has it" },
	{ "opt", 0, "NAME=VALUE", "mtu=BYTES, as docker has it" },
	OPTION_END,
};

static const struct command network_commands[] = {
	{
		.name = "network create",
		.operands = "NAME",
		.summary = "make a network for pods",
		.help = "Pods of one network reach each other, and the world behind the host's "
			"address; those of\n"
			"others they do not. It lives until it is removed, also over a restart "
			"of the host.\n"
			"Prints its name.\n"
			"\n"
			"    nacre network create back --internal\n"
			"    nacre network create shop --subnet 10.20.0.0/24\n"
			"    nacre run -d --network shop --publish 8080:80 busybox httpd -f",
		.options = options_create,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_network_create,
	},
	{
		.name = "network ls",
		.operands = "",
		.summary = "list networks",
		.help = "With their subnets, and how many pods are on each. The one named "
			"\"default\" is there from\n"
			"the first pod on.",
		.run = cmd_network_ls,
	},
	{
		.name = "network inspect",
		.operands = "NAME",
		.summary = "tell all about a network, and who is on it, as JSON",
		.help = "Its subnets, and the pods with their addresses.",
		.n_min = 1,
		.n_max = 1,
		.run = cmd_network_inspect,
	},
	{
		.name = "network rm",
		.operands = "NAME…",
		.summary = "remove networks",
		.help = "One that a pod is on is not removed, nor the one named \"default\".",
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_network_rm,
	},
	{
		.name = "port",
		.operands = "TARGET [PORT[/PROTOCOL]]",
		.summary = "tell which ports of the host lead to a pod",
		.help = "With PORT only where that one is reached, without its name.\n"
			"\n"
			"    nacre port web\n"
			"    nacre port web 80/tcp",
		.n_min = 1,
		.n_max = 2,
		.run = cmd_port,
	},
};

const struct command_group command_group_network = { network_commands,
						     ARRAY_SIZE(network_commands) };
