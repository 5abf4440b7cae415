/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/input.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sysio.h"
#include "cell/spec.h"

void input_init(struct input *in, struct loop *l)
{
	*in = (struct input){ .loop = l, .fd = -1 };
}

static void input_close(struct input *in)
{
	loop_fd_done(&in->source);
	in->fd = fd_close(in->fd);
	buf_done(&in->data);
}

/* The completion may write again, so it comes last. */
static void input_finish(struct input *in, const struct error *err)
{
	input_done_fn done = in->done;

	in->done = NULL;
	if (in->closing || err)
		input_close(in);
	else
		loop_fd_set(&in->source, 0);
	done(in->userdata, err);
}

static void input_fail(struct input *in, int r)
{
	struct error err = ERROR_INIT;

	if (r == -EPIPE)
		(void)error_refuse(&err, ERROR_PRECONDITION,
				   "the container has closed its standard input");
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
		return error_refuse(err, ERROR_EXHAUSTED, "data: %zu bytes are more than %zu", len,
				    CONTAINER_STDIN_MAX);
	r = buf_add(&in->data, data, len);
	if (r < 0)
		return error_set(err, r, "copy data for the standard input");
	in->closing = close;
	in->done = done;
	in->userdata = userdata;
	loop_fd_set(&in->source, LOOP_WRITE);
	return 0;
}

static void input_unwaited(void *userdata, const struct error *err)
{
	(void)userdata;
	(void)err;
}

void input_resume(struct input *in)
{
	if (in->fd < 0)
		return;
	loop_fd_init(&in->source, in->loop, in->fd, 0, input_event);
	if (in->data.len == 0 && !in->closing)
		return;
	in->done = input_unwaited;
	loop_fd_set(&in->source, LOOP_WRITE);
}

void input_end(struct input *in)
{
	if (in->done)
		input_fail(in, -EPIPE);
	else
		input_close(in);
}

void input_done(struct input *in)
{
	in->done = NULL;
	input_close(in);
}
