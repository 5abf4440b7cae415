/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/client/client_groups.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text/str.h"
#include "keeper/client/client_call.h"
#include "keeper/message/convert.h"
#include "keeper/message/convert_groups.h"

static struct keeper_client *client_of(struct peer *p)
{
	return container_of(p, struct keeper_client, peer);
}

/* Starts the call, or refuses it where the keeper is of an earlier release. */
static void client_ask_groups(struct client_call *call, const char *method,
			      const ProtobufCMessage *message,
			      const ProtobufCMessageDescriptor *output, nsec_t timeout)
{
	const struct keeper_client *client = call->client;
	struct error err = ERROR_INIT;

	if (client->groups || client->refusal.code) {
		client_call_ask(call, method, message, output, timeout);
		return;
	}
	(void)error_refuse(&err, ERROR_PRECONDITION,
			   "its keeper (version %s) tells nothing of its groups",
			   client->hello.version);
	client_call_refuse(call, &err);
}

/* ---- limits ---- */

static void client_finish_limit(struct client_call *call, const ProtobufCMessage *response,
				const struct error *err)
{
	(void)response;
	call->done(call->userdata, err);
}

void client_limit(struct peer *p, const char *id, const char *cell, char *const *words,
		  peer_done_fn done, void *userdata)
{
	struct client_call *call = client_call_new(client_of(p), client_finish_limit, userdata);
	Nacre__Instance__V1__LimitRequest request;
	struct error err;

	if (!call) {
		client_no_memory(&err);
		done(userdata, &err);
		return;
	}
	call->done = done;
	nacre__instance__v1__limit_request__init(&request);
	request.id = convert_str(id);
	request.cell = convert_str(cell);
	request.n_limits = strv_len(words);
	request.limits = (char **)(uintptr_t)words;
	client_ask_groups(call, KEEPER_METHOD("Limit"), &request.base,
			  &nacre__instance__v1__limit_response__descriptor, NSEC_NEVER);
}

void client_set_sysctls(struct peer *p, char *const *sysctls, peer_done_fn done, void *userdata)
{
	struct keeper_client *client = client_of(p);
	struct client_call *call = client_call_new(client, client_finish_limit, userdata);
	Nacre__Instance__V1__LimitRequest request;
	struct error err = ERROR_INIT;

	if (!call) {
		client_no_memory(&err);
		done(userdata, &err);
		return;
	}
	call->done = done;
	nacre__instance__v1__limit_request__init(&request);
	request.n_sysctls = strv_len(sysctls);
	request.sysctls = (char **)(uintptr_t)sysctls;
	if (client->sysctls || client->refusal.code) {
		client_call_ask(call, KEEPER_METHOD("Limit"), &request.base,
				&nacre__instance__v1__limit_response__descriptor, NSEC_NEVER);
		return;
	}
	(void)error_refuse(&err, ERROR_PRECONDITION,
			   "its keeper (version %s) sets no sysctls: build the guest set anew",
			   client->hello.version);
	client_call_refuse(call, &err);
}

/* ---- usage ---- */

static void client_finish_usage(struct client_call *call, const ProtobufCMessage *response,
				const struct error *err)
{
	const Nacre__Instance__V1__UsageResponse *answer = (const void *)response;
	struct error wrong = ERROR_INIT;
	struct peer_group *groups = NULL;
	size_t n = err ? 0 : answer->n_groups;

	if (n > PEER_GROUPS_MAX) {
		(void)error_set(&wrong, -EPROTO, "groups: the keeper tells of %zu", n);
	} else if (!err) {
		groups = calloc(n + 1, sizeof(*groups));
		if (!groups)
			(void)error_set(&wrong, -ENOMEM, "read what a keeper says of its groups");
	}
	for (size_t i = 0; groups && i < n; i++) {
		groups[i].id = answer->groups[i]->id;
		groups[i].cell = answer->groups[i]->cell;
		convert_group_usage_back(&groups[i].usage, answer->groups[i]);
	}
	call->used(call->userdata, groups, groups ? n : 0, wrong.code ? &wrong : err);
	free(groups);
}

void client_usage(struct peer *p, peer_usage_fn done, void *userdata)
{
	struct client_call *call = client_call_new(client_of(p), client_finish_usage, userdata);
	Nacre__Instance__V1__UsageRequest request;
	struct error err;

	if (!call) {
		client_no_memory(&err);
		done(userdata, NULL, 0, &err);
		return;
	}
	call->used = done;
	nacre__instance__v1__usage_request__init(&request);
	client_ask_groups(call, KEEPER_METHOD("Usage"), &request.base,
			  &nacre__instance__v1__usage_response__descriptor, PEER_LOOK_TIMEOUT);
}

/* ---- processes ---- */

static void client_finish_processes(struct client_call *call, const ProtobufCMessage *response,
				    const struct error *err)
{
	const Nacre__Instance__V1__ProcessesResponse *answer = (const void *)response;
	struct error wrong = ERROR_INIT;
	struct peer_process *all = NULL;
	size_t n = err ? 0 : answer->n_processes;

	if (n > PEER_PROCESSES_MAX) {
		(void)error_set(&wrong, -EPROTO, "processes: the keeper tells of %zu", n);
	} else if (!err) {
		all = calloc(n + 1, sizeof(*all));
		if (!all)
			(void)error_set(&wrong, -ENOMEM, "read which processes a keeper sees");
	}
	for (size_t i = 0; all && i < n; i++) {
		all[i].id = answer->processes[i]->id;
		convert_group_process_back(&all[i].process, answer->processes[i]);
	}
	call->processes(call->userdata, all, all ? n : 0, all && answer->truncated,
			wrong.code ? &wrong : err);
	free(all);
}

void client_processes(struct peer *p, peer_processes_fn done, void *userdata)
{
	struct client_call *call = client_call_new(client_of(p), client_finish_processes, userdata);
	Nacre__Instance__V1__ProcessesRequest request;
	struct error err;

	if (!call) {
		client_no_memory(&err);
		done(userdata, NULL, 0, false, &err);
		return;
	}
	call->processes = done;
	nacre__instance__v1__processes_request__init(&request);
	client_ask_groups(call, KEEPER_METHOD("Processes"), &request.base,
			  &nacre__instance__v1__processes_response__descriptor, PEER_LOOK_TIMEOUT);
}
