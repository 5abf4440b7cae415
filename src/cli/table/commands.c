/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/str.h"
#include "cli/table/command.h"
#include "cli/table/command_groups.h"

/*
 * All commands, in the order in which `nacre help`, nacre(1) and the completions show them, which
 * are written from here.
 */

const struct arg_option command_options[] = {
	{ "socket", 0, "PATH",
	  "the daemon's socket, else $NACRE_SOCKET, else " CLI_SOCKET_DEFAULT },
	{ "host", 0, "NAME[:PORT]",
	  "a daemon elsewhere, over mutual TLS, else $NACRE_HOST; port " TARGET_PORT },
	{ "context", 0, "NAME", "the daemon of that name (nacre context), else $NACRE_CONTEXT" },
	{ "tls-ca", 0, "FILE",
	  "the certificate of its authority, else ca.crt of $NACRE_CERT_PATH" },
	{ "tls-cert", 0, "FILE", "your certificate, else the only NAME.crt there" },
	{ "tls-key", 0, "FILE", "its private key, else NAME.key there" },
	{ "tls-name", 0, "NAME", "that the daemon's certificate must have, else that of --host" },
	{ "output", 'o', "FORM", "table (for people) or json (for programs)" },
	{ "help", 'h', NULL, "teach the command" },
	OPTION_END,
};

static const struct command_group *const groups[] = {
	&command_group_work,    &command_group_image, &command_group_network, &command_group_volume,
	&command_group_machine, &command_group_cloud, &command_group_system,  &command_group_node,
};

const struct command *command_at(size_t i)
{
	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		if (i < groups[g]->n)
			return &groups[g]->commands[i];
		i -= groups[g]->n;
	}
	return NULL;
}
