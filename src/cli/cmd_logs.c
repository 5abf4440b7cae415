/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/str.h"
#include "cli/alloc.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/handlers.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/spec.h"
#include "cli/text.h"

struct logs {
	struct client_call call;
	bool timestamps;
};

static void logs_message(struct client_call *call, const ProtobufCMessage *message)
{
	const struct logs *l = container_of(call, struct logs, call);
	const Nacre__V1__LogsResponse *m = (const Nacre__V1__LogsResponse *)message;
	bool is_stderr = m->stream == NACRE__V1__LOGS_RESPONSE__STREAM__STREAM_STDERR;
	int fd = is_stderr ? STDERR_FILENO : STDOUT_FILENO;
	char time[CLOCK_TEXT_SIZE + 1];

	if (l->timestamps) {
		clock_format(time, m->time);
		time[CLOCK_TEXT_SIZE - 1] = ' ';
		if (output_write(fd, time, CLOCK_TEXT_SIZE) < 0)
			call->done = true;
	}
	if (output_write(fd, m->data.data, m->data.len) < 0)
		call->done = true;
}

int cmd_logs(const struct cli *cli, const struct args *args)
{
	Nacre__V1__LogsRequest request = NACRE__V1__LOGS_REQUEST__INIT;
	struct logs logs = {
		.call = { .type = &nacre__v1__logs_response__descriptor,
			  .on_message = logs_message },
		.timestamps = args_flag(args, "timestamps"),
	};
	_cleanup_client_ struct client *client = NULL;
	struct error err = ERROR_INIT;

	client = client_open(cli->socket, &err);
	if (!client)
		return cli_fail(&err);
	request.target = args->operands[0];
	request.follow = args_flag(args, "follow");
	spec_set(&request.container, args_value(args, "container"));
	client_call_start(client, &logs.call, "/nacre.v1.WorkloadService/Logs", &request.base);
	(void)client_call_wait(client, &logs.call);
	client_call_done(&logs.call);
	return logs.call.err.code ? cli_fail(&logs.call.err) : 0;
}

struct events {
	struct client_call call;
	bool json;
};

static void events_json(const Nacre__V1__EventsResponse *e)
{
	struct json j = { .to = stdout, .compact = true };

	json_object(&j, NULL);
	json_unsigned(&j, "sequence", e->sequence);
	json_time(&j, "time", e->time);
	json_string(&j, "object", e->object);
	json_string(&j, "id", e->id);
	json_string(&j, "name", e->name);
	json_word(&j, "kind", e->kind);
	json_string(&j, "state", e->state);
	json_word(&j, "reason", e->reason);
	json_integer(&j, "exit_code", e->exit_code);
	json_string(&j, "resume_token", e->resume_token);
	json_end(&j);
}

static void events_line(const Nacre__V1__EventsResponse *e)
{
	const char *object = str_eq(e->object, "workload") && *e->kind ? e->kind : e->object;
	_cleanup_str_ char *line = NULL;
	char time[CLOCK_TEXT_SIZE];

	clock_format(time, e->time);
	line = xformat("%s %s %s %s%s%s", time, object, e->name, e->state, *e->reason ? ": " : "",
		       e->reason);
	text_clean(line);
	(void)puts(line);
}

static void events_message(struct client_call *call, const ProtobufCMessage *message)
{
	const struct events *events = container_of(call, struct events, call);
	const Nacre__V1__EventsResponse *e = (const Nacre__V1__EventsResponse *)message;

	if (events->json)
		events_json(e);
	else
		events_line(e);
	if (fflush(stdout) != 0)
		call->done = true;
}

int cmd_events(const struct cli *cli, const struct args *args)
{
	Nacre__V1__EventsRequest request = NACRE__V1__EVENTS_REQUEST__INIT;
	struct events events = {
		.call = { .type = &nacre__v1__events_response__descriptor,
			  .on_message = events_message },
		.json = cli->json,
	};
	_cleanup_client_ struct client *client = NULL;
	struct error err = ERROR_INIT;

	client = client_open(cli->socket, &err);
	if (!client)
		return cli_fail(&err);
	spec_set(&request.target, args->operands[0]);
	spec_set(&request.resume_token, args_value(args, "since-token"));
	request.objects = spec_values(args, "object", &request.n_objects);
	client_call_start(client, &events.call, "/nacre.v1.EventService/Events", &request.base);
	(void)client_call_wait(client, &events.call);
	client_call_done(&events.call);
	free(request.objects);
	return events.call.err.code ? cli_fail(&events.call.err) : 0;
}
