/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/cmd/pull.h"
#include "cli/options/spec.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/remote/session.h"
#include "cli/table/command.h"

/*
 * A debug container in the foreground is Debug, with hold_output, and then Attach, over one
 * connection: nothing that it writes is missed, and its end is told to Attach before it is removed.
 */

#define METHOD_DEBUG "/nacre.v1.WorkloadService/Debug"

/* The request that the command line describes, with all that it points to. */
struct debug_words {
	Nacre__V1__DebugRequest request;
	Aurae__Runtime__V0__Container spec;
	Aurae__Runtime__V0__Security security;
	Aurae__Runtime__V0__TerminalSize terminal;
	struct spec_env env;
	char **caps;
};

static void debug_words_done(struct debug_words *d)
{
	spec_env_done(&d->env);
	free(d->caps);
}

static int debug_words_init(struct debug_words *d, const struct args *args, struct error *err)
{
	Nacre__V1__TerminalSize size;
	int r = spec_env_init(&d->env, args, false, err);

	if (r < 0)
		return r;
	nacre__v1__debug_request__init(&d->request);
	aurae__runtime__v0__container__init(&d->spec);
	d->request.target = args->operands[0];
	d->request.spec = &d->spec;
	d->request.cap_add = d->caps = spec_values(args, "cap-add", &d->request.n_cap_add);
	spec_set(&d->request.container, args_value(args, "container"));
	spec_set(&d->spec.image, args_value(args, "image"));
	spec_set(&d->spec.name, args_value(args, "name"));
	spec_set(&d->spec.user, args_value(args, "user"));
	spec_set(&d->spec.working_dir, args_value(args, "cwd"));
	d->spec.command = args->operands + 1;
	d->spec.n_command = args->n_operands - 1;
	d->spec.env = d->env.list;
	d->spec.n_env = d->env.n;
	d->spec.stdin = args_flag(args, "interactive");
	d->spec.tty = args_flag(args, "tty");
	d->spec.hold_output = !args_flag(args, "detach");
	if (d->spec.tty && session_size(&size)) {
		aurae__runtime__v0__terminal_size__init(&d->terminal);
		d->terminal.width = size.width;
		d->terminal.height = size.height;
		d->spec.terminal = &d->terminal;
	}
	if (args_flag(args, "privileged")) {
		aurae__runtime__v0__security__init(&d->security);
		d->security.privileged = true;
		d->spec.security = &d->security;
	}
	return 0;
}

/* Its image is pulled where it is not there, and that is wanted. NULL with *status, told already.
 */
static Nacre__V1__DebugResponse *debug_ask(struct client *client, const struct args *args,
					   const struct debug_words *d, int *status)
{
	const char *image = args_value(args, "image");
	struct error err = ERROR_INIT;
	enum pull_when when;
	void *answer = NULL;

	*status = CLI_FAILED;
	if (pull_when_read(&when, args_value(args, "pull"), &err) < 0) {
		(void)cli_fail(&err);
		return NULL;
	}
	if (!image || !pull_is_first(when))
		answer = client_ask(client, METHOD_DEBUG, &d->request.base,
				    &nacre__v1__debug_response__descriptor, &err);
	if (!answer && image && (pull_is_first(when) || str_eq(err.field, "spec.image"))) {
		int pulled = pull_image_quietly(client, when, image, args_flag(args, "quiet"));

		if (pulled < 0)
			*status = -pulled;
		if (pulled < 0)
			return NULL;
		if (pulled > 0 || pull_is_first(when))
			answer = client_ask(client, METHOD_DEBUG, &d->request.base,
					    &nacre__v1__debug_response__descriptor, &err);
	}
	if (!answer)
		(void)cli_fail(&err);
	return answer;
}

/* Its name is free when it has gone. */
static void debug_await_removal(struct client *client, const struct args *args, char *name)
{
	Nacre__V1__StopRequest request = NACRE__V1__STOP_REQUEST__INIT;
	struct error ignored = ERROR_INIT;

	request.target = args->operands[0];
	request.container = name;
	protobuf_c_message_free_unpacked(
		client_ask(client, "/nacre.v1.WorkloadService/Stop", &request.base,
			   &nacre__v1__stop_response__descriptor, &ignored),
		NULL);
}

static int debug_report(const struct session *s, const struct args *args, const char *name)
{
	switch (s->end) {
	case SESSION_EXITED:
		if (*s->reason)
			(void)cli_complain("%s", s->reason);
		return s->status;
	case SESSION_LEFT:
		return s->status;
	case SESSION_DETACHED:
		(void)cli_complain("left %s, which goes on; `nacre attach -c %s %s` comes back",
				   name, name, args->operands[0]);
		return 0;
	case SESSION_UNREAD:
		/* As the broken pipe would have ended the program in our place. */
		return 128 + SIGPIPE;
	case SESSION_BEHIND:
		return 0;
	case SESSION_FAILED:
		break;
	}
	return cli_fail(&s->err);
}

static int debug_follow(struct session *s, const struct args *args,
			const Nacre__V1__DebugResponse *answer)
{
	Nacre__V1__AttachRequest request = NACRE__V1__ATTACH_REQUEST__INIT;
	Nacre__V1__TerminalSize size;

	request.target = args->operands[0];
	request.container = answer->container->name;
	request.replay = true;
	request.stdin = s->stdin;
	if (s->tty)
		request.terminal = session_size(&size);
	session_run(s, &request.base);
	if (s->end == SESSION_EXITED)
		debug_await_removal(s->client, args, answer->container->name);
	return debug_report(s, args, answer->container->name);
}

int cmd_debug(const struct cli *cli, const struct args *args)
{
	_cleanup_(debug_words_done) struct debug_words words = { .caps = NULL };
	_cleanup_message_ Nacre__V1__DebugResponse *answer = NULL;
	_cleanup_client_ struct client *client = NULL;
	_cleanup_(session_done) struct session session = { .exec = false };
	bool detach = args_flag(args, "detach");
	struct error err = ERROR_INIT;
	int status;

	if (debug_words_init(&words, args, &err) < 0)
		return cli_fail(&err);
	session.stdin = words.spec.stdin;
	session.tty = words.spec.tty;
	if (!detach && (session_check_tty(session.tty, session.stdin, &err) < 0 ||
			spec_detach(&session.keys, args, session.tty, &err) < 0))
		return cli_fail(&err);
	client = client_open(&cli->daemon, &err);
	if (!client)
		return cli_fail(&err);
	session.client = client;
	if (!detach && session_init(&session, &err) < 0)
		return cli_fail(&err);
	answer = debug_ask(client, args, &words, &status);
	if (!answer)
		return status;
	if (!answer->container)
		return cli_complain("the daemon's answer is empty");
	if (!detach)
		return debug_follow(&session, args, answer);
	if (cli->json)
		view_started(answer->container->id, answer->container->name, "container", NULL);
	else
		(void)puts(answer->container->name);
	return 0;
}
