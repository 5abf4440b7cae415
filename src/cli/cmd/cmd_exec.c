/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "cli/cmd/handlers.h"
#include "cli/options/labels.h"
#include "cli/options/spec.h"
#include "cli/output/output.h"
#include "cli/remote/client.h"
#include "cli/remote/session.h"
#include "cli/table/command.h"

/* As the API's limit for an executable. */
#define EXECUTE_STDIN_MAX (4U << 20)

#define _cleanup_env_ _cleanup_(spec_env_done)
#define _cleanup_buf_ _cleanup_(buf_done)

static int exec_report(const struct session *s, const char *target)
{
	_cleanup_message_ Nacre__V1__WaitResponse *answer = NULL;

	switch (s->end) {
	case SESSION_EXITED:
		if (*s->reason)
			(void)cli_complain("%s", s->reason);
		return s->status;
	case SESSION_LEFT:
		return s->status;
	case SESSION_DETACHED:
		(void)cli_complain("left; the program was killed");
		return 0;
	case SESSION_UNREAD:
		/* As the broken pipe would have ended the program in our place. */
		return 128 + SIGPIPE;
	case SESSION_BEHIND:
		return 0;
	case SESSION_FAILED:
		break;
	}
	if (s->err.kind == ERROR_UNAVAILABLE)
		answer = session_after_loss(s->client, target);
	if (answer && answer->workload && *answer->workload->reason)
		return cli_complain("%s: %s", target, answer->workload->reason);
	return cli_fail(&s->err);
}

/* The words of the request are those of the command line. */
static int exec_request(Nacre__V1__ExecRequest *request, const struct args *args,
			struct spec_env *env, struct error *err)
{
	int r = spec_env_init(env, args, true, err);

	if (r == 0)
		r = spec_milliseconds(args, "timeout", 0, &request->timeout_ms, err);
	request->target = args->operands[0];
	request->command = args->operands + 1;
	request->n_command = args->n_operands - 1;
	request->env = env->list;
	request->n_env = env->n;
	request->stdin = args_flag(args, "interactive");
	request->tty = args_flag(args, "tty");
	spec_set(&request->container, args_value(args, "container"));
	spec_set(&request->user, args_value(args, "user"));
	spec_set(&request->working_dir, args_value(args, "cwd"));
	return r;
}

/* 0 when it runs; else why it does not. */
static int exec_detached(const struct cli *cli, Nacre__V1__ExecRequest *request)
{
	_cleanup_message_ Nacre__V1__ExecResponse *answer = NULL;
	struct client_call call = { .type = &nacre__v1__exec_response__descriptor };
	_cleanup_client_ struct client *client = NULL;
	struct error err = ERROR_INIT;

	request->detach = true;
	client = client_open(&cli->daemon, &err);
	if (!client)
		return cli_fail(&err);
	client_call_start(client, &call, "/nacre.v1.WorkloadService/Exec", &request->base);
	(void)client_call_wait(client, &call);
	err = call.err;
	answer = (Nacre__V1__ExecResponse *)(void *)TAKE_PTR(call.answer);
	client_call_done(&call);
	if (err.code)
		return cli_fail(&err);
	if (!answer || !answer->exit)
		return 0;
	(void)cli_complain("%s", answer->exit->reason);
	return answer->exit->exit_code;
}

int cmd_exec(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ExecRequest request = NACRE__V1__EXEC_REQUEST__INIT;
	_cleanup_env_ struct spec_env env = { .list = NULL };
	_cleanup_client_ struct client *client = NULL;
	_cleanup_(session_done) struct session session = { .exec = true };
	Nacre__V1__TerminalSize size;
	struct error err = ERROR_INIT;

	if (exec_request(&request, args, &env, &err) < 0)
		return cli_fail(&err);
	if (args_flag(args, "detach"))
		return exec_detached(cli, &request);
	if (session_check_tty(request.tty, request.stdin, &err) < 0 ||
	    spec_detach(&session.keys, args, request.tty, &err) < 0)
		return cli_fail(&err);
	client = client_open(&cli->daemon, &err);
	if (!client)
		return cli_fail(&err);
	session.client = client;
	session.stdin = request.stdin;
	session.tty = request.tty;
	if (request.tty)
		request.terminal = session_size(&size);
	if (session_init(&session, &err) < 0)
		return cli_fail(&err);
	session_run(&session, &request.base);
	return exec_report(&session, request.target);
}

static int execute_report(const Aurae__Runtime__V0__RunExecutableResponse *answer)
{
	/* A reader that has gone is none of our business any more: the program has ended. */
	(void)output_write(STDOUT_FILENO, answer->stdout.data, answer->stdout.len);
	(void)output_write(STDERR_FILENO, answer->stderr.data, answer->stderr.len);
	if (answer->stdout_truncated)
		(void)cli_complain("it wrote more to standard output than the first %zu bytes",
				   answer->stdout.len);
	if (answer->stderr_truncated)
		(void)cli_complain("it wrote more to standard error than the first %zu bytes",
				   answer->stderr.len);
	if (*answer->reason)
		(void)cli_complain("%s", answer->reason);
	return answer->exit_code;
}

int cmd_execute(const struct cli *cli, const struct args *args)
{
	Aurae__Runtime__V0__RunExecutableRequest request =
		AURAE__RUNTIME__V0__RUN_EXECUTABLE_REQUEST__INIT;
	Aurae__Runtime__V0__Executable executable = AURAE__RUNTIME__V0__EXECUTABLE__INIT;
	Aurae__Runtime__V0__Meta meta = AURAE__RUNTIME__V0__META__INIT;
	_cleanup_message_ Aurae__Runtime__V0__RunExecutableResponse *answer = NULL;
	_cleanup_(labels_done) struct labels labels = { .list = NULL };
	_cleanup_env_ struct spec_env env = { .list = NULL };
	_cleanup_buf_ struct buf input = BUF_INIT;
	struct error err = ERROR_INIT;
	int r = 0;

	if (spec_env_init(&env, args, false, &err) < 0 ||
	    spec_milliseconds(args, "timeout", 0, &executable.timeout_ms, &err) < 0 ||
	    labels_init(&labels, &meta, args, &err) < 0)
		return cli_fail(&err);
	if (args_flag(args, "interactive"))
		r = fd_read_all(STDIN_FILENO, EXECUTE_STDIN_MAX, &input);
	if (r < 0) {
		(void)error_set(&err, r, "read standard input (at most %u bytes)",
				EXECUTE_STDIN_MAX);
		return cli_fail(&err);
	}
	request.meta = &meta;
	request.executable = &executable;
	request.keep = args_flag(args, "keep");
	executable.command = args->operands[0];
	executable.args = args->operands + 1;
	executable.n_args = args->n_operands - 1;
	executable.env = env.list;
	executable.n_env = env.n;
	executable.stdin.data = input.base + input.head;
	executable.stdin.len = input.len;
	spec_set(&meta.name, args_value(args, "name"));
	spec_set(&executable.user, args_value(args, "user"));
	spec_set(&executable.comment, args_value(args, "comment"));
	spec_set(&executable.cwd, args_value(args, "cwd"));
	answer = client_ask_once(&cli->daemon, "/aurae.runtime.v0.RuntimeService/RunExecutable",
				 &request.base,
				 &aurae__runtime__v0__run_executable_response__descriptor, 0, &err);
	return answer ? execute_report(answer) : cli_fail(&err);
}
