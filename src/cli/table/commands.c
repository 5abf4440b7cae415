/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macros.h"
#include "cli/table/command.h"
#include "cli/table/command_groups.h"

/*
 * All commands, in the order in which `nacre help`, nacre(1) and the completions show them, which
 * are written from here.
 */

static const struct command_group *const groups[] = {
	&command_group_work,   &command_group_debug,  &command_group_files,
	&command_group_health, &command_group_image,  &command_group_network,
	&command_group_volume, &command_group_secret, &command_group_machine,
	&command_group_cloud,  &command_group_system, &command_group_node,
};

const struct command_table command_table = { groups, ARRAY_SIZE(groups),
					     command_container_options };
