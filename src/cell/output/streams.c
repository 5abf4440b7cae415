/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/output/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file/fd.h"

void streams_close_child(struct streams *s)
{
	for (int i = 0; i < 3; i++)
		s->child[i] = fd_close(s->child[i]);
}

void streams_done(struct streams *s)
{
	streams_close_child(s);
	for (int i = 0; i < 3; i++)
		s->ours[i] = fd_close(s->ours[i]);
	terminal_done(&s->terminal);
}

static int streams_pipe(struct streams *s, int fd, struct error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make a pipe for descriptor %d", fd);
	s->child[fd] = ends[fd == 0 ? 0 : 1];
	s->ours[fd] = ends[fd == 0 ? 1 : 0];
	return 0;
}

static int streams_open_terminal(struct streams *s, const struct container_start *start,
				 struct error *err)
{
	int r = terminal_open_new(&s->terminal, &start->ids, &start->terminal, err);

	/* Each of the two closes its own. */
	for (int fd = start->stdin_open ? 0 : 1; r >= 0 && fd < 2; fd++) {
		r = terminal_dup(&s->terminal, err);
		s->ours[fd] = r;
	}
	return r < 0 ? r : 0;
}

int streams_open(struct streams *s, const struct container_start *start, bool logged,
		 struct error *err)
{
	int r = 0;

	if (start->tty)
		return streams_open_terminal(s, start, err);
	if (start->stdin_open)
		r = streams_pipe(s, 0, err);
	if (r == 0 && logged)
		r = streams_pipe(s, 1, err);
	if (r == 0 && logged)
		r = streams_pipe(s, 2, err);
	return r;
}
