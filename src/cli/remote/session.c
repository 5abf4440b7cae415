/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/output/output.h"

#define SESSION_CHUNK 65536
/* So many interrupts and we leave, whatever becomes of the program. */
#define SESSION_INTERRUPTS 3
/* So long a program has to end by a SIGTERM before we leave without it. */
#define SESSION_TERM_GRACE NSEC_PER_SEC
/* So long a reader that has stopped may take to go on, once a signal waits. */
#define SESSION_READER_PATIENCE_MS 1000

/* So long the daemon may take to learn that a keeper has ended, where it lost the connection. */
#define SESSION_LOSS_PATIENCE (2 * NSEC_PER_SEC)

/* ---- what we send ---- */

static void session_send(struct session *s, Nacre__V1__StreamInput *input)
{
	Nacre__V1__AttachRequest attach = NACRE__V1__ATTACH_REQUEST__INIT;
	Nacre__V1__ExecRequest exec = NACRE__V1__EXEC_REQUEST__INIT;

	exec.input = input;
	attach.input = input;
	client_call_send(&s->call, s->exec ? &exec.base : &attach.base);
}

static void session_end(struct session *s, enum session_end end, int status)
{
	if (s->ended)
		return;
	s->ended = true;
	s->end = end;
	s->status = status;
	s->call.done = true;
}

static void session_input_over(struct session *s)
{
	loop_fd_done(&s->input);
	client_call_close_send(&s->call);
}

static void session_input(struct loop_fd *source, unsigned events)
{
	struct session *s = container_of(source, struct session, input);
	Nacre__V1__StreamInput input = NACRE__V1__STREAM_INPUT__INIT;
	uint8_t *passed = s->chunk + SESSION_CHUNK;
	ssize_t n = read(STDIN_FILENO, s->chunk, SESSION_CHUNK);
	bool leave;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* An error ends the input as its end does. */
	if (n <= 0) {
		session_input_over(s);
		return;
	}
	input.data.data = passed;
	input.data.len = detach_filter(&s->keys, s->chunk, (size_t)n, passed, &leave);
	if (input.data.len > 0)
		session_send(s, &input);
	if (leave)
		session_end(s, SESSION_DETACHED, 0);
	else if (!client_call_writable(&s->call))
		loop_fd_set(source, 0);
}

static void session_writable(struct client_call *call)
{
	struct session *s = container_of(call, struct session, call);

	if (s->input.loop)
		loop_fd_set(&s->input, LOOP_READ);
}

static void session_resize(struct session *s)
{
	Nacre__V1__StreamInput input = NACRE__V1__STREAM_INPUT__INIT;
	Nacre__V1__TerminalSize size;

	input.terminal = session_size(&size);
	if (input.terminal)
		session_send(s, &input);
}

/* ---- signals ---- */

static void session_leave(struct loop_timer *timer)
{
	session_end(container_of(timer, struct session, leaving), SESSION_LEFT, 128 + SIGTERM);
}

/* Whether we leave at once. */
static bool session_is_left_by(struct session *s, int sig)
{
	/* Unread input blocks the stream: a signal sent behind it would not arrive. */
	bool blocked = s->stuck || !client_call_writable(&s->call);

	if (sig == SIGINT)
		return ++s->n_interrupts >= SESSION_INTERRUPTS || blocked;
	return sig == SIGTERM && (blocked || (s->exec && ++s->n_terminations > 1));
}

static void session_pass_signal(struct session *s, int sig)
{
	Nacre__V1__StreamInput input = NACRE__V1__STREAM_INPUT__INIT;

	if (session_is_left_by(s, sig)) {
		session_end(s, SESSION_LEFT, 128 + sig);
		return;
	}
	input.signal = (uint32_t)sig;
	session_send(s, &input);
	if (sig == SIGTERM && s->exec)
		loop_timer_set(&s->leaving, SESSION_TERM_GRACE);
}

