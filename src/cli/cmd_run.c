/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/str.h"
#include "cli/alloc.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/handlers.h"
#include "cli/output.h"
#include "cli/spec.h"
#include "cli/view.h"
#include "loop/loop.h"

/*
 * A run in the foreground is a handful of calls over one connection. RunPod comes first; then Logs
 * is followed while standard input is forwarded, one WriteStdin at a time, and signals become Stop.
 * Once the output has ended, Wait tells the exit status, and Remove clears away.
 *
 * The daemon's auto_remove is only for a detached run: here the record must outlive the container
 * until its output and its exit code have been read.
 */

#define RUN_GRACE_MS 10000
#define RUN_STDIN_CHUNK 65536

struct run {
	struct client *client;
	char *target; /* NULL until the pod has been started */
	struct client_call start;
	struct client_call logs;
	struct client_call input;
	struct client_call stop;
	struct loop_fd stdin_source;
	struct loop_signal signals;
	int n_signals;
	int abandoned; /* the signal that ended our own patience, or 0 */
	bool interactive;
	bool unread; /* nobody reads the output any more */
	uint8_t *chunk;
};

static void run_stop(struct run *r, uint64_t grace_ms)
{
	Nacre__V1__StopRequest request = NACRE__V1__STOP_REQUEST__INIT;

	client_call_done(&r->stop);
	request.target = r->target;
	request.grace_ms = grace_ms;
	client_call_start(r->client, &r->stop, "/nacre.v1.WorkloadService/Stop", &request.base);
}

/* What has gone already needs no stopping. */
static void run_stop_end(struct client_call *call)
{
	if (call->err.code && call->err.kind != ERROR_NOT_FOUND)
		(void)cli_fail(&call->err);
}

/* The first asks, the second kills, the third leaves. */
static void run_signal(struct loop_signal *source, int sig, pid_t sender)
{
	struct run *r = container_of(source, struct run, signals);

	r->n_signals++;
	if (r->n_signals > 2 || (r->n_signals > 1 && !r->target)) {
		r->abandoned = sig;
		r->start.done = true;
		r->logs.done = true;
		return;
	}
	if (r->target)
		run_stop(r, r->n_signals == 1 ? RUN_GRACE_MS : 0);
}

static void run_logs(struct client_call *call, const ProtobufCMessage *message)
{
	struct run *r = container_of(call, struct run, logs);
	const Nacre__V1__LogsResponse *m = (const Nacre__V1__LogsResponse *)message;
	bool is_stderr = m->stream == NACRE__V1__LOGS_RESPONSE__STREAM__STREAM_STDERR;

	if (r->unread)
		return;
	if (output_write(is_stderr ? STDERR_FILENO : STDOUT_FILENO, m->data.data, m->data.len) == 0)
		return;
	/* As a broken pipe would end a program in its place: at once. A grace would only let it
	 * fill the log that nobody reads. */
	r->unread = true;
	run_stop(r, 0);
}

static void run_input(struct loop_fd *source, unsigned events)
{
	struct run *r = container_of(source, struct run, stdin_source);
	Nacre__V1__WriteStdinRequest request = NACRE__V1__WRITE_STDIN_REQUEST__INIT;
	ssize_t n = read(STDIN_FILENO, r->chunk, RUN_STDIN_CHUNK);

	/* An error ends the input as its end does, except where there is only nothing yet. */
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	loop_fd_set(source, 0);
	request.target = r->target;
	request.data.data = r->chunk;
	request.data.len = n > 0 ? (size_t)n : 0;
	request.close = n <= 0;
	if (n <= 0)
		loop_fd_done(source);
	client_call_start(r->client, &r->input, "/nacre.v1.WorkloadService/WriteStdin",
			  &request.base);
}

/* A container that has closed its input or ended takes no more; that is no failure of the run. */
static void run_input_end(struct client_call *call)
{
	struct run *r = container_of(call, struct run, input);

	if (call->err.code)
		loop_fd_done(&r->stdin_source);
	else if (r->stdin_source.loop)
		loop_fd_set(&r->stdin_source, LOOP_READ);
}

static void run_done(struct run *r)
{
	loop_fd_done(&r->stdin_source);
	loop_signal_done(&r->signals);
	client_call_done(&r->start);
	client_call_done(&r->logs);
	client_call_done(&r->input);
	client_call_done(&r->stop);
	r->client = client_free(r->client);
	free(r->chunk);
}

/* The exit status; the container has ended, or is about to. */
static int run_result(struct run *r)
{
	Nacre__V1__WaitRequest request = NACRE__V1__WAIT_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__WaitResponse *answer = NULL;
	struct error err = ERROR_INIT;

	request.target = r->target;
	answer = client_ask(r->client, "/nacre.v1.WorkloadService/Wait", &request.base,
			    &nacre__v1__wait_response__descriptor, &err);
	if (!answer)
		return cli_fail(&err);
	/* Where the pod's end was not its container's doing there is a reason to tell. */
	if (answer->workload && *answer->workload->reason)
		(void)cli_complain("%s", answer->workload->reason);
	return answer->exit_code;
}

