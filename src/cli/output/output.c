/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "cli/table/command.h"

bool output_has_color(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && str_empty(getenv("NO_COLOR")) && term && !str_eq(term, "dumb");
}

bool output_has_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (!str_empty(value))
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

static struct winsize output_size(int fd)
{
	struct winsize size = { .ws_col = 0 };

	if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) < 0)
		return (struct winsize){ .ws_col = 0 };
	return size;
}

unsigned output_width(int fd)
{
	return output_size(fd).ws_col;
}

unsigned output_height(int fd)
{
	return output_size(fd).ws_row;
}

/* The first error of a write, but for want of a reader; 0. Those who write stop by what they are
 * told, and output_finish() says it. */
static int output_error;

static int output_failed(int error)
{
	if (error != EPIPE && !output_error)
		output_error = error;
	return -error;
}

int output_write(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = write(fd, at, len);
		struct pollfd wait = { .fd = fd, .events = POLLOUT };

		if (n >= 0) {
			at += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			(void)poll(&wait, 1, -1);
		} else if (errno != EINTR) {
			return output_failed(errno);
		}
	}
	return 0;
}

/* A pipe that polls writable takes PIPE_BUF bytes without blocking, also where it is not
 * non-blocking: to make it so would change it for those who share it. */
int output_write_unless(int fd, const void *data, size_t len, int wake_fd, int patience_ms)
{
	const char *at = data;

	while (len > 0) {
		struct pollfd look[] = { { .fd = fd, .events = POLLOUT },
					 { .fd = wake_fd, .events = POLLIN } };
		size_t n = MIN(len, (size_t)PIPE_BUF);
		int r;

		if (poll(look, ARRAY_SIZE(look), -1) < 0 && errno != EINTR)
			return output_failed(errno);
		if (!look[0].revents && look[1].revents && poll(look, 1, patience_ms) == 0)
			return -EINTR;
		if (!look[0].revents)
			continue;
		r = output_write(fd, at, n);
		if (r < 0)
			return r;
		at += n;
		len -= n;
	}
	return 0;
}

int output_flush(void)
{
	return fflush(stdout) == 0 ? 0 : output_failed(errno);
}

int output_finish(int status)
{
	(void)output_flush();
	if (!output_error)
		return status;
	return cli_complain("cannot write the output: %s", strerror(output_error));
}