/* Stops as a program without a terminal of its own would, and comes back. */
static void session_stop(struct session *s)
{
	tty_rest(&s->terminal);
	(void)raise(SIGSTOP);
	tty_resume(&s->terminal);
	session_resize(s);
}

static void session_signal(struct loop_signal *source, int sig, pid_t sender)
{
	struct session *s = container_of(source, struct session, signals);

	if (sig == SIGWINCH) {
		session_resize(s);
	} else if (sig == SIGTSTP) {
		session_stop(s);
	} else if (sig == SIGCONT) {
		tty_resume(&s->terminal);
		session_resize(s);
	} else if (s->on_signal) {
		if (s->on_signal(s, sig))
			session_end(s, SESSION_LEFT, 128 + sig);
	} else if (s->tty) {
		session_end(s, SESSION_LEFT, 128 + sig);
	} else {
		session_pass_signal(s, sig);
	}
}

/* ---- what comes ---- */

static void session_unread(struct session *s)
{
	if (s->unread)
		return;
	s->unread = true;
	if (!s->on_unread || s->on_unread(s))
		session_end(s, SESSION_UNREAD, 0);
}

/* An output is readable when its reader is gone. A file, or the end of a socket that also brings
 * something, is so without that, and not watched. */
static void session_reader(struct loop_fd *source, unsigned events)
{
	struct session *s = container_of(source, struct session, reader);
	struct pollfd p = { .fd = STDOUT_FILENO };
	bool gone = poll(&p, 1, 0) > 0;

	loop_fd_done(source);
	if (gone)
		session_unread(s);
}

int session_write(struct session *s, int fd, const void *data, size_t len)
{
	int r = 0;

	/* What decides for itself may still want all of the output after a signal. */
	if (!s->unread && !s->stuck)
		r = output_write_unless(fd, data, len, s->wake_fd,
					s->on_signal ? SESSION_READER_PATIENCE_MS : 0);
	if (r != -EINTR)
		return r;
	s->stuck = true; /* the loop has the signal next */
	return 0;
}

static void session_output(struct session *s, int fd, const ProtobufCBinaryData *data)
{
	s->received[fd == STDERR_FILENO] += data->len;
	if (session_write(s, fd, data->data, data->len) < 0)
		session_unread(s);
}

static void session_exit(struct session *s, const Nacre__V1__ExecExit *exit)
{
	if (!exit)
		return;
	(void)str_copy(s->reason, sizeof(s->reason), exit->reason);
	session_end(s, SESSION_EXITED, exit->exit_code);
	/* The end of the call is still to come; nobody waits for it. */
}

static void session_exec_message(struct client_call *call, const ProtobufCMessage *message)
{
	struct session *s = container_of(call, struct session, call);
	const Nacre__V1__ExecResponse *m = (const Nacre__V1__ExecResponse *)message;

	session_output(s, STDOUT_FILENO, &m->stdout);
	session_output(s, STDERR_FILENO, &m->stderr);
	session_exit(s, m->exit);
}

static void session_attach_message(struct client_call *call, const ProtobufCMessage *message)
{
	struct session *s = container_of(call, struct session, call);
	const Nacre__V1__AttachResponse *m = (const Nacre__V1__AttachResponse *)message;

	if (m->skipped && s->fall_back) {
		session_end(s, SESSION_BEHIND, 0);
		return;
	}
	session_output(s, STDOUT_FILENO, &m->stdout);
	session_output(s, STDERR_FILENO, &m->stderr);
	session_exit(s, m->exit);
}

/* ---- the whole ---- */

Nacre__V1__TerminalSize *session_size(Nacre__V1__TerminalSize *size)
{
	static const int fds[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };

	nacre__v1__terminal_size__init(size);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (tty_measure(fds[i], &size->width, &size->height))
			return size;
	return NULL;
}

int session_check_tty(bool tty, bool interactive, struct error *err)
{
	const char *name = interactive ? "input" : "output";

	if (!tty || isatty(interactive ? STDIN_FILENO : STDOUT_FILENO))
		return 0;
	return error_refuse(err, ERROR_PRECONDITION,
			    "--tty needs a terminal, and standard %s is none", name);
}

