/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/command_groups.h"

#include "base/text/str.h"
#include "cli/cmd/handlers.h"

static const struct arg_option options_create[] = {
	{ "subnet", 0, "ADDRESS/LENGTH", "of its pods, else one that is free; also one of IPv6" },
	{ "gateway", 0, "ADDRESS", "of the subnet that is named, else its first; or of IPv6" },
	{ "ip-range", 0, "ADDRESS/LENGTH", "the part of the subnet that pods get addresses of" },
	{ "driver", 'd', "DRIVER", "routed, bridge, macvlan, ipvlan or device" },
	{ "parent", 0, "DEVICE", "of the host, for the last three drivers" },
	{ "internal", 0, NULL, "nothing leads out of it, and nothing into it" },
	{ "node", 0, NULL, "its pods reach services on the node's addresses" },
	{ "ipv6", 0, "WHETHER", "false: no addresses of IPv6" },
	{ "mtu", 0, "BYTES", "of a packet, else as the host's way out has it" },
	{ "opt", 0, "NAME=VALUE", "mtu, parent and mode, as docker and podman have them" },
	OPTION_END,
};

static const struct arg_option options_ls[] = {
	{ "quiet", 'q', NULL, "names alone" },
	OPTION_END,
};

static const struct arg_option options_prune[] = {
	{ "force", 'f', NULL, "do not ask" },
	{ "filter", 0, "until=TIME", "only what was made before then (24h: so long ago)" },
	OPTION_END,
};

static const struct arg_option options_connect[] = {
	{ "ip", 0, "ADDRESS", "its address of IPv4 there, else the network's next" },
	{ "ip6", 0, "ADDRESS", "the same of IPv6" },
	{ "mac-address", 0, "MAC", "of its device there, else made from its address" },
	OPTION_END,
};

static const struct arg_option options_disconnect[] = {
	{ "force", 'f', NULL, "also where ports of the host lead to it by this network" },
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
			"With the driver bridge pods share a bridge of the host and hear each "
			"other's broadcasts.\n"
			"With macvlan and ipvlan they are on the network of a device of the host, "
			"past its packet\n"
			"filter: nothing can be published, and host and pods do not reach each "
			"other. With device\n"
			"one pod has the device itself, until it ends.\n"
			"\n"
			"    nacre network create back --internal\n"
			"    nacre network create --driver bridge lan\n"
			"    nacre network create -d macvlan --parent eth0 --subnet 192.0.2.0/24 "
			"out\n"
			"    nacre network create -d device --parent eth1 --subnet 10.9.0.0/24 "
			"uplink\n"
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
		.options = options_ls,
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
		.name = "network prune",
		.operands = "",
		.summary = "remove networks that nobody is on",
		.help = "The one named \"default\" stays. Asks first, where there is a terminal. "
			"Prints the\n"
			"name of each.",
		.options = options_prune,
		.run = cmd_network_prune,
	},
	{
		.name = "network connect",
		.operands = "NETWORK POD",
		.summary = "put a pod or a cell that runs on one more network",
		.help = "It gets the next device (eth1, eth2, …) with an address there. The pods "
			"of "
			"it\n"
			"know its names within a second. Prints the address. A pod that starts "
			"again is\n"
			"on it again.\n"
			"\n"
			"    nacre network connect back web\n"
			"    nacre network connect --ip 10.20.0.7 shop web",
		.options = options_connect,
		.n_min = 2,
		.n_max = 2,
		.run = cmd_network_connect,
	},
	{
		.name = "network disconnect",
		.operands = "NETWORK POD",
		.summary = "take a pod or a cell that runs off a network",
		.help = "Its device there is gone then, and its default route leads to the next of "
			"its\n"
			"networks that is not internal. Off the last one it has loopback alone.\n"
			"\n"
			"    nacre network disconnect back web",
		.options = options_disconnect,
		.n_min = 2,
		.n_max = 2,
		.run = cmd_network_disconnect,
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
