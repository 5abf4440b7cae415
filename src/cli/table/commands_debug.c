/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macros.h"
#include "cli/cmd/handlers.h"
#include "cli/output/tty.h"
#include "cli/table/command_groups.h"

static const struct arg_option options_debug[] = {
	{ "container", 'c', "NAME", "whose processes it sees, where there are several" },
	{ "image", 0, "IMAGE", "its own root, else the image of that container" },
	{ "name", 'n', "NAME", "its name, else debug-1 and so on" },
	{ "interactive", 'i', NULL, "pass standard input on" },
	{ "tty", 't', NULL, "give it a terminal; with -i it is this one" },
	{ "detach", 'd', NULL, "print its name and leave it running" },
	{ "detach-keys", 0, "KEYS", "that leave a terminal, else " DETACH_KEYS_DEFAULT },
	{ "user", 'u', "USER", "user, uid, user:group or uid:gid, else that of the container" },
	{ "env", 'e', "NAME=VALUE", "set a variable; NAME alone takes it from here, if it is set" },
	{ "cwd", 'w', "DIR", "start in this directory" },
	{ "cap-add", 0, "NAME", "one capability more than the container has; may be given again" },
	{ "privileged", 0, NULL, "every capability and device, no filter: no wall" },
	{ "pull", 0, "WHEN",
	  "load the image: missing (unless it is there), always, newer or never" },
	{ "quiet", 'q', NULL, "tell nothing of the pull of its image" },
	OPTION_END,
};

static const struct command debug_commands[] = {
	{
		.name = "debug",
		.operands = "TARGET [WORD…]",
		.summary = "look into a container that runs, with the tools of another image",
		.help = "Starts a debug container beside it, of an image that has a shell where "
			"its "
			"own has none,\n"
			"and stays with it. It sees the processes of that container, and the "
			"network of its pod.\n"
			"It has the files of its own image; those of that container are below "
			"/proc/1/root. Its\n"
			"user and security settings are those of that container, unless options "
			"say more: strace\n"
			"wants --cap-add SYS_PTRACE. WORD… is the command, in place of the "
			"image's. It is removed\n"
			"at its end, and ends with that container; its pod neither waits for it "
			"nor counts it.\n"
			"Not of kind vm.\n"
			"\n"
			"    nacre debug -it --image busybox web -- sh\n"
			"    nacre debug --image busybox shop -c db -- ls -l /proc/1/root/data",
		.options = options_debug,
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.n_verbatim = 2,
		.run = cmd_debug,
	},
};

const struct command_group command_group_debug = { debug_commands, ARRAY_SIZE(debug_commands) };
