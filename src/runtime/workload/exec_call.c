/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/exec_call.h"

#include <signal.h>

#include "api/instance.pb-c.h"
#include "api/nacre.pb-c.h"
#include "base/text/signal_name.h"
#include "base/text/str.h"
#include "image/image.h"
#include "keeper/server/passing.h"
#include "pod/restart/restart.h"
#include "pod/workload/stop_signal.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/check.h"
#include "runtime/core/target.h"
#include "runtime/services.h"
#include "runtime/workload/console_call.h"

#define METHOD(name) "/nacre.instance.v1.InstanceService/" name

/* The keeper that a container lives in. */
static int exec_peer(const struct pod_container *c, struct peer **ret, struct error *err)
{
	const struct workload *w = c->workload;

	*ret = w->instance ? w->instance->peer : NULL;
	if (!*ret)
		return error_refuse(err, ERROR_UNAVAILABLE, "the keeper of %s is gone", w->path);
	return 0;
}

static int exec_running_peer(const struct pod_container *c, struct peer **ret, struct error *err)
{
	if (c->status.state != CONTAINER_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION, "%s/%s is %s, not running",
				    c->workload->path, c->name, pod_container_state_word(c));
	return exec_peer(c, ret, err);
}

static int exec_check_size(const Nacre__V1__TerminalSize *size, struct error *err)
{
	return size ? check_size("terminal", size->width, size->height, err) : 0;
}

static Nacre__Instance__V1__TerminalSize *exec_size(const Nacre__V1__TerminalSize *from,
						    Nacre__Instance__V1__TerminalSize *to)
{
	if (!from)
		return NULL;
	nacre__instance__v1__terminal_size__init(to);
	to->width = from->width;
	to->height = from->height;
	return to;
}

/* ---- Exec ---- */

static int exec_check(const Nacre__V1__ExecRequest *q, struct error *err)
{
	int r = check_words("command", q->command, q->n_command, err);

	if (r == 0)
		r = check_env("env", q->env, q->n_env, err);
	if (r == 0)
		r = check_dir("working_dir", q->working_dir, err);
	if (r == 0)
		r = check_user("user", q->user, err);
	if (r == 0)
		r = exec_check_size(q->terminal, err);
	if (r == 0 && q->input)
		r = error_field(err, ERROR_INVALID, "input", "not in the first message");
	if (r == 0 && q->detach && q->stdin)
		r = error_field(err, ERROR_INVALID, "stdin",
				"not with detach: nobody stays who could send it");
	return r;
}

static int exec_find(struct workload_service *s, const Nacre__V1__ExecRequest *q,
		     struct pod_container **ret, struct peer **ret_peer, struct error *err)
{
	int r;

	if (!q)
		return error_field(err, ERROR_INVALID, "target",
				   "the first message, which names it, is missing");
	r = target_container(s, q->target, q->container, ret, err);
	if (r == 0)
		r = target_refuse_machine((*ret)->workload, "nothing can be run in it from outside",
					  err);
	if (r == 0)
		r = exec_check(q, err);
	if (r == 0 && (*ret)->workload->kind == WORKLOAD_EXECUTABLE)
		r = error_field(err, ERROR_INVALID, "target",
				"%s is an executable, there is no container to run in",
				(*ret)->workload->path);
	if (r == 0)
		r = exec_running_peer(*ret, ret_peer, err);
	if (r == 0 && (*ret)->paused)
		r = error_refuse(err, ERROR_PRECONDITION,
				 "%s/%s is paused: unpause it before a program is started in it",
				 (*ret)->workload->path, (*ret)->name);
	return r;
}

