/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/command_groups.h"

#include "base/text/str.h"
#include "cli/cmd/handlers.h"

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

static const struct arg_option options_doctor[] = {
	{ "kubernetes", 0, NULL, "also whether it is ready for a kubelet (doc/kubernetes.md)" },
	OPTION_END,
};

static const struct arg_option options_issue[] = {
	{ "days", 0, "NUMBER", "that it is valid, else 90; at most 365" },
	{ "role", 0, "ROLE",
	  "reader, who may look (the usual one), or admin, who may do everything" },
	{ "out", 0, "DIR", "where ca.crt, NAME.crt and NAME.key are written, else here" },
	{ "layout", 0, "WHOSE",
	  "nacre, or aurae: the file names that its clients expect, and their file config" },
	{ "force", 0, NULL, "replace files that are there" },
	OPTION_END,
};

static const struct command node_commands[] = {
	{
		.name = "daemon",
		.operands = "",
		.summary = "be the node: serve the API and own the workloads",
		.help = "Usually started as a service (systemd: Type=notify, KillMode=process). It "
			"can be\n"
			"stopped, upgraded and started again while every workload goes on. SIGPWR "
			"stops them.\n"
			"As pid 1 of a machine or container it is the init of it "
			"(doc/appliance.md).",
		.options = options_daemon,
	},
	{
		.name = "identity issue",
		.operands = "NAME",
		.summary = "make a key and a certificate, with which a user calls this node from "
			   "elsewhere",
		.help = "The key is made here, and only its public half goes to the node, whose "
			"authority signs\n"
			"the certificate. Prints its serial number. The node is reached where its "
			"configuration\n"
			"says `listen`.\n"
			"\n"
			"    nacre identity issue alice --role admin --out alice\n"
			"    NACRE_CERT_PATH=alice nacre --host node1.example ps",
		.options = options_issue,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_identity_issue,
	},
	{
		.name = "identity ls",
		.operands = "",
		.summary = "list the certificates of users",
		.help = "Also those that are over or revoked.",
		.run = cmd_identity_ls,
	},
	{
		.name = "identity revoke",
		.operands = "NAME|SERIAL…",
		.summary = "take the trust from certificates of users",
		.help = "All of a name, or the one of a number. Connections with them end within a "
			"second.",
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_identity_revoke,
	},
	{
		.name = "identity ca",
		.operands = "[rotate|retire]",
		.summary = "print the certificate of this node's authority, or rotate it",
		.help = "By it clients know the node. With --output json also the trust domain, "
			"and "
			"where the\n"
			"node listens.\n"
			"\n"
			"rotate makes a new authority, or takes the one that the configuration "
			"gives now\n"
			"(identity.ca_key). The older one stays trusted until all that it has "
			"signed is over;\n"
			"retire ends that at once, and who has a certificate of it is shut out.",
		.n_max = 1,
		.run = cmd_identity_ca,
	},
	{
		.name = "context create",
		.operands = "NAME",
		.summary = "give a name to a daemon",
		.help = "With --host, and --tls-ca, --tls-cert and --tls-key where the "
			"certificates "
			"are not where\n"
			"they usually are; or with --socket.\n"
			"\n"
			"    nacre context create prod --host node1.example\n"
			"    nacre context use prod",
		.n_min = 1,
		.n_max = 1,
		.alone = true,
		.run = cmd_context_create,
	},
	{
		.name = "context use",
		.operands = "NAME",
		.summary = "speak to that daemon from now on",
		.help = "Where no option and no variable says another one.",
		.n_min = 1,
		.n_max = 1,
		.alone = true,
		.run = cmd_context_use,
	},
	{
		.name = "context ls",
		.operands = "",
		.summary = "list the daemons that have names",
		.help = "The one in use has a star.",
		.alone = true,
		.run = cmd_context_ls,
	},
	{
		.name = "context show",
		.operands = "[NAME]",
		.summary = "tell all about a name, or about the one in use, as JSON",
		.help = "    nacre context show prod",
		.n_max = 1,
		.alone = true,
		.run = cmd_context_show,
	},
	{
		.name = "context rm",
		.operands = "NAME…",
		.summary = "forget names",
		.help = "The daemons and the certificates stay.",
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.alone = true,
		.run = cmd_context_rm,
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
		.options = options_doctor,
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
		.alone = true,
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
		.alone = true,
		.run = cmd_man,
	},
};

const struct command_group command_group_node = { node_commands, ARRAY_SIZE(node_commands) };
