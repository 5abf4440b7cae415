/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/client/client_machine.h"

#include <errno.h>

#include "base/text/str.h"
#include "keeper/client/client_call.h"
#include "keeper/message/convert.h"

static void client_finish_machine(struct client_call *call, const ProtobufCMessage *response,
				  const struct error *err)
{
	const Nacre__Instance__V1__SpawnMachineResponse *answer = (const void *)response;
	struct error wrong = ERROR_INIT;

	if (!err && (!answer->kernel[0] || !str_is_clean(answer->kernel))) {
		(void)error_set(&wrong, -EPROTO, "kernel: the keeper says nothing of it");
		err = &wrong;
	}
	call->machine(call->userdata, err ? "" : answer->kernel, err);
}

void client_spawn_machine(struct peer *p, const struct peer_machine *machine, peer_machine_fn done,
			  void *userdata)
{
	struct keeper_client *client = container_of(p, struct keeper_client, peer);
	struct client_call *call = client_call_new(client, client_finish_machine, userdata);
	Nacre__Instance__V1__SpawnMachineRequest request;
	struct error err;

	if (!call) {
		client_no_memory(&err);
		done(userdata, "", &err);
		return;
	}
	call->machine = done;
	nacre__instance__v1__spawn_machine_request__init(&request);
	request.name = convert_str(machine->name);
	request.tools = convert_str(machine->tools);
	request.memory = machine->memory;
	request.cpus = machine->cpus;
	client_call_ask(call, KEEPER_METHOD("SpawnMachine"), &request.base,
			&nacre__instance__v1__spawn_machine_response__descriptor, NSEC_NEVER);
}
