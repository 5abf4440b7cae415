/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/output/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "base/file/fd.h"

void terminal_done(struct terminal *t)
{
	isolate_pty_done(&t->pty);
}

void terminal_let_go(struct terminal *t)
{
	t->pty.slave_fd = fd_close(t->pty.slave_fd);
}

int terminal_resize(const struct terminal *t, const struct terminal_size *size, struct error *err)
{
	struct winsize ws = { .ws_row = size->height, .ws_col = size->width };

	if (!terminal_is_open(t))
		return error_field(err, ERROR_PRECONDITION, "terminal", "the program has none");
	if (ioctl(t->pty.master_fd, TIOCSWINSZ, &ws) < 0)
		return error_set(err, -errno, "set the size of the terminal");
	return 0;
}

static int terminal_prepare(struct terminal *t, const struct terminal_size *size, struct error *err)
{
	int r = 0;

	if (size->width || size->height)
		r = terminal_resize(t, size, err);
	if (r < 0)
		terminal_done(t);
	return r;
}

int terminal_open_new(struct terminal *t, const struct isolate_ids *ids,
		      const struct terminal_size *size, struct error *err)
{
	int r = isolate_pty_new(&t->pty, ids, err);

	return r < 0 ? r : terminal_prepare(t, size, err);
}

int terminal_open_of(struct terminal *t, int proc_fd, pid_t pid, const struct terminal_size *size,
		     struct error *err)
{
	int r = isolate_pty_of(&t->pty, proc_fd, pid, err);

	return r < 0 ? r : terminal_prepare(t, size, err);
}

int terminal_dup(const struct terminal *t, struct error *err)
{
	int fd = fcntl(t->pty.master_fd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? error_set(err, -errno, "copy a terminal's descriptor") : fd;
}