void exec_call_exec(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__ExecRequest *q = (const Nacre__V1__ExecRequest *)(const void *)request;
	Nacre__Instance__V1__ExecRequest m = NACRE__INSTANCE__V1__EXEC_REQUEST__INIT;
	Nacre__Instance__V1__TerminalSize size;
	struct error err = ERROR_INIT;
	struct pod_container *c;
	struct peer *peer;

	if (exec_find(userdata, q, &c, &peer, &err) < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	m.id = c->id;
	m.argv = q->command;
	m.n_argv = q->n_command;
	m.env = q->env;
	m.n_env = q->n_env;
	m.cwd = q->working_dir;
	m.user = q->user;
	m.timeout_ms = q->timeout_ms;
	m.stdin = q->stdin;
	m.tty = q->tty;
	m.detach = q->detach;
	m.terminal = exec_size(q->terminal, &size);
	passing_begin(peer, call, METHOD("Exec"), &m.base);
}

/* ---- Attach ---- */

static int attach_find(struct workload_service *s, const Nacre__V1__AttachRequest *q,
		       struct pod_container **ret, struct peer **ret_peer, struct error *err)
{
	const struct pod_container *c;
	int r;

	if (!q)
		return error_field(err, ERROR_INVALID, "target",
				   "the first message, which names it, is missing");
	r = target_container(s, q->target, q->container, ret, err);
	if (r == 0)
		r = exec_check_size(q->terminal, err);
	if (r == 0 && q->input)
		r = error_field(err, ERROR_INVALID, "input", "not in the first message");
	if (r < 0)
		return r;
	c = *ret;
	if (q->stdin && !c->stdin_open)
		return error_field(err, ERROR_PRECONDITION, "stdin", "%s/%s was started without",
				   c->workload->path, c->name);
	/* It has a console, and nobody to ask. */
	if (c->workload->kind == WORKLOAD_VM)
		return 0;
	/* Its keeper has what it wrote last until it is taken down. */
	if (pod_container_has_ended(c) && exec_peer(c, ret_peer, NULL) == 0)
		return 0;
	if (c->status.state != CONTAINER_DRAINING)
		return exec_running_peer(c, ret_peer, err);
	return exec_peer(c, ret_peer, err);
}

void exec_call_attach(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__AttachRequest *q = (const Nacre__V1__AttachRequest *)(const void *)request;
	Nacre__Instance__V1__AttachRequest m = NACRE__INSTANCE__V1__ATTACH_REQUEST__INIT;
	Nacre__Instance__V1__TerminalSize size;
	struct error err = ERROR_INIT;
	struct pod_container *c;
	struct peer *peer = NULL;
	int r = attach_find(userdata, q, &c, &peer, &err);

	if (r == 0 && !peer) {
		r = console_call_start(call, userdata, c, q, &err);
		if (r == 0)
			return;
	}
	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	m.id = c->id;
	m.stdin = q->stdin;
	m.replay = q->replay;
	m.terminal = exec_size(q->terminal, &size);
	passing_begin(peer, call, METHOD("Attach"), &m.base);
}

/* ---- Signal, WriteStdin ---- */

static void signal_done(void *userdata, const struct error *err)
{
	Nacre__V1__SignalResponse m = NACRE__V1__SIGNAL_RESPONSE__INIT;

	if (err)
		rpc_call_fail(userdata, err);
	else
		rpc_call_reply(userdata, &m.base);
}

/* Whether somebody wants it to end. */
static bool exec_signal_ends(const struct pod_container *c, int sig)
{
	const char *word = c->image ? c->image->config.stop_signal : "";

	return sig == SIGKILL || sig == stop_signal_parse(word);
}

void exec_call_signal(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__SignalRequest *q = (const Nacre__V1__SignalRequest *)(const void *)request;
	struct error err = ERROR_INIT;
	struct pod_container *c;
	struct peer *peer = NULL;
	int r;

	r = target_container(userdata, q->target, q->container, &c, &err);
	if (r == 0)
		r = target_refuse_machine(c->workload, "no signal reaches what runs in it", &err);
	if (r == 0 && q->probe && q->signal)
		r = error_field(&err, ERROR_INVALID, "signal", "a probe sends none");
	if (r == 0 && !q->probe && (q->signal < 1 || q->signal > SIGNAL_MAX_NUMBER))
		r = error_field(&err, ERROR_INVALID, "signal", "%u is not from 1 to %d", q->signal,
				SIGNAL_MAX_NUMBER);
	if (r == 0)
		r = exec_running_peer(c, &peer, &err);
	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	if (q->probe) {
		signal_done(call, NULL);
		return;
	}
	if (exec_signal_ends(c, (int)q->signal))
		restart_rest(c->workload);
	peer->ops->signal(peer, c->id, (int)q->signal, false, signal_done, call);
}

void exec_call_write_stdin(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__WriteStdinRequest *q =
		(const Nacre__V1__WriteStdinRequest *)(const void *)request;
	Nacre__Instance__V1__WriteStdinRequest m = NACRE__INSTANCE__V1__WRITE_STDIN_REQUEST__INIT;
	struct error err = ERROR_INIT;
	struct pod_container *c;
	struct peer *peer = NULL;
	int r;

	r = target_container(userdata, q->target, q->container, &c, &err);
	if (r == 0)
		r = target_refuse_machine(c->workload, "attach to its console", &err);
	if (r == 0 && !c->stdin_open)
		r = error_refuse(&err, ERROR_PRECONDITION, "%s/%s was not started with stdin",
				 c->workload->path, c->name);
	if (r == 0)
		r = exec_running_peer(c, &peer, &err);
	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	m.id = c->id;
	m.data = q->data;
	m.close = q->close;
	passing_begin(peer, call, METHOD("WriteStdin"), &m.base);
}
