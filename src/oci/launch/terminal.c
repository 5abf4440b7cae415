/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "oci/config/given.h"
#include "oci/launch/message.h"
#include "oci/launch/relay.h"

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
	struct relay relay;
	int pidfd, signal_fd;
	int *master_fd; /* the caller's */
	int output_fd;  /* our own standard output again, or -1 */
	bool raw;
	struct termios before;
};

static void stay_set_raw(struct stay *s)
{
	struct termios t;

	if (*s->master_fd < 0 || tcgetattr(STDIN_FILENO, &s->before) < 0)
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
	s->output_fd = fd_close(s->output_fd);
}

/*
 * A terminal says that it can be written to while it takes a single byte, and a longer write waits
 * until it is read: for ever, where it is paused. So it is opened once more, for us alone, to be
 * written to without waiting. Where that cannot be it is as it was given.
 */
static int stay_open_output(struct stay *s)
{
	struct stat own, again;

	if (*s->master_fd >= 0 && isatty(STDOUT_FILENO))
		s->output_fd = given_open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK, 0);
	if (s->output_fd >= 0 &&
	    (fstat(STDOUT_FILENO, &own) < 0 || fstat(s->output_fd, &again) < 0 ||
	     own.st_dev != again.st_dev || own.st_ino != again.st_ino))
		s->output_fd = fd_close(s->output_fd);
	return s->output_fd >= 0 ? s->output_fd : STDOUT_FILENO;
}

static void stay_resize(const struct stay *s)
{
	struct winsize ws;

	if (*s->master_fd >= 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &ws) == 0)
		(void)ioctl(*s->master_fd, TIOCSWINSZ, &ws);
}

static bool stay_is_end(uint32_t signal)
{
	return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

static void stay_on_signal(struct stay *s)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH)
		stay_resize(s);
	else if (s->relay.last && stay_is_end(info.ssi_signo))
		relay_stop(&s->relay); /* nobody else is left whom it can end */
	else if (info.ssi_signo == SIGPIPE && info.ssi_pid == (uint32_t)getpid())
		return; /* of our own writing */
	else if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGURG)
		(void)pidfd_kill(s->pidfd, (int)info.ssi_signo);
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

/* Until the program has ended, and what it has written last is written here. */
static int stay_loop(struct stay *s, struct error *err)
{
	enum { STAY_PID = RELAY_POLL_COUNT, STAY_SIGNAL, STAY_COUNT };

	while (!s->relay.last || !relay_is_done(&s->relay)) {
		struct pollfd p[STAY_COUNT] = {
			[STAY_PID] = { .fd = s->relay.last ? -1 : s->pidfd, .events = POLLIN },
			[STAY_SIGNAL] = { .fd = s->signal_fd, .events = POLLIN },
		};

		relay_polls(&s->relay, p);
		if (poll(p, ARRAY_SIZE(p), -1) < 0) {
			if (errno == EINTR)
				continue;
			return error_set(err, -errno, "wait for the program");
		}
		if (p[STAY_SIGNAL].revents)
			stay_on_signal(s);
		relay_step(&s->relay, p);
		/* As it is when a terminal's window is closed: the program gets SIGHUP. */
		if (s->relay.unread) {
			relay_stop(&s->relay);
			*s->master_fd = fd_close(*s->master_fd);
		}
		if (p[STAY_PID].revents)
			relay_finish(&s->relay);
	}
	return 0;
}

int terminal_stay(int pidfd, int *master_fd, struct error *err)
{
	_cleanup_(stay_done) struct stay s = {
		.pidfd = pidfd, .master_fd = master_fd, .signal_fd = -1, .output_fd = -1
	};
	sigset_t all;
	int r;

	(void)sigfillset(&all);
	s.signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.signal_fd < 0)
		return error_set(err, -errno, "listen for signals");
	if (*master_fd >= 0)
		(void)fd_set_nonblock(*master_fd, true);
	relay_init(&s.relay, *master_fd, STDIN_FILENO, stay_open_output(&s));
	stay_set_raw(&s);
	stay_resize(&s);
	r = stay_loop(&s, err);
	return r < 0 ? r : stay_reap(&s, err);
}
