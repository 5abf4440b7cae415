/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "foreign/model.h"
#include "provider/vm_words.h"
#include "vm/driver/relay.h"

/*
 * What a guest is asked before its end, and what is said of it afterwards. The relay closes a
 * connection to the console once all was read of one that has ended.
 */

#define FOREIGN_CONSOLE_PATIENCE (2 * NSEC_PER_SEC)

/* ---- asking ---- */

static void foreign_press(struct foreign *f)
{
	struct error err = ERROR_INIT;

	if (f->vm && f->vm->driver->stop(f->vm, &err) < 0)
		log_warn("cannot press the power button of a machine", LOG_STR("machine", f->title),
			 LOG_ERR(&err));
}

static void foreign_agent_over(struct foreign *f)
{
	loop_fd_done(&f->agent);
	f->agent_fd = fd_close(f->agent_fd);
}

/* One byte that says which, and words for people. */
static void foreign_on_agent(struct loop_fd *source, unsigned events)
{
	struct foreign *f = container_of(source, struct foreign, agent);
	char answer[192] = "";
	ssize_t n = recv(f->agent_fd, answer, sizeof(answer) - 1, MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	foreign_agent_over(f);
	if (n > 0 && answer[0] == RELAY_ASKED)
		return;
	log_info("the agent of a guest does not end it", LOG_STR("machine", f->title),
		 LOG_STR("reason",
			 n > 0 && answer[0] == RELAY_REFUSED ? answer + 1 : "it does not answer"));
	foreign_press(f);
}

void foreign_ask_to_end(struct foreign *f)
{
	struct error err = ERROR_INIT;

	if (f->agent_fd >= 0)
		return;
	f->agent_fd = relay_ask_agent(f->dir_fd, &err);
	if (f->agent_fd >= 0) {
		loop_fd_init(&f->agent, f->all->config.loop, f->agent_fd, LOOP_READ,
			     foreign_on_agent);
		return;
	}
	log_warn("the agent of a guest cannot be asked", LOG_STR("machine", f->title),
		 LOG_ERR(&err));
	foreign_press(f);
}

void foreign_kill(struct foreign *f)
{
	f->unwanted = true;
	if (f->vm)
		f->vm->driver->kill(f->vm);
}

/* ---- its end ---- */

static void foreign_last_over(struct foreign *f)
{
	loop_fd_done(&f->last);
	loop_timer_stop(&f->patience);
	f->last_fd = fd_close(f->last_fd);
}

static void foreign_tell_end(struct foreign *f)
{
	char console[FOREIGN_CONSOLE_MAX] = "";
	/* The listener lets go of it first. */
	const struct vm_end end = f->end;

	foreign_last_over(f);
	if (f->tail)
		vm_words(f->tail, f->n_tail, console, sizeof(console));
	if (f->events)
		f->events->on_end(f->userdata, &end, console);
}

static void foreign_on_patience(struct loop_timer *t)
{
	foreign_tell_end(container_of(t, struct foreign, patience));
}

static void foreign_on_last(struct loop_fd *source, unsigned events)
{
	struct foreign *f = container_of(source, struct foreign, last);
	ssize_t n = -1;

	(void)events;
	if (f->n_tail < RELAY_RING_MAX)
		n = recv(f->last_fd, f->tail + f->n_tail, RELAY_RING_MAX - f->n_tail, MSG_DONTWAIT);
	if (n > 0)
		f->n_tail += (size_t)n;
	else if (f->n_tail == RELAY_RING_MAX || n == 0 || (errno != EAGAIN && errno != EINTR))
		foreign_tell_end(f);
}

void foreign_over(struct foreign *f, const struct vm_end *end)
{
	f->ended = true;
	f->end = *end;
	f->tail = malloc(RELAY_RING_MAX);
	f->last_fd = f->tail ? relay_console(f->dir_fd, true, NULL) : -1;
	if (f->last_fd >= 0)
		loop_fd_init(&f->last, f->all->config.loop, f->last_fd, LOOP_READ, foreign_on_last);
	loop_timer_set(&f->patience, f->last_fd >= 0 ? FOREIGN_CONSOLE_PATIENCE : 0);
}

void foreign_end_init(struct foreign *f)
{
	f->agent_fd = -1;
	f->last_fd = -1;
	loop_timer_init(&f->patience, f->all->config.loop, foreign_on_patience);
}

void foreign_end_done(struct foreign *f)
{
	foreign_agent_over(f);
	loop_fd_done(&f->last);
	loop_timer_done(&f->patience);
	f->last_fd = fd_close(f->last_fd);
	free(f->tail);
	f->tail = NULL;
}
