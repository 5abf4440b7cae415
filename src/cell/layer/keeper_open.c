/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked of an exec or an attachment that is open already: no matter for the registry. */
#include "cell/container/container.h"
#include "cell/container/exec.h"
#include "cell/layer/keeper.h"
#include "cell/output/attach.h"
#include "cell/output/terminal.h"

/* ---- exec ---- */

void keeper_exec_pause(struct keeper_exec *x, bool paused)
{
	exec_pause(x, paused);
}

void keeper_exec_cancel(struct keeper_exec *x)
{
	exec_cancel(x);
}

int keeper_exec_write(struct keeper_exec *x, const void *data, size_t len, bool close,
		      void (*done)(void *userdata, const struct error *err), struct error *err)
{
	return exec_write(x, data, len, close, done, err);
}

int keeper_exec_resize(struct keeper_exec *x, const struct terminal_size *size, struct error *err)
{
	return exec_resize(x, size, err);
}

int keeper_exec_signal(struct keeper_exec *x, int sig, struct error *err)
{
	return exec_signal(x, sig, err);
}

/* ---- attach ---- */

static struct container *keeper_attached_to(const struct keeper_attach *a)
{
	return container_of(attach_point_of(a), struct container, attach);
}

void keeper_attach_pause(struct keeper_attach *a, bool paused)
{
	attach_pause(a, paused);
}

int keeper_attach_write(struct keeper_attach *a, const void *data, size_t len, bool close,
			void (*done)(void *userdata, const struct error *err), struct error *err)
{
	return attach_write(a, data, len, close, done, err);
}

int keeper_attach_resize(struct keeper_attach *a, const struct terminal_size *size,
			 struct error *err)
{
	struct container *c = keeper_attached_to(a);

	if (!c->tty)
		return error_field(err, ERROR_INVALID, "input.terminal", "container %s has none",
				   c->name);
	return terminal_is_open(&c->terminal) ? terminal_resize(&c->terminal, size, err) : 0;
}

int keeper_attach_signal(struct keeper_attach *a, int sig, struct error *err)
{
	return container_signal(keeper_attached_to(a), sig, false, err);
}

void keeper_attach_leave(struct keeper_attach *a)
{
	attach_free(a);
}
