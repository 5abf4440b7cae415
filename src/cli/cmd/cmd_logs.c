/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/memory/buf.h"
#include "base/text/json.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/options/spec.h"
#include "cli/options/when.h"
#include "cli/output/alloc.h"
#include "cli/output/output.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"

struct logs {
	struct client_call call;
	bool timestamps;
	bool inside[2]; /* a line whose beginning is printed, of each stream */
};

/* The time stands in front of each line, not of each piece. */
static int logs_stamp(struct logs *l, const Nacre__V1__LogsResponse *m, int stream, struct buf *to)
{
	const uint8_t *p = m->data.data, *end = p + m->data.len;
	char time[CLOCK_TEXT_SIZE + 1];
	int r = 0;

	clock_format(time, m->time);
	time[CLOCK_TEXT_SIZE - 1] = ' ';
	while (p < end && r == 0) {
		const uint8_t *feed = memchr(p, '\n', (size_t)(end - p));
		size_t n = feed ? (size_t)(feed - p) + 1 : (size_t)(end - p);

		if (!l->inside[stream])
			r = buf_add(to, time, CLOCK_TEXT_SIZE);
		if (r == 0)
			r = buf_add(to, p, n);
		l->inside[stream] = !feed;
		p += n;
	}
	return r;
}

static void logs_message(struct client_call *call, const ProtobufCMessage *message)
{
	struct logs *l = container_of(call, struct logs, call);
	const Nacre__V1__LogsResponse *m = (const Nacre__V1__LogsResponse *)message;
	int stream = m->stream == NACRE__V1__LOGS_RESPONSE__STREAM__STREAM_STDERR;
	_cleanup_(buf_done) struct buf stamped = BUF_INIT;
	int fd = stream ? STDERR_FILENO : STDOUT_FILENO;
	int r = 0;

	if (m->skipped)
		(void)cli_complain("%llu bytes that it wrote here are not kept",
				   (unsigned long long)m->skipped);
	if (l->timestamps)
		r = logs_stamp(l, m, stream, &stamped);
	if (r == 0 && l->timestamps)
		r = output_write(fd, buf_data(&stamped), stamped.len);
	else if (r == 0)
		r = output_write(fd, m->data.data, m->data.len);
	if (r < 0)
		call->done = true;
}

/* An option that names a moment; without it *ret stays as it is. */
static int logs_moment(const struct args *args, const char *option, uint64_t *ret,
		       struct error *err)
{
	const char *text = args_value(args, option);

	return text ? when_parse(option, text, clock_real(), ret, err) : 0;
}

int cmd_logs(const struct cli *cli, const struct args *args)
{
	Nacre__V1__LogsRequest request = NACRE__V1__LOGS_REQUEST__INIT;
	Nacre__V1__LogsTail tail = NACRE__V1__LOGS_TAIL__INIT;
	const char *lines = args_value(args, "tail");
	struct logs logs = {
		.call = { .type = &nacre__v1__logs_response__descriptor,
			  .on_message = logs_message },
		.timestamps = args_flag(args, "timestamps"),
	};
	_cleanup_client_ struct client *client = NULL;
	struct error err = ERROR_INIT;

	if (logs_moment(args, "since", &request.since, &err) < 0 ||
	    logs_moment(args, "until", &request.until, &err) < 0)
		return cli_fail(&err);
	if (lines && parse_u64(lines, 0, UINT64_MAX, &tail.lines) < 0) {
		(void)error_refuse(&err, ERROR_INVALID, "--tail: \"%.64s\" is no number of lines",
				   lines);
		return cli_fail(&err);
	}
	client = client_open(&cli->daemon, &err);
	if (!client)
		return cli_fail(&err);
	request.target = args->operands[0];
	request.follow = args_flag(args, "follow");
	request.tail = lines ? &tail : NULL;
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

	json_put_object(&j, NULL);
	json_put_unsigned(&j, "sequence", e->sequence);
	json_put_time(&j, "time", e->time);
	json_put_string(&j, "object", e->object);
	json_put_string(&j, "id", e->id);
	json_put_string(&j, "name", e->name);
	json_put_word(&j, "kind", e->kind);
	json_put_string(&j, "state", e->state);
	json_put_word(&j, "reason", e->reason);
	json_put_integer(&j, "exit_code", e->exit_code);
	json_put_string(&j, "resume_token", e->resume_token);
	json_put_end(&j);
}

static void events_line(const Nacre__V1__EventsResponse *e)
{
	const char *object = str_eq(e->object, "workload") && *e->kind ? e->kind : e->object;
	_cleanup_str_ char *line = NULL;
	char time[CLOCK_TEXT_SIZE];

	clock_format(time, e->time);
	line = xformat("%s %s %s %s%s%s", time, object, e->name, e->state, *e->reason ? ": " : "",
		       e->reason);
	str_clean(line);
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
	if (output_flush() < 0)
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

	client = client_open(&cli->daemon, &err);
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
