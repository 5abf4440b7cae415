/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/options/spec.h"
#include "cli/remote/client.h"
#include "cli/remote/session.h"
#include "cli/table/command.h"

/* The container that is meant; NULL where the daemon is to say what is wrong. */
static const Nacre__V1__Container *attach_find(const Nacre__V1__Workload *w, const char *name)
{
	if (!w)
		return NULL;
	if (!name)
		return w->n_containers == 1 ? w->containers[0] : NULL;
	for (size_t i = 0; i < w->n_containers; i++)
		if (str_eq(w->containers[i]->name, name))
			return w->containers[i];
	return NULL;
}

static const char *attach_reason(const Nacre__V1__Workload *w)
{
	return w && *w->reason ? w->reason : "it has ended";
}

static int attach_report(const struct session *s, const char *target)
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
		(void)cli_complain("left %s, which goes on", target);
		return 0;
	case SESSION_UNREAD:
	case SESSION_BEHIND:
		return 0;
	case SESSION_FAILED:
		break;
	}
	if (s->err.kind != ERROR_UNAVAILABLE)
		return cli_fail(&s->err);
	answer = session_after_loss(s->client, target);
	if (!answer)
		return cli_complain("%s; %s goes on without us", error_text(&s->err), target);
	(void)cli_complain("%s: %s", target, attach_reason(answer->workload));
	return answer->exit_code;
}

static void attach_prepare(struct session *s, Nacre__V1__AttachRequest *request,
			   const struct args *args, const Nacre__V1__Container *c)
{
	request->stdin = c && c->stdin && !args_flag(args, "no-stdin");
	request->replay = args_flag(args, "replay");
	spec_set(&request->container, args_value(args, "container"));
	s->stdin = request->stdin;
	s->tty = c && c->tty && isatty(request->stdin ? STDIN_FILENO : STDOUT_FILENO);
}

int cmd_attach(const struct cli *cli, const struct args *args)
{
	Nacre__V1__AttachRequest request = NACRE__V1__ATTACH_REQUEST__INIT;
	Nacre__V1__InspectRequest inspect = NACRE__V1__INSPECT_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InspectResponse *found = NULL;
	_cleanup_client_ struct client *client = NULL;
	_cleanup_(session_done) struct session session = { .exec = false };
	Nacre__V1__TerminalSize size;
	struct error err = ERROR_INIT;

	client = client_open(&cli->daemon, &err);
	if (!client)
		return cli_fail(&err);
	inspect.target = request.target = args->operands[0];
	found = client_ask(client, "/nacre.v1.WorkloadService/Inspect", &inspect.base,
			   &nacre__v1__inspect_response__descriptor, &err);
	if (!found)
		return cli_fail(&err);
	session.client = client;
	attach_prepare(&session, &request, args,
		       attach_find(found->workload, args_value(args, "container")));
	if (session.tty)
		request.terminal = session_size(&size);
	if (spec_detach(&session.keys, args, session.tty, &err) < 0 ||
	    session_init(&session, &err) < 0)
		return cli_fail(&err);
	session_run(&session, &request.base);
	return attach_report(&session, args->operands[0]);
}
