/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A helper may start others, such as who asks for a passphrase: all of them are one process group,
 * which is killed as a whole where it is waited for no longer. That is also when we are told to
 * end: signals that would end us wait until the group has gone. So that it may ask, it is the
 * terminal's foreground group for as long; what is typed to end us ends it, and then us.
 */

#include "cli/images/credential_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "wire/document/jsonread.h"
#include "wire/document/jsonwrite.h"

/* What helpers of Docker's protocol say where they have nothing. */
#define HELPER_NONE "credentials not found in native keychain"

struct credential_helper {
	char *program;
	const char *verb;     /* "get", "store", "erase" */
	const char *question; /* that it is handed */
	pid_t pid;            /* and its group's */
	int pidfd;
	nsec_t due;
	struct buf answer;
	int status;    /* as wait() tells it */
	int signal_fd; /* readable: we shall end */
	int tty_fd;    /* of which its group has the foreground; -1 */
	sigset_t mask; /* ours, before */
};

bool credential_helper_is_name(const char *name)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

	return *name && strlen(name) <= 64 && strspn(name, letters) == strlen(name);
}

static void helper_wipe(struct credential_helper *h)
{
	if (h->answer.base)
		explicit_bzero(h->answer.base, h->answer.size);
	buf_done(&h->answer);
}

static nsec_t helper_patience(void)
{
	const char *text = getenv(CREDENTIAL_HELPER_ENV);
	uint64_t seconds = CREDENTIAL_HELPER_SECONDS;

	if (text && parse_u64(text, 1, CREDENTIAL_HELPER_SECONDS, &seconds) < 0)
		seconds = CREDENTIAL_HELPER_SECONDS;
	return seconds * NSEC_PER_SEC;
}

/* The question is short: it lies in the pipe before there is anybody who could end without reading
 * it. */
static int helper_question(const char *question, int *ret_fd, struct error *err)
{
	_cleanup_fd_ int from = -1;
	_cleanup_fd_ int to = -1;
	int pair[2];
	ssize_t n;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make a pipe");
	from = pair[0];
	to = pair[1];
	n = write(to, question, strlen(question));
	if (n != (ssize_t)strlen(question))
		return error_set(err, n < 0 ? -errno : -EIO, "write into a pipe");
	*ret_fd = TAKE_FD(from);
	return 0;
}

/* ---- signals, and the terminal ---- */

/* Those that would end us now; and who is not in the foreground may take it back. */
static int helper_hold_signals(struct credential_helper *h, struct error *err)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
	struct sigaction action;
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			(void)sigaddset(&set, signals[i]);
	h->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (h->signal_fd < 0)
		return error_set(err, -errno, "listen for signals");
	(void)sigaddset(&set, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &set, &h->mask);
	return 0;
}

/* What came meanwhile ends us here. */
static void helper_release_signals(struct credential_helper *h)
{
	h->signal_fd = fd_close(h->signal_fd);
	(void)sigprocmask(SIG_SETMASK, &h->mask, NULL);
}

/* The terminal, where we have its foreground. */
static int helper_open_tty(void)
{
	_cleanup_fd_ int fd =
		sysio_openat(AT_FDCWD, "/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0);

	return fd >= 0 && tcgetpgrp(fd) == getpgrp() ? TAKE_FD(fd) : -1;
}

static void helper_take_tty_back(struct credential_helper *h)
{
	if (h->tty_fd >= 0)
		(void)tcsetpgrp(h->tty_fd, getpgrp());
	h->tty_fd = fd_close(h->tty_fd);
}

/* ---- one run ---- */

static int helper_attributes(const struct credential_helper *h, posix_spawnattr_t *attributes)
{
	int r = posix_spawnattr_setflags(attributes,
					 POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);

	if (r == 0)
		r = posix_spawnattr_setpgroup(attributes, 0);
	return r == 0 ? posix_spawnattr_setsigmask(attributes, &h->mask) : r;
}

static int helper_actions(const struct credential_helper *h, int in_fd, int out_fd,
			  posix_spawn_file_actions_t *actions)
{
	int r = 0;

	if (h->tty_fd >= 0)
		r = posix_spawn_file_actions_addtcsetpgrp_np(actions, h->tty_fd);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, in_fd, STDIN_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, out_fd, STDOUT_FILENO);
	/* Not what the caller of this program left open. */
	return r == 0 ? posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1) : r;
}

/* Should: run it as the user, with his environment and his terminal. Must not: hand down anything
 * else, or put a secret into its arguments. */
