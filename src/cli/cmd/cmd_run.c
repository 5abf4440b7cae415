/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/cmd/id_file.h"
#include "cli/cmd/pull.h"
#include "cli/options/labels.h"
#include "cli/options/net_words.h"
#include "cli/options/restart_option.h"
#include "cli/options/spec.h"
#include "cli/options/volumes_from.h"
#include "cli/output/alloc.h"
#include "cli/output/output.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/remote/each.h"
#include "cli/remote/session.h"
#include "cli/table/command.h"
#include "loop/loop.h"

/*
 * A run in the foreground is a handful of calls over one connection. RunPod comes first, with
 * hold_output, then Attach with what was written by then, so that nothing is missed between the two
 * and no file is read; signals become Stop. Once that has ended, Wait tells the exit status, and
 * Remove clears away. Where Attach puts us off, because whoever reads our output took nothing of it
 * for too long, the rest comes from Logs.
 *
 * The daemon's auto_remove is only for a detached run: here the record must outlive the container
 * until its output and its exit code have been read.
 */

#define RUN_GRACE_MS 10000

struct run {
	struct client *client;
	char *target; /* NULL until the pod has been started */
	char *name;
	struct session session;
	struct client_call start;
	struct client_call logs;
	struct client_call stop;
	struct client_call pass;
	uint64_t skip[2]; /* bytes of stdout and stderr that Attach has brought */
	int n_signals;
	int abandoned; /* the signal that ended our own patience, or 0 */
	int cid_fd;    /* of --cidfile; -1: none */
	int pid_fd;    /* of --pidfile, likewise */
	bool detach;   /* we do not stay with it */
	bool left;     /* the pod goes on without us */
	bool unread;   /* nobody reads the output any more */
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

static bool run_leave(struct run *r, int sig)
{
	r->abandoned = sig;
	r->start.done = true;
	r->logs.done = true;
	return true;
}

static void run_pass_signal(struct run *r, int sig)
{
	Nacre__V1__SignalRequest request = NACRE__V1__SIGNAL_REQUEST__INIT;

	client_call_done(&r->pass);
	request.target = r->target;
	request.signal = (uint32_t)sig;
	client_call_start(r->client, &r->pass, "/nacre.v1.WorkloadService/Signal", &request.base);
}

/* SIGINT and SIGTERM: the first asks, the second kills, the third leaves. */
static bool run_signal(struct session *session, int sig)
{
	struct run *r = container_of(session, struct run, session);

	if (sig != SIGINT && sig != SIGTERM) {
		/* Our terminal has gone, or somebody wants us to go: the pod has its own. */
		if (session->tty && (sig == SIGHUP || sig == SIGQUIT))
			return run_leave(r, sig);
		if (r->target)
			run_pass_signal(r, sig);
		return false;
	}
	r->n_signals++;
	if (r->n_signals > 2 || (r->n_signals > 1 && !r->target))
		return run_leave(r, sig);
	if (r->target)
		run_stop(r, r->n_signals == 1 ? RUN_GRACE_MS : 0);
	return false;
}

/* As a broken pipe would end a program in its place: at once. A grace would only let it fill the
 * log that nobody reads. */
static bool run_unread(struct session *session)
{
	struct run *r = container_of(session, struct run, session);

	r->unread = true;
	run_stop(r, 0);
	return false;
}

static void run_logs(struct client_call *call, const ProtobufCMessage *message)
{
	struct run *r = container_of(call, struct run, logs);
	const Nacre__V1__LogsResponse *m = (const Nacre__V1__LogsResponse *)message;
	bool is_stderr = m->stream == NACRE__V1__LOGS_RESPONSE__STREAM__STREAM_STDERR;
	size_t known = (size_t)MIN(r->skip[is_stderr], (uint64_t)m->data.len);

	r->skip[is_stderr] -= known;
	if (r->unread)
		return;
	if (session_write(&r->session, is_stderr ? STDERR_FILENO : STDOUT_FILENO,
			  m->data.data + known, m->data.len - known) < 0)
		(void)run_unread(&r->session);
}

static void run_done(struct run *r)
{
	client_call_done(&r->start);
	client_call_done(&r->logs);
	client_call_done(&r->stop);
	client_call_done(&r->pass);
	session_done(&r->session);
	r->client = client_free(r->client);
	r->cid_fd = fd_close(r->cid_fd);
	r->pid_fd = fd_close(r->pid_fd);
}

/* Why it ended, where that is more than that its program did: of the pod, or of its one container.
 * Empty: nothing is to be told. */
static const char *run_reason(const Nacre__V1__Workload *w)
{
	if (!w)
		return "";
	return *w->reason || w->n_containers != 1 ? w->reason : w->containers[0]->reason;
}

static int run_tell(const Nacre__V1__WaitResponse *answer)
{
	const char *reason = run_reason(answer->workload);

	if (*reason)
		(void)cli_complain("%s", reason);
	return answer->exit_code;
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
	return answer ? run_tell(answer) : cli_fail(&err);
}

static int run_remove(struct run *r, int status)
{
	return remove_by_force(r->client, r->target, status);
}

/* The connection, or the keeper behind it, has gone: the pod need not have. */
static int run_fail(struct run *r, const struct error *err)
{
	_cleanup_message_ Nacre__V1__WaitResponse *answer = NULL;

	if (err->kind != ERROR_UNAVAILABLE)
		return cli_fail(err);
	answer = session_after_loss(r->client, r->target);
	if (answer)
		return run_tell(answer);
	r->left = true;
	return cli_complain("%s; %s goes on without us", error_text(err), r->name);
}

/* What Attach could not bring, from the log. */
static int run_read_log(struct run *r)
{
	Nacre__V1__LogsRequest request = NACRE__V1__LOGS_REQUEST__INIT;

	r->skip[0] = r->session.received[0];
	r->skip[1] = r->session.received[1];
	request.target = r->target;
	request.follow = true;
	client_call_start(r->client, &r->logs, "/nacre.v1.WorkloadService/Logs", &request.base);
	(void)client_call_wait(r->client, &r->logs);
	if (r->abandoned)
		return 128 + r->abandoned;
	return r->logs.err.code ? run_fail(r, &r->logs.err) : run_result(r);
}

static int run_report(struct run *r)
{
	const struct session *s = &r->session;

	switch (s->end) {
	case SESSION_EXITED:
		return run_result(r);
	case SESSION_LEFT:
		r->left = true;
		return s->status;
	case SESSION_DETACHED:
		r->left = true;
		(void)cli_complain("left %s, which goes on; `nacre attach %s` comes back", r->name,
				   r->name);
		return 0;
	case SESSION_UNREAD:
	case SESSION_BEHIND:
		return run_read_log(r);
	case SESSION_FAILED:
		break;
	}
	return s->tty ? run_fail(r, &s->err) : run_read_log(r);
}

static int run_follow(struct run *r)
{
	Nacre__V1__AttachRequest request = NACRE__V1__ATTACH_REQUEST__INIT;
	Nacre__V1__TerminalSize size;

	request.target = r->target;
	request.replay = true;
	request.stdin = r->session.stdin;
	if (r->session.tty)
		request.terminal = session_size(&size);
	if (r->n_signals > 0)
		run_stop(r, RUN_GRACE_MS);
	session_run(&r->session, &request.base);
	return run_report(r);
}

static void run_start(struct run *r, const Aurae__Runtime__V0__RunPodRequest *request)
{
	client_call_start(r->client, &r->start, "/aurae.runtime.v0.RuntimeService/RunPod",
			  &request->base);
	(void)client_call_wait(r->client, &r->start);
}

/*
 * Most images are there, so that the pod is asked for first; what there is not is pulled then, and
 * it is asked for again. 0, or an exit status.
 */
static int run_start_pulled(struct run *r, const struct args *args,
			    const Aurae__Runtime__V0__RunPodRequest *request)
{
	const char *image = request->containers[0]->image;
	struct error err = ERROR_INIT;
	enum pull_when when;
	int status = 0;

	if (pull_when_read(&when, args_value(args, "pull"), &err) < 0)
		return cli_fail(&err);
	if (pull_is_first(when))
		status = pull_image_quietly(r->client, when, image, args_flag(args, "quiet"));
	if (status < 0)
		return -status;
	run_start(r, request);
	if (r->abandoned || when != PULL_MISSING || r->start.err.kind != ERROR_NOT_FOUND)
		return 0;
	status = pull_image_quietly(r->client, when, image, args_flag(args, "quiet"));
	if (status > 0) {
		client_call_done(&r->start);
		r->start = (struct client_call){ .type = r->start.type };
		run_start(r, request);
	}
	return status < 0 ? -status : 0;
}

/* Of its program, by the node's numbers. */
static int run_write_pid(struct run *r, const struct args *args,
			 const Aurae__Runtime__V0__RunPodResponse *answer)
{
	_cleanup_str_ char *pid = xformat(
		"%lld", answer->n_containers > 0 ? (long long)answer->containers[0]->pid : 0);

	return id_file_write(r->pid_fd, args, "pidfile", pid);
}

static int run_pod(struct run *r, const struct cli *cli, const struct args *args,
		   const Aurae__Runtime__V0__RunPodRequest *request)
{
	const Aurae__Runtime__V0__RunPodResponse *answer;
	int status = run_start_pulled(r, args, request);

	if (status)
		return status;
	if (r->abandoned)
		return 128 + r->abandoned;
	if (r->start.err.code)
		return cli_fail(&r->start.err);
	answer = (const Aurae__Runtime__V0__RunPodResponse *)r->start.answer;
	if (!answer)
		return cli_complain("the daemon's answer is empty");
	if (id_file_write(r->cid_fd, args, "cidfile", answer->id) < 0)
		return CLI_FAILED;
	r->target = answer->id;
	r->name = answer->name;
	if (run_write_pid(r, args, answer) < 0)
		return CLI_FAILED;
	status = spec_report(answer->containers, answer->n_containers);
	if (r->detach) {
		if (cli->json)
			view_started(answer->id, answer->name, answer->kind, answer->kind_reason);
		else
			(void)puts(answer->id);
		return status;
	}
	if (!status)
		status = run_follow(r);
	return args_flag(args, "rm") && !r->left ? run_remove(r, status) : status;
}

/* The connection, and where we stay with the pod what a terminal needs. */
static int run_open(struct run *r, const struct cli *cli, const struct args *args,
		    struct error *err)
{
	int code;