static int run_remove(struct run *r, int status)
{
	Nacre__V1__RemoveRequest request = NACRE__V1__REMOVE_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__RemoveResponse *answer = NULL;
	struct error err = ERROR_INIT;

	request.target = r->target;
	request.force = true;
	answer = client_ask(r->client, "/nacre.v1.WorkloadService/Remove", &request.base,
			    &nacre__v1__remove_response__descriptor, &err);
	if (answer || err.kind == ERROR_NOT_FOUND)
		return status;
	(void)cli_fail(&err);
	return status ? status : CLI_FAILED;
}

static int run_follow(struct run *r)
{
	Nacre__V1__LogsRequest request = NACRE__V1__LOGS_REQUEST__INIT;

	request.target = r->target;
	request.follow = true;
	if (r->n_signals > 0)
		run_stop(r, RUN_GRACE_MS);
	if (r->interactive) {
		r->chunk = xrealloc(NULL, RUN_STDIN_CHUNK, 1);
		loop_fd_init(&r->stdin_source, client_loop(r->client), STDIN_FILENO, LOOP_READ,
			     run_input);
	}
	client_call_start(r->client, &r->logs, "/nacre.v1.WorkloadService/Logs", &request.base);
	(void)client_call_wait(r->client, &r->logs);
	loop_fd_done(&r->stdin_source);
	if (r->abandoned)
		return 128 + r->abandoned;
	if (r->logs.err.code)
		return cli_fail(&r->logs.err);
	return run_result(r);
}

static int run_pod(struct run *r, const struct cli *cli, const struct args *args,
		   const Aurae__Runtime__V0__RunPodRequest *request)
{
	const Aurae__Runtime__V0__RunPodResponse *answer;
	int status;

	client_call_start(r->client, &r->start, "/aurae.runtime.v0.RuntimeService/RunPod",
			  &request->base);
	(void)client_call_wait(r->client, &r->start);
	if (r->abandoned)
		return 128 + r->abandoned;
	if (r->start.err.code)
		return cli_fail(&r->start.err);
	answer = (const Aurae__Runtime__V0__RunPodResponse *)r->start.answer;
	if (!answer)
		return cli_complain("the daemon's answer is empty");
	r->target = answer->id;
	status = spec_report(answer->containers, answer->n_containers);
	if (args_flag(args, "detach")) {
		if (cli->json)
			view_started(answer->id, answer->name, answer->kind, answer->kind_reason);
		else
			(void)puts(answer->id);
		return status;
	}
	if (!status)
		status = run_follow(r);
	return args_flag(args, "rm") && !r->abandoned ? run_remove(r, status) : status;
}

static int run_open(struct run *r, const struct cli *cli, bool detach, struct error *err)
{
	static const int signals[] = { SIGINT, SIGTERM };
	int code;

	r->client = client_open(cli->socket, err);
	if (!r->client)
		return err->code;
	if (detach)
		return 0;
	code = loop_signal_init(&r->signals, client_loop(r->client), signals, ARRAY_SIZE(signals),
				run_signal);
	return code < 0 ? error_set(err, code, "listen to signals") : 0;
}

int cmd_run(const struct cli *cli, const struct args *args)
{
	_cleanup_(run_done) struct run run = {
		.start = { .type = &aurae__runtime__v0__run_pod_response__descriptor },
		.logs = { .type = &nacre__v1__logs_response__descriptor, .on_message = run_logs },
		.input = { .type = &nacre__v1__write_stdin_response__descriptor,
			   .on_end = run_input_end },
		.stop = { .type = &nacre__v1__stop_response__descriptor, .on_end = run_stop_end },
	};
	_cleanup_(spec_container_done) struct spec_container spec = { .env = { .list = NULL } };
	Aurae__Runtime__V0__RunPodRequest request = AURAE__RUNTIME__V0__RUN_POD_REQUEST__INIT;
	Aurae__Runtime__V0__Meta meta = AURAE__RUNTIME__V0__META__INIT;
	bool detach = args_flag(args, "detach");
	struct error err = ERROR_INIT;

	if (spec_container_init(&spec, args, &err) < 0)
		return cli_fail(&err);
	spec.message.stdin = args_flag(args, "interactive");
	request.meta = &meta;
	request.containers = spec.list;
	request.n_containers = 1;
	request.auto_remove = detach && args_flag(args, "rm");
	spec_set(&meta.name, args_value(args, "name"));
	spec_set(&request.parent, args_value(args, "in"));
	spec_set(&request.network, args_value(args, "network"));
	run.interactive = args_flag(args, "interactive");
	if (run_open(&run, cli, detach, &err) < 0)
		return cli_fail(&err);
	return run_pod(&run, cli, args, &request);
}