static int helper_spawn(struct credential_helper *h, int in_fd, int out_fd, struct error *err)
{
	char *argv[] = { h->program, (char *)(uintptr_t)h->verb, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r;

	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return error_set(err, -r, "start %s", h->program);
	(void)posix_spawnattr_init(&attributes);
	r = helper_attributes(h, &attributes);
	if (r == 0)
		r = helper_actions(h, in_fd, out_fd, &actions);
	if (r == 0)
		r = posix_spawnp(&h->pid, h->program, &actions, &attributes, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	if (r == ENOENT)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the credential helper %s is not in PATH", h->program);
	if (r == 0)
		return 0;
	(void)error_set(err, -r, "start the credential helper %s", h->program);
	err->kind = ERROR_PRECONDITION;
	return err->code;
}

/* Until fd is readable: 1. 0: the helper has ended, and it is not. -ETIME where it took too long,
 * -EINTR where we shall end. */
static int helper_wait(const struct credential_helper *h, int fd)
{
	struct pollfd p[] = { { .fd = fd, .events = POLLIN },
			      { .fd = h->signal_fd, .events = POLLIN },
			      { .fd = h->pidfd, .events = POLLIN } };

	for (;;) {
		nsec_t now = clock_mono();
		int n;

		if (now >= h->due)
			return -ETIME;
		n = poll(p, ARRAY_SIZE(p),
			 (int)((h->due - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC));
		if (n > 0)
			return p[1].revents ? -EINTR : p[0].revents != 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

/* Until it closes its output, or ends: others may have that still. */
static int helper_read(struct credential_helper *h, int fd)
{
	uint8_t piece[4096];
	ssize_t n;
	int r;

	for (;;) {
		r = helper_wait(h, fd);
		if (r <= 0)
			break;
		n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : 0;
		if (n <= 0)
			break;
		r = buf_add(&h->answer, piece, (size_t)n);
		if (r < 0)
			break;
	}
	explicit_bzero(piece, sizeof(piece));
	return r;
}

/* Whether it ends well; it stays a child that nobody has waited for. */
static bool helper_is_good(const struct credential_helper *h)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)h->pid, &info, WEXITED | WNOWAIT) == 0 &&
	       info.si_code == CLD_EXITED && info.si_status == 0;
}

/* Its end, which is brought about where r says that it went wrong. What it has left running stays
 * where it has answered: it may be what keeps a passphrase for the next time. */
static int helper_reap(struct credential_helper *h, int r)
{
	if (r == 0 && h->pidfd >= 0)
		r = MIN(helper_wait(h, h->pidfd), 0);
	h->pidfd = fd_close(h->pidfd);
	/* As long as it was not waited for, its number and that of its group are its own. */
	if (r < 0 || !helper_is_good(h))
		(void)kill(-h->pid, SIGKILL);
	while (waitpid(h->pid, &h->status, 0) < 0 && errno == EINTR)
		;
	return r;
}

static int helper_failed(const struct credential_helper *h, int r, struct error *err)
{
	if (r == -ETIME)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the credential helper %s has not answered within %llu s",
				    h->program,
				    (unsigned long long)(helper_patience() / NSEC_PER_SEC));
	if (r == -EINTR)
		return error_refuse(err, ERROR_CANCELLED, "cancelled");
	if (r == -ENOBUFS)
		return error_refuse(err, ERROR_INVALID,
				    "the credential helper %s answers with more than %zu bytes",
				    h->program, CREDENTIAL_HELPER_MAX);
	return error_set(err, r, "hear the credential helper %s", h->program);
}

static int helper_run(struct credential_helper *h, struct error *err)
{
	_cleanup_fd_ int in_fd = -1;
	_cleanup_fd_ int out_fd = -1;
	_cleanup_fd_ int from_fd = -1;
	int pair[2];
	int r;

	r = helper_question(h->question, &in_fd, err);
	if (r < 0)
		return r;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make a pipe");
	from_fd = pair[0];
	out_fd = pair[1];
	r = helper_spawn(h, in_fd, out_fd, err);
	if (r < 0)
		return r;
	out_fd = fd_close(out_fd);
	h->pidfd = pidfd_of(h->pid);
	r = helper_reap(h, helper_read(h, from_fd));
	return r < 0 ? helper_failed(h, r, err) : 0;
}

/* Must not: go on where somebody wants us to end. */
static int helper_run_alone(struct credential_helper *h, struct error *err)
{
	bool typed;
	int r = helper_hold_signals(h, err);

	if (r < 0)
		return r;
	h->tty_fd = helper_open_tty();
	typed = h->tty_fd >= 0;
	r = helper_run(h, err);
	helper_take_tty_back(h);
	typed = typed && r == 0 && WIFSIGNALED(h->status) &&
		(WTERMSIG(h->status) == SIGINT || WTERMSIG(h->status) == SIGQUIT);
	if (typed)
		(void)raise(WTERMSIG(h->status));
	if (r < 0 || typed)
		helper_wipe(h);
	helper_release_signals(h);
	return r;
}

static const char *helper_text(const struct json_value *answer, const char *name)
{
	const struct json_value *v = json_member(answer, name);

	return v && v->kind == JSON_STRING ? v->text : "";
}

static int helper_take(const struct credential_helper *h, struct arena *arena,
		       const char **ret_user, const char **ret_secret, struct error *err)
{
	struct json_value *answer;
	struct error why = ERROR_INIT;
	int r;

	/* Why it is not JSON could quote it. */
	r = json_parse(&answer, arena, h->answer.len ? (const char *)buf_data(&h->answer) : "",
		       h->answer.len, &why);
	if (r < 0 || answer->kind != JSON_OBJECT)
		return error_refuse(err, ERROR_INVALID,
				    "the answer of the credential helper %s is no JSON object",
				    h->program);
	*ret_user = helper_text(answer, "Username");
	*ret_secret = helper_text(answer, "Secret");
	return **ret_user && **ret_secret;
}

/* Exit status 1 and a sentence on its output: it has nothing for this server. */
static bool helper_has_none(const struct credential_helper *h)
{
	size_t n = strlen(HELPER_NONE);

	return WIFEXITED(h->status) && WEXITSTATUS(h->status) == 1 && h->answer.len >= n &&
	       memcmp(buf_data(&h->answer), HELPER_NONE, n) == 0;
}

/* One run, to its end. 1: it has answered well; 0: it has nothing for this server. */
static int helper_do(struct credential_helper *h, const char *name, struct error *err)
{
	int r;

	h->program = str_format("docker-credential-%s", name);
	if (!h->program)
		return error_set(err, -ENOMEM, "start a credential helper");
	h->due = clock_mono() + helper_patience();
	h->answer = (struct buf)BUF_INIT_LIMIT(CREDENTIAL_HELPER_MAX);
	h->pidfd = h->signal_fd = h->tty_fd = -1;
	r = helper_run_alone(h, err);
	if (r < 0 || helper_has_none(h))
		return r;
	if (WIFSIGNALED(h->status))
		return error_refuse(err, ERROR_PRECONDITION,
				    "the credential helper %s was ended by signal %d", h->program,
				    WTERMSIG(h->status));
	if (WEXITSTATUS(h->status) != 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the credential helper %s ended with status %d", h->program,
				    WEXITSTATUS(h->status));
	return 1;
}

static void helper_done(struct credential_helper *h)
{
	helper_wipe(h);
	free(h->program);
}

int credential_helper_get(const char *name, const char *server, struct arena *arena,
			  const char **ret_user, const char **ret_secret, struct error *err)
{
	struct credential_helper h = { .verb = "get", .question = server };
	int r = helper_do(&h, name, err);

	if (r > 0)
		r = helper_take(&h, arena, ret_user, ret_secret, err);
	helper_done(&h);
	return r;
}

int credential_helper_erase(const char *name, const char *server, struct error *err)
{
	struct credential_helper h = { .verb = "erase", .question = server };
	int r = helper_do(&h, name, err);

	helper_done(&h);
	return r;
}

int credential_helper_store(const char *name, const char *server, const char *user,
			    const char *secret, struct error *err)
{
	const char *const members[][2] = { { "ServerURL", server },
					   { "Username", user },
					   { "Secret", secret } };
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct credential_helper h = { .verb = "store" };
	int r = buf_add_str(&b, "{");

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(members); i++) {
		r = json_write_name(&b, members[i][0]);
		if (r == 0)
			r = json_write_text(&b, members[i][1]);
	}
	if (r == 0)
		r = buf_add(&b, "}", sizeof("}"));
	if (r < 0)
		return error_set(err, r, "start a credential helper");
	h.question = (const char *)buf_data(&b);
	r = helper_do(&h, name, err);
	helper_done(&h);
	explicit_bzero(b.base, b.size);
	return MIN(r, 0);
}