int session_init(struct session *s, struct error *err)
{
	static const int signals[] = { SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
				       SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT };
	size_t n = s->tty ? ARRAY_SIZE(signals) : ARRAY_SIZE(signals) - 3;
	sigset_t wake;
	int r;

	s->terminal = (struct tty)TTY_INIT;
	r = loop_signal_init(&s->signals, client_loop(s->client), signals, n, session_signal);
	if (r < 0)
		return error_set(err, r, "listen to signals");
	s->signals_on = true;
	loop_timer_init(&s->leaving, client_loop(s->client), session_leave);
	(void)sigemptyset(&wake);
	(void)sigaddset(&wake, SIGINT);
	(void)sigaddset(&wake, SIGTERM);
	s->wake_fd = signalfd(-1, &wake, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->wake_fd < 0 ? error_set(err, -errno, "listen to signals") : 0;
}

static void session_settle(struct session *s)
{
	if (s->ended)
		return;
	if (s->call.err.code) {
		s->err = s->call.err;
		s->end = SESSION_FAILED;
		return;
	}
	(void)error_refuse(&s->err, ERROR_FAULT, "the daemon did not tell how the program ended");
	s->end = SESSION_FAILED;
}

void session_run(struct session *s, const ProtobufCMessage *first)
{
	s->call.type = s->exec ? &nacre__v1__exec_response__descriptor
			       : &nacre__v1__attach_response__descriptor;
	s->call.on_message = s->exec ? session_exec_message : session_attach_message;
	s->call.on_writable = session_writable;
	s->call.more = true;
	client_call_start(s->client, &s->call,
			  s->exec ? "/nacre.v1.WorkloadService/Exec"
				  : "/nacre.v1.WorkloadService/Attach",
			  first);
	if (s->tty && isatty(STDIN_FILENO) && !s->call.done &&
	    tty_init(&s->terminal, STDIN_FILENO, &s->call.err) < 0)
		s->call.done = true;
	/* A program that stays silent would never find out. */
	if (s->tty && !isatty(STDOUT_FILENO))
		loop_fd_init(&s->reader, client_loop(s->client), STDOUT_FILENO, LOOP_READ,
			     session_reader);
	if (s->stdin) {
		s->chunk = xrealloc(NULL, 2 * SESSION_CHUNK + DETACH_KEYS_MAX, 1);
		loop_fd_init(&s->input, client_loop(s->client), STDIN_FILENO, LOOP_READ,
			     session_input);
	}
	(void)client_call_wait(s->client, &s->call);
	loop_fd_done(&s->input);
	loop_fd_done(&s->reader);
	tty_done(&s->terminal);
	session_settle(s);
	client_call_done(&s->call);
}

void session_done(struct session *s)
{
	loop_fd_done(&s->input);
	loop_fd_done(&s->reader);
	client_call_done(&s->call);
	if (s->signals_on) {
		loop_signal_done(&s->signals);
		loop_timer_done(&s->leaving);
		s->wake_fd = fd_close(s->wake_fd);
	}
	tty_done(&s->terminal);
	free(s->chunk);
	s->chunk = NULL;
}

Nacre__V1__WaitResponse *session_after_loss(struct client *client, const char *target)
{
	Nacre__V1__WaitRequest request = NACRE__V1__WAIT_REQUEST__INIT;
	struct client_call call = {
		.type = &nacre__v1__wait_response__descriptor,
		.timeout = SESSION_LOSS_PATIENCE,
	};
	ProtobufCMessage *answer = NULL;

	request.target = (char *)(uintptr_t)target;
	client_call_start(client, &call, "/nacre.v1.WorkloadService/Wait", &request.base);
	if (client_call_wait(client, &call) == 0)
		answer = TAKE_PTR(call.answer);
	client_call_done(&call);
	return (Nacre__V1__WaitResponse *)answer;
}