	r->session.on_signal = run_signal;
	r->session.on_unread = run_unread;
	r->session.fall_back = !r->session.tty;
	code = spec_detach(&r->session.keys, args, r->session.tty, err);
	if (code == 0 && !r->detach)
		code = session_check_tty(r->session.tty, r->session.stdin, err);
	if (code < 0)
		return code;
	if (!r->client)
		r->client = client_open(&cli->daemon, err);
	if (!r->client)
		return err->code;
	r->session.client = r->client;
	return r->detach ? 0 : session_init(&r->session, err);
}

static Aurae__Runtime__V0__TerminalSize *run_size(Aurae__Runtime__V0__TerminalSize *to)
{
	Nacre__V1__TerminalSize size;

	aurae__runtime__v0__terminal_size__init(to);
	if (!session_size(&size))
		return NULL;
	to->width = size.width;
	to->height = size.height;
	return to;
}

#define RUN_INIT(start_type)                                                                       \
	{                                                                                          \
		.start = { .type = (start_type) },                                                 \
		.logs = { .type = &nacre__v1__logs_response__descriptor, .on_message = run_logs }, \
		.stop = { .type = &nacre__v1__stop_response__descriptor, .on_end = run_stop_end }, \
		.pass = { .type = &nacre__v1__signal_response__descriptor }, .cid_fd = -1,         \
		.pid_fd = -1,                                                                      \
	}

/* detach: its id is printed, and nobody stays with it. */
static int run_command(const struct cli *cli, const struct args *args, bool detach, bool create)
{
	_cleanup_(run_done) struct run run =
		RUN_INIT(&aurae__runtime__v0__run_pod_response__descriptor);
	_cleanup_(spec_container_done) struct spec_container spec = { .env = { .list = NULL } };
	_cleanup_(spec_nic_done) struct spec_nic nic = { .words = NULL };
	_cleanup_(net_words_done) struct net_words net = { .words = NULL };
	_cleanup_(pod_options_done) struct pod_options shared = { .sysctls = NULL };
	_cleanup_(volumes_from_done) struct volumes_from from = VOLUMES_FROM_INIT;
	Aurae__Runtime__V0__RunPodRequest request = AURAE__RUNTIME__V0__RUN_POD_REQUEST__INIT;
	Aurae__Runtime__V0__Meta meta = AURAE__RUNTIME__V0__META__INIT;
	_cleanup_(labels_done) struct labels labels = { .list = NULL };
	Aurae__Runtime__V0__RestartPolicy restart;
	Aurae__Runtime__V0__TerminalSize size;
	struct error err = ERROR_INIT;
	int status;

	if (spec_container_init(&spec, args, &err) < 0 || spec_nic_init(&nic, args, &err) < 0 ||
	    net_words_init(&net, args, &request.pod_network, &err) < 0 ||
	    net_words_networks(&net, args, &request, &err) < 0 ||
	    labels_init(&labels, &meta, args, &err) < 0 ||
	    pod_options_take(&shared, args, &request.security, &err) < 0 ||
	    (args_flag(args, "rm") && health_options_check_stays(&spec.health, &err) < 0) ||
	    restart_option_read(&request.restart, &restart, args, args_flag(args, "rm"), &err) < 0)
		return cli_fail(&err);
	run.detach = detach;
	run.session.stdin = args_flag(args, "interactive");
	run.session.tty = args_flag(args, "tty");
	request.create_only = create;
	request.nics = nic.list;
	request.n_nics = nic.list[0] ? 1 : 0;
	spec.message.stdin = args_flag(args, "interactive");
	spec.message.tty = args_flag(args, "tty");
	spec.message.terminal = spec.message.tty ? run_size(&size) : NULL;
	spec.message.hold_output = !detach;
	request.meta = &meta;
	request.containers = spec.list;
	request.n_containers = 1;
	request.auto_remove = detach && args_flag(args, "rm");
	request.remove_failed = args_flag(args, "rm");
	spec_set(&meta.name, args_value(args, "name"));
	spec_set(&request.parent, args_value(args, "in"));
	spec_set(&request.kind, args_value(args, "kind"));
	request.cold = args_flag(args, "cold");
	if (run_open(&run, cli, args, &err) < 0 ||
	    volumes_from_take(&from, run.client, args, &spec.message, &err) < 0 ||
	    id_file_open(args, "cidfile", &run.cid_fd, &err) < 0 ||
	    (!create && id_file_open(args, "pidfile", &run.pid_fd, &err) < 0))
		return cli_fail(&err);
	status = replace_named(run.client, args);
	if (!status)
		status = run_pod(&run, cli, args, &request);
	if (run.cid_fd >= 0 && !run.target)
		id_file_drop(args, "cidfile");
	if (run.pid_fd >= 0 && !run.target)
		id_file_drop(args, "pidfile");
	return status;
}

int cmd_run(const struct cli *cli, const struct args *args)
{
	return run_command(cli, args, args_flag(args, "detach"), false);
}

int cmd_create(const struct cli *cli, const struct args *args)
{
	return run_command(cli, args, true, true);
}

/* ---- start --attach ---- */

/* What its one container has of our terminal. */
static int start_look(struct run *r, const struct args *args, struct error *err)
{
	Nacre__V1__InspectRequest request = NACRE__V1__INSPECT_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InspectResponse *answer = NULL;
	const Nacre__V1__Workload *w;

	request.target = args->operands[0];
	answer = client_ask(r->client, "/nacre.v1.WorkloadService/Inspect", &request.base,
			    &nacre__v1__inspect_response__descriptor, err);
	if (!answer)
		return err->code;
	w = answer->workload;
	if (!w || w->n_containers != 1)
		return error_refuse(err, ERROR_INVALID,
				    "--attach is for what has one container: start %s, then `nacre "
				    "attach --container NAME`",
				    args->operands[0]);
	if (str_eq(w->state, "running"))
		return error_refuse(err, ERROR_PRECONDITION, "%s runs already: attach to it",
				    w->name);
	r->session.tty = w->containers[0]->tty;
	r->session.stdin = args_flag(args, "interactive");
	return 0;
}

static int start_attached(const struct cli *cli, const struct args *args)
{
	_cleanup_(run_done) struct run run = RUN_INIT(&nacre__v1__start_response__descriptor);
	Nacre__V1__StartRequest request = NACRE__V1__START_REQUEST__INIT;
	const Nacre__V1__StartResponse *answer;
	struct error err = ERROR_INIT;

	run.client = client_open(&cli->daemon, &err);
	if (!run.client || start_look(&run, args, &err) < 0 || run_open(&run, cli, args, &err) < 0)
		return cli_fail(&err);
	request.target = args->operands[0];
	request.hold_output = true;
	client_call_start(run.client, &run.start, "/nacre.v1.WorkloadService/Start", &request.base);
	(void)client_call_wait(run.client, &run.start);
	if (run.abandoned)
		return 128 + run.abandoned;
	if (run.start.err.code)
		return cli_fail(&run.start.err);
	answer = (const Nacre__V1__StartResponse *)run.start.answer;
	if (!answer || !answer->workload)
		return cli_complain("the daemon's answer is empty");
	run.target = answer->workload->id;
	run.name = answer->workload->name;
	return run_follow(&run);
}

int cmd_start(const struct cli *cli, const struct args *args)
{
	Nacre__V1__StartRequest request = NACRE__V1__START_REQUEST__INIT;

	if (args_flag(args, "interactive") && !args_flag(args, "attach"))
		return cli_complain("--interactive is for --attach");
	if (args_flag(args, "attach") && args_value(args, "container"))
		return cli_complain("--attach is for all of it: start the container, then `nacre "
				    "attach --container NAME`");
	spec_set(&request.container, args_value(args, "container"));
	if (args_flag(args, "attach"))
		return args->n_operands == 1 ? start_attached(cli, args)
					     : cli_complain("--attach is for one TARGET");
	return each_operand(cli, args,
			    &(struct each_call){ "/nacre.v1.WorkloadService/Start", &request.base,
						 &request.target,
						 &nacre__v1__start_response__descriptor, true });
}
