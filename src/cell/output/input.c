/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/output/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "cell/spec.h"

void input_init(struct input *in, struct loop *l)
{
	*in = (struct input){ .loop = l, .fd = -1 };
	list_init(&in->waiters);
}

static void input_close(struct input *in)
{
	loop_fd_done(&in->source);
	in->fd = fd_close(in->fd);
	buf_done(&in->data);
}

/* Those who wait: one after the other where it is open, so that each gets its turn. */
static void input_tell(struct input *in)
{
	struct input_waiter *w;

	while (!in->done) {
		w = list_first(&in->waiters, struct input_waiter, link);
		if (!w)
			return;
		list_remove(&w->link);
		w->fn(w);
	}
}

/* The completion may write again. */
static void input_finish(struct input *in, const struct error *err)
{
	input_done_fn done = in->done;

	in->done = NULL;
	if (in->closing || err)
		input_close(in);
	else
		loop_fd_set(&in->source, 0);
	done(in->userdata, err);
	input_tell(in);
}

static void input_fail(struct input *in, int r)
{
	struct error err = ERROR_INIT;

	if (r == -EPIPE)
		(void)error_refuse(&err, ERROR_PRECONDITION,
				   "the program has closed its standard input");
	else
		(void)error_set(&err, r, "write to the standard input");
	input_finish(in, &err);
}

static void input_event(struct loop_fd *source, unsigned events)
{
	struct input *in = container_of(source, struct input, source);

	while (in->data.len) {
		ssize_t n = sysio_write(in->fd, buf_data(&in->data), in->data.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			input_fail(in, -errno);
			return;
		}
		buf_consume(&in->data, (size_t)n);
	}
	input_finish(in, NULL);
}

int input_start(struct input *in, int fd)
{
	in->fd = fd;
	loop_fd_init(&in->source, in->loop, fd, 0, input_event);
	/* A pipe's end has a file description of its own: the program's end stays blocking. */
	return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

int input_start_terminal(struct input *in, int fd)
{
	in->is_tty = true;
	return input_start(in, fd);
}

/* What a person types at the end. In raw mode there is no such thing: the program gets nothing. */
static int input_add_end(struct input *in)
{
	struct termios t;

	if (tcgetattr(in->fd, &t) < 0 || !(t.c_lflag & ICANON))
		return 0;
	/* The first one behind a line that is not ended only hands that over. */
	if (in->inside_line && buf_add(&in->data, &t.c_cc[VEOF], 1) < 0)
		return -ENOMEM;
	return buf_add(&in->data, &t.c_cc[VEOF], 1);
}

static void input_ignore(void *userdata, const struct error *err)
{
	(void)userdata;
	(void)err;
}

void input_wait(struct input *in, struct input_waiter *w)
{
	list_add_tail(&in->waiters, &w->link);
}

void input_disown(struct input *in, const void *userdata)
{
	if (in->done && in->userdata == userdata)
		in->done = input_ignore;
}

int input_write(struct input *in, const void *data, size_t len, bool close, input_done_fn done,
		void *userdata, struct error *err)
{
	int r;

	if (in->done)
		return error_refuse(err, ERROR_PRECONDITION,
				    "an earlier write to the standard input is not finished");
	if (in->fd < 0)
		return error_refuse(err, ERROR_PRECONDITION, "the standard input is not open");
	if (len > CONTAINER_STDIN_MAX)
		return error_field(err, ERROR_EXHAUSTED, "data", "%zu bytes are more than %zu", len,
				   CONTAINER_STDIN_MAX);
	r = buf_add(&in->data, data, len);
	if (len > 0)
		in->inside_line = !strchr("\r\n", ((const char *)data)[len - 1]);
	if (r == 0 && close && in->is_tty)
		r = input_add_end(in);
	if (r < 0) {
		buf_clear(&in->data);
		return error_set(err, r, "copy data for the standard input");
	}
	in->closing = close;
	in->done = done;
	in->userdata = userdata;
	loop_fd_set(&in->source, LOOP_WRITE);
	return 0;
}

void input_resume(struct input *in)
{
	if (in->fd < 0)
		return;
	loop_fd_init(&in->source, in->loop, in->fd, 0, input_event);
	if (in->data.len == 0 && !in->closing)
		return;
	in->done = input_ignore;
	loop_fd_set(&in->source, LOOP_WRITE);
}

void input_end(struct input *in)
{
	if (in->done)
		input_fail(in, -EPIPE);
	else
		input_close(in);
	input_tell(in);
}

void input_done(struct input *in)
{
	struct input_waiter *w;

	in->done = NULL;
	input_close(in);
	list_for_each (w, &in->waiters, struct input_waiter, link)
		list_remove(&w->link);
}
