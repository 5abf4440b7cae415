/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/command_groups.h"

#include "base/text/str.h"
#include "cli/cmd/handlers.h"

static const struct arg_option options_cp[] = {
	{ "archive", 'a', NULL, "keep owners, and set-user-ID bits" },
	{ "follow-link", 'L', NULL, "copy what a link at the end of FROM leads to" },
	{ "quiet", 'q', NULL, "no progress" },
	OPTION_END,
};

static const struct arg_option options_diff[] = {
	{ "container", 'c', "NAME", "the container, where there are several" },
	{ "format", 'F', "TEXT", "a line of this form, such as '{change} {path}'" },
	OPTION_END,
};

static const struct command files_commands[] = {
	{
		.name = "diff",
		.operands = "TARGET",
		.summary = "tell what a container has changed of its image",
		.help = "A line for each path: A was added, C was changed (or something in it), D "
			"was deleted.\n"
			"What is on volumes and other mounts is not its image's. A container that "
			"runs with\n"
			"--disk is told when it has ended; one in a machine (kind vm) not at "
			"all.\n"
			"\n"
			"    nacre diff web\n"
			"    nacre diff --container proxy shop\n"
			"    nacre diff --format '{path}' web",
		.options = options_diff,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_diff,
	},
	{
		.name = "cp",
		.operands = "FROM TO",
		.summary = "copy files out of a container, or into it",
		.help = "One of the two is TARGET:PATH or TARGET:CONTAINER:PATH, the other a path "
			"of this\n"
			"system. Files, directories with all that is in them, and links are "
			"copied, with modes,\n"
			"times of files, hard links and holes. Where TO is a directory, or a link "
			"to one, they\n"
			"are put into it, else they become TO; a directory does not become a file "
			"that is\n"
			"there. FROM/. is what is in a directory without the directory itself. "
			"Owners are kept\n"
			"with --archive only. A container that has ended can be copied from and "
			"into until it\n"
			"is removed, without its volumes. What cannot be copied (sockets, "
			"devices, files\n"
			"of the kernel) is told on standard error, and the exit status is 1 then.\n"
			"\n"
			"\"-\" is a tar archive, with owners, on standard output, or from standard "
			"input; then TO\n"
			"is a directory that is there.\n"
			"\n"
			"    nacre cp web:/etc/passwd .\n"
			"    nacre cp site/. shop:web:/www\n"
			"    nacre cp web:/var/log - | gzip >log.tar.gz\n"
			"    tar -c . | nacre cp - web:/srv",
		.options = options_cp,
		.n_min = 2,
		.n_max = 2,
		.run = cmd_cp,
	},
};

const struct command_group command_group_files = { files_commands, ARRAY_SIZE(files_commands) };
