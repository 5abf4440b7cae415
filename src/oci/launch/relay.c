/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/relay.h"

#include <errno.h>
#include <unistd.h>

#include "base/macros.h"

void relay_init(struct relay *r, int master_fd, int input_fd, int output_fd)
{
	*r = (struct relay){ .master_fd = master_fd, .input_fd = input_fd, .output_fd = output_fd };
	if (master_fd < 0)
		relay_stop(r);
}

void relay_stop(struct relay *r)
{
	r->master_fd = -1;
	r->input.ended = r->output.ended = true;
	r->input.at = r->input.end = 0;
	r->output.at = r->output.end = 0;
}

static bool way_is_empty(const struct relay_way *w)
{
	return w->at == w->end;
}

static bool relay_failed_for_now(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Drops what cannot be written any more, and reads no more of it. */
static void way_end(struct relay_way *w)
{
	w->at = w->end = 0;
	w->ended = true;
}

/* Whether something may come later; an error ends it as the end of the file does. */
static bool way_read(struct relay_way *w, int fd)
{
	ssize_t n = read(fd, w->data, sizeof(w->data));

	if (relay_failed_for_now(n))
		return false;
	if (n <= 0) {
		w->ended = true;
		return false;
	}
	w->at = 0;
	w->end = (size_t)n;
	return true;
}

/* 0, or a negative errno where it can never be written. */
static int way_write(struct relay_way *w, int fd)
{
	ssize_t n = write(fd, w->data + w->at, w->end - w->at);

	if (n < 0)
		return relay_failed_for_now(n) ? 0 : -errno;
	w->at += (size_t)n;
	return 0;
}

/* What is not waited for has no descriptor: the kernel reports POLLHUP and POLLERR whether they
 * are asked for or not, and would do so again and again. */
static struct pollfd relay_poll(int fd, short events)
{
	return (struct pollfd){ .fd = events ? fd : -1, .events = events };
}

void relay_polls(const struct relay *r, struct pollfd polls[RELAY_POLL_COUNT])
{
	bool reads = !r->output.ended && way_is_empty(&r->output);
	bool takes = !r->input.ended && way_is_empty(&r->input);
	short master = (short)((reads ? POLLIN : 0) | (way_is_empty(&r->input) ? 0 : POLLOUT));
	bool is_watched = r->master_fd >= 0 && !r->unread;

	polls[RELAY_POLL_MASTER] = relay_poll(r->master_fd, master);
	polls[RELAY_POLL_INPUT] = relay_poll(r->input_fd, takes ? POLLIN : 0);
	polls[RELAY_POLL_OUTPUT] = (struct pollfd){
		.fd = is_watched ? r->output_fd : -1,
		.events = way_is_empty(&r->output) ? 0 : POLLOUT,
	};
}

static void relay_step_output(struct relay *r, short master, short output)
{
	if (master & ~POLLOUT && !r->output.ended && way_is_empty(&r->output)) {
		(void)way_read(&r->output, r->master_fd);
		/* Without a slave nobody is there to take input either. */
		if (r->output.ended)
			way_end(&r->input);
		return;
	}
	/* Also while there is nothing to be written. */
	if (output & (POLLERR | POLLHUP | POLLNVAL) ||
	    (output && way_write(&r->output, r->output_fd) < 0))
		r->unread = true;
	if (r->unread)
		way_end(&r->output);
}

static void relay_step_input(struct relay *r, short master, short input)
{
	if (input && !r->input.ended && way_is_empty(&r->input)) {
		(void)way_read(&r->input, r->input_fd);
		return;
	}
	if (!(master & ~POLLIN) || way_is_empty(&r->input))
		return;
	if (way_write(&r->input, r->master_fd) < 0 ||
	    (master & POLLHUP && !way_is_empty(&r->input)))
		way_end(&r->input);
}

void relay_step(struct relay *r, const struct pollfd polls[RELAY_POLL_COUNT])
{
	short master = polls[RELAY_POLL_MASTER].revents;

	relay_step_output(r, master, polls[RELAY_POLL_OUTPUT].revents);
	relay_step_input(r, master, polls[RELAY_POLL_INPUT].revents);
	if (r->last)
		relay_finish(r);
}

void relay_finish(struct relay *r)
{
	r->last = true;
	way_end(&r->input);
	if (!r->output.ended && way_is_empty(&r->output) && !way_read(&r->output, r->master_fd))
		r->output.ended = true;
}

bool relay_is_done(const struct relay *r)
{
	return r->output.ended && way_is_empty(&r->output);
}
