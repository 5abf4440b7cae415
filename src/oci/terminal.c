/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "oci/message.h"

int terminal_send(struct isolate_pty *pty, const char *socket, struct error *err)
{
	static const char name[] = "/dev/ptmx";
	_cleanup_fd_ int fd = message_connect(-1, socket, err);
	int r;

	if (fd < 0)
		return error_wrap(err, fd, "--console-socket");
	r = fd_set_nonblock(pty->master_fd, false);
	if (r == 0)
		r = message_send(fd, name, sizeof(name) - 1, &pty->master_fd, 1);
	if (r < 0)
		return error_set(err, r, "--console-socket: send the terminal");
	pty->master_fd = fd_close(pty->master_fd);
	return 0;
}

int terminal_set_size(const struct isolate_pty *pty, const struct oci_console_size *size,
		      struct error *err)
{
	struct winsize ws;

	if (!size)
		return 0;
	ws = (struct winsize){ .ws_row = (unsigned short)size->height.value,
			       .ws_col = (unsigned short)size->width.value };
	return ioctl(pty->master_fd, TIOCSWINSZ, &ws) < 0
		       ? error_set(err, -errno, "process.consoleSize")
		       : 0;
}

/* ---- the foreground ---- */

void terminal_block_signals(void)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
}

struct stay {
	int pidfd, master_fd, signal_fd;
	bool raw, input_ended;
	struct termios before;
};

static void stay_set_raw(struct stay *s)
{
	struct termios t;

	if (s->master_fd < 0 || tcgetattr(STDIN_FILENO, &s->before) < 0)
		return;
	t = s->before;
	cfmakeraw(&t);
	s->raw = tcsetattr(STDIN_FILENO, TCSANOW, &t) == 0;
}

static void stay_done(struct stay *s)
{
	if (s->raw)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
	s->signal_fd = fd_close(s->signal_fd);
}

static void stay_resize(const struct stay *s)
{
	struct winsize ws;

	if (s->master_fd >= 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &ws) == 0)
		(void)ioctl(s->master_fd, TIOCSWINSZ, &ws);
}

static void stay_on_signal(const struct stay *s)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH)
		stay_resize(s);
	else if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGURG)
		(void)pidfd_kill(s->pidfd, (int)info.ssi_signo);
}

/* What there is from one side to the other: false at the end. */
static bool stay_copy(int from, int to)
{
	char data[4096];
	ssize_t n = read(from, data, sizeof(data));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	return n > 0 && fd_write_full(to, data, (size_t)n) == 0;
}

/* What the program has written last, once it has ended. */
static void stay_drain(const struct stay *s)
{
	if (s->master_fd < 0 || fd_set_nonblock(s->master_fd, true) < 0)
		return;
	for (;;) {
		char data[4096];
		ssize_t n = read(s->master_fd, data, sizeof(data));

		if (n <= 0 || fd_write_full(STDOUT_FILENO, data, (size_t)n) < 0)
			return;
	}
}

static int stay_reap(const struct stay *s, struct error *err)
{
	siginfo_t info = { .si_pid = 0 };
	int r;

	do
		r = waitid(P_PIDFD, (id_t)s->pidfd, &info, WEXITED);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return error_set(err, -errno, "wait for the program");
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

int terminal_stay(int pidfd, int master_fd, struct error *err)
{
	_cleanup_(stay_done) struct stay s = { .pidfd = pidfd,
					       .master_fd = master_fd,
					       .signal_fd = -1 };
	sigset_t all;

	(void)sigfillset(&all);
	s.signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.signal_fd < 0)
		return error_set(err, -errno, "listen for signals");
	stay_set_raw(&s);
	stay_resize(&s);
	for (;;) {
		struct pollfd p[] = {
			{ .fd = s.pidfd, .events = POLLIN },
			{ .fd = s.signal_fd, .events = POLLIN },
			{ .fd = s.master_fd, .events = POLLIN },
			{ .fd = s.master_fd < 0 || s.input_ended ? -1 : STDIN_FILENO,
			  .events = POLLIN },
		};

		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return error_set(err, -errno, "wait for the program");
		if (p[1].revents)
			stay_on_signal(&s);
		if (p[2].revents && !stay_copy(s.master_fd, STDOUT_FILENO))
			s.master_fd = -1;
		if (p[3].revents && s.master_fd >= 0 && !stay_copy(STDIN_FILENO, s.master_fd))
			s.input_ended = true;
		if (p[0].revents)
			break;
	}
	stay_drain(&s);
	return stay_reap(&s, err);
}
