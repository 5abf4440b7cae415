/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/each.h"

#include "base/args.h"
#include "cli/client.h"
#include "cli/command.h"

int each_operand(const struct cli *cli, const struct args *args, const struct each_call *call)
{
	_cleanup_client_ struct client *client = NULL;
	struct error err = ERROR_INIT;
	int status = 0;

	client = client_open(cli->socket, &err);
	if (!client)
		return cli_fail(&err);
	for (size_t i = 0; i < args->n_operands; i++) {
		_cleanup_message_ ProtobufCMessage *answer = NULL;

		*call->slot = args->operands[i];
		answer = client_ask(client, call->method, call->request, call->answer, &err);
		if (!answer)
			status = cli_fail(&err);
	}
	return status;
}
