/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_COMMAND_GROUPS_H
#define NACRE_CLI_COMMAND_GROUPS_H

#include "cli/table/command.h"

/* The one table of commands (commands.c), and its parts; each stands in commands_GROUP.c. */
extern const struct command_table command_table;

extern const struct command_group command_group_work;    /* workloads, and their control */
extern const struct command_group command_group_debug;   /* containers beside others */
extern const struct command_group command_group_files;   /* files of containers */
extern const struct command_group command_group_image;   /* images */
extern const struct command_group command_group_machine; /* foreign systems, guest sets */
extern const struct command_group command_group_cloud;   /* machines in a cloud */
extern const struct command_group command_group_network; /* networks, and ports */
extern const struct command_group command_group_system;  /* all of them together */
extern const struct command_group command_group_volume;  /* volumes */
extern const struct command_group command_group_secret;  /* secrets */
extern const struct command_group command_group_health;  /* waiting, health checks */
extern const struct command_group command_group_node;    /* the node, and this program */

extern const struct arg_option command_container_options[]; /* command_table.container_options */

/* The last row of the options of a command. */
#define OPTION_END                                                                                 \
	{                                                                                          \
		NULL, 0, NULL, NULL                                                                \
	}

#endif
