/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/nested/spawning.h"

#include "keeper/message/convert.h"
#include "keeper/nested/children.h"
#include "rpc/server/server.h"

static void spawning_on_cell(void *userdata, const struct child *c, const struct error *err)
{
	Nacre__Instance__V1__SpawnResponse response;

	nacre__instance__v1__spawn_response__init(&response);
	if (err) {
		rpc_call_fail(userdata, err);
		return;
	}
	response.pid = c->process.pid;
	rpc_call_reply(userdata, &response.base);
}

void spawning_cell(struct children *all, struct rpc_call *call, const ProtobufCMessage *message)
{
	const Nacre__Instance__V1__SpawnRequest *request = (const void *)message;
	const struct child_spec spec = { .name = request->name,
					 .shares = { .network = request->host_network,
						     .pids = request->host_pids,
						     .ipc = request->host_ipc,
						     .uts = request->host_uts } };
	struct error err = ERROR_INIT;

	if (children_spawn(all, &spec, spawning_on_cell, call, &err) < 0)
		rpc_call_fail(call, &err);
}

static void spawning_on_machine(void *userdata, const struct child *c, const struct error *err)
{
	Nacre__Instance__V1__SpawnMachineResponse response;

	nacre__instance__v1__spawn_machine_response__init(&response);
	if (err) {
		rpc_call_fail(userdata, err);
		return;
	}
	response.pid = c->process.pid;
	response.kernel = convert_str(c->kernel);
	rpc_call_reply(userdata, &response.base);
}

void spawning_machine(struct children *all, struct rpc_call *call, const ProtobufCMessage *message)
{
	const Nacre__Instance__V1__SpawnMachineRequest *request = (const void *)message;
	const struct nest nest = { request->tools, request->memory, request->cpus };
	const struct child_spec spec = { .name = request->name, .nest = &nest };
	struct error err = ERROR_INIT;

	if (children_spawn(all, &spec, spawning_on_machine, call, &err) < 0)
		rpc_call_fail(call, &err);
}
